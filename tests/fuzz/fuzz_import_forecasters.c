// Any bytes as rows of GPU Forecasters. They are refused with one sentence, or give a space whose
// rows, written and read again, have the same names, sources and speedups.
#include "client/space/space_import.h"
#include "client/space/space_json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void look_at(const struct space *space)
{
    static const struct space_import plain = {NULL, NULL, NULL};
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT, rows = STRBUF_INIT;
    require(space_pack(space, "f.json", &packed, &err) == 0);
    for (size_t i = 0; i < space->head.candidates; i++) {
        struct strbuf source = STRBUF_INIT;
        const struct bytes *text = &space->candidate[i].source;
        strbuf_add(&source, text->data, text->len);
        space_json_pair(&rows, space, i, &space->head.baseline_text, &source);
        strbuf_release(&source);
    }
    struct space again;
    // A speedup that is a sum over many rows can exceed a double's range; it is null in a row.
    int rc = space_import_forecasters(&again, rows.data, rows.len, "f.json", &plain, &err);
    bool finite = true;
    for (size_t i = 0; i < space->head.candidates; i++) {
        finite = finite && isfinite(exp2(space_log2(&space->candidate[i]))) &&
                 exp2(space_log2(&space->candidate[i])) > 0;
    }
    require((rc == 0) == finite);
    if (rc == 0) {
        require(again.head.candidates == space->head.candidates);
        for (size_t i = 0; i < space->head.candidates; i++) {
            const struct space_candidate *a = &space->candidate[i], *b = &again.candidate[i];
            require(strcmp(a->name, b->name) == 0 && digest_equal(&a->digest, &b->digest));
            require(fabs(space_log2(a) - space_log2(b)) <= 1e-9 + 1e-9 * fabs(space_log2(a)));
        }
        space_release(&again);
    }
    strbuf_release(&rows);
    strbuf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct space_import how[] = {
        {NULL, NULL, NULL}, {"p", NULL, NULL}, {NULL, "H100", "one"}};
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        struct err err = ERR_INIT;
        struct space space;
        if (space_import_forecasters(&space, data, len, "f.json", &how[i], &err) != 0) {
            require(strncmp(err.text, "f.json", 6) == 0);
            continue;
        }
        look_at(&space);
        space_release(&space);
    }
    return 0;
}

// Any bytes as a file of Kernel Tuner. They are refused with one sentence, or give a space that can
// be written and printed.
#include "client/space/space_import.h"
#include "client/space/space_json.h"
#include <jansson.h>
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
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT;
    require(space_pack(space, "f.json", &packed, &err) == 0);
    struct space again;
    require(space_parse(&again, packed.data, packed.len, "f.json", &err) == 0);
    require(message_equal(&space_head_message, &space->head, &again.head));
    size_t correct = 0;
    for (size_t i = 0; i < space->head.candidates; i++) {
        const struct space_candidate *c = &space->candidate[i];
        require(message_equal(&space_candidate_message, c, &again.candidate[i]));
        require(c->params_count > 0);
        correct += isfinite(space_log2(c));
        require(!c->result || c->result->seconds->held >= 0);
        struct strbuf line = STRBUF_INIT;
        space_json_candidate(&line, space, i);
        json_t *object = json_loadb(line.data, line.len, 0, NULL);
        require(json_is_object(object) && json_object_get(object, "verdict"));
        json_decref(object);
        strbuf_release(&line);
    }
    require(correct > 0); // at least the baseline
    space_release(&again);
    strbuf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct space_import how[] = {
        {NULL, NULL, NULL}, {"p", "d", NULL}, {"scale", "cpu", "BLOCK=16,KIND=1.0f"}};
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        struct err err = ERR_INIT;
        struct space space;
        if (space_import_kernel_tuner(&space, data, len, "f.json", &how[i], &err) != 0) {
            require(strncmp(err.text, "f.json", 6) == 0);
            continue;
        }
        look_at(&space);
        space_release(&space);
    }
    return 0;
}

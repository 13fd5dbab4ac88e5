// Any bytes as the JSON lines of `kcast eval`. They are refused with a sentence that names a line,
// or their measures are within their ranges and their table, JSON and page can be written.
#include "client/eval/eval.h"
#include "client/eval/eval_show.h"
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

static void check(struct eval *eval)
{
    const struct score_options options = {.risk = 0.1, .draws = 3, .seed = 1};
    const struct eval_page page = {eval, "f.jsonl", 0.1, 3, 1};
    eval_compute(eval, &options);
    for (size_t i = 0; i < eval->set_count; i++) {
        const struct eval_set *set = &eval->set[i];
        require(set->count + set->unmeasured > 0);
        for (enum score_metric m = 0; m < SCORE_COUNT; m++) {
            double value = set->value[m].value;
            bool open = m == SCORE_CRPS || m == SCORE_NLL;
            require(isnan(value) || (value >= -1 - 1e-9 && (open || value <= 1 + 1e-9)));
            require(set->value[m].rows <= set->count);
            require(isnan(set->value[m].lo) || set->value[m].lo <= set->value[m].hi);
        }
    }
    struct strbuf out = STRBUF_INIT;
    eval_table(&out, &page);
    eval_json(&out, &page);
    require(out.len > 0);
    strbuf_reset(&out);
    eval_html(&out, &page);
    // No name can contain this, because < and > are escaped.
    require(!strstr(strbuf_text(&out), ">nan<"));
    strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct eval eval;
    char *copy = xstrndup((const char *)data, len); // NUL-terminated, as a file's bytes are
    eval_init(&eval);
    struct err err = ERR_INIT;
    int rc = eval_read_lines(&eval, copy, strlen(copy), "f.jsonl", &err);
    if (rc == 0) {
        check(&eval);
    } else {
        require((rc == ERR_INVALID || rc == ERR_LIMIT) && strncmp(err.text, "f.jsonl", 7) == 0);
    }
    eval_release(&eval);
    free(copy);
    return 0;
}

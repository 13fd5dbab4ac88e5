#include "client/search_text.h"
#include "common/mem.h"
#include "contract/problem.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_history(struct search_context *ret, const struct fold *fold)
{
    uint64_t newest = 0, first;

    for (size_t i = 0; i < fold->candidate_count; i++) {
        uint64_t order = fold->candidate[i].measured_order;
        newest = order > newest ? order : newest;
    }
    first = newest > SEARCH_TEXT_HISTORY ? newest - SEARCH_TEXT_HISTORY : 0;
    ret->history = xcalloc(SEARCH_TEXT_HISTORY + 1, sizeof(*ret->history));
    ret->history_count = newest - first;
    for (size_t i = 0; i < ret->history_count; i++) {
        message_init(&tried_message, &ret->history[i]);
    }
    for (size_t i = 0; i < fold->candidate_count; i++) {
        const struct fold_candidate *candidate = &fold->candidate[i];
        struct tried *tried;

        if (candidate->measured_order <= first || candidate->result == NULL) {
            continue;
        }
        tried = &ret->history[candidate->measured_order - first - 1];
        tried->name = candidate->proposed.name != NULL ? xasprintf("%.250s", candidate->proposed.name)
                                                       : NULL;
        tried->verdict = candidate->result->verdict;
        if (verdict_is_ratio(tried->verdict) && candidate->result->speedup != NULL) {
            tried->log2 = candidate->result->speedup->log2;
        } else if (candidate->result->reason != NULL) {
            tried->reason = xasprintf("%.1000s", candidate->result->reason);
        }
    }
}

static int read_some(struct bytes *ret, const struct digest *digest, search_text_reader *read,
                     void *owner, struct err *err)
{
    return digest_is_zero(digest) ? 0 : read(owner, digest, ret, err);
}

int search_text_make(struct search_context *ret, const struct fold *fold, search_text_reader *read,
                     void *owner, struct err *err)
{
    const struct run_started *started = &fold->started;
    const struct fold_candidate *best = fold_best(fold);
    struct problem *problem = NULL;
    int code;

    message_init(&search_context_message, ret);
    code = read_some(&ret->problem_json, &started->problem_json, read, owner, err);
    if (code == 0) {
        code = read_some(&ret->readme, &started->readme, read, owner, err);
    }
    if (code == 0) {
        code = read_some(&ret->baseline, &started->baseline, read, owner, err);
    }
    if (code == 0 && best != NULL) {
        code = read_some(&ret->incumbent, &best->proposed.source, read, owner, err);
    }
    if (code == 0) {
        code = problem_parse(&problem, (const char *)ret->problem_json.data, ret->problem_json.len,
                             "problem.json", err);
    }
    if (code == 0) {
        ret->language = xstrdup(problem->cuda ? "CUDA C++" : "C");
        problem_free(problem);
        add_history(ret, fold);
    }
    return code;
}

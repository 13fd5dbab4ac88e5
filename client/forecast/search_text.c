#include "client/forecast/search_text.h"

#include "common/mem.h"
#include "problem/problem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Lists the newest of candidates 1 … visible that have an outcome, oldest first.
static void add_history(struct search_context *ret, const struct run_state *run_state,
                        uint64_t visible)
{
    const size_t step = SEARCH_TEXT_HISTORY / 2;
    size_t count = 0;

    ret->history = xcalloc(SEARCH_TEXT_HISTORY, sizeof(*ret->history));
    for (uint64_t id = 1; id <= visible; id++) {
        if (count == SEARCH_TEXT_HISTORY) {
            for (size_t i = 0; i < step; i++) {
                message_clear(&tried_message, &ret->history[i]);
            }
            memmove(ret->history, ret->history + step, (count - step) * sizeof(*ret->history));
            count -= step;
        }
        message_init(&tried_message, &ret->history[count]);
        count += search_tried(&ret->history[count], run_state, id, ret);
    }
    ret->history_count = count;
}

// The benchmark cases with the work that each needs.
static int add_cases(struct search_context *ret, const struct problem *problem, struct err *err)
{
    ret->cases = xcalloc(problem->bench_count + 1, sizeof(*ret->cases));
    for (size_t i = 0; i < problem->bench_count; i++) {
        struct bench_case *one = &ret->cases[ret->cases_count++];
        struct strbuf name = STRBUF_INIT;

        message_init(&bench_case_message, one);
        problem_case_name(problem, &problem->bench[i], &name);
        one->params = strbuf_detach(&name);
        one->weight = problem->bench[i].weight;
        if (problem->flops && problem->bytes) {
            int rc = problem_work(problem, &problem->bench[i], &one->flops, &one->bytes, err);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

// Adds the baseline's times and the lower bounds by the first of candidates 1 … visible that has
// them: later ones say the same but for noise, which would change the text.
static void add_times(struct search_context *ret, const struct run_state *run_state,
                      uint64_t visible)
{
    size_t missing = ret->cases_count;

    for (uint64_t id = 1; id <= visible && missing > 0; id++) {
        const struct result *result = run_state->candidate[id - 1].result;

        for (size_t i = 0; result && i < result->cases_count; i++) {
            for (size_t j = 0; j < ret->cases_count; j++) {
                if (isnan(ret->cases[j].baseline_ns) &&
                    strcmp(result->cases[i].params, ret->cases[j].params) == 0) {
                    ret->cases[j].baseline_ns = result->cases[i].baseline_ns->p50;
                    ret->cases[j].floor_ns = result->cases[i].floor_ns;
                    missing--;
                }
            }
        }
    }
}

// Reads a blob; an absent digest gives empty bytes.
static int read_some(struct bytes *ret, const struct digest *digest, search_text_reader *read,
                     void *owner, struct err *err)
{
    return digest_is_zero(digest) ? 0 : read(owner, digest, ret, err);
}

static int add_incumbent(struct search_context *ret, const struct run_state_candidate *best,
                         search_text_reader *read, void *owner, struct err *err)
{
    ret->incumbent_candidate = best->proposed.candidate;
    ret->incumbent_cases =
        search_case_speedups(search_result(best), ret, &ret->incumbent_cases_count);
    if (best->compiled) {
        ret->incumbent_features = message_copy_all(&fact_message, best->compiled->features,
                                                   best->compiled->features_count);
        ret->incumbent_features_count = best->compiled->features_count;
    }
    return read_some(&ret->incumbent, &best->proposed.source, read, owner, err);
}

static int read_blobs(struct search_context *ret, const struct run_started *started,
                      search_text_reader *read, void *owner, struct err *err)
{
    const struct {
        struct bytes *to;
        const struct digest *digest;
    } blob[] = {{&ret->problem_json, &started->problem_json},
                {&ret->readme, &started->readme},
                {&ret->baseline, &started->baseline}};
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(blob) && rc == 0; i++) {
        rc = read_some(blob[i].to, blob[i].digest, read, owner, err);
    }
    return rc;
}

int search_text_make(struct search_context *ret, const struct run_state *run_state,
                     uint64_t visible, search_text_reader *read, void *owner, struct err *err)
{
    const struct run_state_candidate *best = run_state_best_before(run_state, visible);
    struct problem *problem = NULL;

    message_init(&search_context_message, ret);
    int rc = read_blobs(ret, &run_state->started, read, owner, err);
    if (rc != 0) {
        goto out;
    }
    rc = problem_parse(&problem, (const char *)ret->problem_json.data, ret->problem_json.len,
                       "problem.json", err);
    if (rc != 0) {
        goto out;
    }
    ret->language = xstrdup(problem->cuda ? "CUDA C++" : "C");
    rc = add_cases(ret, problem, err);
    if (rc != 0) {
        goto out;
    }
    add_times(ret, run_state, visible);
    if (best) {
        rc = add_incumbent(ret, best, read, owner, err);
        if (rc != 0) {
            goto out;
        }
    }
    add_history(ret, run_state, visible);
out:
    problem_free(problem);
    return rc;
}

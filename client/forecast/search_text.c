#include "client/forecast/search_text.h"

#include "common/mem.h"
#include "problem/problem.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct result *result_of(const struct run_state_candidate *candidate)
{
    return candidate->record ? candidate->record : candidate->result;
}

// Describes a candidate by its outcome. False when it has none yet.
static bool describe(struct tried *ret, const struct run_state_candidate *candidate)
{
    const struct result *result = result_of(candidate);
    const char *reason = NULL;

    if (result) {
        ret->verdict = result->verdict;
        reason = result->reason;
    } else if (candidate->compiled && candidate->compiled->verdict != VERDICT_NONE) {
        ret->verdict = candidate->compiled->verdict;
        reason = candidate->compiled->reason;
    } else {
        return false;
    }
    ret->name = candidate->proposed.name ? xasprintf("%.250s", candidate->proposed.name) : NULL;
    if (result && verdict_is_ratio(ret->verdict) && result->speedup) {
        ret->log2 = result->speedup->log2;
    } else if (reason) {
        ret->reason = xasprintf("%.1000s", reason);
    }
    return true;
}

// Lists the newest of candidates 1 … visible that have an outcome, oldest first.
static void add_history(struct search_context *ret, const struct run_state *run_state,
                        uint64_t visible)
{
    struct tried newest[SEARCH_TEXT_HISTORY];
    size_t count = 0;

    for (uint64_t id = visible; id > 0 && count < SEARCH_TEXT_HISTORY; id--) {
        message_init(&tried_message, &newest[count]);
        count += describe(&newest[count], &run_state->candidate[id - 1]);
    }
    ret->history = xcalloc(count + 1, sizeof(*ret->history));
    ret->history_count = count;
    for (size_t i = 0; i < count; i++) {
        ret->history[i] = newest[count - 1 - i];
    }
}

// Reads a blob; an absent digest gives empty bytes.
static int read_some(struct bytes *ret, const struct digest *digest, search_text_reader *read,
                     void *owner, struct err *err)
{
    return digest_is_zero(digest) ? 0 : read(owner, digest, ret, err);
}

int search_text_make(struct search_context *ret, const struct run_state *run_state,
                     uint64_t visible, search_text_reader *read, void *owner, struct err *err)
{
    const struct run_started *started = &run_state->started;
    const struct run_state_candidate *best = run_state_best_before(run_state, visible);

    message_init(&search_context_message, ret);
    int rc = read_some(&ret->problem_json, &started->problem_json, read, owner, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_some(&ret->readme, &started->readme, read, owner, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_some(&ret->baseline, &started->baseline, read, owner, err);
    if (rc != 0) {
        return rc;
    }
    if (best) {
        rc = read_some(&ret->incumbent, &best->proposed.source, read, owner, err);
        if (rc != 0) {
            return rc;
        }
    }
    struct problem *problem = NULL;
    rc = problem_parse(&problem, (const char *)ret->problem_json.data, ret->problem_json.len,
                       "problem.json", err);
    if (rc != 0) {
        return rc;
    }
    ret->language = xstrdup(problem->cuda ? "CUDA C++" : "C");
    problem_free(problem);
    add_history(ret, run_state, visible);
    return 0;
}

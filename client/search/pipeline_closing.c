// The end of a search, after its last batch is settled and told. In this order:
//
//   look back   Trusted candidates are decided about again, while the limits leave something
//               (pipeline_look_back.c).
//   survey      Everything that was never measured is forecast again (pipeline_survey.c), and the
//               last audits are drawn from it. One transaction.
//   audits      They are compiled, decided about in one transaction, measured, and replicated where
//               they seem to beat the incumbent. The worker is told their outcomes.
//   survey      Once more, if there were audits, for what is said of the rest.
//   play-off    The best candidates are measured against each other (pipeline_play_off.c).
//
// Where it stands follows from the log: no survey, one, or one that drew nothing. A search that
// never had a forecast has no survey. One whose time is up only finishes what is under way.
#include "client/search/pipeline_state.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define AUDITS_MAX 512 // of one search

// Whether candidates of this search may go unmeasured because of a forecast.
static bool may_pass_over(const struct pipeline *p)
{
    return p->policy->discards && !p->forecasts->absent && p->run_state->forecasts > 0;
}

bool pipeline_draws_points(const struct pipeline *p)
{
    bool points = false;
    for (size_t i = 0; i < p->generator_count; i++) {
        points |= generator_is_comparable(p->generator[i]);
    }
    return p->policy->screens && points;
}

uint64_t pipeline_audits_due(const struct pipeline *p, const struct spent *spent)
{
    double share = p->run_state->started.audit;
    uint64_t measurements = spent->measurements, made = spent->audits;
    if (!may_pass_over(p) || p->policy->certifies || !(share > 0)) {
        return 0; // a certificate rests on audits all along
    }
    double others = (double)(measurements > made ? measurements - made : 0);
    double all = share < 1 ? floor(others * share / (1 - share) + 1e-9) : AUDITS_MAX;
    uint64_t due = all < AUDITS_MAX ? (uint64_t)all : AUDITS_MAX;
    due = due > made ? due - made : 0;
    // Where no points are drawn, only trusted candidates are.
    return pipeline_draws_points(p) || due < spent->trusted ? due : spent->trusted;
}

// ---- audits ----

// How many of the audits that are due the limits allow.
static uint64_t affordable(const struct pipeline *p, uint64_t due)
{
    const struct run_started *started = &p->run_state->started;
    struct spent spent =
        spent_count(p, p->run_state->candidate_count, p->run_state->candidate_count);
    uint64_t left = started->measurements_max > spent.measurements
                        ? started->measurements_max - spent.measurements
                        : 0;
    due = started->measurements_max != 0 && due > left ? left : due;
    double mean = spent.done > 0 ? spent.seconds / (double)spent.done : 0;
    double seconds = started->budget_seconds * (1 - pipeline_play_off_share(p)) - spent.seconds;
    if (started->budget_seconds > 0 && mean > 0 && (double)due * mean > seconds) {
        due = seconds > 0 ? (uint64_t)(seconds / mean) : 0;
    }
    return due;
}

static uint64_t points_left(const struct pipeline *p)
{
    uint64_t max = p->run_state->started.candidates_max, count = p->run_state->considered;
    return max == 0 ? UINT64_MAX : max > count ? max - count : 0;
}

// Surveys, and records it when it is complete.
static int survey(struct pipeline *p, bool draws, bool *progress, struct err *err)
{
    if (!pipeline_survey(p)) {
        return 0;
    }
    *progress = true;
    struct spent spent = spent_count(p, 0, p->run_state->candidate_count);
    uint64_t audits = draws ? affordable(p, pipeline_audits_due(p, &spent)) : 0;
    uint64_t count = p->run_state->candidate_count;
    int rc = pipeline_record_survey(p, audits, points_left(p), err);
    pipeline_track_candidates(p);
    for (uint64_t id = count + 1; rc == 0 && id <= p->run_state->candidate_count; id++) {
        if (candidate_of(p, id)->proposed.duplicate_of == 0) {
            pipeline_submit_compile(p, id);
        }
    }
    return rc;
}

// Whether the candidate is an audit that compiled and is not decided about yet.
static bool is_undecided(const struct run_state_candidate *candidate)
{
    return candidate->proposed.draw > 0 && candidate->decided.decision == 0 &&
           candidate->compiled && candidate->compiled->verdict == VERDICT_NONE;
}

static int decide_one(struct pipeline *p, uint64_t id, struct err *err)
{
    const struct run_state_candidate *candidate = candidate_of(p, id);
    uint64_t twin = candidate->object_duplicate_of;
    struct run_decided event = {
        .candidate = id,
        .decision = twin != 0 ? DECISION_REUSE : DECISION_AUDIT,
        .propensity = candidate->proposed.draw_probability,
        .confidence = candidate->forecast ? candidate->forecast->confidence : NAN,
        .incumbent_log2 = p->run_state->surveyed.incumbent_log2,
        .threshold = NAN,
        .draw = candidate->proposed.draw,
        .reason = twin != 0
                      ? xasprintf("the compiler makes the same object of candidate %llu",
                                  (unsigned long long)twin)
                      : xstrdup("drawn as an audit, at the end, from what was never measured")};
    return pipeline_append(p, RUN_DECIDED, &event, err);
}

static int decide(struct pipeline *p, bool *progress, struct err *err)
{
    bool any = false;
    for (uint64_t id = searched_count(p) + 1; id <= p->run_state->candidate_count; id++) {
        any |= is_undecided(candidate_of(p, id));
    }
    if (!any) {
        return 0;
    }
    *progress = true;
    int rc = run_begin(p->run, err);
    for (uint64_t id = searched_count(p) + 1; rc == 0 && id <= p->run_state->candidate_count;
         id++) {
        rc = is_undecided(candidate_of(p, id)) ? decide_one(p, id, err) : 0;
    }
    rc = pipeline_commit(p, rc, err);
    if (rc == 0) {
        rc = pipeline_record_ahead(p, searched_count(p) + 1, p->run_state->candidate_count, err);
    }
    pipeline_drop_ahead(p, searched_count(p) + 1, p->run_state->candidate_count);
    return rc;
}

// Has the audits measured, and those replicated that seem to beat the incumbent. Returns whether
// all is done.
static bool measure(struct pipeline *p)
{
    bool waiting = false;
    for (uint64_t id = 1; id <= p->run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (candidate->decided.draw > 0 && is_measuring(candidate) && !candidate->result &&
            !candidate->given_up) {
            pipeline_submit_measure(p, id); // does nothing when it was submitted
            waiting = true;
        }
    }
    if (waiting || p->replicating != 0) {
        return false;
    }
    uint64_t contender =
        pipeline_find_contender(p, 1, p->run_state->candidate_count, CONTENDER_DRAWN);
    if (contender != 0) {
        pipeline_replicate(p, contender);
    }
    return contender == 0;
}

static void on_retold(void *owner, bool ok, uint64_t rows)
{
    struct pipeline *p = owner;
    p->told = ok && p->told < p->retold ? p->retold : p->told;
    struct run_observed event = {.up_to_event = p->run_state->last_sequence,
                                 .rows = rows,
                                 .up_to_candidate = p->told,
                                 .told_at = p->told_at};
    if (ok && pipeline_append(p, RUN_OBSERVED, &event, &p->failure) != 0) {
        return; // pipeline_advance returns the failure
    }
}

// Whether the candidate, which need not exist, is an audit that was drawn and has an outcome.
static bool is_drawn_outcome(const struct pipeline *p, uint64_t id)
{
    return id <= p->run_state->candidate_count && candidate_of(p, id)->decided.draw > 0 &&
           candidate_of(p, id)->result;
}

// Tells the worker the outcomes of the audits, of those that follow one another at once: between
// candidates that were passed over earlier are others that were told long ago. Returns whether all
// were sent.
static bool tell(struct pipeline *p)
{
    uint64_t count = p->run_state->candidate_count;
    if (p->forecasts->busy) {
        return false;
    }
    while (p->retold < count && !is_drawn_outcome(p, p->retold + 1)) {
        p->retold++;
    }
    if (p->retold == count) {
        return true;
    }
    uint64_t after = p->retold;
    while (is_drawn_outcome(p, p->retold + 1)) {
        p->retold++;
    }
    p->told_at = pipeline_now(p);
    p->forecasts->tell(p->forecasts, p->run_state, after, p->retold, on_retold, p);
    return false;
}

// ---- all of it ----

// Does the next thing up to the play-off. *ret_done: nothing is left before it.
static int look_back(struct pipeline *p, bool *progress, bool *ret_done, struct err *err)
{
    const struct run_state *run_state = p->run_state;
    bool over = true;
    *ret_done = false;
    int rc = run_state->surveys == 0 ? pipeline_look_back(p, 0, progress, &over, err) : 0;
    if (rc != 0 || !over) {
        return rc;
    }
    if (run_state->surveys == 0) {
        *ret_done = p->cut || !may_pass_over(p) || run_state->candidate_count == 0;
        return *ret_done ? 0 : survey(p, true, progress, err);
    }
    if (p->compiled < run_state->candidate_count && !p->cut) {
        pipeline_measure_drawn_ahead(p);
        return 0;
    }
    rc = p->cut ? 0 : decide(p, progress, err);
    if (rc != 0 || !measure(p)) {
        return rc;
    }
    if (!tell(p)) {
        return 0;
    }
    if (!p->cut && run_state->surveyed.audits > 0) {
        return survey(p, false, progress, err);
    }
    *ret_done = true;
    return 0;
}

int pipeline_close(struct pipeline *p, bool *progress, struct err *err)
{
    bool done = false;
    if (p->closed) {
        return 0;
    }
    int rc = look_back(p, progress, &done, err);
    return rc == 0 && done ? pipeline_play_off(p, progress, &p->closed, err) : rc;
}

// Looking back: candidates whose forecasts were trusted are forecast anew, by what is known now and
// against the incumbent of now, and decided about again. Those that the policy would not trust any
// more are measured, the most promising first and at most a usual batch (started.wide) at once.
//
// During the search this is due before a batch is proposed when what the batch may see has another
// incumbent than the last look back had, or half as many outcomes again, so that there is another
// model. It begins when all batches before are settled: decisions then follow from the log alone,
// and no batch sees an outcome that another one, in a search that was killed and resumed, would not
// see. At the end, when nothing more is to be proposed and the limits leave something, looks back
// follow one another until one of them finds nothing to measure.
//
// In the log a look back is one transaction: run_looked_back, and for each candidate that is
// measured now its new forecast and decision. What stays trusted keeps those that it had.
#include "client/search/pipeline_state.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MAX 512        // candidates of one look back: what a request for forecasts may have
#define OUTCOMES_GROWTH 1.5 // so many times the outcomes are another model

struct look {
    uint64_t candidate;
    double promise;            // expected improvement on the incumbent, log2
    struct forecast *forecast; // the new one, owned; NULL: there is none
    struct policy_decision decision;
};

// ---- what is due ----

static bool is_passed_over(const struct run_state_candidate *candidate)
{
    return candidate->decided.decision == DECISION_TRUST && policy_usable(candidate->forecast);
}

static bool may_look(const struct pipeline *p)
{
    return p->policy->discards && !p->policy->certifies && !p->forecasts->absent &&
           p->forecasts->ask_again && !p->stop && p->run_state->surveys == 0 &&
           p->run_state->trusted > 0;
}

// Whether candidates 1 … visible leave no room for another measurement.
static bool is_spent(const struct pipeline *p, uint64_t visible)
{
    struct spent spent = spent_count(p, visible, visible);
    char *limit = spent_limit(p, &spent);
    bool ret = limit;
    free(limit);
    return ret;
}

static bool is_due(const struct pipeline *p, uint64_t visible)
{
    const struct run_looked_back *last = &p->run_state->looked;
    const struct run_state_candidate *first = NULL;
    uint64_t outcomes = 0;
    for (uint64_t id = 1; id <= visible; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        outcomes += candidate->result ? 1 : 0;
        first = !first && is_passed_over(candidate) ? candidate : first;
    }
    if (!first || is_spent(p, visible)) {
        return false;
    }
    bool before = p->run_state->looks > 0;
    double incumbent = before ? last->incumbent_log2 : first->decided.incumbent_log2;
    uint64_t known = before ? last->outcomes : first->forecast->trained_rows;
    return run_state_incumbent_before(p->run_state, visible) > incumbent ||
           (double)outcomes >= OUTCOMES_GROWTH * (double)known;
}

// At the end: unless the last look back found nothing and no outcome has come since.
static bool is_due_at_end(const struct pipeline *p)
{
    const struct run_looked_back *last = &p->run_state->looked;
    bool fruitless =
        p->run_state->looks > 0 && last->measure == 0 && last->outcomes == p->run_state->measured;
    return !fruitless && !is_spent(p, p->run_state->candidate_count);
}

// ---- asking ----

static int by_promise(const void *a, const void *b)
{
    const struct look *left = a, *right = b;
    if (left->promise != right->promise) {
        return left->promise < right->promise ? 1 : -1;
    }
    return (left->candidate > right->candidate) - (left->candidate < right->candidate);
}

void pipeline_clear_look_back(struct pipeline *p)
{
    for (size_t i = 0; i < p->looking.count; i++) {
        if (p->looking.look[i].forecast) {
            message_clear(&forecast_message, p->looking.look[i].forecast);
            free(p->looking.look[i].forecast);
        }
    }
    free(p->looking.look);
    free(p->looking.reason);
    p->looking = (struct looking){0};
}

static void on_answer(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    struct looking *looking = &p->looking;
    looking->complete = true;
    looking->reason = reply ? NULL : xstrdup(reason ? reason : "the worker did not say why");
    for (size_t i = 0; reply && i < reply->forecasts_count; i++) {
        struct forecast *forecast = &reply->forecasts[i];
        size_t at = 0;
        while (at < looking->count && looking->look[at].candidate != forecast->id) {
            at++;
        }
        if (at < looking->count && policy_usable(forecast) && !looking->look[at].forecast) {
            looking->look[at].forecast = xmemdup(forecast, sizeof(*forecast));
            *forecast = (struct forecast){0};
            looking->known++;
        }
    }
}

// Asks about the candidates that were passed over; of too many, about those that promised most.
static void ask(struct pipeline *p)
{
    struct looking *looking = &p->looking;
    uint64_t count = p->run_state->candidate_count, candidate[LOOK_MAX];
    double incumbent = run_state_incumbent_log2(p->run_state);
    *looking = (struct looking){.under_way = true,
                                .look = xcalloc((size_t)count + 1, sizeof(*looking->look)),
                                .asked_at = pipeline_now(p)};
    for (uint64_t id = 1; id <= count; id++) {
        const struct run_state_candidate *one = candidate_of(p, id);
        if (is_passed_over(one)) {
            looking->look[looking->count++] = (struct look){
                .candidate = id, .promise = policy_expected_improvement(one->forecast, incumbent)};
        }
    }
    qsort(looking->look, looking->count, sizeof(*looking->look), by_promise);
    looking->count = looking->count < LOOK_MAX ? looking->count : LOOK_MAX;
    for (size_t i = 0; i < looking->count; i++) {
        candidate[i] = looking->look[i].candidate;
    }
    p->forecasts->ask_again(p->forecasts, p->run_state, candidate, looking->count, count, on_answer,
                            p);
}

// ---- deciding ----

// Has the policy decide by the new forecast. Returns whether the candidate is to be measured.
static bool decide(struct pipeline *p, struct look *look)
{
    struct run_state_candidate *candidate = candidate_of(p, look->candidate);
    struct forecast *before = candidate->forecast;
    double incumbent = run_state_incumbent_log2(p->run_state);
    struct policy_view view = {.run_state = p->run_state,
                               .candidate = look->candidate,
                               .first = 1, // it is compared with all, and not with a batch
                               .last = p->run_state->candidate_count,
                               .visible = p->run_state->candidate_count,
                               .incumbent_log2 = incumbent};
    if (!look->forecast) {
        return false;
    }
    look->promise = policy_expected_improvement(look->forecast, incumbent);
    look->decision = (struct policy_decision){.threshold = NAN};
    candidate->forecast = look->forecast; // as it will be if it is measured
    p->policy->decide(&view, &look->decision);
    candidate->forecast = before;
    return look->decision.decision == DECISION_MEASURE;
}

// Moves those that are to be measured to the front, the most promising first, and returns how many
// there are.
static size_t choose(struct pipeline *p)
{
    struct looking *looking = &p->looking;
    struct spent spent =
        spent_count(p, p->run_state->candidate_count, p->run_state->candidate_count);
    size_t count = 0, allowed = 0;
    for (size_t i = 0; i < looking->count; i++) {
        if (decide(p, &looking->look[i])) {
            struct look one = looking->look[i];
            looking->look[i] = looking->look[count];
            looking->look[count++] = one;
        }
    }
    qsort(looking->look, count, sizeof(*looking->look), by_promise);
    char *limit = NULL;
    while (allowed < count && allowed < p->batches.wide && !(limit = spent_limit(p, &spent))) {
        spent.measurements++;
        spent.pending++;
        allowed++;
    }
    free(limit);
    return allowed;
}

static int record_one(struct pipeline *p, struct look *look, struct err *err)
{
    double incumbent = run_state_incumbent_log2(p->run_state);
    struct run_forecast forecast = {.candidate = look->candidate,
                                    .forecast = look->forecast,
                                    .incumbent_log2 = incumbent,
                                    .asked_at = NAN, // one request for all of them
                                    .look = p->run_state->looks};
    struct run_decided decided = {.candidate = look->candidate,
                                  .decision = DECISION_MEASURE,
                                  .propensity = look->decision.propensity,
                                  .confidence = look->decision.confidence,
                                  .incumbent_log2 = incumbent,
                                  .threshold = look->decision.threshold,
                                  .look = p->run_state->looks};
    look->forecast = NULL;
    int rc = pipeline_append(p, RUN_FORECAST, &forecast, err);
    if (rc != 0) {
        return rc;
    }
    decided.reason = xasprintf("forecast anew: %.480s", look->decision.reason);
    return pipeline_append(p, RUN_DECIDED, &decided, err);
}

static int record(struct pipeline *p, struct err *err)
{
    struct looking *looking = &p->looking;
    size_t count = choose(p);
    struct run_looked_back event = {.after = p->run_state->candidate_count,
                                    .forecast = looking->known,
                                    .measure = count,
                                    .outcomes = p->run_state->measured,
                                    .incumbent_log2 = run_state_incumbent_log2(p->run_state),
                                    .reason = looking->reason,
                                    .asked_at = looking->asked_at};
    looking->reason = NULL;
    int rc = run_begin(p->run, err);
    if (rc == 0) {
        rc = pipeline_append(p, RUN_LOOKED_BACK, &event, err);
    } else {
        message_clear(&run_looked_back_message, &event);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = record_one(p, &looking->look[i], err);
    }
    rc = pipeline_commit(p, rc, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        uint64_t id = looking->look[i].candidate;
        p->candidate_jobs[id - 1].untold = id <= p->told;
        pipeline_submit_measure(p, id);
    }
    pipeline_clear_look_back(p);
    return rc;
}

// ---- outcomes ----

static void on_told(void *owner, bool ok, uint64_t rows)
{
    (void)owner, (void)ok, (void)rows; // what is not told now is told to the next session's worker
}

// Tells the worker the next outcome that it should have been told with others before. Returns
// whether there is none.
static bool tell(struct pipeline *p)
{
    for (uint64_t id = 1; id <= p->run_state->candidate_count; id++) {
        if (p->candidate_jobs[id - 1].untold && candidate_of(p, id)->result) {
            if (!p->forecasts->busy) {
                p->candidate_jobs[id - 1].untold = false;
                p->forecasts->tell(p->forecasts, p->run_state, id - 1, id, on_told, p);
            }
            return false;
        }
    }
    return true;
}

// Whether everything that looks back have had measured is measured, replicated and told. Does the
// next thing for it.
static bool is_finished(struct pipeline *p)
{
    if (p->run_state->reconsidered == 0) {
        return true;
    }
    for (uint64_t id = 1; id <= p->run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (candidate->decided.look > 0 && !candidate->result && !candidate->given_up) {
            pipeline_submit_measure(p, id); // does nothing when it was submitted
            return false;
        }
    }
    if (p->replicating != 0) {
        return false;
    }
    uint64_t contender =
        pipeline_find_contender(p, 1, p->run_state->candidate_count, CONTENDER_RECONSIDERED);
    if (contender != 0) {
        pipeline_replicate(p, contender);
        return false;
    }
    return tell(p);
}

int pipeline_look_back(struct pipeline *p, uint64_t batch, bool *progress, bool *ret_over,
                       struct err *err)
{
    struct looking *looking = &p->looking;
    *ret_over = false;
    if (looking->under_way && !looking->complete) {
        return 0;
    }
    if (looking->under_way) {
        *progress = true;
        return record(p, err);
    }
    if (!is_finished(p)) {
        return 0;
    }
    if (!may_look(p) || !(batch > 0 ? is_due(p, visible_from(p, batch)) : is_due_at_end(p))) {
        *ret_over = true;
        return 0;
    }
    bool drained = p->settled == batch_count(p) && p->asking == 0 &&
                   (batch == 0 || p->told_batch >= seen_by(p, batch));
    if (drained && !p->forecasts->busy) {
        ask(p);
    }
    return 0;
}

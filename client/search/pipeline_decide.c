// Forecasts and decisions. Each batch has one request and one transaction for its forecasts and one
// transaction for its decisions, in the order of batches.
#include "client/search/pipeline_state.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- forecast ----

static int record_forecasts(struct pipeline *p, struct forecast_reply *reply, const char *reason,
                            struct err *err)
{
    uint64_t visible = visible_from(p, p->asking);
    int rc = run_begin(p->run, err);
    for (uint64_t id = batch_first(p, p->asking); rc == 0 && id <= batch_last(p, p->asking); id++) {
        if (!forecast_wants(p->run_state, id)) {
            continue;
        }
        struct run_forecast event = {.candidate = id,
                                     .incumbent_log2 =
                                         run_state_incumbent_before(p->run_state, visible),
                                     .asked_at = p->asked_at};
        for (size_t i = 0; reply && i < reply->forecasts_count && !event.forecast; i++) {
            if (reply->forecasts[i].id == id) {
                event.forecast = xmemdup(&reply->forecasts[i], sizeof(*event.forecast));
                reply->forecasts[i] = (struct forecast){0};
            }
        }
        if (!event.forecast) {
            event.reason = xstrdup(reason ? reason : "the worker left it out");
        }
        rc = pipeline_append(p, RUN_FORECAST, &event, err);
    }
    return pipeline_commit(p, rc, err);
}

static void on_forecasts(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    if (record_forecasts(p, reply, reason, &p->failure) == 0) {
        p->forecast = p->asking;
    }
    p->asking = 0;
}

// Whether candidates of the batch are to be forecast now.
static bool wants_forecasts(const struct pipeline *p, uint64_t batch)
{
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        if (forecast_wants(p->run_state, id)) {
            return true;
        }
    }
    return false;
}

// Whether it is known of every candidate of the batch if it is to be forecast. Those that were
// screened have their forecasts before they are compiled.
static bool knows_wishes(const struct pipeline *p, uint64_t batch)
{
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (id > p->compiled && candidate->proposed.duplicate_of == 0 &&
            !candidate->forecast_done) {
            return false;
        }
    }
    return true;
}

void pipeline_ask_forecasts(struct pipeline *p, bool *progress)
{
    uint64_t batch = p->forecast + 1;
    if (p->stop || p->asking != 0 || batch > batch_count(p) || !knows_wishes(p, batch)) {
        return;
    }
    if (!wants_forecasts(p, batch)) {
        p->forecast = batch;
        *progress = true;
        return;
    }
    if (p->forecasts->busy || p->told_batch < seen_by(p, batch)) {
        return;
    }
    p->asking = batch;
    p->asked_at = pipeline_now(p);
    p->forecasts->ask(p->forecasts, p->run_state, batch_first(p, batch), batch_last(p, batch),
                      visible_from(p, batch), on_forecasts, p);
}

// ---- decide ----

// Decides about one candidate. The caller frees ret->reason.
static void make_decision(const struct pipeline *p, const struct policy_view *view,
                          struct run_decided *ret)
{
    const struct run_state_candidate *candidate = candidate_of(p, view->candidate);
    ret->candidate = view->candidate;
    if (candidate->object_duplicate_of != 0) {
        ret->decision = DECISION_REUSE;
        ret->propensity = NAN;
        ret->confidence = NAN;
        ret->threshold = NAN;
        ret->reason = xasprintf("the compiler makes the same object of candidate %llu",
                                (unsigned long long)candidate->object_duplicate_of);
        return;
    }
    struct policy_decision decision = {.threshold = NAN};
    p->policy->decide(view, &decision);
    ret->decision = decision.decision;
    ret->propensity = decision.propensity;
    ret->confidence = decision.confidence;
    ret->threshold = decision.threshold;
    ret->reason = xstrdup(decision.reason);
}

// Whether two thresholds are the same; NaN is none.
static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

// Records the threshold that follows from the outcomes of candidates 1 … visible, unless the log
// has the same one.
static int record_threshold(struct pipeline *p, uint64_t visible, struct err *err)
{
    const struct run_certified *last = &p->run_state->certified;
    bool first = p->run_state->certifications == 0;
    risk_update(p->risk, p->run_state, visible);
    struct certificate now = risk_now(p->risk);
    struct risk_counts counts = risk_counts(p->risk);
    double threshold = now.certified ? now.tau : NAN, before = first ? NAN : last->threshold;
    bool same = is_same(threshold, before);
    if (same && counts.alarms == (first ? 0 : last->alarms) &&
        counts.restarts == (first ? 0 : last->restarts)) {
        return 0;
    }
    struct run_certified event = {
        .after = visible,
        .threshold = threshold,
        .rows = now.rows,
        .improvers = now.improvers,
        .below = now.below,
        .improvers_below = now.improvers_below,
        .alarms = counts.alarms,
        .restarts = counts.restarts,
        .engine = xstrdup(risk_engine(p->risk) ? risk_engine(p->risk) : ""),
        .text = xstrdup(now.text),
    };
    return pipeline_append(p, RUN_CERTIFIED, &event, err);
}

// Records what this forecaster has shown by the outcomes of candidates 1 … visible, when it changes
// what is trusted, when another of its calls improved, or when the forecaster is new.
static int record_forecaster(struct pipeline *p, uint64_t visible, const char *forecaster,
                             struct err *err)
{
    const struct run_trusted *before = run_state_trust(p->run_state, forecaster);
    struct trust now = trust_judge(p->run_state, visible, forecaster);
    bool same = before && is_same(before->cut, now.cut);
    if (same && before->alarms == now.alarms && before->improvers == now.improvers) {
        return 0;
    }
    struct run_trusted event = {
        .after = visible,
        .forecaster = xstrdup(forecaster),
        .cut = now.cut,
        .calls = now.calls,
        .improvers = now.improvers,
        .expected = now.expected,
        .below = now.below,
        .skill = now.skill,
        .alarms = now.alarms,
        .text = trust_sentence(p->run_state, forecaster, &now),
    };
    return pipeline_append(p, RUN_TRUSTED, &event, err);
}

// The same for all forecasters of the batch.
static int record_trust(struct pipeline *p, uint64_t batch, uint64_t visible, struct err *err)
{
    char last[TRUST_FORECASTER_MAX] = "", forecaster[TRUST_FORECASTER_MAX];
    int rc = 0;
    if (p->policy->blind || p->run_state->started.trust_rule != RUN_TRUST_SKILL) {
        return 0;
    }
    for (uint64_t id = batch_first(p, batch); rc == 0 && id <= batch_last(p, batch); id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (!candidate->forecast || candidate->proposed.screened > 0) {
            continue;
        }
        trust_forecaster(candidate->forecast, forecaster);
        if (strcmp(last, forecaster) != 0) {
            rc = record_forecaster(p, visible, forecaster, err);
        }
        memcpy(last, forecaster, sizeof(last));
    }
    return rc;
}

// Records the decisions of a batch, up to the first measurement that would exceed a limit.
static int record_decisions(struct pipeline *p, uint64_t batch, struct err *err)
{
    uint64_t visible = visible_from(p, batch);
    struct spent spent = spent_seen(p, batch, batch_first(p, batch) - 1);
    double incumbent = run_state_incumbent_before(p->run_state, visible);
    int rc = run_begin(p->run, err);
    if (rc == 0 && p->risk) {
        rc = record_threshold(p, visible, err);
    }
    if (rc == 0) {
        rc = record_trust(p, batch, visible, err);
    }
    for (uint64_t id = batch_first(p, batch); rc == 0 && !p->stop && id <= batch_last(p, batch);
         id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (!candidate->compiled || candidate->compiled->verdict != VERDICT_NONE ||
            candidate->decided.decision != 0) {
            spent_add(&spent, candidate, false);
            continue;
        }
        struct run_decided event = {.incumbent_log2 = incumbent};
        struct policy_view view = {.run_state = p->run_state,
                                   .candidate = id,
                                   .first = batch_first(p, batch),
                                   .last = batch_last(p, batch),
                                   .visible = visible,
                                   .incumbent_log2 = incumbent};
        make_decision(p, &view, &event);
        if (event.decision == DECISION_MEASURE || event.decision == DECISION_AUDIT) {
            p->stop = spent_limit(p, &spent);
        }
        if (!p->stop) {
            rc = pipeline_append(p, RUN_DECIDED, &event, err);
            spent_add(&spent, candidate_of(p, id), false);
        } else {
            message_clear(&run_decided_message, &event);
        }
    }
    return pipeline_commit(p, rc, err);
}

// Whether all candidates of a batch that compiled are decided about.
static bool is_decided(const struct pipeline *p, uint64_t batch)
{
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (candidate->compiled && candidate->compiled->verdict == VERDICT_NONE &&
            candidate->decided.decision == 0) {
            return false;
        }
    }
    return true;
}

int pipeline_decide(struct pipeline *p, bool *progress, struct err *err)
{
    uint64_t batch = p->decided + 1;
    if (p->stop || batch > p->forecast || p->compiled < batch_last(p, batch) ||
        p->settled < seen_by(p, batch)) {
        return 0;
    }
    *progress = true;
    int rc = 0;
    if (!is_decided(p, batch)) {
        rc = record_decisions(p, batch, err);
        for (uint64_t id = batch_first(p, batch); rc == 0 && id <= batch_last(p, batch); id++) {
            const struct run_state_candidate *candidate = candidate_of(p, id);
            if (is_measuring(candidate) && !candidate->result && !candidate->given_up) {
                pipeline_submit_measure(p, id);
            }
        }
        rc = rc == 0 ? pipeline_record_ahead(p, batch_first(p, batch), batch_last(p, batch), err)
                     : rc;
        pipeline_drop_ahead(p, batch_first(p, batch), batch_last(p, batch));
    }
    p->decided = batch;
    if (p->stop) {
        pipeline_drop_compilations(p);
        pipeline_drop_ahead(p, batch_last(p, batch) + 1, p->run_state->candidate_count);
    }
    return rc;
}

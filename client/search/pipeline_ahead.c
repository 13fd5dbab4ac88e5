// Measurements that begin before the compilations of earlier candidates are known.
//
// Compilations are recorded, and decisions made, in the order of candidates, so that they follow
// from the log. One slow compilation would therefore keep all that come after it from the devices,
// although it is known of most of them what will be decided: policies say which
// (struct policy.foregone). Their measurements begin as soon as they have compiled. What comes of
// them waits here and is recorded after the decision.
//
// A limit is never exceeded by this: all earlier candidates without a decision count as measured.
// Only one thing can turn out otherwise: an earlier candidate compiles later to the same object.
// Then the measurement is cancelled, or what came of it is not used, since the one of the earlier
// candidate stands for it.
#include "client/search/pipeline_state.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>

// The compilation of a candidate, whether it is recorded or waits for that; NULL: there is none
// yet.
static const struct compiled *compiled_of(const struct pipeline *p, uint64_t id)
{
    const struct compiled *recorded = candidate_of(p, id)->compiled;
    return recorded ? recorded : p->candidate_jobs[id - 1].answer;
}

// Whether the candidate needs no measurement, as far as is known.
static bool is_out(const struct pipeline *p, uint64_t id)
{
    const struct compiled *compiled = compiled_of(p, id);
    return candidate_of(p, id)->proposed.duplicate_of != 0 || candidate_of(p, id)->put_off ||
           candidate_of(p, id)->object_duplicate_of != 0 ||
           (compiled && compiled->verdict != VERDICT_NONE);
}

// Whether an earlier candidate has this object, as far as is known.
static bool has_twin(const struct pipeline *p, uint64_t id)
{
    const struct digest *object = &compiled_of(p, id)->object;
    if (digest_is_zero(object)) {
        return false;
    }
    uint64_t first = pipeline_find_first(p->object, object);
    if (first != 0 && first < id) {
        return true;
    }
    for (uint64_t other = p->compiled + 1; other < id; other++) {
        const struct compiled *answer = p->candidate_jobs[other - 1].answer;
        if (answer && answer->verdict == VERDICT_NONE && digest_equal(&answer->object, object)) {
            return true;
        }
    }
    return false;
}

// Whether the candidate has compiled, and can be measured although it is not decided about.
static bool is_ready(const struct pipeline *p, uint64_t id)
{
    return compiled_of(p, id) && !p->candidate_jobs[id - 1].measuring &&
           candidate_of(p, id)->decided.decision == 0 && !is_out(p, id);
}

// Whether it is ready and certain to be measured, if the limits allow it.
static bool is_foregone(const struct pipeline *p, uint64_t batch, uint64_t id)
{
    struct policy_view view = {.run_state = p->run_state,
                               .candidate = id,
                               .first = batch_first(p, batch),
                               .last = batch_last(p, batch),
                               .visible = visible_from(p, batch)};
    return is_ready(p, id) && p->policy->foregone(&view) && !has_twin(p, id);
}

static bool any_foregone(const struct pipeline *p, uint64_t batch)
{
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        if (is_foregone(p, batch, id)) {
            return true;
        }
    }
    return false;
}

// Begins what measurements of the batch it can. Returns false when a limit is near.
static bool measure_batch(struct pipeline *p, uint64_t batch)
{
    uint64_t decided = batch_last(p, p->decided);
    double incumbent = run_state_incumbent_before(p->run_state, visible_from(p, batch));
    struct spent spent = spent_seen(p, batch, decided);
    for (uint64_t id = decided + 1; id <= batch_last(p, batch); id++) {
        if (is_out(p, id)) {
            continue;
        }
        char *limit = spent_limit(p, &spent);
        if (limit) {
            free(limit);
            return false;
        }
        if (id >= batch_first(p, batch) && is_foregone(p, batch, id)) {
            pipeline_submit_undecided(p, id, incumbent);
        }
        spent.measurements++;
        spent.pending++;
    }
    return true;
}

void pipeline_measure_ahead(struct pipeline *p)
{
    uint64_t batches = batch_count(p);
    for (uint64_t batch = p->decided + 1;
         p->policy->foregone && !p->stop && batch <= batches && p->settled >= seen_by(p, batch);
         batch++) {
        if (any_foregone(p, batch) && !measure_batch(p, batch)) {
            break;
        }
    }
}

// They were drawn within the limits.
void pipeline_measure_drawn_ahead(struct pipeline *p)
{
    for (uint64_t id = searched_count(p) + 1; id <= p->run_state->candidate_count; id++) {
        if (candidate_of(p, id)->proposed.draw > 0 && is_ready(p, id) && !has_twin(p, id)) {
            pipeline_submit_undecided(p, id, p->run_state->surveyed.incumbent_log2);
        }
    }
}

void pipeline_keep_outcome(struct pipeline *p, uint64_t id, struct job_ref ref,
                           struct run_measured *outcome)
{
    struct candidate_jobs *jobs = &p->candidate_jobs[id - 1];
    if (!jobs->measuring) { // nobody waits for it any more
        message_clear(&run_measured_message, outcome);
        p->jobs->ack(p->jobs, ref);
        return;
    }
    jobs->outcome = xmemdup(outcome, sizeof(*outcome));
    jobs->outcome_job = ref;
}

static void forget(struct candidate_jobs *jobs)
{
    if (jobs->outcome) {
        message_clear(&run_measured_message, jobs->outcome);
        free(jobs->outcome);
        jobs->outcome = NULL;
    }
}

void pipeline_drop_ahead(struct pipeline *p, uint64_t first, uint64_t last)
{
    for (uint64_t id = first; id <= last; id++) {
        struct candidate_jobs *jobs = &p->candidate_jobs[id - 1];
        if (!jobs->measuring || is_measuring(candidate_of(p, id))) {
            continue;
        }
        jobs->measuring = false;
        if (jobs->outcome) {
            p->jobs->ack(p->jobs, jobs->outcome_job);
            forget(jobs);
        } else {
            char key[PIPELINE_KEY_MAX];
            pipeline_key('m', id, key);
            p->jobs->cancel(p->jobs, key);
        }
    }
}

int pipeline_record_ahead(struct pipeline *p, uint64_t first, uint64_t last, struct err *err)
{
    int rc = 0;
    for (uint64_t id = first; rc == 0 && id <= last; id++) {
        struct candidate_jobs *jobs = &p->candidate_jobs[id - 1];
        if (jobs->outcome && is_measuring(candidate_of(p, id))) {
            struct run_measured event = *jobs->outcome;
            free(jobs->outcome);
            jobs->outcome = NULL;
            rc = pipeline_record_measured(p, id, jobs->outcome_job, &event, err);
        }
    }
    return rc;
}

void pipeline_clear_ahead(struct pipeline *p)
{
    for (size_t i = 0; i < p->candidate_jobs_count; i++) {
        forget(&p->candidate_jobs[i]);
    }
}

// Measures candidates, and replicates those that seem to beat the incumbent.
#include "client/run/improvement.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

// Two measurements of a candidate agree within 5 % or within their intervals.
#define AGREE_LOG2 0.07

static job_service_callback on_measured, on_replicated;

void pipeline_submit_undecided(struct pipeline *p, uint64_t id, double incumbent)
{
    if (p->candidate_jobs[id - 1].measuring) {
        return;
    }
    p->candidate_jobs[id - 1].measuring = true;
    struct job_spec spec;
    pipeline_job_spec(p, id, JOB_MEASURE, &spec);
    spec.anchor_log2 = incumbent != 0 ? incumbent : NAN; // the baseline is always an anchor
    pipeline_submit(p, 'm', id, &spec, id, on_measured);
}

void pipeline_submit_measure(struct pipeline *p, uint64_t id)
{
    pipeline_submit_undecided(p, id, candidate_of(p, id)->decided.incumbent_log2);
}

// RUN_COMPILED has what the compiler said, unless only a part had been compiled then: of the rest
// the digest of the object is new. There may be no result.
static void drop_known_compilation(const struct run_state_candidate *candidate,
                                   struct result *result)
{
    struct compiled *compiled = result ? result->compiled : NULL;
    if (!compiled) {
        return;
    }
    if (candidate->compiled && candidate->compiled->incomplete) {
        struct compiled *kept = xcalloc(1, sizeof(*kept));
        message_init(&compiled_message, kept);
        kept->verdict = compiled->verdict;
        kept->object = compiled->object;
        result->compiled = kept;
    } else {
        result->compiled = NULL;
    }
    message_clear(&compiled_message, compiled);
    free(compiled);
}

// Moves the outcome of a job into an event, but for its purpose.
static void make_measured(const struct pipeline *p, uint64_t id, struct job_ref ref,
                          struct job_info *info, struct run_measured *ret)
{
    const char *url = p->jobs->where(p->jobs, ref);
    *ret = (struct run_measured){.candidate = id,
                                 .job = ref.job,
                                 .pool = url ? xstrdup(url) : NULL,
                                 .times = pipeline_times(p, id, info),
                                 .result = info->result};
    info->result = NULL;
    if (!ret->result) {
        ret->reason =
            xasprintf("the daemon gave the job up (%s): %.2000s", job_state_name(info->state),
                      info->reason ? info->reason : "no reason given");
    }
}

int pipeline_record_measured(struct pipeline *p, uint64_t id, struct job_ref ref,
                             struct run_measured *event, struct err *err)
{
    bool audit = candidate_of(p, id)->decided.decision == DECISION_AUDIT;
    event->purpose = audit ? PURPOSE_AUDIT : PURPOSE_SEARCH;
    drop_known_compilation(candidate_of(p, id), event->result);
    int rc = pipeline_append(p, RUN_MEASURED, event, err);
    if (rc == 0) {
        p->jobs->ack(p->jobs, ref);
    }
    return rc;
}

static void on_measured(void *owner, uint64_t id, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct pipeline *p = owner;
    if (error) {
        pipeline_job_failed(p, 'm', id, error);
        return;
    }
    struct run_measured event;
    make_measured(p, id, ref, info, &event);
    if (is_measuring(candidate_of(p, id))) {
        (void)!pipeline_record_measured(p, id, ref, &event, &p->failure);
    } else {
        pipeline_keep_outcome(p, id, ref, &event);
    }
}

// ---- replicate ----

void pipeline_replicate(struct pipeline *p, uint64_t id)
{
    struct job_spec spec;
    double incumbent = run_state_incumbent_log2(p->run_state);
    pipeline_job_spec(p, id, JOB_MEASURE, &spec);
    spec.anchor_log2 = incumbent != 0 ? incumbent : NAN;
    spec.fresh = true;
    spec.repeat = 1;
    p->replicating = id;
    pipeline_submit(p, 'r', id, &spec, 0, on_replicated);
}

// Whether the replication makes the candidate the incumbent.
static bool is_confirmed(const struct run_state_candidate *candidate, double incumbent)
{
    const struct result *first = candidate->result, *second = candidate->record;
    if (!second || candidate->barred || !verdict_is_ratio(second->verdict) || !second->speedup) {
        return false;
    }
    double half_widths =
        (first->speedup->hi - first->speedup->lo + second->speedup->hi - second->speedup->lo) / 2;
    // An interval that is not known (NaN) allows AGREE_LOG2.
    double allowed = half_widths > AGREE_LOG2 ? half_widths : AGREE_LOG2;
    return second->speedup->lo > incumbent &&
           fabs(first->speedup->log2 - second->speedup->log2) <= allowed;
}

static int record_replication(struct pipeline *p, uint64_t id, struct job_ref ref,
                              struct job_info *info, struct err *err)
{
    double incumbent = run_state_incumbent_log2(p->run_state);
    struct run_measured event;
    make_measured(p, id, ref, info, &event);
    event.purpose = PURPOSE_RECORD;
    drop_known_compilation(candidate_of(p, id), event.result);
    int rc = run_begin(p->run, err);
    if (rc == 0) {
        rc = pipeline_append(p, RUN_MEASURED, &event, err);
    } else {
        message_clear(&run_measured_message, &event);
    }
    if (rc == 0 && is_confirmed(candidate_of(p, id), incumbent)) {
        struct run_incumbent better = {
            .candidate = id,
            .speedup = xmemdup(candidate_of(p, id)->record->speedup, sizeof(*better.speedup)),
            .device_seconds = p->run_state->device_seconds,
            .wall_seconds = p->run_state->wall_seconds,
            .considered = p->run_state->considered,
            .measured = p->run_state->measured,
        };
        rc = pipeline_append(p, RUN_INCUMBENT, &better, err);
    }
    return pipeline_commit(p, rc, err);
}

static void on_replicated(void *owner, uint64_t id, struct job_ref ref, struct job_info *info,
                          const struct err *error)
{
    struct pipeline *p = owner;
    p->replicating = 0;
    if (error) {
        pipeline_job_failed(p, 'r', id, error);
    } else if (record_replication(p, id, ref, info, &p->failure) == 0) {
        p->jobs->ack(p->jobs, ref);
    }
}

static enum contender contender_of(const struct run_state_candidate *candidate)
{
    return candidate->decided.draw > 0   ? CONTENDER_DRAWN
           : candidate->decided.look > 0 ? CONTENDER_RECONSIDERED
                                         : CONTENDER_OF_BATCH;
}

uint64_t pipeline_find_contender(const struct pipeline *p, uint64_t first, uint64_t last,
                                 enum contender which)
{
    double best = run_state_incumbent_log2(p->run_state) + IMPROVEMENT_MARGIN_LOG2;
    uint64_t contender = 0;
    for (uint64_t id = first; id <= last; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        const struct result *result = candidate->result;
        if (contender_of(candidate) == which && result && verdict_is_ratio(result->verdict) &&
            result->speedup && !candidate->record && !candidate->given_up && !candidate->barred &&
            result->speedup->log2 > best) {
            best = result->speedup->log2;
            contender = id;
        }
    }
    return contender;
}

void pipeline_settle(struct pipeline *p, bool *progress)
{
    uint64_t batch = p->settled + 1;
    if (batch > p->decided || p->replicating != 0) {
        return;
    }
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (contender_of(candidate) == CONTENDER_OF_BATCH && is_measuring(candidate) &&
            !candidate->result && !candidate->given_up) {
            return;
        }
    }
    uint64_t contender =
        pipeline_find_contender(p, batch_first(p, batch), batch_last(p, batch), CONTENDER_OF_BATCH);
    if (contender != 0) {
        pipeline_replicate(p, contender);
        return;
    }
    p->settled = batch;
    *progress = true;
}

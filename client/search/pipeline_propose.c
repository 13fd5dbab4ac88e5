// Proposes and compiles: checks limits, stores sources in the run file, records the compile jail's
// answers in order.
#include "client/search/pipeline_put_off.h"
#include "client/search/pipeline_state.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/source_facts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static job_service_callback on_compiled;

// ---- limits ----

void spent_add(struct spent *spent, const struct run_state_candidate *candidate, bool visible)
{
    spent->trusted += candidate->decided.decision == DECISION_TRUST;
    if (!is_measuring(candidate)) {
        return;
    }
    spent->measurements++;
    spent->audits += candidate->decided.decision == DECISION_AUDIT &&
                     (candidate->decided.draw == 0 || candidate->drawn_before > 0);
    spent->pending += !visible;
    spent->done += visible;
    const struct result *results[] = {candidate->result, candidate->record};
    for (size_t i = 0; visible && i < ARRAY_LEN(results); i++) {
        spent->seconds += run_state_held_seconds(results[i]);
    }
}

struct spent spent_count(const struct pipeline *p, uint64_t visible, uint64_t last)
{
    struct spent spent = {0};
    for (uint64_t id = 1; id <= last; id++) {
        spent_add(&spent, candidate_of(p, id), id <= visible);
    }
    return spent;
}

struct spent spent_seen(const struct pipeline *p, uint64_t batch, uint64_t last)
{
    struct spent spent = spent_count(p, visible_from(p, batch), last);
    for (uint64_t id = batch_last(p, batch) + 1; id <= p->run_state->candidate_count; id++) {
        spent_add(&spent, candidate_of(p, id), false); // audits at an end before an extension
    }
    return spent;
}

char *spent_limit(const struct pipeline *p, const struct spent *spent)
{
    const struct run_started *started = &p->run_state->started;
    uint64_t audits = pipeline_audits_due(p, spent);
    if (started->measurements_max != 0 &&
        spent->measurements + audits >= started->measurements_max) {
        return xasprintf("%llu measurements made", (unsigned long long)started->measurements_max);
    }
    // Before the first outcome nothing is known to be used, and a search must not end by a guess.
    double mean = spent->done > 0 ? spent->seconds / (double)spent->done : 0;
    if (started->budget_seconds > 0 && spent->done > 0 &&
        spent->seconds + ((double)(spent->pending + audits) + 0.5) * mean >
            started->budget_seconds * (1 - pipeline_play_off_share(p))) {
        return xasprintf("budget of %g device-seconds used", started->budget_seconds);
    }
    return NULL;
}

// Candidates of a batch that is full.
static uint64_t room_of(const struct pipeline *p, uint64_t batch)
{
    return batch_end(p, batch) - batch_end(p, batch - 1);
}

// Why there is no next batch, malloc'd; NULL when there is one, with *ret_want new candidates.
static char *check_exhausted(const struct pipeline *p, uint64_t batch, uint64_t *ret_want)
{
    const struct run_started *started = &p->run_state->started;
    uint64_t count = p->run_state->candidate_count, considered = p->run_state->considered;
    uint64_t visible = pipeline_proposal_visible(p, batch);
    struct spent spent = spent_count(p, visible, visible);
    uint64_t max = started->candidates_max, audits = 0;
    if (pipeline_draws_points(p)) { // they will be candidates, too
        audits = pipeline_audits_due(p, &spent);
    }
    max = max > audits ? max - audits : max;
    *ret_want = room_of(p, batch);
    if (started->candidates_max != 0 && considered + *ret_want > max) {
        *ret_want = max > considered ? max - considered : 0;
    }
    if (*ret_want == 0 && p->late_count == 0) {
        return xasprintf("%llu candidates considered", (unsigned long long)started->candidates_max);
    }
    if (count != batch_end(p, batch - 1)) {
        return pipeline_exhausted_reason(p);
    }
    return spent_limit(p, &spent);
}

// ---- propose ----

void pipeline_submit_compile(struct pipeline *p, uint64_t id)
{
    struct job_spec spec;
    pipeline_job_spec(p, id, JOB_COMPILE, &spec);
    uint64_t first = pipeline_compilation(p, id);
    pipeline_submit(p, 'c', first, &spec, first, on_compiled);
}

int pipeline_record_proposal(struct pipeline *p, struct run_proposed *event, const void *source,
                             size_t len, struct err *err)
{
    int rc = run_put_blob(p->run, source, len, &event->source, err);
    if (rc == 0) {
        uint64_t id = event->candidate;
        struct digest digest = event->source;
        event->duplicate_of = event->again != 0 ? 0 : pipeline_find_first(p->source, &digest);
        if (p->policy->screens && !p->forecasts->absent && event->params_count == 0 &&
            event->again == 0) {
            event->source_facts_count = source_facts(source, len, p->problem, &event->source_facts);
        }
        pipeline_add_first(&p->source, &digest, id);
        if (p->asks) {
            pipeline_remember_source(p, source, len, id);
        }
        rc = pipeline_append(p, RUN_PROPOSED, event, err);
    } else {
        message_clear(&run_proposed_message, event);
    }
    return rc;
}

void pipeline_track_candidates(struct pipeline *p)
{
    size_t count = p->run_state->candidate_count;
    if (count > p->candidate_jobs_count) {
        p->candidate_jobs = xrealloc(p->candidate_jobs, count, sizeof(*p->candidate_jobs));
        memset(p->candidate_jobs + p->candidate_jobs_count, 0,
               (count - p->candidate_jobs_count) * sizeof(*p->candidate_jobs));
        p->candidate_jobs_count = count;
    }
}

static uint64_t planned(const struct plan *plan)
{
    uint64_t count = 0;
    for (size_t i = 0; i < plan->parts; i++) {
        count += plan->part[i].count;
    }
    return count;
}

// Has the plan give no more candidates than this, fewer of its last parts.
static void shorten(struct plan *plan, uint64_t most)
{
    for (size_t i = 0; i < plan->parts; i++) {
        plan->part[i].count = plan->part[i].count < most ? plan->part[i].count : most;
        most -= plan->part[i].count;
    }
}

// Records a batch for which the worker need not be asked: what was put off and has compiled, and as
// much of the plan as there is room for.
static int record_batch(struct pipeline *p, uint64_t batch, const struct plan *plan,
                        struct err *err)
{
    struct plan rest = *plan;
    uint64_t late = 0;
    int rc = run_begin(p->run, err);
    if (rc == 0) {
        rc = pipeline_record_late(p, room_of(p, batch), &late, err);
        shorten(&rest, room_of(p, batch) - late);
    }
    if (rc == 0) {
        rc = pipeline_record_plan(p, batch, &rest, err);
    }
    p->filling = false;
    return pipeline_commit(p, rc, err);
}

// Plans a batch of up to `want` new candidates beside those that were put off and have compiled.
// Returns false when it has to wait: it would not be full, and others are still being compiled.
static bool plan_batch(struct pipeline *p, uint64_t batch, uint64_t want, struct plan *ret)
{
    uint64_t room = room_of(p, batch), late = pipeline_late_compiled(p);
    room -= late < room ? late : room;
    pipeline_plan(p, batch, want < room ? want : room, true, ret);
    p->filling = planned(ret) < room;
    return !p->filling || late == p->late_count;
}

// Begins the next batch. *ret_recorded: its candidates are in the log, or there are none. Otherwise
// the worker is being asked about it, or has to be later.
static int begin_batch(struct pipeline *p, uint64_t batch, uint64_t want, bool *ret_recorded,
                       struct err *err)
{
    struct plan plan;
    *ret_recorded = false;
    if (!plan_batch(p, batch, want, &plan)) {
        return 0;
    }
    if (plan.parts > 0 && p->generator[plan.part[plan.parts - 1].generator]->asks) {
        return pipeline_ask(p, batch, &plan, err); // the log may have all answers
    }
    if (pipeline_screens(p, batch, &plan)) {
        if (pipeline_may_screen(p, batch)) {
            pipeline_screen(p, batch, &plan);
        }
        return 0;
    }
    *ret_recorded = true;
    if (plan.parts == 0 && p->late_count == 0) {
        p->exhausted = pipeline_exhausted_reason(p);
        return 0;
    }
    return record_batch(p, batch, &plan, err);
}

// Records the batch about which the worker was asked, or begins one.
static int record_or_begin(struct pipeline *p, uint64_t batch, bool *ret_recorded, struct err *err)
{
    uint64_t want;
    *ret_recorded = true;
    if (p->asked.under_way && pipeline_rank_due(p)) {
        *ret_recorded = false;
        if (pipeline_may_screen(p, batch)) {
            pipeline_rank(p);
        }
        return 0;
    }
    if (p->asked.under_way) {
        return pipeline_record_asked(p, err);
    }
    if (p->screening.under_way) {
        int rc = 0;
        if (p->late_count > 0 || pipeline_screening_pays(p)) {
            rc = record_batch(p, batch, &p->screening.plan, err);
        } else {
            p->exhausted =
                xasprintf("none of %zu points is worth its cost any more, with confidence %g",
                          p->screening.known, p->run_state->started.end_confidence);
        }
        pipeline_clear_screening(p);
        return rc;
    }
    p->exhausted = check_exhausted(p, batch, &want);
    if (p->exhausted) {
        pipeline_drop_late(p);
        return 0;
    }
    return begin_batch(p, batch, want, ret_recorded, err);
}

static bool is_asking(const struct pipeline *p)
{
    return (p->asked.under_way && (!p->asked.complete || p->asked.ranking)) ||
           (p->screening.under_way && !p->screening.complete);
}

int pipeline_propose(struct pipeline *p, bool *progress, struct err *err)
{
    uint64_t batch = batch_count(p) + 1;
    if (p->stop || p->exhausted || is_asking(p) || p->settled < pipeline_proposal_sees(p, batch)) {
        return 0;
    }
    bool recorded, begins = !p->asked.under_way && !p->screening.under_way, over = true;
    int rc = begins ? pipeline_look_back(p, batch, progress, &over, err) : 0;
    if (rc != 0 || !over) {
        return rc;
    }
    rc = record_or_begin(p, batch, &recorded, err);
    if (!recorded || rc != 0) {
        // The log had all answers: the batch can be recorded, or what it has be ranked.
        *progress |= p->asked.under_way && p->asked.complete && !p->asked.ranking &&
                     (!pipeline_rank_due(p) || pipeline_may_screen(p, batch));
        return rc;
    }
    *progress = true;
    pipeline_track_candidates(p);
    for (uint64_t id = batch_first(p, batch); id <= p->run_state->candidate_count; id++) {
        if (candidate_of(p, id)->proposed.duplicate_of == 0 && !p->candidate_jobs[id - 1].answer) {
            pipeline_submit_compile(p, id);
        }
    }
    return 0;
}

// ---- compile ----

static void on_compiled(void *owner, uint64_t id, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct pipeline *p = owner;
    if (error) {
        pipeline_job_failed(p, 'c', id, error);
        return;
    }
    struct candidate_jobs *jobs = &p->candidate_jobs[pipeline_compilation_for(p, id) - 1];
    jobs->job = ref;
    jobs->times = pipeline_times(p, id, info);
    jobs->answer = info->compiled;
    info->compiled = NULL;
    if (!jobs->answer) { // the job was buried or cancelled
        jobs->answer = xcalloc(1, sizeof(*jobs->answer));
        jobs->answer->verdict = VERDICT_COMPILE_ERROR;
        jobs->answer->seconds = NAN;
        jobs->answer->reason =
            xasprintf("the daemon gave the compilation up (%s): %.2000s",
                      job_state_name(info->state), info->reason ? info->reason : "no reason given");
    }
}

void pipeline_drop_compilation(struct pipeline *p, uint64_t id)
{
    char key[PIPELINE_KEY_MAX];
    p->candidate_jobs[id - 1].dropped = true;
    pipeline_key('c', pipeline_compilation(p, id), key);
    p->jobs->cancel(p->jobs, key); // does nothing for one whose answer is there
}

void pipeline_drop_compilations(struct pipeline *p)
{
    for (uint64_t id = batch_last(p, p->decided) + 1; id <= p->run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (!candidate->compiled && candidate->proposed.duplicate_of == 0) {
            pipeline_drop_compilation(p, id);
        }
    }
    pipeline_drop_late(p);
}

// Records the compilations that have arrived, in the order of candidates.
int pipeline_record_compiled(struct pipeline *p, bool *progress, struct err *err)
{
    uint64_t first = p->compiled + 1, id;
    bool any = false;
    int rc = 0;
    for (id = first; rc == 0 && id <= p->run_state->candidate_count; id++) {
        struct candidate_jobs *jobs = &p->candidate_jobs[id - 1];
        if (!candidate_of(p, id)->compiled && candidate_of(p, id)->proposed.duplicate_of == 0 &&
            !jobs->dropped && !candidate_of(p, id)->put_off) {
            if (!jobs->answer && !pipeline_puts_off(p, id)) {
                break;
            }
            if (!any) {
                rc = run_begin(p->run, err);
                any = true;
            }
            if (!jobs->answer) {
                rc = rc == 0 ? pipeline_put_off(p, id, err) : rc;
                continue;
            }
            struct run_compiled event = {
                .candidate = id, .compiled = jobs->answer, .times = jobs->times};
            if (jobs->answer->verdict == VERDICT_NONE) {
                event.duplicate_of = pipeline_find_first(p->object, &jobs->answer->object);
                pipeline_add_first(&p->object, &jobs->answer->object, id);
            }
            jobs->answer = NULL;
            jobs->times = NULL;
            if (rc == 0) {
                rc = pipeline_append(p, RUN_COMPILED, &event, err);
            } else {
                message_clear(&run_compiled_message, &event);
            }
        }
    }
    if (any) {
        rc = pipeline_commit(p, rc, err);
    }
    if (rc == 0 && id > first) {
        *progress = true;
        p->compiled = id - 1;
        for (uint64_t i = first; i < id; i++) {
            const struct candidate_jobs *jobs = &p->candidate_jobs[i - 1];
            if (jobs->job.job != 0 && !jobs->dropped && !candidate_of(p, i)->put_off) {
                p->jobs->ack(p->jobs, jobs->job);
            }
        }
    }
    return rc;
}

// Batches on their way.
//
// Candidates 1, 2, 3 … form batches of started.batch consecutive ids. A decision depends on the
// seed and on a part of the log that is fixed beforehand, never on what happens to have arrived:
//
//   propose(k)   one transaction. Sees the proposals of all earlier batches and the outcomes of
//   batches ≤ k - LAG.
//                Waits until batch k - LAG is settled.
//   compiled     recorded in order of ids, whatever order the answers come in, so that "the same
//   object as candidate 17"
//                always names the earlier one.
//   forecast(k)  one request, one transaction. Waits until batch k is compiled, batch k - 1
//   forecast, and the worker has been
//                told the outcomes of batches ≤ k - LAG and of no others: tell(j) waits for
//                forecast(j + LAG - 1).
//   decide(k)    one transaction, in order of ids. Sees the forecasts, the incumbent after batch k
//   - LAG, and for the limits
//                the device-seconds of batches ≤ k - LAG. Waits until those are settled.
//   settled(k)   every candidate of the batch that was decided to be measured has its outcome,
//   batch k - 1 is settled, and no
//                candidate of the batch is left that looks better than the incumbent: the best such
//                one is measured again (key r<id>), and becomes the incumbent when the two
//                measurements agree and the second is better, too.
//
// With LAG = 2 the compiling and forecasting of one batch overlaps with the measuring of the one
// before. A kill at any point loses at most what was not recorded; the same stage then sees the
// same log, sends the same keys, and gets the same jobs. Only a time limit and a user's
// interruption do not follow from the log; both stop decisions and change none.
#include "client/pipeline.h"

#include "client/policy.h"
#include "client/strategy.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#define AGREE_LOG2                                                                                 \
    0.07 // two measurements of one candidate agree within 5 % or within their intervals
// A measurement, before the first one is known. Small: a search must not end because of a guess.
#define BUDGET_GUESS_SECONDS 0.1

// The first candidate with a source or an object.
struct first {
    struct digest digest; // key
    uint64_t candidate;
    UT_hash_handle hh;
};

// What is known of a candidate beyond the log.
struct slot {
    struct compiled *answer; // arrived, waits for its turn to be recorded
    uint64_t job;            // of that answer
    bool measuring;          // the first measurement was submitted in this process
};

struct pipeline {
    struct run *run;
    struct fold *fold;
    struct pool *pool;
    struct forecaster *forecaster;
    const struct generator *generator;
    const struct strategy *strategy;
    const struct policy *policy;
    uint64_t batch;    // candidates of one
    struct slot *slot; // slot i is of candidate i + 1
    size_t slot_count;
    struct first *source, *object;       // uthash
    uint64_t compiled;                   // candidates 1 … this have compiled, failed, or need not
    uint64_t forecast, decided, settled; // batches 1 … this
    uint64_t asking;                     // batch that is being forecast, or 0
    uint64_t told_batch;    // the worker was told batches 1 … this, as far as it listened
    uint64_t told, telling; // candidates 1 … this; what it will be after the message under way
    uint64_t replicating;   // candidate whose second measurement is under way, or 0
    char *exhausted;        // why nothing is proposed any more
    char *stop;             // why nothing is decided any more
    struct err failure;     // in a callback
};

static pool_callback on_compiled, on_measured, on_replicated;

static uint64_t batch_count(const struct pipeline *p)
{
    return (p->fold->candidate_count + p->batch - 1) / p->batch;
}

static uint64_t batch_first(const struct pipeline *p, uint64_t batch)
{
    return (batch - 1) * p->batch + 1;
}

static uint64_t batch_last(const struct pipeline *p, uint64_t batch)
{
    uint64_t last = batch * p->batch;
    return last < p->fold->candidate_count ? last : p->fold->candidate_count;
}

// The last candidate whose outcome a stage of this batch may see.
static uint64_t visible_from(const struct pipeline *p, uint64_t batch)
{
    return batch > PIPELINE_LAG ? batch_last(p, batch - PIPELINE_LAG) : 0;
}

static struct fold_candidate *candidate_of(const struct pipeline *p, uint64_t id)
{
    return &p->fold->candidate[id - 1];
}

static bool is_measuring(const struct fold_candidate *candidate)
{
    return candidate->decided.decision == DECISION_MEASURE ||
           candidate->decided.decision == DECISION_AUDIT;
}

static uint64_t find_first(const struct first *table, const struct digest *digest)
{
    struct first *first;
    HASH_FIND(hh, table, digest->byte, DIGEST_LEN, first);
    return first != NULL ? first->candidate : 0;
}

static void add_first(struct first **table, const struct digest *digest, uint64_t candidate)
{
    if (digest_is_zero(digest) || find_first(*table, digest) != 0) {
        return;
    }
    struct first *first = xcalloc(1, sizeof(*first));
    first->digest = *digest;
    first->candidate = candidate;
    HASH_ADD(hh, *table, digest.byte, DIGEST_LEN, first);
}

static void free_firsts(struct first **table)
{
    struct first *first, *next;
    HASH_ITER (hh, *table, first, next) {
        HASH_DEL(*table, first);
        free(first);
    }
}

int pipeline_record(struct run *run, struct fold *fold, enum run_event_kind kind, void *body,
                    struct err *err)
{
    struct timespec now;
    struct run_event event = {.kind = kind, .body = body};
    clock_gettime(CLOCK_REALTIME, &now);
    event.at = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    int code = run_append(run, kind, body, &event.sequence, err);
    if (code == 0) {
        code = fold_apply(fold, &event, err);
    }
    message_clear(run_event_message(kind), body);
    return code;
}

static int record(struct pipeline *p, enum run_event_kind kind, void *body, struct err *err)
{
    return pipeline_record(p->run, p->fold, kind, body, err);
}

static int commit(struct pipeline *p, int code, struct err *err)
{
    if (code == 0) {
        return run_commit(p->run, err);
    }
    run_rollback(p->run);
    return code;
}

// ---- jobs ----

static void make_spec(const struct pipeline *p, uint64_t id, enum job_kind kind,
                      struct job_spec *ret)
{
    const struct run_started *started = &p->fold->started;
    *ret = (struct job_spec){
        .kind = kind,
        .problem = started->problem_json,
        .candidate = candidate_of(p, id)->proposed.source,
        .anchor_log2 = NAN,
        .max_seconds = NAN,
        .precision_log2 = NAN,
    };
    if (kind == JOB_MEASURE) {
        ret->reference = started->reference;
        ret->baseline = started->baseline;
        ret->device_class = p->fold->session.device_class;
    }
}

static void submit(struct pipeline *p, char letter, uint64_t id, const struct job_spec *spec,
                   uint64_t priority, pool_callback *callback)
{
    char key[32];
    snprintf(key, sizeof(key), "%c%llu", letter, (unsigned long long)id);
    pool_submit(p->pool, key, spec, priority, callback, p, id);
}

static void submit_compile(struct pipeline *p, uint64_t id)
{
    struct job_spec spec;
    make_spec(p, id, JOB_COMPILE, &spec);
    submit(p, 'c', id, &spec, id, on_compiled);
}

// The anchor is the incumbent that the decision saw, so the spec is the same after a resume.
static void submit_measure(struct pipeline *p, uint64_t id)
{
    struct job_spec spec;
    if (p->slot[id - 1].measuring) {
        return;
    }
    p->slot[id - 1].measuring = true;
    double incumbent = candidate_of(p, id)->decided.incumbent_log2;
    make_spec(p, id, JOB_MEASURE, &spec);
    spec.anchor_log2 = incumbent != 0 ? incumbent : NAN; // the baseline is an anchor already
    submit(p, 'm', id, &spec, id, on_measured);
}

static void submit_replication(struct pipeline *p, uint64_t id)
{
    struct job_spec spec;
    double incumbent = fold_incumbent_log2(p->fold);
    make_spec(p, id, JOB_MEASURE, &spec);
    spec.anchor_log2 = incumbent != 0 ? incumbent : NAN;
    spec.fresh = true;
    spec.repeat = 1;
    p->replicating = id;
    submit(p, 'r', id, &spec, 0, on_replicated);
}

static void fail(struct pipeline *p, char letter, uint64_t id, const struct err *error)
{
    err_set(&p->failure, error->code, "job %c%llu: %s", letter, (unsigned long long)id,
            error->text);
}

// ---- propose ----

// What the limits are held against, counted over candidates 1 … last; seconds only of those up to
// visible.
struct spent {
    uint64_t measurements; // decided
    uint64_t done;         // of these, with known seconds
    uint64_t pending;      // without
    double seconds;
};

static void add_decision(struct spent *spent, const struct fold_candidate *candidate, bool visible)
{
    if (!is_measuring(candidate)) {
        return;
    }
    spent->measurements++;
    spent->pending += !visible;
    spent->done += visible;
    const struct result *results[] = {candidate->result, candidate->record};
    for (size_t i = 0; visible && i < ARRAY_LEN(results); i++) {
        spent->seconds += fold_held_seconds(results[i]);
    }
}

static struct spent count_spent(const struct pipeline *p, uint64_t visible, uint64_t last)
{
    struct spent spent = {0};
    for (uint64_t id = 1; id <= last; id++) {
        add_decision(&spent, candidate_of(p, id), id <= visible);
    }
    return spent;
}

// Whether one more measurement would be beyond a limit; the reason, malloc'd, or NULL.
static char *limit_reached(const struct pipeline *p, const struct spent *spent)
{
    const struct run_started *started = &p->fold->started;
    if (started->measurements_max != 0 && spent->measurements >= started->measurements_max) {
        return xasprintf("%llu measurements made", (unsigned long long)started->measurements_max);
    }
    double mean = spent->done > 0 ? spent->seconds / (double)spent->done : BUDGET_GUESS_SECONDS;
    if (started->budget_seconds > 0 && spent->measurements > 0 &&
        spent->seconds + ((double)spent->pending + 0.5) * mean > started->budget_seconds) {
        return xasprintf("budget of %g device-seconds used", started->budget_seconds);
    }
    return NULL;
}

// Why there is no next batch; malloc'd, or NULL when there is one, of *ret_want candidates.
static char *check_exhausted(const struct pipeline *p, uint64_t batch, uint64_t *ret_want)
{
    const struct run_started *started = &p->fold->started;
    uint64_t count = p->fold->candidate_count;
    struct spent spent = count_spent(p, visible_from(p, batch), visible_from(p, batch));
    *ret_want = p->batch;
    if (started->candidates_max != 0 && count + p->batch > started->candidates_max) {
        *ret_want = started->candidates_max > count ? started->candidates_max - count : 0;
    }
    if (*ret_want == 0) {
        return xasprintf("%llu candidates considered", (unsigned long long)started->candidates_max);
    }
    return count % p->batch != 0 ? xstrdup("every candidate considered") : limit_reached(p, &spent);
}

static int record_proposal(struct pipeline *p, const struct strategy_choice *choice,
                           struct err *err)
{
    const struct generator *generator = p->generator;
    struct strbuf source = STRBUF_INIT, name;
    struct run_proposed event = {
        .candidate = p->fold->candidate_count + 1,
        .parent = choice->parent,
        .point = choice->point + 1,
    };
    strbuf_init(&name, 1024);
    generator->ops->source(generator, choice->point, &source);
    generator->ops->name(generator, choice->point, &name);
    event.params_count = generator->ops->params(generator, choice->point, &event.params);
    event.name = strbuf_detach(&name);
    int code = run_put_blob(p->run, strbuf_text(&source), source.len, &event.source, err);
    if (code == 0) {
        uint64_t id = event.candidate;
        struct digest digest = event.source;
        event.duplicate_of = find_first(p->source, &digest);
        add_first(&p->source, &digest, id);
        code = record(p, RUN_PROPOSED, &event, err);
    } else {
        message_clear(&run_proposed_message, &event);
    }
    strbuf_release(&source);
    return code;
}

static void add_slots(struct pipeline *p)
{
    size_t count = p->fold->candidate_count;
    if (count > p->slot_count) {
        p->slot = xrealloc(p->slot, count, sizeof(*p->slot));
        memset(p->slot + p->slot_count, 0, (count - p->slot_count) * sizeof(*p->slot));
        p->slot_count = count;
    }
}

static int propose(struct pipeline *p, bool *progress, struct err *err)
{
    uint64_t batch = batch_count(p) + 1, want;
    if (p->stop != NULL || p->exhausted != NULL ||
        (batch > PIPELINE_LAG && p->settled < batch - PIPELINE_LAG)) {
        return 0;
    }
    *progress = true;
    p->exhausted = check_exhausted(p, batch, &want);
    if (p->exhausted != NULL) {
        return 0;
    }
    struct strategy_choice choice[PIPELINE_BATCH_MAX];
    struct strategy_view view = {.fold = p->fold,
                                 .visible = visible_from(p, batch),
                                 .generator = p->generator,
                                 .seed = p->fold->started.seed};
    size_t count = p->strategy->choose(&view, (size_t)want, choice);
    if (count == 0) {
        p->exhausted = xstrdup("every candidate considered");
        return 0;
    }
    int code = run_begin(p->run, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        code = record_proposal(p, &choice[i], err);
    }
    code = commit(p, code, err);
    add_slots(p);
    for (uint64_t id = batch_first(p, batch); code == 0 && id <= p->fold->candidate_count; id++) {
        if (candidate_of(p, id)->proposed.duplicate_of == 0) {
            submit_compile(p, id);
        }
    }
    return code;
}

// ---- compile ----

static void on_compiled(void *owner, uint64_t id, struct job_info *info, const struct err *error)
{
    struct pipeline *p = owner;
    if (error != NULL) {
        fail(p, 'c', id, error);
        return;
    }
    struct slot *slot = &p->slot[id - 1];
    slot->job = info->job;
    slot->answer = info->compiled;
    info->compiled = NULL;
    if (slot->answer == NULL) { // buried or cancelled
        slot->answer = xcalloc(1, sizeof(*slot->answer));
        slot->answer->verdict = VERDICT_COMPILE_ERROR;
        slot->answer->seconds = NAN;
        slot->answer->reason = xasprintf("the daemon gave the compilation up (%s): %.2000s",
                                         job_state_name(info->state),
                                         info->reason != NULL ? info->reason : "no reason given");
    }
}

// Records what has arrived, in order of ids.
static int record_compiled(struct pipeline *p, bool *progress, struct err *err)
{
    uint64_t first = p->compiled + 1, id;
    bool any = false;
    int code = 0;
    for (id = first; code == 0 && id <= p->fold->candidate_count; id++) {
        struct slot *slot = &p->slot[id - 1];
        if (candidate_of(p, id)->compiled == NULL &&
            candidate_of(p, id)->proposed.duplicate_of == 0) {
            if (slot->answer == NULL) {
                break;
            }
            if (!any) {
                code = run_begin(p->run, err);
                any = true;
            }
            struct run_compiled event = {.candidate = id, .compiled = slot->answer};
            if (slot->answer->verdict == VERDICT_NONE) {
                event.duplicate_of = find_first(p->object, &slot->answer->object);
                add_first(&p->object, &slot->answer->object, id);
            }
            slot->answer = NULL;
            if (code == 0) {
                code = record(p, RUN_COMPILED, &event, err);
            } else {
                message_clear(&run_compiled_message, &event);
            }
        }
    }
    if (any) {
        code = commit(p, code, err);
    }
    if (code == 0 && id > first) {
        *progress = true;
        p->compiled = id - 1;
        for (uint64_t i = first; i < id; i++) {
            if (p->slot[i - 1].job != 0) {
                pool_ack(p->pool, p->slot[i - 1].job);
            }
        }
    }
    return code;
}

// ---- forecast ----

static int record_forecasts(struct pipeline *p, struct forecast_reply *reply, const char *reason,
                            struct err *err)
{
    uint64_t visible = visible_from(p, p->asking);
    int code = run_begin(p->run, err);
    for (uint64_t id = batch_first(p, p->asking); code == 0 && id <= batch_last(p, p->asking);
         id++) {
        if (!forecaster_wants(p->fold, id)) {
            continue;
        }
        struct run_forecast event = {.candidate = id,
                                     .incumbent_log2 = fold_incumbent_before(p->fold, visible)};
        for (size_t i = 0; reply != NULL && i < reply->forecasts_count && event.forecast == NULL;
             i++) {
            if (reply->forecasts[i].id == id) {
                event.forecast = xmemdup(&reply->forecasts[i], sizeof(*event.forecast));
                reply->forecasts[i] = (struct forecast){0};
            }
        }
        if (event.forecast == NULL) {
            event.reason = xstrdup(reason != NULL ? reason : "the worker left it out");
        }
        code = record(p, RUN_FORECAST, &event, err);
    }
    return commit(p, code, err);
}

static void on_forecasts(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    if (record_forecasts(p, reply, reason, &p->failure) == 0) {
        p->forecast = p->asking;
    }
    p->asking = 0;
}

static bool wants_forecasts(const struct pipeline *p, uint64_t batch)
{
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        if (forecaster_wants(p->fold, id)) {
            return true;
        }
    }
    return false;
}

static void ask_forecasts(struct pipeline *p, bool *progress)
{
    uint64_t batch = p->forecast + 1;
    if (p->stop != NULL || p->asking != 0 || batch > batch_count(p) ||
        p->compiled < batch_last(p, batch)) {
        return;
    }
    if (!wants_forecasts(p, batch)) {
        p->forecast = batch;
        *progress = true;
        return;
    }
    if (forecaster_busy(p->forecaster) ||
        (batch > PIPELINE_LAG && p->told_batch < batch - PIPELINE_LAG)) {
        return;
    }
    p->asking = batch;
    forecaster_ask(p->forecaster, p->fold, batch_first(p, batch), batch_last(p, batch),
                   fold_incumbent_before(p->fold, visible_from(p, batch)), on_forecasts, p);
}

// ---- decide ----

// Decides about one candidate. The reason is malloc'd.
static void make_decision(const struct pipeline *p, uint64_t id, struct run_decided *ret)
{
    const struct fold_candidate *candidate = candidate_of(p, id);
    const struct run_started *started = &p->fold->started;
    ret->candidate = id;
    if (candidate->object_duplicate_of != 0) {
        ret->decision = DECISION_REUSE;
        ret->propensity = NAN;
        ret->confidence = NAN;
        ret->reason = xasprintf("the compiler makes the same object of candidate %llu",
                                (unsigned long long)candidate->object_duplicate_of);
        return;
    }
    struct policy_input input = {
        .candidate = id,
        .seed = started->seed,
        .forecast = candidate->forecast,
        .forecast_reason = candidate->forecast_reason,
        .confidence = started->confidence,
        .audit = started->audit,
    };
    struct policy_decision decision;
    p->policy->decide(&input, &decision);
    ret->decision = decision.decision;
    ret->propensity = decision.propensity;
    ret->confidence = decision.confidence;
    ret->reason = xstrdup(decision.reason);
}

// Records the decisions of a batch up to the first measurement that is beyond a limit.
static int record_decisions(struct pipeline *p, uint64_t batch, struct err *err)
{
    uint64_t visible = visible_from(p, batch);
    struct spent spent = count_spent(p, visible, batch_first(p, batch) - 1);
    double incumbent = fold_incumbent_before(p->fold, visible);
    int code = run_begin(p->run, err);
    for (uint64_t id = batch_first(p, batch);
         code == 0 && p->stop == NULL && id <= batch_last(p, batch); id++) {
        const struct fold_candidate *candidate = candidate_of(p, id);
        if (candidate->compiled == NULL || candidate->compiled->verdict != VERDICT_NONE ||
            candidate->decided.decision != 0) {
            add_decision(&spent, candidate, false);
            continue;
        }
        struct run_decided event = {.incumbent_log2 = incumbent};
        make_decision(p, id, &event);
        if (event.decision == DECISION_MEASURE || event.decision == DECISION_AUDIT) {
            p->stop = limit_reached(p, &spent);
        }
        if (p->stop == NULL) {
            code = record(p, RUN_DECIDED, &event, err);
            add_decision(&spent, candidate_of(p, id), false);
        } else {
            message_clear(&run_decided_message, &event);
        }
    }
    return commit(p, code, err);
}

static bool is_decided(const struct pipeline *p, uint64_t batch)
{
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        const struct fold_candidate *candidate = candidate_of(p, id);
        if (candidate->compiled != NULL && candidate->compiled->verdict == VERDICT_NONE &&
            candidate->decided.decision == 0) {
            return false;
        }
    }
    return true;
}

static int decide(struct pipeline *p, bool *progress, struct err *err)
{
    uint64_t batch = p->decided + 1;
    int code = 0;
    if (p->stop != NULL || batch > p->forecast ||
        (batch > PIPELINE_LAG && p->settled < batch - PIPELINE_LAG)) {
        return 0;
    }
    *progress = true;
    if (!is_decided(p, batch)) {
        code = record_decisions(p, batch, err);
        for (uint64_t id = batch_first(p, batch); code == 0 && id <= batch_last(p, batch); id++) {
            const struct fold_candidate *candidate = candidate_of(p, id);
            if (is_measuring(candidate) && candidate->result == NULL && !candidate->given_up) {
                submit_measure(p, id);
            }
        }
    }
    p->decided = batch;
    return code;
}

// ---- measure and replicate ----

// Moves the outcome of a job into an event.
static void make_measured(uint64_t id, enum purpose purpose, struct job_info *info,
                          struct run_measured *ret)
{
    *ret = (struct run_measured){
        .candidate = id, .purpose = purpose, .job = info->job, .result = info->result};
    info->result = NULL;
    if (ret->result == NULL) {
        ret->reason =
            xasprintf("the daemon gave the job up (%s): %.2000s", job_state_name(info->state),
                      info->reason != NULL ? info->reason : "no reason given");
    } else if (ret->result->compiled != NULL) { // is in RUN_COMPILED already
        message_clear(&compiled_message, ret->result->compiled);
        free(ret->result->compiled);
        ret->result->compiled = NULL;
    }
}

static void on_measured(void *owner, uint64_t id, struct job_info *info, const struct err *error)
{
    struct pipeline *p = owner;
    if (error != NULL) {
        fail(p, 'm', id, error);
        return;
    }
    bool audit = candidate_of(p, id)->decided.decision == DECISION_AUDIT;
    struct run_measured event;
    make_measured(id, audit ? PURPOSE_AUDIT : PURPOSE_SEARCH, info, &event);
    if (record(p, RUN_MEASURED, &event, &p->failure) == 0) {
        pool_ack(p->pool, info->job);
    }
}

// Whether the second measurement makes the candidate the incumbent.
static bool is_confirmed(const struct fold_candidate *candidate, double incumbent)
{
    const struct result *first = candidate->result, *second = candidate->record;
    if (second == NULL || !verdict_is_ratio(second->verdict) || second->speedup == NULL) {
        return false;
    }
    double half_widths =
        (first->speedup->hi - first->speedup->lo + second->speedup->hi - second->speedup->lo) / 2;
    double allowed = half_widths > AGREE_LOG2 ? half_widths : AGREE_LOG2; // also for NaN
    return second->speedup->lo > incumbent &&
           fabs(first->speedup->log2 - second->speedup->log2) <= allowed;
}

static int record_replication(struct pipeline *p, uint64_t id, struct job_info *info,
                              struct err *err)
{
    double incumbent = fold_incumbent_log2(p->fold);
    struct run_measured event;
    make_measured(id, PURPOSE_RECORD, info, &event);
    int code = run_begin(p->run, err);
    if (code == 0) {
        code = record(p, RUN_MEASURED, &event, err);
    } else {
        message_clear(&run_measured_message, &event);
    }
    if (code == 0 && is_confirmed(candidate_of(p, id), incumbent)) {
        struct run_incumbent better = {
            .candidate = id,
            .speedup = xmemdup(candidate_of(p, id)->record->speedup, sizeof(*better.speedup)),
            .device_seconds = p->fold->device_seconds,
            .wall_seconds = p->fold->wall_seconds,
            .considered = p->fold->considered,
            .measured = p->fold->measured,
        };
        code = record(p, RUN_INCUMBENT, &better, err);
    }
    return commit(p, code, err);
}

static void on_replicated(void *owner, uint64_t id, struct job_info *info, const struct err *error)
{
    struct pipeline *p = owner;
    p->replicating = 0;
    if (error != NULL) {
        fail(p, 'r', id, error);
    } else if (record_replication(p, id, info, &p->failure) == 0) {
        pool_ack(p->pool, info->job);
    }
}

// The best candidate of the batch that seems to beat the incumbent and was not measured again; 0:
// none.
static uint64_t find_contender(const struct pipeline *p, uint64_t batch)
{
    double best = fold_incumbent_log2(p->fold) + FORECAST_MARGIN_LOG2;
    uint64_t contender = 0;
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        const struct fold_candidate *candidate = candidate_of(p, id);
        const struct result *result = candidate->result;
        if (result != NULL && verdict_is_ratio(result->verdict) && result->speedup != NULL &&
            candidate->record == NULL && !candidate->given_up && result->speedup->log2 > best) {
            best = result->speedup->log2;
            contender = id;
        }
    }
    return contender;
}

static void settle(struct pipeline *p, bool *progress)
{
    uint64_t batch = p->settled + 1;
    if (batch > p->decided || p->replicating != 0) {
        return;
    }
    for (uint64_t id = batch_first(p, batch); id <= batch_last(p, batch); id++) {
        const struct fold_candidate *candidate = candidate_of(p, id);
        if (is_measuring(candidate) && candidate->result == NULL && !candidate->given_up) {
            return;
        }
    }
    uint64_t contender = find_contender(p, batch);
    if (contender != 0) {
        submit_replication(p, contender);
        return;
    }
    p->settled = batch;
    *progress = true;
}

// ---- tell the worker ----

// Nothing that is not decided now will be.
static bool is_over(const struct pipeline *p)
{
    return p->stop != NULL || (p->exhausted != NULL && p->decided == batch_count(p));
}

static bool has_outcomes(const struct fold *fold, uint64_t after, uint64_t last)
{
    for (uint64_t id = after + 1; id <= last; id++) {
        if (fold->candidate[id - 1].result != NULL) {
            return true;
        }
    }
    return false;
}

static void on_told(void *owner, bool ok, uint64_t rows)
{
    struct pipeline *p = owner;
    if (!ok) {
        return; // the next message has these, too
    }
    p->told = p->telling;
    if (has_outcomes(p->fold, p->fold->observed_candidates, p->told)) {
        struct run_observed event = {
            .up_to_event = p->fold->last_sequence, .rows = rows, .up_to_candidate = p->told};
        if (record(p, RUN_OBSERVED, &event, &p->failure) != 0) {
            return;
        }
    }
}

static void tell(struct pipeline *p)
{
    uint64_t batch = p->settled;
    if (!is_over(p) && batch + PIPELINE_LAG > p->forecast + 1) { // forecasts before must not profit
        batch = p->forecast + 1 > PIPELINE_LAG ? p->forecast + 1 - PIPELINE_LAG : 0;
    }
    if (batch <= p->told_batch || forecaster_busy(p->forecaster)) {
        return;
    }
    p->told_batch = batch;
    p->telling = batch_last(p, batch);
    forecaster_tell(p->forecaster, p->fold, p->told, p->telling, on_told, p);
}

// ---- interface ----

int pipeline_create(struct pipeline **ret, struct run *run, struct fold *fold, struct pool *pool,
                    struct forecaster *forecaster, const struct generator *generator,
                    struct err *err)
{
    const struct run_started *started = &fold->started;
    const struct strategy *strategy = strategy_find(started->strategy);
    const struct policy *policy = policy_find(started->policy);
    if (strategy == NULL) {
        return err_set(err, ERR_VERSION, "this kcast does not know the strategy \"%s\"",
                       started->strategy);
    }
    if (policy == NULL) {
        return err_set(err, ERR_VERSION, "this kcast does not know the policy \"%s\"",
                       started->policy);
    }
    struct pipeline *p = xcalloc(1, sizeof(*p));
    p->run = run;
    p->fold = fold;
    p->pool = pool;
    p->forecaster = forecaster;
    p->generator = generator;
    p->strategy = strategy;
    p->policy = policy;
    p->batch = started->batch < 1                    ? PIPELINE_BATCH_DEFAULT
               : started->batch > PIPELINE_BATCH_MAX ? PIPELINE_BATCH_MAX
                                                     : started->batch;
    add_slots(p);
    for (uint64_t id = 1; id <= fold->candidate_count; id++) {
        const struct fold_candidate *candidate = candidate_of(p, id);
        add_first(&p->source, &candidate->proposed.source, id);
        if (candidate->compiled == NULL && candidate->proposed.duplicate_of == 0) {
            submit_compile(p, id);
        }
        if (candidate->compiled != NULL && candidate->compiled->verdict == VERDICT_NONE) {
            add_first(&p->object, &candidate->compiled->object, id);
        }
        if (is_measuring(candidate) && candidate->result == NULL && !candidate->given_up) {
            submit_measure(p, id);
        }
    }
    *ret = p;
    return 0;
}

void pipeline_free(struct pipeline *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->slot_count; i++) {
        if (p->slot[i].answer != NULL) {
            message_clear(&compiled_message, p->slot[i].answer);
            free(p->slot[i].answer);
        }
    }
    free(p->slot);
    free_firsts(&p->source);
    free_firsts(&p->object);
    free(p->exhausted);
    free(p->stop);
    free(p);
}

int pipeline_advance(struct pipeline *p, struct err *err)
{
    int code = 0;
    for (bool progress = true; progress && code == 0;) {
        progress = false;
        if (p->failure.code != ERR_NONE) {
            return err_set(err, p->failure.code, "%s", p->failure.text);
        }
        code = record_compiled(p, &progress, err);
        if (code == 0) {
            code = propose(p, &progress, err);
        }
        if (code == 0) {
            ask_forecasts(p, &progress);
            code = decide(p, &progress, err);
        }
        if (code == 0) {
            settle(p, &progress);
            tell(p);
        }
    }
    return code;
}

void pipeline_stop(struct pipeline *p, const char *reason)
{
    if (p->stop == NULL) {
        p->stop = xstrdup(reason);
    }
}

bool pipeline_done(const struct pipeline *p, const char **ret_reason)
{
    if (!is_over(p) || p->settled < p->decided || p->told_batch < p->settled ||
        forecaster_busy(p->forecaster)) {
        return false;
    }
    *ret_reason = p->stop != NULL ? p->stop : p->exhausted;
    return true;
}

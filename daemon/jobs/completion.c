// Design note. While the ledger has not answered, the job is `settling` and cannot end in another
// way: a CANCEL that comes then finds the end that came first. When the ledger cannot take the end
// (a full disk) the job ends all the same, its result stays in memory (`unsaved`), and it is
// offered again from time to time; a crash before that costs doing the job again.
#include "daemon/jobs/completion.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/devices/device.h"
#include "daemon/run/job_cache.h"
#include "daemon/run/setup.h"
#include "daemon/store/cache.h"
#include <math.h>
#include <stdlib.h>

#define UNSAVED_TICKS 10            // seconds between offers to a full disk
#define UNSAVED_MAX 64              // jobs per offer
#define TIDY_TICKS 600              // seconds between looks for old results
#define KEEP_S ((int64_t)7 * 86400) // how long a result waits for its ACK
#define FORGET_MAX 4096             // jobs forgotten per look

struct completions {
    const struct daemon_parts *parts;
    size_t pending;
    size_t unsaved; // jobs
    uint64_t ticks;
};

// An end on its way through the ledger.
struct completion {
    struct completions *completions;
    uint64_t job;
    enum job_state state;
    uint64_t verdict; // for the log
    char *reason;
    enum job_cause cause;
    struct bytes result;
    bool again; // offered once more; the job has its state already
};

struct completions *completions_create(const struct daemon_parts *parts)
{
    struct completions *completions = xcalloc(1, sizeof(*completions));

    completions->parts = parts;
    return completions;
}

void completions_free(struct completions *completions)
{
    free(completions);
}

size_t completions_pending(const struct completions *completions)
{
    return completions->pending;
}

size_t completions_unsaved(const struct completions *completions)
{
    return completions->unsaved;
}

static void count_end(struct counters *counters, const struct job *job, uint64_t verdict)
{
    counters->ended[job->state]++;
    counters->cached += job->cached;
    if (job->kind == JOB_MEASURE && !job->cached && job->state == JOB_DONE &&
        verdict < COUNTERS_VERDICTS) {
        counters->verdict[verdict]++;
    }
}

static int64_t now_s(const struct completions *completions)
{
    return clock_wall_ns(completions->parts->clock) / (int64_t)NS_PER_S;
}

static void log_end(const struct job *job, uint64_t verdict)
{
    log_event(job->state == JOB_BURIED ? LOG_WARNING : LOG_INFO,
              "job-%s job=%llu search=%s key=%s attempt=%u%s%s%s%s%s%s", job_state_name(job->state),
              (unsigned long long)job->id, job->search->name, job->key, job->attempt,
              verdict ? " verdict=" : "", verdict ? verdict_name(verdict) : "",
              job->cached ? " cached=yes" : "", job->reason ? " reason=\"" : "",
              job->reason ? job->reason : "", job->reason ? "\"" : "");
}

static void on_ended(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct completion *completion = owner;
    struct completions *completions = completion->completions;
    struct job *job = job_table_find(completions->parts->jobs, completion->job);

    (void)answer;
    (void)count;
    completions->pending--;
    if (job) {
        completions->unsaved -= job->unsaved;
        job->unsaved = error;
        completions->unsaved += job->unsaved;
    }
    if (job && !completion->again) {
        job->settling = false;
        job->reason = completion->reason;
        completion->reason = NULL;
        job->cause = (uint8_t)completion->cause;
        job->finished_s = now_s(completions);
        job_table_keep_result(completions->parts->jobs, job, &completion->result);
        job_set_state(job, completion->state);
        log_end(job, completion->verdict);
        count_end(completions->parts->counters, job, completion->verdict);
        waits_wake(completions->parts->waits, job);
    }
    bytes_clear(&completion->result);
    free(completion->reason);
    free(completion);
}

static void post(struct completions *completions, const struct job *job,
                 struct completion *completion, bool cacheable)
{
    struct digest key = {0};
    struct ledger_end end = {
        .job = job->id,
        .state = completion->state,
        .attempt = job->attempt,
        .reason = completion->reason,
        .cause = completion->cause,
        .result = completion->again ? &job->result : &completion->result,
        .cap_s = isnan(job->max_seconds) ? CACHE_CAP_S : job->max_seconds,
    };

    if (cacheable) {
        key = job_cache_key(job, completions->parts->limits.sandbox_off);
        end.cache_key = &key;
    }
    completion->completions = completions;
    completion->job = job->id;
    completions->pending++;
    ledger_finish(completions->parts->ledger, &end, on_ended, completion);
}

static void end_without_result(struct completions *completions, struct job *job,
                               enum job_state state, enum job_cause cause, const char *reason)
{
    struct completion *completion = xcalloc(1, sizeof(*completion));

    completion->state = state;
    completion->reason = xstrdup(reason);
    completion->cause = cause;
    job->settling = true;
    post(completions, job, completion, false);
}

void end_cancelled(struct completions *completions, struct job *job, enum job_cause cause,
                   const char *reason)
{
    end_without_result(completions, job, JOB_CANCELLED, cause, reason);
}

void end_buried(struct completions *completions, struct job *job, enum job_cause cause,
                const char *reason)
{
    end_without_result(completions, job, JOB_BURIED, cause, reason);
}

static void end_done(struct completions *completions, struct job *job, struct bytes *result_taken,
                     uint64_t verdict, bool cacheable)
{
    if (!result_taken->data) {
        end_buried(completions, job, JOB_CAUSE_TOO_LARGE,
                   "its result is larger than a message may be");
        return;
    }
    struct completion *completion;
    completion = xcalloc(1, sizeof(*completion));
    completion->state = JOB_DONE;
    completion->verdict = verdict;
    completion->result = *result_taken;
    *result_taken = (struct bytes){0};
    job->settling = true;
    post(completions, job, completion, cacheable);
}

void end_measured(struct completions *completions, struct job *job, const struct result *result,
                  bool cacheable)
{
    struct bytes packed = cache_pack(&result_message, result);

    end_done(completions, job, &packed, result->verdict, cacheable);
}

void end_compiled(struct completions *completions, struct job *job, const struct compiled *compiled)
{
    struct bytes packed = cache_pack(&compiled_message, compiled);

    job->cached = compiled->cached;
    end_done(completions, job, &packed, compiled->verdict, false);
}

void end_cached(struct completions *completions, struct job *job, struct bytes *result_taken)
{
    job->cached = true;
    end_done(completions, job, result_taken, VERDICT_NONE, false);
}

void end_unmeasured(struct completions *completions, struct job *job, uint64_t verdict,
                    const char *reason, const struct compiled *compiled)
{
    struct result result;

    message_init(&result_message, &result);
    result.verdict = verdict;
    result.reason = reason ? xstrndup(reason, 4096) : NULL;
    result.device_class = job->device_class ? xstrdup(job->device_class->name) : NULL;
    result.sandbox = xstrdup(completions->parts->limits.sandbox_off ? "off" : "on");
    result.problem = job->setup->problem;
    result.candidate = job->candidate;
    result.attempt = job->attempt;
    result.measured_at = (double)clock_wall_ns(completions->parts->clock) / 1e9;
    if (compiled) {
        result.compiled = xmalloc(sizeof(*result.compiled));
        message_copy(&compiled_message, result.compiled, compiled);
    }
    end_measured(completions, job, &result, compiled);
    message_clear(&result_message, &result);
}

void end_at_once(struct completions *completions, struct job *job, struct bytes *result_taken)
{
    job->cached = true;
    job->finished_s = now_s(completions);
    job_table_keep_result(completions->parts->jobs, job, result_taken);
    job_set_state(job, JOB_DONE);
    log_end(job, VERDICT_NONE);
    count_end(completions->parts->counters, job, VERDICT_NONE);
    waits_wake(completions->parts->waits, job);
}

void completions_forget(struct completions *completions, struct job *const *jobs, size_t count,
                        ledger_done *done, void *owner)
{
    uint64_t *ids = xcalloc(count > 0 ? count : 1, sizeof(*ids));

    for (size_t i = 0; i < count; i++) {
        ids[i] = jobs[i]->id;
        completions->unsaved -= jobs[i]->unsaved;
        setup_release(jobs[i]->setup);
        job_table_remove(completions->parts->jobs, jobs[i]);
    }
    ledger_forget(completions->parts->ledger, ids, count, done, owner);
    free(ids);
}

static void device_spec_again(struct completions *completions)
{
    struct job *job = job_table_first(completions->parts->jobs);
    size_t offered = 0;

    for (; job && offered < UNSAVED_MAX; job = job->by_id.next) {
        if (job->unsaved) {
            struct completion *completion = xcalloc(1, sizeof(*completion));

            completion->state = (enum job_state)job->state;
            completion->reason = job->reason ? xstrdup(job->reason) : NULL;
            completion->cause = job->cause;
            completion->again = true;
            post(completions, job, completion, false);
            offered++;
        }
    }
}

static void forget_old(struct completions *completions)
{
    struct job **old = xcalloc(FORGET_MAX, sizeof(struct job *));
    int64_t before_s = now_s(completions) - KEEP_S;
    struct job *job = job_table_first(completions->parts->jobs);
    size_t count = 0;

    for (; job && count < FORGET_MAX; job = job->by_id.next) {
        if (job_state_is_terminal(job->state) && job->finished_s < before_s) {
            old[count++] = job;
        }
    }
    if (count > 0) {
        log_event(LOG_NOTICE, "results-expired jobs=%zu reason=\"not acknowledged within a week\"",
                  count);
        completions_forget(completions, old, count, NULL, NULL);
    }
    free(old);
}

void completions_tick(struct completions *completions)
{
    completions->ticks++;
    if (completions->unsaved > 0 && completions->ticks % UNSAVED_TICKS == 0) {
        device_spec_again(completions);
    }
    if (completions->ticks % TIDY_TICKS == 1) { // the first time after the start
        forget_old(completions);
    }
}

// Design note. While the ledger has not answered, the job is `settling` and cannot end in another
// way: a CANCEL that comes then finds the end that came first. When the ledger cannot take the end
// (a full disk) the job ends all the same, its result stays in memory (`unsaved`), and it is
// offered again from time to time; a crash before that costs doing the job again.
#include "daemon/ending.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/cache.h"
#include "daemon/device.h"
#include "daemon/subject.h"
#include <math.h>
#include <stdlib.h>

#define UNSAVED_TICKS 10            // seconds between offers to a full disk
#define UNSAVED_MAX 64              // jobs per offer
#define TIDY_TICKS 600              // seconds between looks for old results
#define KEEP_S ((int64_t)7 * 86400) // how long a result waits for its ACK
#define FORGET_MAX 4096             // jobs forgotten per look

struct endings {
    struct jobs *jobs;
    struct ledger *ledger;
    struct waits *waits;
    struct tally *tally;
    bool sandbox_off;
    size_t pending;
    size_t unsaved; // jobs
    uint64_t ticks;
};

// An end on its way through the ledger.
struct ending {
    struct endings *endings;
    uint64_t job;
    enum job_state state;
    uint64_t verdict; // for the log
    char *reason;
    struct bytes result;
    bool again; // offered once more; the job has its state already
};

struct endings *endings_create(struct jobs *jobs, struct ledger *ledger, struct waits *waits,
                               struct tally *tally, bool sandbox_off)
{
    struct endings *endings = xcalloc(1, sizeof(*endings));

    endings->jobs = jobs;
    endings->ledger = ledger;
    endings->waits = waits;
    endings->tally = tally;
    endings->sandbox_off = sandbox_off;
    return endings;
}

void endings_free(struct endings *endings)
{
    free(endings);
}

size_t endings_pending(const struct endings *endings)
{
    return endings->pending;
}

size_t endings_unsaved(const struct endings *endings)
{
    return endings->unsaved;
}

static void count_end(struct tally *tally, const struct job *job, uint64_t verdict)
{
    tally->ended[job->state]++;
    tally->cached += job->cached;
    if (job->kind == JOB_MEASURE && !job->cached && job->state == JOB_DONE &&
        verdict < TALLY_VERDICTS) {
        tally->verdict[verdict]++;
    }
}

struct digest ending_cache_key(const struct job *job, bool sandbox_off)
{
    struct job_spec spec;

    message_init(&job_spec_message, &spec);
    spec.kind = job->kind;
    spec.problem = job->subject->problem;
    spec.reference = job->subject->reference.source;
    spec.baseline = job->subject->baseline.source;
    spec.candidate = job->candidate;
    spec.repeat = job->repeat;
    spec.max_launches = job->max_launches;
    return cache_key(&spec, job->device_class->name, sandbox_off);
}

static int64_t now_s(void)
{
    return clock_wall_ns(&clock_system) / (int64_t)NS_PER_S;
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
    struct ending *ending = owner;
    struct endings *endings = ending->endings;
    struct job *job = jobs_find(endings->jobs, ending->job);

    (void)answer;
    (void)count;
    endings->pending--;
    if (job) {
        endings->unsaved -= job->unsaved;
        job->unsaved = error != NULL;
        endings->unsaved += job->unsaved;
    }
    if (job && !ending->again) {
        job->settling = false;
        job->reason = ending->reason;
        ending->reason = NULL;
        job->finished_s = now_s();
        jobs_keep_result(endings->jobs, job, &ending->result);
        job_set_state(job, ending->state);
        log_end(job, ending->verdict);
        count_end(endings->tally, job, ending->verdict);
        waits_wake(endings->waits, job);
    }
    bytes_clear(&ending->result);
    free(ending->reason);
    free(ending);
}

static void post(struct endings *endings, const struct job *job, struct ending *ending,
                 bool cacheable)
{
    struct digest key = {0};
    struct ledger_end end = {
        .job = job->id,
        .state = ending->state,
        .attempt = job->attempt,
        .reason = ending->reason,
        .result = ending->again ? &job->result : &ending->result,
        .cap_s = isnan(job->max_seconds) ? CACHE_CAP_S : job->max_seconds,
    };

    if (cacheable) {
        key = ending_cache_key(job, endings->sandbox_off);
        end.cache_key = &key;
    }
    ending->endings = endings;
    ending->job = job->id;
    endings->pending++;
    ledger_finish(endings->ledger, &end, on_ended, ending);
}

static void end_without_result(struct endings *endings, struct job *job, enum job_state state,
                               const char *reason)
{
    struct ending *ending = xcalloc(1, sizeof(*ending));

    ending->state = state;
    ending->reason = xstrdup(reason);
    job->settling = true;
    post(endings, job, ending, false);
}

void end_cancelled(struct endings *endings, struct job *job, const char *reason)
{
    end_without_result(endings, job, JOB_CANCELLED, reason);
}

void end_buried(struct endings *endings, struct job *job, const char *reason)
{
    end_without_result(endings, job, JOB_BURIED, reason);
}

static void end_done(struct endings *endings, struct job *job, struct bytes *result_taken,
                     uint64_t verdict, bool cacheable)
{
    struct ending *ending;

    if (!result_taken->data) {
        end_buried(endings, job, "its result is larger than a message may be");
        return;
    }
    ending = xcalloc(1, sizeof(*ending));
    ending->state = JOB_DONE;
    ending->verdict = verdict;
    ending->result = *result_taken;
    *result_taken = (struct bytes){0};
    job->settling = true;
    post(endings, job, ending, cacheable);
}

void end_measured(struct endings *endings, struct job *job, const struct result *result,
                  bool cacheable)
{
    struct bytes packed = cache_pack(&result_message, result);

    end_done(endings, job, &packed, result->verdict, cacheable);
}

void end_compiled(struct endings *endings, struct job *job, const struct compiled *compiled)
{
    struct bytes packed = cache_pack(&compiled_message, compiled);

    job->cached = compiled->cached;
    end_done(endings, job, &packed, compiled->verdict, false);
}

void end_cached(struct endings *endings, struct job *job, struct bytes *result_taken)
{
    job->cached = true;
    end_done(endings, job, result_taken, VERDICT_NONE, false);
}

void end_unmeasured(struct endings *endings, struct job *job, uint64_t verdict, const char *reason,
                    const struct compiled *compiled)
{
    struct result result;

    message_init(&result_message, &result);
    result.verdict = verdict;
    result.reason = reason ? xstrndup(reason, 4096) : NULL;
    result.device_class = job->device_class ? xstrdup(job->device_class->name) : NULL;
    result.sandbox = xstrdup(endings->sandbox_off ? "off" : "on");
    result.problem = job->subject->problem;
    result.candidate = job->candidate;
    result.attempt = job->attempt;
    result.measured_at = (double)clock_wall_ns(&clock_system) / 1e9;
    if (compiled) {
        result.compiled = xmalloc(sizeof(*result.compiled));
        message_copy(&compiled_message, result.compiled, compiled);
    }
    end_measured(endings, job, &result, compiled != NULL);
    message_clear(&result_message, &result);
}

void end_at_once(struct endings *endings, struct job *job, struct bytes *result_taken)
{
    job->cached = true;
    job->finished_s = now_s();
    jobs_keep_result(endings->jobs, job, result_taken);
    job_set_state(job, JOB_DONE);
    log_end(job, VERDICT_NONE);
    count_end(endings->tally, job, VERDICT_NONE);
    waits_wake(endings->waits, job);
}

void endings_forget(struct endings *endings, struct job *const *jobs, size_t count,
                    ledger_done *done, void *owner)
{
    uint64_t *ids = xcalloc(count > 0 ? count : 1, sizeof(*ids));

    for (size_t i = 0; i < count; i++) {
        ids[i] = jobs[i]->id;
        endings->unsaved -= jobs[i]->unsaved;
        subject_release(jobs[i]->subject);
        jobs_remove(endings->jobs, jobs[i]);
    }
    ledger_forget(endings->ledger, ids, count, done, owner);
    free(ids);
}

static void offer_again(struct endings *endings)
{
    struct job *job = jobs_first(endings->jobs);
    size_t offered = 0;

    for (; job && offered < UNSAVED_MAX; job = job->by_id.next) {
        if (job->unsaved) {
            struct ending *ending = xcalloc(1, sizeof(*ending));

            ending->state = (enum job_state)job->state;
            ending->reason = job->reason ? xstrdup(job->reason) : NULL;
            ending->again = true;
            post(endings, job, ending, false);
            offered++;
        }
    }
}

static void forget_old(struct endings *endings)
{
    struct job **old = xcalloc(FORGET_MAX, sizeof(struct job *));
    int64_t before_s = now_s() - KEEP_S;
    struct job *job = jobs_first(endings->jobs);
    size_t count = 0;

    for (; job && count < FORGET_MAX; job = job->by_id.next) {
        if (job_state_is_terminal(job->state) && job->finished_s < before_s) {
            old[count++] = job;
        }
    }
    if (count > 0) {
        log_event(LOG_NOTICE, "results-expired jobs=%zu reason=\"not acknowledged within a week\"",
                  count);
        endings_forget(endings, old, count, NULL, NULL);
    }
    free(old);
}

void endings_tick(struct endings *endings)
{
    endings->ticks++;
    if (endings->unsaved > 0 && endings->ticks % UNSAVED_TICKS == 0) {
        offer_again(endings);
    }
    if (endings->ticks % TIDY_TICKS == 1) { // the first time after the start
        forget_old(endings);
    }
}

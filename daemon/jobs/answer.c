// Design note. A reply is built in two steps. First the info of every finished job is filled, and
// the numbers of jobs whose result is not in memory are noted. When the ledger has read these
// results, they are filled in and the reply is sent in the caller's turn. If another client
// acknowledges a job between the steps, its result is gone for everybody, and the reply says DONE
// without a result. If the job is still there, its result was damaged. The job is then forgotten
// and told as unknown, and whoever waits for it submits it again, under the same key.
#include "daemon/jobs/answer.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/jobs/completion.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/store/line.h"
#include "proto/result_check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define READS_AT_ONCE 2 // by the ledger; the others do not stand before what others ask of it

struct answers {
    const struct daemon_parts *parts;
    size_t pending; // exchanges that wait for the ledger
    struct line *line;
};

// One reply while it is built.
struct answer {
    struct answers *answers;
    struct exchange *exchange;
    struct waited waited;
    uint64_t fetch[ANSWER_RESULTS_MAX];     // numbers of the jobs whose result is being read
    size_t fetch_index[ANSWER_RESULTS_MAX]; // their places in waited.jobs
    size_t fetch_count;                     // length of both
    size_t bytes;                           // of the results that are there
    struct line_place place;
};

struct answers *answers_create(const struct daemon_parts *parts)
{
    struct answers *answers = xcalloc(1, sizeof(*answers));

    answers->parts = parts;
    answers->line = line_create(READS_AT_ONCE, 1);
    return answers;
}

void answers_free(struct answers *answers)
{
    if (answers) {
        line_free(answers->line);
        free(answers);
    }
}

size_t answers_pending(const struct answers *answers)
{
    return answers->pending;
}

struct job *answer_find(const struct job_table *jobs, const struct exchange *exchange, uint64_t id)
{
    struct job *job = job_table_find(jobs, id);

    return job && caller_owns(exchange_caller(exchange), job->search->tenant) ? job : NULL;
}

// How long ago a stamp was; NaN for none.
static double age_of(uint64_t stamp_ns, uint64_t now_ns)
{
    return stamp_ns != 0 ? clock_seconds(now_ns - stamp_ns) : NAN;
}

static struct job_ages *ages_of(const struct job_stamps *stamps, uint64_t now_ns)
{
    struct job_ages *ages = xmalloc(sizeof(*ages));

    *ages = (struct job_ages){
        .compiling = age_of(stamps->compiling_ns, now_ns),
        .ready = age_of(stamps->ready_ns, now_ns),
        .running = age_of(stamps->running_ns, now_ns),
        .ended = age_of(stamps->ended_ns, now_ns),
    };
    return ages;
}

void answer_info(struct job_info *info, const struct job *job)
{
    const char *device = job->run ? run_device(job->run)->name : NULL;
    uint64_t now_ns = clock_now_ns(job->search->clock);

    message_init(&job_info_message, info);
    info->job = job->id;
    info->state = job->state;
    info->kind = job->kind;
    info->tenant = xstrdup(job->search->tenant);
    info->search = xstrdup(job->search->name);
    info->key = xstrdup(job->key);
    info->attempt = job->attempt;
    info->reason = job->reason ? xstrndup(job->reason, 4096) : NULL;
    info->cause = job->cause;
    info->device = device ? xstrdup(device) : NULL;
    info->priority = job->priority;
    info->age_seconds = clock_seconds(now_ns - job->submitted_ns);
    info->compile_seconds = (double)job->compile_seconds;
    info->problem = job->setup ? job->setup->problem : (struct digest){0};
    info->candidate = job->candidate;
    info->device_class = job->device_class ? xstrdup(job->device_class->name) : NULL;
    info->cached = job->cached;
    info->ages = ages_of(&job->stamps, now_ns);
}

// Takes over from the result what a job does not know after a restart.
static void fill_from_result(struct job_info *info)
{
    if (info->result) {
        info->cached = info->result->cached;
        if (!info->device_class && info->result->device_class) {
            info->device_class = xstrdup(info->result->device_class);
        }
    } else if (info->compiled) {
        info->cached = info->compiled->cached;
    }
}

// Reads a message into a new struct. *ret is NULL when that fails.
static int read_new(const struct message *message, void **ret, const struct bytes *packed,
                    struct err *err)
{
    void *value = xcalloc(1, message->size);
    int rc = message_read(message, value, packed->data, packed->len, err);

    if (rc != 0) {
        free(value);
        value = NULL;
    }
    *ret = value;
    return rc;
}

// Fills the packed result into info. A result that cannot be true is left out.
static int set_result(struct job_info *info, const struct bytes *packed, struct err *err)
{
    const struct result_expectation expectation = {
        .problem = info->problem, .candidate = info->candidate, .precision_log2 = NAN};
    bool measured = info->kind == JOB_MEASURE;
    void *value = NULL;
    int rc = read_new(measured ? &result_message : &compiled_message, &value, packed, err);

    if (rc != 0) {
        return rc;
    }
    if (measured) {
        info->result = value;
        rc = result_check(value, &expectation, err);
    } else {
        info->compiled = value;
        rc = compiled_check(value, err);
    }
    if (rc != 0) {
        message_clear(measured ? &result_message : &compiled_message, value);
        free(value);
        info->result = NULL;
        info->compiled = NULL;
        return rc;
    }
    fill_from_result(info);
    return 0;
}

// Tells a job as unknown whose result is damaged, and forgets it. A job that has gone already was
// acknowledged by somebody else.
static void lose(struct answer *answer, size_t index, const char *why)
{
    const struct daemon_parts *parts = answer->answers->parts;
    struct waited *waited = &answer->waited;
    struct job *job = job_table_find(parts->jobs, waited->jobs[index].job);

    if (!job) {
        return;
    }
    log_event(LOG_ERROR,
              "result-damaged job=%llu search=%s key=%s reason=\"%s; it is told as unknown, and "
              "whoever waits for it submits it again\"",
              (unsigned long long)job->id, job->search->name, job->key, why);
    waited->unknown[waited->unknown_count++] = job->id;
    message_clear(&job_info_message, &waited->jobs[index]);
    waited->jobs_count--;
    memmove(&waited->jobs[index], &waited->jobs[index + 1],
            (waited->jobs_count - index) * sizeof(*waited->jobs));
    completions_forget(parts->completions, &job, 1, NULL, NULL);
}

static void send_answer(void *owner)
{
    struct answer *answer = owner;

    if (answer->fetch_count > 0) {
        line_leave(&answer->place); // so that few hold results at once
    }
    exchange_reply(answer->exchange, &waited_message, &answer->waited);
    message_clear(&waited_message, &answer->waited);
    answer->answers->pending--;
    free(answer);
}

// Leaves out the jobs from this index on. Whoever wants them asks again.
static void cut(struct waited *waited, size_t count)
{
    while (waited->jobs_count > count) {
        message_clear(&job_info_message, &waited->jobs[--waited->jobs_count]);
    }
}

static void on_results(void *owner, const struct err *error, struct bytes *packed, size_t count)
{
    struct answer *answer = owner;

    if (error) {
        line_leave(&answer->place);
        exchange_fail(answer->exchange, error);
        message_clear(&waited_message, &answer->waited);
        answer->answers->pending--;
        free(answer);
        return;
    }
    // As many as fit the reply.
    size_t fitting = 0;
    while (fitting < answer->fetch_count) {
        answer->bytes += fitting < count ? packed[fitting].len : 0;
        if (answer->bytes > ANSWER_BYTES_MAX && answer->fetch_index[fitting] > 0) {
            cut(&answer->waited, answer->fetch_index[fitting]);
            break;
        }
        fitting++;
    }
    // The last one first, because the places of those behind a lost one change.
    for (size_t i = fitting; i-- > 0;) {
        size_t index = answer->fetch_index[i];
        struct err defect = ERR_INIT;

        if (i >= count || packed[i].len == 0) {
            lose(answer, index, "the ledger has no result of it");
        } else if (set_result(&answer->waited.jobs[index], &packed[i], &defect) != 0) {
            lose(answer, index, defect.text);
        }
    }
    exchange_later(answer->exchange, send_answer, answer);
}

static void on_turn_to_read(void *owner)
{
    struct answer *answer = owner;

    ledger_read_results(answer->answers->parts->ledger, answer->fetch, answer->fetch_count,
                        on_results, answer);
}

static void add_job(struct answer *answer, const struct job *job)
{
    struct waited *waited = &answer->waited;
    size_t index = waited->jobs_count++;

    answer_info(&waited->jobs[index], job);
    if (job->state != JOB_DONE) {
        return;
    }
    if (job->result.data) {
        answer->bytes += job->result.len;
        (void)set_result(&waited->jobs[index], &job->result, NULL);
    } else {
        answer->fetch[answer->fetch_count] = job->id;
        answer->fetch_index[answer->fetch_count++] = index;
    }
}

void answer_waited(struct answers *answers, struct exchange *exchange, const uint64_t *jobs,
                   size_t count)
{
    struct answer *answer = xcalloc(1, sizeof(*answer));
    struct waited *waited = &answer->waited;

    message_init(&waited_message, waited);
    answer->answers = answers;
    answer->exchange = exchange;
    waited->jobs = xcalloc(ANSWER_RESULTS_MAX, sizeof(*waited->jobs));
    waited->unknown = xcalloc(count > 0 ? count : 1, sizeof(*waited->unknown));
    answers->pending++;
    for (size_t i = 0; i < count; i++) {
        const struct job *job = answer_find(answers->parts->jobs, exchange, jobs[i]);

        if (!job) {
            waited->unknown[waited->unknown_count++] = jobs[i];
        } else if (job_state_is_terminal(job->state) && waited->jobs_count < ANSWER_RESULTS_MAX &&
                   answer->bytes < ANSWER_BYTES_MAX) {
            add_job(answer, job);
        }
    }
    if (answer->fetch_count > 0) {
        line_enter(answers->line, &answer->place, exchange_turn_name(exchange), on_turn_to_read,
                   answer);
    } else {
        send_answer(answer);
    }
}

void answer_due(void *answers, struct exchange *exchange, const uint64_t *jobs, size_t count)
{
    answer_waited(answers, exchange, jobs, count);
}

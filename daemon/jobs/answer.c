// Design note. A reply is built in two steps. First the info of every finished job is filled, and
// the numbers of jobs whose result is not in memory are noted. When the ledger has read these
// results, they are filled in and the reply is sent in the caller's turn. If another client acknowledges a job between
// the steps, its result is gone for everybody, and the reply says DONE without a result.
#include "daemon/jobs/answer.h"
#include "common/clock.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/store/line.h"
#include <stdlib.h>

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

void answer_info(struct job_info *info, const struct job *job)
{
    const char *device = job->run ? run_device(job->run)->name : NULL;

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
    info->age_seconds = clock_seconds(clock_now_ns(&clock_system) - job->submitted_ns);
    info->compile_seconds = (double)job->compile_seconds;
    info->problem = job->setup ? job->setup->problem : (struct digest){0};
    info->candidate = job->candidate;
    info->device_class = job->device_class ? xstrdup(job->device_class->name) : NULL;
    info->cached = job->cached;
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

// Fills the packed result into info. A result that cannot be read is left out.
static void set_result(struct job_info *info, const struct bytes *packed)
{
    if (packed->len == 0) {
        return;
    }
    if (info->kind == JOB_MEASURE) {
        info->result = xcalloc(1, sizeof(*info->result));
        if (message_read(&result_message, info->result, packed->data, packed->len, NULL) != 0) {
            free(info->result);
            info->result = NULL;
        }
        fill_from_result(info);
        return;
    }
    info->compiled = xcalloc(1, sizeof(*info->compiled));
    if (message_read(&compiled_message, info->compiled, packed->data, packed->len, NULL) != 0) {
        free(info->compiled);
        info->compiled = NULL;
    }
    fill_from_result(info);
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
    for (size_t i = 0; i < count && i < answer->fetch_count; i++) {
        answer->bytes += packed[i].len;
        if (answer->bytes > ANSWER_BYTES_MAX && answer->fetch_index[i] > 0) {
            cut(&answer->waited, answer->fetch_index[i]);
            break;
        }
        set_result(&answer->waited.jobs[answer->fetch_index[i]], &packed[i]);
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
        set_result(&waited->jobs[index], &job->result);
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

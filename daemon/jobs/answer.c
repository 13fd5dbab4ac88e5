// Design note. An answer is built in two steps: first every finished job's info, with the numbers
// of those whose result has to be read; then, when the ledger has read them, the results are put in
// and the reply leaves. A job may be acknowledged by another client in between: its result is then
// gone and its info says DONE without one; whoever acknowledges takes it away from everybody.
#include "daemon/jobs/answer.h"
#include "common/clock.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include <stdlib.h>

struct answers {
    const struct daemon_parts *parts;
    size_t pending;
};

struct answer {
    struct answers *answers;
    struct exchange *exchange;
    struct waited waited;
    uint64_t fetch[ANSWER_RESULTS_MAX];     // jobs whose result is being read
    size_t fetch_index[ANSWER_RESULTS_MAX]; // into waited.jobs
    size_t fetch_count;
};

struct answers *answers_create(const struct daemon_parts *parts)
{
    struct answers *answers = xcalloc(1, sizeof(*answers));

    answers->parts = parts;
    return answers;
}

void answers_free(struct answers *answers)
{
    free(answers);
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

// After a restart the job itself no longer knows what its result says.
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

// Puts the packed result into info. What cannot be read is left out.
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

static void send_answer(struct answer *answer)
{
    exchange_reply(answer->exchange, &waited_message, &answer->waited);
    message_clear(&waited_message, &answer->waited);
    answer->answers->pending--;
    free(answer);
}

static void on_results(void *owner, const struct err *error, struct bytes *packed, size_t count)
{
    struct answer *answer = owner;

    if (error) {
        exchange_fail(answer->exchange, error);
        message_clear(&waited_message, &answer->waited);
        answer->answers->pending--;
        free(answer);
        return;
    }
    for (size_t i = 0; i < count && i < answer->fetch_count; i++) {
        set_result(&answer->waited.jobs[answer->fetch_index[i]], &packed[i]);
    }
    send_answer(answer);
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
        } else if (job_state_is_terminal(job->state) && waited->jobs_count < ANSWER_RESULTS_MAX) {
            add_job(answer, job);
        }
    }
    if (answer->fetch_count > 0) {
        ledger_read_results(answers->parts->ledger, answer->fetch, answer->fetch_count, on_results,
                            answer);
    } else {
        send_answer(answer);
    }
}

void answer_due(void *answers, struct exchange *exchange, const uint64_t *jobs, size_t count)
{
    answer_waited(answers, exchange, jobs, count);
}

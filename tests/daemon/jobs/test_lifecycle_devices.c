// Which device a job goes to, and what is prepared before it is free.
#include "daemon/jobs/lifecycle.h"
#include "daemon/state/job_table.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct workshop *open_workshop(size_t cores)
{
    struct workshop *w = xcalloc(1, sizeof(*w));

    workshop_open(w, cores);
    return w;
}

static void close_workshop(struct workshop *w)
{
    workshop_close(w);
    free(w);
}

static struct result result_of(const struct job *job)
{
    assert_int_equal(job->state, JOB_DONE);
    struct result result;
    assert_int_equal(
        message_read(&result_message, &result, job->result.data, job->result.len, NULL), 0);
    return result;
}

static void on_submitted(void *owner, const struct submission_end *end)
{
    assert_non_null(end->job);
    *(uint64_t *)owner = end->job->id;
}

// Submits the candidate as a record is: to be measured anew.
static struct job *submit_again(struct workshop *w, const char *key, const char *source)
{
    struct submit body = workshop_submit_body(w, JOB_MEASURE, key, source);
    uint64_t id = 0;

    body.spec->fresh = true;
    body.spec->repeat = 1;
    submission_start(w->parts.submissions, "t", &body, on_submitted, &id);
    while (id == 0) {
        workshop_turn(w);
    }
    return job_table_find(w->parts.jobs, id);
}

static const char *device_of(const struct workshop *w, const struct job *job)
{
    for (size_t i = 0; i < w->devices.count; i++) {
        if (w->devices.device[i].job == job->id) {
            return w->devices.device[i].name;
        }
    }
    return "none";
}

// One that works for another job is soon idle, too.
static void what_is_measured_again_runs_on_another_device(void **state)
{
    struct workshop *w = open_workshop(2);

    (void)state;
    for (int busy = 0; busy < 2; busy++) {
        struct job *first =
            workshop_submit(w, JOB_MEASURE, busy ? "a1" : "a0", busy ? "A" : "B", NULL);
        workshop_compile_until(w, first, JOB_RUNNING);
        char *device = xstrdup(device_of(w, first));
        struct execution *other = NULL;
        if (busy) {
            struct job *long_one = workshop_submit(w, JOB_MEASURE, "b", "long", NULL);
            struct execution *mine = workshop_execution(w, "measure");

            workshop_compile_until(w, long_one, JOB_RUNNING);
            other = mine->next;
            workshop_measured(w, mine, VERDICT_WRONG);
        } else {
            workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
        }
        workshop_until_state(w, first, JOB_DONE);
        struct job *again = submit_again(w, busy ? "r1" : "r0", busy ? "A" : "B");
        if (busy) {
            workshop_compile_until(w, again, JOB_READY);
            workshop_settle(w);
            assert_int_equal(again->state, JOB_READY);
            workshop_measured(w, other, VERDICT_WRONG);
        }
        workshop_compile_until(w, again, JOB_RUNNING);
        assert_string_not_equal(device_of(w, again), device);
        workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
        workshop_until_state(w, again, JOB_DONE);
        struct result result = result_of(again);
        assert_string_not_equal(result.device, device);
        message_clear(&result_message, &result);
        free(device);
    }
    close_workshop(w);
}

// The queue of jobs that are prepared goes on when one of them is cancelled.
static void a_job_that_is_prepared_can_be_cancelled(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, two, JOB_READY);
    while (!two->ahead) {
        workshop_turn(w);
    }
    struct job *three = workshop_submit(w, JOB_MEASURE, "k3", "three", NULL);
    workshop_compile_until(w, three, JOB_READY);
    lifecycle_cancel(w->parts.lifecycle, two, JOB_CAUSE_CLIENT, "not wanted");
    workshop_until_state(w, two, JOB_CANCELLED);
    assert_null(two->ahead);
    assert_int_equal(two->attempt, 0);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, three, JOB_RUNNING);
    close_workshop(w);
}

// What the next measurement needs is there before the device is free.
static void the_next_job_reads_nothing_when_its_device_is_free(void **state)
{
    struct workshop *w = open_workshop(1);
    struct device *device = &w->devices.device[0];
    char *root = xasprintf("%s/blobs", w->dir);
    char *aside = xasprintf("%s/aside", w->dir);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, two, JOB_READY);
    while (!two->ahead) {
        workshop_turn(w);
    }
    workshop_settle(w);
    assert_int_equal(rename(root, aside), 0);
    (void)snprintf(device->uuid, sizeof(device->uuid), "GPU-1");
    device->core = -1;
    size_t begun = w->begun;
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    struct execution *next = workshop_execution(w, "cuda-measure");
    assert_int_equal(w->begun, begun + 1);
    assert_int_equal(two->state, JOB_RUNNING);
    assert_int_equal(two->attempt, 0);
    workshop_measured(w, next, VERDICT_WRONG);
    workshop_until_state(w, two, JOB_DONE);
    assert_int_equal(rename(aside, root), 0);
    free(aside);
    free(root);
    close_workshop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_measured_again_runs_on_another_device),
        cmocka_unit_test(a_job_that_is_prepared_can_be_cancelled),
        cmocka_unit_test(the_next_job_reads_nothing_when_its_device_is_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

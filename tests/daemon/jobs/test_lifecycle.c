// The stages of a job, with executors whose replies the test gives.
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include "tests/support/descriptors.h"
#include "tests/support/workshop.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void assert_verdict(const struct job *job, uint64_t verdict)
{
    struct result result = result_of(job);

    assert_int_equal(result.verdict, verdict);
    message_clear(&result_message, &result);
}

static void a_job_goes_through_every_stage(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);

    (void)state;
    workshop_compiled(w, workshop_execution(w, "candidate.c"), NULL);
    assert_int_equal(job->state, JOB_COMPILING);
    workshop_compiled(w, workshop_execution(w, "reference.c"), NULL);
    workshop_compiled(w, workshop_execution(w, "baseline.c"), NULL);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    assert_int_equal(w->devices.device[0].state, DEVICE_READY);
    workshop_until_state(w, job, JOB_DONE);
    struct result result = result_of(job);
    assert_int_equal(result.verdict, VERDICT_WRONG);
    assert_string_equal(result.compiled->log, "a warning");
    message_clear(&result_message, &result);
    assert_int_equal(w->begun, 4);
    close_workshop(w);
}

static void a_compile_job_ends_with_what_the_compiler_gave(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_COMPILE, "k", "candidate", NULL);

    (void)state;
    workshop_compiled(w, workshop_execution(w, "candidate.c"), NULL);
    workshop_until_state(w, job, JOB_DONE);
    struct compiled compiled;
    assert_int_equal(
        message_read(&compiled_message, &compiled, job->result.data, job->result.len, NULL), 0);
    assert_int_equal(compiled.verdict, VERDICT_NONE);
    assert_true(blob_have(w->parts.blobs, &compiled.object));
    message_clear(&compiled_message, &compiled);
    assert_int_equal(w->begun, 1); // neither reference nor baseline
    close_workshop(w);
}

static void reference_and_baseline_are_compiled_once_for_all(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);

    (void)state;
    device_drain(&w->devices.device[0], "by hand"); // nothing is measured
    workshop_compile_until(w, one, JOB_READY);
    workshop_compile_until(w, two, JOB_READY);
    assert_int_equal(w->begun, 4);
    struct job *late = workshop_submit(w, JOB_MEASURE, "k3", "late", NULL);
    workshop_compile_until(w, late, JOB_READY);
    assert_int_equal(w->begun, 5);
    close_workshop(w);
}

static void a_candidate_that_does_not_compile_needs_no_device(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);
    struct execution *baseline = workshop_execution(w, "baseline.c");

    (void)state;
    workshop_compiled(w, workshop_execution(w, "candidate.c"), "no such word");
    while (!baseline->stopped) { // nobody waits for it any more
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    }
    workshop_until_state(w, job, JOB_DONE);
    struct result result = result_of(job);
    assert_int_equal(result.verdict, VERDICT_COMPILE_ERROR);
    assert_string_equal(result.reason, "no such word");
    message_clear(&result_message, &result);
    assert_int_equal(w->devices.device[0].held_ns, 0);
    close_workshop(w);
}

static void what_another_job_waits_for_is_not_stopped(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *bad = workshop_submit(w, JOB_MEASURE, "k1", "bad", NULL);
    struct job *good = workshop_submit(w, JOB_MEASURE, "k2", "good", NULL);

    (void)state;
    while (w->begun < 4) {
        workshop_turn(w);
    }
    workshop_compiled(w, workshop_execution(w, "candidate.c"), "no such word");
    workshop_until_state(w, bad, JOB_DONE);
    assert_false(workshop_execution(w, "baseline.c")->stopped);
    workshop_compile_until(w, good, JOB_RUNNING);
    assert_int_equal(w->begun, 4 + 1); // nothing was made twice
    close_workshop(w);
}

static void a_problem_whose_baseline_does_not_compile_says_so_to_every_job(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compiled(w, workshop_execution(w, "baseline.c"), "no such word");
    workshop_until_state(w, job, JOB_DONE);
    assert_verdict(job, VERDICT_COMPILE_ERROR);
    size_t begun = w->begun;
    struct job *late = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_until_state(w, late, JOB_DONE);
    assert_verdict(late, VERDICT_COMPILE_ERROR);
    assert_int_equal(w->begun, begun);
    close_workshop(w);
}

static void a_lost_job_is_tried_on_another_device_and_then_buried(void **state)
{
    struct workshop *w = open_workshop(2);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);

    (void)state;
    workshop_compile_until(w, job, JOB_RUNNING);
    uint64_t first = w->devices.device[0].job == job->id ? 0 : 1;
    workshop_lost(w, workshop_execution(w, "measure"), "it fell over");
    workshop_until_state(w, job, JOB_RUNNING);
    assert_int_equal(job->attempt, 1);
    assert_int_equal(w->devices.device[1 - first].job, job->id);
    workshop_lost(w, workshop_execution(w, "measure"), "it fell over again");
    workshop_until_state(w, job, JOB_BURIED);
    assert_non_null(strstr(job->reason, "2 times"));
    assert_non_null(strstr(job->reason, "it fell over again"));
    close_workshop(w);
}

static void a_doubtful_timeout_is_measured_once_more(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);

    (void)state;
    workshop_compile_until(w, job, JOB_RUNNING);
    (void)workshop_execution(w, "measure");
    clock_fake_advance(&w->clock, 3 * NS_PER_S);
    workshop_doubtful(w, workshop_execution(w, "measure"));
    assert_float_equal(job->search->account->used_s, 0, 1e-9); // nor does it use up a budget
    (void)workshop_execution(w, "measure");
    clock_fake_advance(&w->clock, 3 * NS_PER_S);
    workshop_doubtful(w, workshop_execution(w, "measure"));
    workshop_until_state(w, job, JOB_DONE);
    assert_float_equal(job->search->account->used_s, 3, 1e-9);
    assert_int_equal(job->attempt, 0);
    close_workshop(w);
}

static void an_object_that_has_gone_is_compiled_again(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);
    struct digest object = digest_of("OBJcandidate", strlen("OBJcandidate"));
    char *root = xasprintf("%s/blobs", w->dir);
    char *path = blob_path(root, &object);

    (void)state;
    workshop_compiled(w, workshop_execution(w, "candidate.c"), NULL);
    while (access(path, F_OK) != 0) {
        workshop_turn(w);
    }
    workshop_settle(w); // the candidate is known; the others are not
    assert_int_equal(unlink(path), 0);
    workshop_compile_until(w, job, JOB_READY);
    workshop_compiled(w, workshop_execution(w, "candidate.c"), NULL); // again
    workshop_compile_until(w, job, JOB_RUNNING);
    assert_int_equal(job->attempt, 1);
    assert_true(access(path, F_OK) == 0);
    free(path);
    free(root);
    close_workshop(w);
}

static void equal_jobs_are_measured_once(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "same", NULL);

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "same", NULL);
    workshop_compile_until(w, two, JOB_READY);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, two, JOB_DONE);
    assert_false(one->cached);
    assert_true(two->cached);
    assert_int_equal(w->begun, 3 + 1); // one candidate, one measurement
    close_workshop(w);
}

static void a_host_that_starts_nothing_is_no_fault_of_job_or_device(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);

    (void)state;
    w->broken = true;
    while (executors_held(w->parts.executors) == 0) {
        workshop_turn(w);
    }
    workshop_settle(w);
    assert_int_equal(job->state, JOB_COMPILING);
    w->broken = false;
    while (executors_held(w->parts.executors) > 0) {
        executors_tick(w->parts.executors);
    }
    scheduler_wake(w->parts.scheduler);
    workshop_compile_until(w, job, JOB_READY);
    w->broken = true;
    while (executors_held(w->parts.executors) == 0) {
        workshop_turn(w);
    }
    workshop_settle(w);
    assert_int_equal(job->state, JOB_READY);
    assert_int_equal(job->attempt, 0);
    assert_int_equal(w->devices.device[0].state, DEVICE_READY);
    assert_int_equal(w->devices.device[0].failures, 0);
    close_workshop(w);
}

static void wait_until_held(struct workshop *w, const struct job *job)
{
    while (executors_held(w->parts.executors) == 0 || job->run) {
        workshop_turn(w);
    }
}

static void end_hold(struct workshop *w)
{
    while (executors_held(w->parts.executors) > 0) {
        executors_tick(w->parts.executors);
    }
    scheduler_wake(w->parts.scheduler);
}

static void an_object_that_the_host_cannot_open_leaves_the_job_waiting(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);

    (void)state;
    workshop_compile_until(w, job, JOB_READY);
    w->broken = true;
    wait_until_held(w, job);
    w->broken = false;
    end_hold(w);
    struct rlimit old = descriptors_take();
    wait_until_held(w, job); // the job has not been RUNNING this time
    descriptors_give_back(&old);
    assert_int_equal(job->state, JOB_READY);
    assert_null(job->run);
    assert_int_equal(job->attempt, 0);
    end_hold(w);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, job, JOB_DONE);
    close_workshop(w);
}

// A search often begins with the baseline itself as its first candidate.
static void a_lost_compilation_that_is_candidate_and_baseline_ends_the_job(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "baseline", NULL);

    (void)state;
    workshop_lost(w, workshop_execution(w, "candidate.c"), "it fell over");
    workshop_lost(w, workshop_execution(w, "candidate.c"), "it fell over again");
    workshop_until_state(w, job, JOB_BURIED);
    assert_int_equal(job->cause, JOB_CAUSE_LOST_EXECUTOR);
    assert_string_equal(job->reason, "it fell over again");
    close_workshop(w);
}

static void a_cancelled_job_leaves_nothing_behind_at_any_stage(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *running = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compile_until(w, running, JOB_RUNNING);
    struct job *ready = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, ready, JOB_READY);
    struct job *compiling = workshop_submit(w, JOB_MEASURE, "k3", "three", NULL);
    struct execution *measure = workshop_execution(w, "measure");
    lifecycle_cancel(w->parts.lifecycle, compiling, JOB_CAUSE_CLIENT, "not wanted");
    (void)workshop_submit(w, JOB_COMPILE, "k4", "four", NULL);
    assert_string_equal(workshop_execution(w, "candidate.c")->name, "candidate.c");
    lifecycle_cancel(w->parts.lifecycle, ready, JOB_CAUSE_CLIENT, "not wanted");
    lifecycle_cancel(w->parts.lifecycle, running, JOB_CAUSE_CLIENT, "not wanted");
    assert_true(measure->stopped);
    lifecycle_cancel(w->parts.lifecycle, running, JOB_CAUSE_CLIENT, "again"); // no-op
    workshop_until_state(w, compiling, JOB_CANCELLED);
    workshop_until_state(w, ready, JOB_CANCELLED);
    workshop_until_state(w, running, JOB_CANCELLED);
    assert_string_equal(running->reason, "not wanted");
    assert_int_equal(w->devices.device[0].state, DEVICE_READY);
    close_workshop(w);
}

static void a_job_that_waits_for_a_spent_budget_ends(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    account_set(one->search->account, NAN, 5, NAN, 1000);
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, two, JOB_READY);
    clock_fake_advance(&w->clock, 10 * NS_PER_S);
    lifecycle_tick(w->parts.lifecycle); // what runs goes on
    assert_int_equal(one->state, JOB_RUNNING);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, one, JOB_DONE);
    lifecycle_tick(w->parts.lifecycle);
    workshop_until_state(w, two, JOB_CANCELLED);
    assert_int_equal(strncmp(two->reason, "BUDGET", strlen("BUDGET")), 0);
    close_workshop(w);
}

static void nothing_begins_after_the_stop(void **state)
{
    struct workshop *w = open_workshop(1);
    struct job *running = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compile_until(w, running, JOB_RUNNING);
    lifecycle_stop(w->parts.lifecycle);
    assert_null(running->run);
    size_t begun = w->begun;
    struct job *late = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_settle(w);
    assert_int_equal(late->state, JOB_QUEUED);
    assert_int_equal(w->begun, begun);
    close_workshop(w);
}

static void compilations_and_measurements_take_turns_where_they_exclude_each_other(void **state)
{
    struct workshop *w = open_workshop(1);

    (void)state;
    w->parts.limits.exclusive = true;
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_COMPILE, "k2", "two", NULL);
    workshop_settle(w);
    assert_int_equal(w->begun, 3 + 1); // the second waits for the device to be free
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_compiled(w, workshop_execution(w, "candidate.c"), NULL);
    workshop_until_state(w, two, JOB_DONE);
    close_workshop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_goes_through_every_stage),
        cmocka_unit_test(a_compile_job_ends_with_what_the_compiler_gave),
        cmocka_unit_test(reference_and_baseline_are_compiled_once_for_all),
        cmocka_unit_test(a_candidate_that_does_not_compile_needs_no_device),
        cmocka_unit_test(what_another_job_waits_for_is_not_stopped),
        cmocka_unit_test(a_problem_whose_baseline_does_not_compile_says_so_to_every_job),
        cmocka_unit_test(a_lost_job_is_tried_on_another_device_and_then_buried),
        cmocka_unit_test(a_doubtful_timeout_is_measured_once_more),
        cmocka_unit_test(an_object_that_has_gone_is_compiled_again),
        cmocka_unit_test(equal_jobs_are_measured_once),
        cmocka_unit_test(a_host_that_starts_nothing_is_no_fault_of_job_or_device),
        cmocka_unit_test(an_object_that_the_host_cannot_open_leaves_the_job_waiting),
        cmocka_unit_test(a_lost_compilation_that_is_candidate_and_baseline_ends_the_job),
        cmocka_unit_test(a_cancelled_job_leaves_nothing_behind_at_any_stage),
        cmocka_unit_test(a_job_that_waits_for_a_spent_budget_ends),
        cmocka_unit_test(nothing_begins_after_the_stop),
        cmocka_unit_test(compilations_and_measurements_take_turns_where_they_exclude_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// One run on one device: what its result says, how it ends, and what it is charged.
#include "daemon/jobs/scheduler.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "proto/verdict.h"
#include "tests/support/descriptors.h"
#include "tests/support/workshop.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HELD_S 3

struct fixture {
    struct workshop w;
    struct run_events events;
    struct job *job; // READY
    struct device *device;
    unsigned started;
    unsigned ended;
    struct job *told; // NULL: its run was cancelled
    enum run_outcome outcome;
    struct result result; // RUN_RESULT
    bool cacheable;
    double held_s;
    char reason[ERR_TEXT_MAX];
};

static void on_started(void *owner, struct job *job)
{
    struct fixture *f = owner;

    f->started++;
    job_set_state(job, JOB_RUNNING);
}

static void on_end(void *owner, struct job *job, struct run_end *end)
{
    struct fixture *f = owner;

    f->ended++;
    f->told = job;
    f->outcome = end->outcome;
    f->cacheable = end->cacheable;
    f->held_s = end->held_s;
    (void)snprintf(f->reason, sizeof(f->reason), "%s", end->reason ? end->reason : "");
    message_clear(&result_message, &f->result);
    if (end->outcome == RUN_RESULT) {
        message_copy(&result_message, &f->result, end->result);
    }
    if (job && job->state == JOB_RUNNING) {
        job_set_state(job, JOB_READY); // for another run
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    workshop_open(&f->w, 1);
    message_init(&result_message, &f->result);
    f->events = (struct run_events){.on_started = on_started, .on_end = on_end, .owner = f};
    f->job = workshop_submit(&f->w, JOB_MEASURE, "k", "candidate", NULL);
    (void)workshop_execution(&f->w, "candidate.c");
    scheduler_stop(f->w.parts.scheduler); // because the test starts the runs itself
    workshop_compile_until(&f->w, f->job, JOB_READY);
    scheduler_remove(f->w.parts.scheduler, f->job);
    f->device = &f->w.devices.device[0];
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    message_clear(&result_message, &f->result);
    workshop_close(&f->w);
    free(f);
    return 0;
}

static void begin(struct fixture *f)
{
    f->ended = 0;
    const struct queue_grant grant = {0};
    run_start(&f->w.parts, &f->events, f->job, f->device, &grant);
    assert_int_equal(f->device->state, DEVICE_BUSY);
}

// Starts a run and its executor, and lets HELD_S seconds pass.
static struct execution *execute(struct fixture *f)
{
    begin(f);
    struct execution *execution = workshop_execution(&f->w, "measure");
    clock_fake_advance(&f->w.clock, HELD_S * NS_PER_S);
    return execution;
}

static double used_s(const struct fixture *f)
{
    return f->job->search->account->used_s;
}

static void a_result_says_what_the_daemon_knows(void **state)
{
    struct fixture *f = *state;

    workshop_measured(&f->w, execute(f), VERDICT_WRONG);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->outcome, RUN_RESULT);
    assert_int_equal(f->result.verdict, VERDICT_WRONG);
    assert_string_equal(f->result.device, "cpu0");
    assert_string_equal(f->result.device_class, "test cpu");
    assert_string_equal(f->result.sandbox, "on");
    assert_true(digest_equal(&f->result.problem, &f->w.problem));
    assert_true(digest_equal(&f->result.candidate, &f->job->candidate));
    assert_string_equal(f->result.compiled->toolchain, "test cc 1");
    assert_false(f->result.compiled->cached);
    assert_true(fabs(f->result.seconds->held - HELD_S) < 1e-9);
    assert_int_equal(f->device->state, DEVICE_READY);
    assert_null(f->job->run);
    assert_true(fabs(used_s(f) - HELD_S) < 1e-9);
}

static void the_plan_has_the_objects_and_a_seed_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct execution *execution = execute(f);

    assert_int_equal(f->started, 1);
    struct measure_plan plan;
    assert_int_equal(
        message_read(&measure_plan_message, &plan, execution->plan.data, execution->plan.len, NULL),
        0);
    assert_int_equal(plan.candidate.len, strlen("OBJcandidate"));
    assert_memory_equal(plan.candidate.data, "OBJcandidate", plan.candidate.len);
    assert_memory_equal(plan.baseline.data, "OBJbaseline", plan.baseline.len);
    assert_memory_equal(plan.reference.data, "OBJreference", plan.reference.len);
    assert_true(plan.control); // the first run for this problem and baseline on this device
    message_clear(&measure_plan_message, &plan);
    workshop_measured(&f->w, execution, VERDICT_WRONG);
}

static void a_lost_executor_costs_nothing_until_it_is_the_last(void **state)
{
    struct fixture *f = *state;

    workshop_lost(&f->w, execute(f), "it fell over");
    assert_int_equal(f->outcome, RUN_LOST);
    assert_string_equal(f->reason, "it fell over");
    assert_true(used_s(f) <= 0);
    assert_int_equal(f->device->failures, 1);
    f->job->attempt = JOB_LOST_MAX - 1;
    workshop_lost(&f->w, execute(f), "it fell over");
    assert_true(fabs(used_s(f) - HELD_S) < 1e-9);
}

static void an_outcome_that_cannot_be_true_is_a_loss(void **state)
{
    struct fixture *f = *state;

    workshop_measured(&f->w, execute(f), VERDICT_FASTER); // the outcome has no estimate
    assert_int_equal(f->outcome, RUN_LOST);
    assert_non_null(strstr(f->reason, "reports what cannot be"));
}

static void what_was_disturbed_is_measured_again_for_a_while(void **state)
{
    struct fixture *f = *state;

    for (; f->job->disturbed + 1 < MEASURE_DISTURBED_MAX; f->job->disturbed++) {
        struct execution *execution = execute(f);

        device_throttle(f->device, "it is hot", clock_now_ns(&f->w.clock));
        workshop_measured(&f->w, execution, VERDICT_TIMEOUT);
        assert_int_equal(f->outcome, RUN_DISTURBED);
        assert_string_equal(f->reason, "it is hot");
        clock_fake_advance(&f->w.clock, DEVICE_THROTTLE_NS);
        (void)devices_tick(&f->w.devices, clock_now_ns(&f->w.clock));
    }
    assert_true(used_s(f) <= 0);
    (void)execute(f);
    device_throttle(f->device, "it is hot", clock_now_ns(&f->w.clock));
    workshop_measured(&f->w, workshop_execution(&f->w, "measure"), VERDICT_TIMEOUT);
    assert_int_equal(f->outcome, RUN_RESULT); // the result says that it was disturbed
    assert_string_equal(f->result.conditions[f->result.conditions_count - 1].name, "disturbed");
    assert_false(f->cacheable);
}

static void a_wrong_output_stays_wrong_when_something_disturbs(void **state)
{
    struct fixture *f = *state;
    struct execution *execution = execute(f);

    device_throttle(f->device, "it is hot", clock_now_ns(&f->w.clock));
    workshop_measured(&f->w, execution, VERDICT_WRONG);
    assert_int_equal(f->outcome, RUN_RESULT);
}

static void a_cancelled_run_frees_its_device_and_tells_no_job(void **state)
{
    struct fixture *f = *state;
    struct execution *execution = execute(f);

    run_cancel(f->job);
    assert_null(f->job->run);
    assert_true(execution->stopped);
    assert_int_equal(f->device->state, DEVICE_BUSY); // until the executor has ended
    while (f->ended == 0) {
        workshop_turn(&f->w);
    }
    assert_null(f->told);
    assert_int_equal(f->outcome, RUN_CANCELLED);
    assert_int_equal(f->device->state, DEVICE_READY);
    assert_int_equal(f->device->failures, 0);
}

static void a_run_cancelled_before_it_executes_starts_nothing(void **state)
{
    struct fixture *f = *state;
    size_t begun = f->w.begun;

    begin(f);
    run_cancel(f->job);
    while (f->ended == 0) {
        workshop_turn(&f->w);
    }
    assert_int_equal(f->started, 0);
    assert_int_equal(f->w.begun, begun);
    assert_int_equal(f->device->state, DEVICE_READY);
}

static void an_object_that_has_gone_starts_nothing_and_is_named(void **state)
{
    struct fixture *f = *state;

    f->job->object = digest_of("never stored", 12);
    begin(f);
    while (f->ended == 0) {
        workshop_turn(&f->w);
    }
    assert_int_equal(f->outcome, RUN_NO_OBJECT);
    assert_int_equal(f->started, 0);
    assert_true(used_s(f) <= 0);
}

static void an_object_that_the_host_cannot_open_is_nobodys_fault(void **state)
{
    struct fixture *f = *state;
    struct rlimit old = descriptors_take();

    begin(f);
    while (f->ended == 0) {
        workshop_turn(&f->w);
    }
    descriptors_give_back(&old);
    assert_int_equal(f->outcome, RUN_NO_START);
    assert_int_equal(f->started, 0);
    assert_true(used_s(f) <= 0);
    assert_int_equal(f->device->state, DEVICE_READY);
    assert_int_equal(f->device->failures, 0);
    assert_int_equal(executors_held(f->w.parts.executors), 1);
    workshop_measured(&f->w, execute(f), VERDICT_WRONG); // it works the next time
    assert_int_equal(f->outcome, RUN_RESULT);
}

static void what_runs_is_charged_before_its_end(void **state)
{
    struct fixture *f = *state;
    struct execution *execution = execute(f);

    run_charge(f->job->run);
    assert_true(fabs(used_s(f) - HELD_S) < 1e-9);
    workshop_measured(&f->w, execution, VERDICT_WRONG);
    assert_true(fabs(used_s(f) - HELD_S) < 1e-9); // the search is not charged twice
}

static void the_start_of_a_process_is_not_charged(void **state)
{
    struct fixture *f = *state;

    executors_slow_down(f->w.parts.executors);
    struct execution *execution = execute(f); // and HELD_S seconds pass
    run_charge(f->job->run);
    assert_true(used_s(f) <= 0);
    executor_is_ready(execution->executor);
    clock_fake_advance(&f->w.clock, 2 * HELD_S * NS_PER_S);
    run_charge(f->job->run);
    assert_true(fabs(used_s(f) - 2 * HELD_S) < 1e-9);
    workshop_measured(&f->w, execution, VERDICT_WRONG);
    assert_true(fabs(used_s(f) - 2 * HELD_S) < 1e-9);
    assert_true(fabs(f->held_s - 2 * HELD_S) < 1e-9);
    assert_true(fabs(f->result.seconds->held - 2 * HELD_S) < 1e-9);
    assert_true(fabs(f->result.seconds->wait - HELD_S) < 1e-9);
    assert_int_equal(f->device->held_ns, 2 * HELD_S * NS_PER_S);
}

static void a_process_that_never_starts_is_not_charged(void **state)
{
    struct fixture *f = *state;

    executors_slow_down(f->w.parts.executors);
    f->job->attempt = JOB_LOST_MAX - 1;
    workshop_lost(&f->w, execute(f), "it does not start");
    assert_int_equal(f->outcome, RUN_LOST);
    assert_true(used_s(f) <= 0);
    assert_true(f->held_s <= 0);
}

// --- ahead, on a GPU

static void make_gpu(struct fixture *f)
{
    (void)snprintf(f->device->uuid, sizeof(f->device->uuid), "GPU-1");
    f->device->core = -1;
    f->device->device_class->target = xstrdup("sm_90");
}

static void on_back(void *owner)
{
    *(unsigned *)owner += 1;
}

static void prepare(struct fixture *f)
{
    unsigned back = 0;

    run_prepare(&f->w.parts, f->job, on_back, &back);
    while (back == 0) {
        workshop_turn(&f->w);
    }
    workshop_settle(&f->w);
    assert_int_equal(back, 1);
}

static void take_blobs_away(struct fixture *f)
{
    char *root = xasprintf("%s/blobs", f->w.dir);
    char *aside = xasprintf("%s/aside", f->w.dir);

    assert_int_equal(rename(root, aside), 0);
    free(aside);
    free(root);
}

// Between the outcome of one measurement and the next plan lies no turn of the loop for a disk.
static void what_is_prepared_begins_within_the_call(void **state)
{
    struct fixture *f = *state;

    make_gpu(f);
    prepare(f);
    take_blobs_away(f);
    size_t begun = f->w.begun;
    begin(f);
    assert_int_equal(f->w.begun, begun + 1);
    assert_int_equal(f->started, 1);
    struct execution *execution = workshop_execution(&f->w, "cuda-measure");
    struct measure_plan plan;
    assert_int_equal(
        message_read(&measure_plan_message, &plan, execution->plan.data, execution->plan.len, NULL),
        0);
    assert_memory_equal(plan.candidate.data, "OBJcandidate", plan.candidate.len);
    assert_true(plan.control); // though it was packed before the device was known
    message_clear(&measure_plan_message, &plan);
    workshop_measured(&f->w, execution, VERDICT_WRONG);
    assert_int_equal(f->outcome, RUN_RESULT);
}

// So a crash of the host that it causes again and again is counted.
static void one_that_came_through_a_restart_waits_for_the_ledger(void **state)
{
    struct fixture *f = *state;

    make_gpu(f);
    f->job->restarted = true;
    prepare(f);
    size_t begun = f->w.begun;
    begin(f);
    assert_int_equal(f->w.begun, begun);
    workshop_measured(&f->w, workshop_execution(&f->w, "cuda-measure"), VERDICT_WRONG);
    assert_int_equal(f->outcome, RUN_RESULT);
}

static void what_failed_ahead_is_read_again(void **state)
{
    struct fixture *f = *state;
    struct digest object = f->job->object;

    f->job->object = digest_of("never stored", 12);
    prepare(f);
    f->job->object = object;
    workshop_measured(&f->w, execute(f), VERDICT_WRONG);
    assert_int_equal(f->outcome, RUN_RESULT);
}

static void what_is_forgotten_while_it_is_read_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    unsigned back = 0;

    run_prepare(&f->w.parts, f->job, on_back, &back);
    run_forget(f->job);
    run_forget(f->job); // no-op
    assert_null(f->job->ahead);
    while (back == 0) {
        workshop_turn(&f->w);
    }
    workshop_measured(&f->w, execute(f), VERDICT_WRONG);
    assert_int_equal(f->outcome, RUN_RESULT);
}

// --- who has the same process

static char *group_of(struct fixture *f, const char *tenant, const char *search)
{
    char *path = xasprintf("%s/%s", tenant, search);
    char **field[] = {&f->job->search->tenant, &f->job->search->name, &f->job->search->path};
    char *const value[] = {(char *)(uintptr_t)tenant, (char *)(uintptr_t)search, path};
    char *before[3];

    for (size_t i = 0; i < 3; i++) {
        before[i] = *field[i];
        *field[i] = value[i];
    }
    begin(f);
    for (size_t i = 0; i < 3; i++) {
        *field[i] = before[i];
    }
    struct execution *execution = workshop_execution(&f->w, "cuda-measure");
    char *group = xstrdup(execution->group);
    workshop_measured(&f->w, execution, VERDICT_WRONG);
    free(path);
    return group;
}

static bool share(struct fixture *f, const char *tenant, const char *search)
{
    char *one = group_of(f, "t", "s");
    char *other = group_of(f, tenant, search);
    bool same = strcmp(one, other) == 0;

    free(one);
    free(other);
    return same;
}

static void the_policy_says_who_shares_a_process(void **state)
{
    struct fixture *f = *state;

    assert_null(execute(f)->group); // a core has a process for each measurement
    workshop_measured(&f->w, workshop_execution(&f->w, "measure"), VERDICT_WRONG);
    make_gpu(f);
    assert_true(share(f, "t", "other"));
    assert_false(share(f, "u", "s"));
    f->w.parts.limits.share_processes = SHARE_PROCESSES_ALL;
    assert_true(share(f, "u", "s"));
    f->w.parts.limits.share_processes = SHARE_PROCESSES_SEARCH;
    assert_true(share(f, "t", "s"));
    assert_false(share(f, "t", "other"));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(a_result_says_what_the_daemon_knows),
        WITH(the_plan_has_the_objects_and_a_seed_of_its_own),
        WITH(a_lost_executor_costs_nothing_until_it_is_the_last),
        WITH(an_outcome_that_cannot_be_true_is_a_loss),
        WITH(what_was_disturbed_is_measured_again_for_a_while),
        WITH(a_wrong_output_stays_wrong_when_something_disturbs),
        WITH(a_cancelled_run_frees_its_device_and_tells_no_job),
        WITH(a_run_cancelled_before_it_executes_starts_nothing),
        WITH(an_object_that_has_gone_starts_nothing_and_is_named),
        WITH(an_object_that_the_host_cannot_open_is_nobodys_fault),
        WITH(what_runs_is_charged_before_its_end),
        WITH(the_start_of_a_process_is_not_charged),
        WITH(a_process_that_never_starts_is_not_charged),
        WITH(what_is_prepared_begins_within_the_call),
        WITH(one_that_came_through_a_restart_waits_for_the_ledger),
        WITH(what_failed_ahead_is_read_again),
        WITH(what_is_forgotten_while_it_is_read_leaves_nothing),
        WITH(the_policy_says_who_shares_a_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

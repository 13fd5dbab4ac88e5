// A run of a candidate whose object runs unsealed: what its plan allows, how long it may take, and
// what its result must say.
#include "daemon/jobs/scheduler.h"
#include "daemon/run/measure.h"
#include "proto/verdict.h"
#include "tests/support/workshop.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct workshop w;
    struct run_events events;
    struct job *job; // READY
    enum run_outcome outcome;
    bool unsealed; // the result says so
    char reason[ERR_TEXT_MAX];
};

static void on_started(void *owner, struct job *job)
{
    (void)owner;
    job_set_state(job, JOB_RUNNING);
}

static void on_end(void *owner, struct job *job, struct run_end *end)
{
    struct fixture *f = owner;

    f->outcome = end->outcome;
    f->unsealed = end->outcome == RUN_RESULT && end->result->unsealed;
    (void)snprintf(f->reason, sizeof(f->reason), "%s", end->reason ? end->reason : "");
    job_set_state(job, JOB_READY); // for another run
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    workshop_open(&f->w, 1);
    f->events = (struct run_events){.on_started = on_started, .on_end = on_end, .owner = f};
    f->job = workshop_submit(&f->w, JOB_MEASURE, "k", "candidate", NULL);
    (void)workshop_execution(&f->w, "candidate.c");
    scheduler_stop(f->w.parts.scheduler); // because the test starts the runs itself
    workshop_compile_until(&f->w, f->job, JOB_READY);
    scheduler_remove(f->w.parts.scheduler, f->job);
    struct device *device = &f->w.devices.device[0];
    (void)snprintf(device->uuid, sizeof(device->uuid), "GPU-1");
    device->core = -1;
    device->device_class->target = xstrdup("sm_90");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    workshop_close(&f->w);
    free(f);
    return 0;
}

// asked: by the job; made: its object is one that runs unsealed.
static void prepare(struct fixture *f, bool asked, bool made)
{
    struct compiled compiled;

    job_read_compiled(f->job, &compiled);
    compiled.unsealed = made;
    job_carry_compiled(f->job, &compiled);
    message_clear(&compiled_message, &compiled);
    f->job->unsealed = asked;
}

static struct execution *execute(struct fixture *f)
{
    const struct queue_grant grant = {0};

    run_start(&f->w.parts, &f->events, f->job, &f->w.devices.device[0], &grant);
    return workshop_execution(&f->w, "cuda-measure");
}

// Ends the run with a result that says that the candidate ran so.
static void end(struct fixture *f, struct execution *execution, bool unsealed)
{
    workshop_measured_as(&f->w, execution, VERDICT_WRONG, unsealed);
}

static double host_seconds(const struct execution *execution)
{
    struct measure_plan plan;

    assert_int_equal(
        message_read(&measure_plan_message, &plan, execution->plan.data, execution->plan.len, NULL),
        0);
    double seconds = plan.host_seconds;
    message_clear(&measure_plan_message, &plan);
    return seconds;
}

static void the_plan_allows_it_and_gives_it_time(void **state)
{
    struct fixture *f = *state;

    prepare(f, true, false);
    struct execution *execution = execute(f);
    uint64_t usual = execution->deadline_ms;
    assert_true(isnan(host_seconds(execution))); // it could be recorded
    end(f, execution, false);
    assert_int_equal(f->outcome, RUN_RESULT);
    assert_false(f->unsealed);

    prepare(f, true, true);
    execution = execute(f);
    double seconds = host_seconds(execution);
    assert_true(fabs(seconds - (double)f->w.parts.limits.compile_seconds) < 1e-9);
    assert_true((double)execution->deadline_ms > (double)usual / 2 + seconds * 1000);
    end(f, execution, true);
    assert_int_equal(f->outcome, RUN_RESULT);
    assert_true(f->unsealed);
}

static void a_result_that_says_something_else_is_a_loss(void **state)
{
    struct fixture *f = *state;

    prepare(f, true, true);
    end(f, execute(f), false);
    assert_int_equal(f->outcome, RUN_LOST);
    assert_non_null(strstr(f->reason, "it ran sealed"));
    prepare(f, false, false);
    end(f, execute(f), true);
    assert_int_equal(f->outcome, RUN_LOST);
    assert_non_null(strstr(f->reason, "it ran unsealed"));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(the_plan_allows_it_and_gives_it_time),
        WITH(a_result_that_says_something_else_is_a_loss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

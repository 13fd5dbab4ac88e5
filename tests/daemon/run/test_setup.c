// Measurement setups: the problem is read once for all who wait, and read again when the host could
// not open it.
#include "daemon/run/executors.h"
#include "daemon/run/setup.h"
#include "tests/support/descriptors.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct waiter {
    struct setup_wait wait;
    unsigned told;
    bool failed;
};

struct fixture {
    struct workshop w;
    struct setup *setup;
    struct waiter waiter[2];
};

static void on_done(struct setup_wait *wait, const char *lost)
{
    struct waiter *waiter = wait->owner;

    waiter->told++;
    waiter->failed = lost;
}

static struct setup *acquire(struct fixture *f, const struct digest *problem)
{
    return setup_acquire(f->w.parts.setups, problem, &f->w.reference, &f->w.baseline, NULL);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    workshop_open(&f->w, 1);
    f->setup = acquire(f, &f->w.problem);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    setup_release(f->setup);
    workshop_close(&f->w);
    free(f);
    return 0;
}

static struct waiter *wait_for(struct fixture *f, size_t i, struct setup *setup)
{
    struct waiter *waiter = &f->waiter[i];

    *waiter = (struct waiter){.wait = {.on_done = on_done, .owner = waiter}};
    assert_false(setup_read(setup, &waiter->wait));
    return waiter;
}

static void until_told(struct fixture *f, const struct waiter *waiter)
{
    while (waiter->told == 0) {
        workshop_turn(&f->w);
    }
    assert_int_equal(waiter->told, 1);
}

static void all_who_wait_are_told_when_the_problem_has_been_read(void **state)
{
    struct fixture *f = *state;
    struct waiter *one = wait_for(f, 0, f->setup);
    struct waiter *two = wait_for(f, 1, f->setup);

    until_told(f, one);
    until_told(f, two);
    assert_false(one->failed || two->failed);
    assert_non_null(f->setup->name);
    assert_ptr_equal(f->setup->device_class, f->w.devices.classes);
    assert_true(setup_read(f->setup, &f->waiter[0].wait)); // it is known already
}

static void a_problem_that_has_gone_is_looked_for_again_by_the_next_one(void **state)
{
    struct fixture *f = *state;
    struct digest absent = digest_of("{}", 2);
    struct setup *setup = acquire(f, &absent);
    struct waiter *waiter = wait_for(f, 0, setup);

    until_told(f, waiter);
    assert_true(waiter->failed);
    assert_int_equal(waiter->wait.cause, JOB_CAUSE_MISSING_BLOB);
    (void)workshop_put(&f->w, "{}");
    waiter = wait_for(f, 0, setup);
    until_told(f, waiter);
    assert_false(waiter->failed);
    assert_non_null(setup->defect);
    setup_release(setup);
}

static void a_problem_that_the_host_cannot_open_is_read_later(void **state)
{
    struct fixture *f = *state;
    struct rlimit old = descriptors_take();
    struct waiter *waiter = wait_for(f, 0, f->setup);

    while (waiter->told == 0 && executors_held(f->w.parts.executors) == 0) {
        workshop_turn(&f->w);
    }
    descriptors_give_back(&old);
    assert_int_equal(waiter->told, 0);
    setups_tick(f->w.parts.setups); // it is too early
    assert_false(f->setup->reading);
    executors_tick(f->w.parts.executors);
    setups_tick(f->w.parts.setups);
    until_told(f, waiter);
    assert_false(waiter->failed);
    assert_non_null(f->setup->name);
}

static void nobody_waits_for_the_host_when_the_daemon_stops(void **state)
{
    struct fixture *f = *state;
    struct rlimit old = descriptors_take();
    struct waiter *waiter = wait_for(f, 0, f->setup);

    while (executors_held(f->w.parts.executors) == 0) {
        workshop_turn(&f->w);
    }
    setups_stop(f->w.parts.setups);
    until_told(f, waiter);
    descriptors_give_back(&old);
    assert_true(waiter->failed);
}

static void who_no_longer_waits_is_not_told(void **state)
{
    struct fixture *f = *state;
    struct waiter *gone = wait_for(f, 0, f->setup);
    struct waiter *waiter = wait_for(f, 1, f->setup);

    setup_cancel(&gone->wait);
    setup_cancel(&gone->wait); // has no effect
    until_told(f, waiter);
    assert_int_equal(gone->told, 0);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH(all_who_wait_are_told_when_the_problem_has_been_read),
        WITH(a_problem_that_has_gone_is_looked_for_again_by_the_next_one),
        WITH(a_problem_that_the_host_cannot_open_is_read_later),
        WITH(nobody_waits_for_the_host_when_the_daemon_stops),
        WITH(who_no_longer_waits_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

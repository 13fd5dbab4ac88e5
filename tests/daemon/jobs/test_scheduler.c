// Who begins, in which order, and what keeps a job waiting. The test stands in for the stages.
#include "daemon/jobs/lookahead.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/run/executors.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "proto/verdict.h"
#include "tests/support/workshop.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BEGUN_MAX 64

struct begun {
    struct job *job;
    struct device *device; // NULL: it is being prepared
    struct queue_grant ticket;
};

struct fixture {
    struct workshop w;
    struct scheduler *scheduler;
    struct setup setup;
    struct begun begun[BEGUN_MAX]; // in the order in which they began
    size_t count;
    size_t ended; // of them, from the first
    uint64_t next_id;
    uint64_t ahead[BEGUN_MAX]; // numbers of the jobs that were told to be next
    size_t ahead_count;
    size_t behind_count;
};

static void on_prepare(void *owner, struct job *job, const struct queue_grant *ticket)
{
    struct fixture *f = owner;

    assert_true(f->count < BEGUN_MAX);
    f->begun[f->count++] = (struct begun){.job = job, .ticket = *ticket};
}

static void on_measure(void *owner, struct job *job, struct device *device,
                       const struct queue_grant *ticket)
{
    struct fixture *f = owner;

    assert_non_null(device);
    assert_true(f->count < BEGUN_MAX);
    device_hold(device, job->id, clock_now_ns(&f->w.clock));
    f->begun[f->count++] = (struct begun){.job = job, .device = device, .ticket = *ticket};
}

static void on_ahead(void *owner, struct job *job)
{
    struct fixture *f = owner;

    assert_true(f->ahead_count < BEGUN_MAX);
    f->ahead[f->ahead_count++] = job->id;
    scheduler_was_read(f->scheduler);
}

static void on_behind(void *owner, struct job *job)
{
    struct fixture *f = owner;

    (void)job;
    f->behind_count++;
}

static void turn(struct fixture *f)
{
    for (int i = 0; i < 3; i++) {
        (void)uv_run(&f->w.loop, UV_RUN_NOWAIT);
    }
}

// Ends the oldest that has begun, after so many seconds.
static void end_one(struct fixture *f, double seconds)
{
    struct begun *begun = &f->begun[f->ended++];

    assert_true(f->ended <= f->count);
    clock_fake_advance(&f->w.clock, (uint64_t)(seconds * (double)NS_PER_S));
    if (!begun->device) {
        scheduler_prepared(f->scheduler, &begun->ticket, seconds);
        return;
    }
    struct queue *queue = begun->device->device_class->queue;
    double held_s = device_release(begun->device, clock_now_ns(&f->w.clock));
    device_succeeded(begun->device);
    queue_finish(queue, &begun->ticket, held_s, false);
    scheduler_measured(f->scheduler, held_s);
}

static struct fixture *open_fixture(size_t cores)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    const struct scheduler_events events = {
        .ahead = on_ahead,
        .behind = on_behind,
        .prepare = on_prepare,
        .measure = on_measure,
        .owner = f,
    };

    workshop_open(&f->w, cores);
    f->scheduler = f->w.parts.scheduler;
    scheduler_serve(f->scheduler, &events);
    return f;
}

static void close_fixture(struct fixture *f)
{
    scheduler_stop(f->scheduler);
    while (f->ended < f->count) {
        end_one(f, 0);
    }
    assert_false(scheduler_busy(f->scheduler));
    struct job *job = job_table_first(f->w.parts.jobs);
    for (; job; job = job->by_id.next) {
        scheduler_remove(f->scheduler, job);
        job->setup = NULL;
    }
    workshop_close(&f->w);
    free(f);
}

static struct job *make(struct fixture *f, const char *search, enum job_state state)
{
    char key[16];

    f->next_id++;
    (void)snprintf(key, sizeof(key), "k%u", (unsigned)f->next_id);
    struct job *job = job_table_add(f->w.parts.jobs, f->next_id, "t", search, key, JOB_QUEUED);
    job->kind = JOB_MEASURE;
    job->setup = &f->setup;
    job->device_class = f->w.devices.classes;
    if (state == JOB_READY) {
        job_set_state(job, JOB_COMPILING);
        job_set_state(job, JOB_READY);
    }
    return job;
}

static struct job *add(struct fixture *f, const char *search, enum job_state state)
{
    struct job *job = make(f, search, state);

    scheduler_add(f->scheduler, job);
    return job;
}

static void the_intake_prepares_a_bounded_number_at_once(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    for (int i = 0; i < 20; i++) {
        (void)add(f, "s", JOB_QUEUED);
    }
    assert_int_equal(f->count, 0); // never inside scheduler_add
    assert_int_equal(scheduler_unprepared(f->scheduler), 20);
    turn(f);
    assert_int_equal(f->count, 2 * 4 + 8); // of four compile slots
    assert_int_equal(scheduler_unprepared(f->scheduler), 4);
    turn(f);
    assert_int_equal(f->count, 16);
    end_one(f, 1);
    end_one(f, 0); // given up
    turn(f);
    assert_int_equal(f->count, 18);
    assert_true(scheduler_busy(f->scheduler));
    close_fixture(f);
}

static void a_search_that_has_none_in_preparation_does_not_wait_for_others(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    for (int i = 0; i < 20; i++) {
        (void)add(f, "large", JOB_QUEUED);
    }
    turn(f);
    assert_int_equal(f->count, 16);
    const struct job *small = add(f, "small", JOB_QUEUED);
    (void)add(f, "small", JOB_QUEUED);
    turn(f);
    assert_int_equal(f->count, 17); // one beyond the limit, and only of that search
    assert_ptr_equal(f->begun[16].job, small);
    for (int i = 0; i < 20; i++) {
        char search[8];

        (void)snprintf(search, sizeof(search), "s%d", i);
        (void)add(f, search, JOB_QUEUED);
    }
    turn(f);
    assert_int_equal(f->count, 32); // as many beyond the limit as below
    end_one(f, 1);
    turn(f);
    assert_int_equal(f->count, 33); // those beyond do not take the room of the others
    close_fixture(f);
}

static void within_a_search_priority_and_then_age_decide(void **state)
{
    static const uint64_t priority[] = {5, 1, 3, 1};
    static const uint64_t expected[] = {2, 4, 3, 1}; // numbers of jobs
    struct fixture *f = open_fixture(1);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(priority); i++) {
        struct job *job = make(f, "s", JOB_READY);

        job->priority = priority[i];
        scheduler_add(f->scheduler, job);
    }
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        turn(f);
        assert_int_equal(f->count, i + 1); // there is one device
        assert_int_equal(f->begun[i].job->id, expected[i]);
        end_one(f, 1);
    }
    close_fixture(f);
}

static void a_small_search_does_not_wait_behind_a_large_one(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    for (int i = 0; i < 5; i++) {
        (void)add(f, "large", JOB_READY);
    }
    turn(f);
    const struct job *small = add(f, "small", JOB_READY);
    end_one(f, 10);
    turn(f);
    assert_ptr_equal(f->begun[1].job, small);
    close_fixture(f);
}

static void a_removed_job_does_not_begin(void **state)
{
    struct fixture *f = open_fixture(1);
    struct job *first = add(f, "s", JOB_QUEUED);
    struct job *second = add(f, "s", JOB_QUEUED);
    struct job *ready = add(f, "s", JOB_READY);

    (void)state;
    scheduler_remove(f->scheduler, first);
    scheduler_remove(f->scheduler, ready);
    scheduler_remove(f->scheduler, first); // no-op
    turn(f);
    assert_int_equal(f->count, 1);
    assert_ptr_equal(f->begun[0].job, second);
    scheduler_remove(f->scheduler, second); // it is in no queue now
    assert_int_equal(scheduler_unprepared(f->scheduler), 0);
    close_fixture(f);
}

static void an_interactive_job_goes_first_unless_it_will_be_long(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    for (int round = 0; round < 2; round++) {
        size_t from = f->count;

        f->setup.held_s = round == 0 ? QUEUE_INTERACTIVE_S : QUEUE_INTERACTIVE_S + 0.5;
        struct job *normal = add(f, "s", JOB_READY);
        struct job *interactive = make(f, "s", JOB_READY);
        interactive->wanted_class = QUEUE_INTERACTIVE;
        interactive->priority = 9;
        scheduler_add(f->scheduler, interactive);
        turn(f);
        assert_ptr_equal(f->begun[from].job, round == 0 ? interactive : normal);
        end_one(f, 1);
        turn(f);
        end_one(f, 1);
    }
    close_fixture(f);
}

static void every_ready_device_gets_a_job_of_its_own(void **state)
{
    struct fixture *f = open_fixture(3);

    (void)state;
    device_drain(&f->w.devices.device[1], "by hand");
    for (int i = 0; i < 4; i++) {
        (void)add(f, "s", JOB_READY);
    }
    turn(f);
    assert_int_equal(f->count, 2);
    assert_ptr_not_equal(f->begun[0].device, f->begun[1].device);
    device_undrain(&f->w.devices.device[1]);
    turn(f);
    assert_int_equal(f->count, 2); // nobody has said that something may begin
    scheduler_wake(f->scheduler);
    turn(f);
    assert_int_equal(f->count, 3);
    assert_ptr_equal(f->begun[2].device, &f->w.devices.device[1]);
    close_fixture(f);
}

static void a_search_without_budget_waits_and_lets_others_pass(void **state)
{
    struct fixture *f = open_fixture(1);
    struct job *poor = make(f, "poor", JOB_READY);

    (void)state;
    account_set(poor->search->account, NAN, NAN, 3600, 1000);
    struct account_reservation hold = {.account = NULL};
    account_reserve(&hold, poor->search->account, 3600);
    account_finish(f->w.parts.accounts, &hold, 3600, false, 1000); // of the hour, all
    scheduler_add(f->scheduler, poor);
    const struct job *other = add(f, "other", JOB_READY);
    turn(f);
    assert_int_equal(f->count, 1);
    assert_ptr_equal(f->begun[0].job, other);
    end_one(f, 0);
    turn(f);
    assert_int_equal(f->count, 1);
    clock_fake_advance(&f->w.clock, 600 * NS_PER_S); // the hour's budget has some again
    scheduler_tick(f->scheduler);
    turn(f);
    assert_int_equal(f->count, 2);
    assert_ptr_equal(f->begun[1].job, poor);
    close_fixture(f);
}

static void some_jobs_for_each_device_are_told_to_be_next(void **state)
{
    struct fixture *f = open_fixture(2);

    (void)state;
    for (int i = 0; i < 14; i++) {
        (void)add(f, "s", JOB_READY);
    }
    turn(f);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->ahead_count, 2 * LOOKAHEAD_EACH);
    for (size_t i = 0; i < 2; i++) {
        end_one(f, 1);
        turn(f);
        assert_int_equal(f->begun[2 + i].job->id, 3 + i);
        assert_int_equal(f->ahead_count, 8); // three quarters are enough
    }
    end_one(f, 1);
    turn(f);
    assert_int_equal(f->ahead_count, 11);
    for (size_t i = 0; i < f->ahead_count; i++) {
        assert_int_equal(f->ahead[i], i + 3); // each once, in order
    }
    assert_int_equal(f->behind_count, 0);
    close_fixture(f);
}

// Nobody is promised a device: who is told to be next may be overtaken until it is free.
static void who_is_next_is_decided_when_a_device_is_free(void **state)
{
    struct fixture *f = open_fixture(1);
    struct job *next[2 * LOOKAHEAD_EACH + 2];

    (void)state;
    (void)add(f, "s", JOB_READY);
    turn(f);
    for (size_t i = 0; i < ARRAY_LEN(next); i++) {
        next[i] = make(f, "s", JOB_READY);
        next[i]->priority = 20 - i;
        scheduler_add(f->scheduler, next[i]);
        turn(f);
        assert_int_equal(f->ahead_count, i + 1);
        assert_int_equal(f->ahead[i], next[i]->id);
    }
    assert_int_equal(f->behind_count, 2); // no more than eight are kept for one device
    scheduler_remove(f->scheduler, next[9]);
    end_one(f, 1);
    turn(f);
    assert_ptr_equal(f->begun[1].job, next[8]);
    end_one(f, 1);
    turn(f);
    assert_ptr_equal(f->begun[2].job, next[7]);
    close_fixture(f);
}

static void a_host_that_starts_nothing_keeps_jobs_from_devices(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    executors_hold(f->w.parts.executors);
    (void)add(f, "s", JOB_READY);
    turn(f);
    assert_int_equal(f->count, 0);
    while (executors_held(f->w.parts.executors) > 0) {
        executors_tick(f->w.parts.executors);
    }
    scheduler_tick(f->scheduler);
    turn(f);
    assert_int_equal(f->count, 1);
    close_fixture(f);
}

static void nothing_begins_after_a_stop(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    (void)add(f, "s", JOB_QUEUED);
    (void)add(f, "s", JOB_READY);
    scheduler_stop(f->scheduler);
    scheduler_wake(f->scheduler);
    scheduler_tick(f->scheduler);
    turn(f);
    assert_int_equal(f->count, 0);
    assert_false(scheduler_busy(f->scheduler));
    close_fixture(f);
}

static void a_compiler_is_kept_waiting_only_where_cores_are_shared(void **state)
{
    struct fixture *f = open_fixture(1);

    (void)state;
    (void)add(f, "s", JOB_READY);
    turn(f);
    assert_int_equal(f->count, 1);
    assert_true(scheduler_may_compile(f->scheduler));
    f->w.parts.limits.exclusive = true;
    assert_false(scheduler_may_compile(f->scheduler)); // a device is held
    scheduler_compiled(f->scheduler, 2.5);
    assert_float_equal(f->w.counters.compile_seconds, 2.5, 0);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_intake_prepares_a_bounded_number_at_once),
        cmocka_unit_test(a_search_that_has_none_in_preparation_does_not_wait_for_others),
        cmocka_unit_test(within_a_search_priority_and_then_age_decide),
        cmocka_unit_test(a_small_search_does_not_wait_behind_a_large_one),
        cmocka_unit_test(a_removed_job_does_not_begin),
        cmocka_unit_test(an_interactive_job_goes_first_unless_it_will_be_long),
        cmocka_unit_test(every_ready_device_gets_a_job_of_its_own),
        cmocka_unit_test(a_search_without_budget_waits_and_lets_others_pass),
        cmocka_unit_test(some_jobs_for_each_device_are_told_to_be_next),
        cmocka_unit_test(who_is_next_is_decided_when_a_device_is_free),
        cmocka_unit_test(a_host_that_starts_nothing_keeps_jobs_from_devices),
        cmocka_unit_test(nothing_begins_after_a_stop),
        cmocka_unit_test(a_compiler_is_kept_waiting_only_where_cores_are_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Simulated time, and the daemon that serves searches in it.
#include "replay/sim.h"
#include "replay/sim_daemon.h"
#include "tests/replay/toy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

// --- simulated time

struct notes {
    struct sim *sim;
    uint64_t seen[8];
    double at[8];
    size_t count;
};

static void note(void *owner, uint64_t tag)
{
    struct notes *notes = owner;

    notes->at[notes->count] = sim_now(notes->sim);
    notes->seen[notes->count++] = tag;
    if (tag == 2) {
        sim_after(notes->sim, 0, note, notes, 9);
    }
}

static void events_run_in_the_order_of_time_then_of_scheduling(void **state)
{
    struct notes notes = {.sim = sim_create()};
    static const uint64_t order[] = {2, 9, 1, 3, 4};

    (void)state;
    sim_after(notes.sim, 2, note, &notes, 1);
    sim_after(notes.sim, 1, note, &notes, 2);
    sim_after(notes.sim, 2, note, &notes, 3);
    sim_after(notes.sim, 5, note, &notes, 4);
    while (sim_step(notes.sim)) {
    }
    assert_int_equal(notes.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(notes.seen[i], order[i]);
    }
    assert_true(notes.at[0] == 1 && notes.at[1] == 1 && notes.at[3] == 2 && notes.at[4] == 5);
    sim_free(notes.sim);
}

// --- simulated daemon

struct completions {
    struct sim *sim;
    size_t count;
    double last;
    uint64_t states[8];
};

static void on_job(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                   const struct err *error)
{
    struct completions *completions = owner;

    assert_int_equal(ref.job, info->job);
    assert_null(error);
    assert_true(tag < 8);
    completions->states[tag] = info->state;
    completions->last = sim_now(completions->sim);
    completions->count++;
}

static void submit(struct sim_daemon_search *search, const struct job_spec *spec, uint64_t priority,
                   job_service_callback *callback, void *owner, uint64_t tag)
{
    struct job_service *jobs = sim_daemon_search_jobs(search);

    jobs->submit(jobs, "", spec, priority, callback, owner, tag);
}

static struct job_spec spec_of(const struct recorded_space *recorded, size_t point,
                               enum job_kind kind)
{
    const char *name = recorded_space_data(recorded)->candidate[point].name;

    return (struct job_spec){.kind = kind, .candidate = digest_of(name, strlen(name))};
}

static void devices_measure_one_after_another_and_compilers_side_by_side(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 2});
    struct sim_daemon_search *search = sim_daemon_search_create(sim_daemon, recorded);
    struct completions compiled = {.sim = sim}, measured = {.sim = sim};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct job_spec spec = spec_of(recorded, 0, JOB_COMPILE);

        submit(search, &spec, 0, on_job, &compiled, i);
        spec = spec_of(recorded, 0, JOB_MEASURE);
        submit(search, &spec, 0, on_job, &measured, i);
    }
    assert_int_equal(compiled.count + measured.count, 0); // never inside submit
    while (sim_step(sim)) {
    }
    assert_int_equal(compiled.count, 4);
    assert_int_equal(measured.count, 4);
    assert_true(fabs(compiled.last - 0.6) < 1e-9); // 4 x 0.3 s in two slots
    assert_true(fabs(measured.last - 0.4) < 1e-9); // 4 x 0.1 s on one device
    sim_daemon_search_free(search);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    recorded_space_free(recorded);
}

static void two_searches_share_a_device_evenly(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 1});
    struct sim_daemon_search *first = sim_daemon_search_create(sim_daemon, recorded),
                             *second = sim_daemon_search_create(sim_daemon, recorded);
    struct completions one = {.sim = sim}, two = {.sim = sim};

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct job_spec spec = spec_of(recorded, 0, JOB_MEASURE);

        submit(first, &spec, 0, on_job, &one, i);
    }
    for (size_t i = 0; i < 4; i++) {
        struct job_spec spec = spec_of(recorded, 0, JOB_MEASURE);

        submit(second, &spec, 0, on_job, &two, i);
    }
    while (two.count < 4) {
        assert_true(sim_step(sim));
    }
    assert_true(one.count >= 4 && one.count <= 5); // although all of its jobs came first
    sim_daemon_search_free(first);                 // with jobs that wait and one that runs
    sim_daemon_search_free(second);
    while (sim_step(sim)) {
    }
    assert_true(one.count <= 5);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    recorded_space_free(recorded);
}

static void a_job_for_an_unknown_candidate_is_buried(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 1});
    struct sim_daemon_search *search = sim_daemon_search_create(sim_daemon, recorded);
    struct completions completions = {.sim = sim};
    struct job_spec spec = {.kind = JOB_MEASURE, .candidate = digest_of("x", 1)};

    (void)state;
    submit(search, &spec, 0, on_job, &completions, 0);
    while (sim_step(sim)) {
    }
    assert_int_equal(completions.count, 1);
    assert_int_equal(completions.states[0], JOB_BURIED);
    sim_daemon_search_free(search);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    recorded_space_free(recorded);
}

// One job of a kind runs and three wait; the one that runs and one that waits are cancelled.
static void cancel_two(enum job_kind kind, double seconds)
{
    struct recorded_space *recorded = make_recorded();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 1});
    struct sim_daemon_search *search = sim_daemon_search_create(sim_daemon, recorded),
                             *other = sim_daemon_search_create(sim_daemon, recorded);
    struct completions mine = {.sim = sim}, theirs = {.sim = sim};
    struct job_service *jobs = sim_daemon_search_jobs(search);
    static const char *const key[] = {"x0", "x1", "x2", "x3"};

    for (size_t i = 0; i < 4; i++) {
        struct job_spec spec = spec_of(recorded, 0, kind);

        jobs->submit(jobs, key[i], &spec, i, on_job, &mine, i);
    }
    struct job_spec spec = spec_of(recorded, 0, kind);
    sim_daemon_search_jobs(other)->submit(sim_daemon_search_jobs(other), "x2", &spec, 9, on_job,
                                          &theirs, 0);
    jobs->cancel(jobs, "x2"); // waits
    jobs->cancel(jobs, "x2");
    jobs->cancel(jobs, "x77");
    jobs->cancel(jobs, "x0"); // runs, and gives its place to the next one
    jobs->cancel(jobs, "x0");
    while (mine.count + theirs.count < 1) {
        assert_true(sim_step(sim));
    }
    assert_true(fabs(sim_now(sim) - seconds) < 1e-9);
    while (sim_step(sim)) {
    }
    assert_int_equal(mine.count, 2);
    assert_int_equal(theirs.count, 1); // the same key of another search
    assert_int_equal(mine.states[1], JOB_DONE);
    assert_int_equal(mine.states[3], JOB_DONE);
    assert_int_equal(mine.states[0] + mine.states[2], 0);
    assert_true(fabs(fmax(mine.last, theirs.last) - 3 * seconds) < 1e-9);
    jobs->cancel(jobs, "x1"); // is over
    sim_daemon_search_free(search);
    sim_daemon_search_free(other);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    recorded_space_free(recorded);
}

static void a_cancelled_job_brings_no_answer_and_makes_room(void **state)
{
    (void)state;
    cancel_two(JOB_COMPILE, 0.3);
    cancel_two(JOB_MEASURE, 0.1);
}

// The event of a job that was cancelled while it ran may come when its search is gone, or never.
static void a_search_may_end_with_cancelled_jobs(void **state)
{
    struct recorded_space *recorded = make_recorded();
    (void)state;
    for (int steps = 0; steps < 2; steps++) {
        struct sim *sim = sim_create();
        struct sim_daemon *sim_daemon =
            sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 1});
        struct sim_daemon_search *search = sim_daemon_search_create(sim_daemon, recorded);
        struct completions completions = {.sim = sim};
        struct job_service *jobs = sim_daemon_search_jobs(search);
        struct job_spec spec = spec_of(recorded, 0, JOB_COMPILE);

        jobs->submit(jobs, "c1", &spec, 0, on_job, &completions, 0);
        jobs->submit(jobs, "c2", &spec, 0, on_job, &completions, 1);
        jobs->cancel(jobs, "c1");
        sim_daemon_search_free(search);
        while (steps > 0 && sim_step(sim)) {
        }
        assert_int_equal(completions.count, 0);
        sim_daemon_free(sim_daemon);
        sim_free(sim);
    }
    recorded_space_free(recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_run_in_the_order_of_time_then_of_scheduling),
        cmocka_unit_test(devices_measure_one_after_another_and_compilers_side_by_side),
        cmocka_unit_test(two_searches_share_a_device_evenly),
        cmocka_unit_test(a_job_for_an_unknown_candidate_is_buried),
        cmocka_unit_test(a_cancelled_job_brings_no_answer_and_makes_room),
        cmocka_unit_test(a_search_may_end_with_cancelled_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

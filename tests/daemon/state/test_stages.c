// Where the time of searches went, as the daemon counts it, and when jobs reached their states.
#include "common/clock.h"
#include "common/mem.h"
#include "daemon/state/job_table.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct clock clock;
    struct job_table *jobs;
    uint64_t next; // number of the next job
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    clock_fake_init(&f->clock, 5000 * NS_PER_S);
    f->jobs = job_table_create(1000, NULL);
    job_table_set_clock(f->jobs, &f->clock);
    f->next = 1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    job_table_free(f->jobs);
    free(f);
    return 0;
}

static void pass(struct fixture *f, uint64_t seconds)
{
    clock_fake_advance(&f->clock, seconds * NS_PER_S);
}

static struct job *add(struct fixture *f, const char *search)
{
    char key[32];

    (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)f->next);
    return job_table_add(f->jobs, f->next++, "local", search, key, JOB_QUEUED);
}

static void assert_stages(struct fixture *f, const char *path, double measuring, double waiting,
                          double compiling, double queued, double away)
{
    const double wanted[STAGE_COUNT] = {
        [STAGE_MEASURING] = measuring, [STAGE_WAITING] = waiting, [STAGE_COMPILING] = compiling,
        [STAGE_QUEUED] = queued,       [STAGE_AWAY] = away,
    };
    double seconds[STAGE_COUNT];

    stages_seconds(job_table_stages(f->jobs), path, clock_now_ns(&f->clock), seconds);
    for (size_t i = 0; i < STAGE_COUNT; i++) {
        assert_float_equal(seconds[i], wanted[i], 1e-9);
    }
}

static void one_job_is_in_each_stage_for_its_time(void **state)
{
    struct fixture *f = *state;
    struct job *job = add(f, "s");

    pass(f, 1);
    job_set_state(job, JOB_COMPILING);
    pass(f, 2);
    job_set_state(job, JOB_READY);
    pass(f, 3);
    job_set_state(job, JOB_RUNNING);
    pass(f, 4);
    assert_stages(f, "local/s", 4, 3, 2, 1, 0); // the stage that lasts is counted
    job_set_state(job, JOB_DONE);
    pass(f, 50);
    assert_stages(f, "local/s", 4, 3, 2, 1, 0); // nobody knows yet whether it goes on
    (void)add(f, "s");
    assert_stages(f, "local/s", 4, 3, 2, 1, 50);
}

static void the_most_advanced_job_counts(void **state)
{
    struct fixture *f = *state;
    struct job *first = add(f, "s"), *second = add(f, "s");

    job_set_state(first, JOB_COMPILING);
    pass(f, 1); // compiling, although the second one is queued
    job_set_state(first, JOB_READY);
    job_set_state(second, JOB_COMPILING);
    pass(f, 2); // waiting, although the second one compiles
    job_set_state(first, JOB_RUNNING);
    pass(f, 4);                      // measuring
    job_set_state(first, JOB_READY); // its executor was lost
    pass(f, 8);
    job_table_remove(f->jobs, first);
    pass(f, 16);
    assert_stages(f, "local/s", 4, 10, 17, 0, 0);
}

static void a_search_is_remembered_without_jobs_and_its_neighbour_apart(void **state)
{
    struct fixture *f = *state;
    struct job *job = add(f, "s");
    (void)add(f, "t");

    pass(f, 1);
    job_set_state(job, JOB_DONE);
    job_table_remove(f->jobs, job); // the search is gone from the table
    pass(f, 2);
    job = add(f, "s");
    pass(f, 4);
    assert_stages(f, "local/s", 0, 0, 0, 5, 2);
    assert_stages(f, "local/t", 0, 0, 0, 7, 0);
    assert_stages(f, "local/u", 0, 0, 0, 0, 0);
}

// Finished jobs that the ledger brings back are not work.
static void a_finished_job_starts_no_clock(void **state)
{
    struct fixture *f = *state;

    (void)job_table_add(f->jobs, 1000, "local", "s", "old", JOB_DONE);
    pass(f, 9);
    (void)add(f, "s");
    pass(f, 1);
    assert_stages(f, "local/s", 0, 0, 0, 1, 0);
}

static void the_number_of_remembered_searches_is_bounded(void **state)
{
    struct fixture *f = *state;
    char name[32];
    struct job *stays = add(f, "stays");

    for (int i = 0; i < STAGES_SEARCHES_MAX + 5; i++) {
        (void)snprintf(name, sizeof(name), "s%d", i);
        struct job *job = add(f, name);
        pass(f, 1);
        job_table_remove(f->jobs, job);
    }
    assert_stages(f, "local/s0", 0, 0, 0, 0, 0);
    assert_stages(f, "local/s5", 0, 0, 0, 0, 0);
    assert_stages(f, "local/s6", 0, 0, 0, 1, 0);
    assert_stages(f, "local/s260", 0, 0, 0, 1, 0);
    assert_stages(f, "local/stays", 0, 0, 0, STAGES_SEARCHES_MAX + 5, 0);
    job_table_remove(f->jobs, stays);
}

static void a_job_knows_when_it_reached_its_states(void **state)
{
    struct fixture *f = *state;
    struct job *job = add(f, "s");

    assert_int_equal(job->stamps.compiling_ns, 0);
    job_set_state(job, JOB_COMPILING);
    pass(f, 1);
    job_set_state(job, JOB_READY);
    pass(f, 1);
    job_set_state(job, JOB_RUNNING);
    assert_int_equal(job->stamps.running_ns, 5002 * NS_PER_S);
    pass(f, 1);
    job_set_state(job, JOB_READY);
    assert_int_equal(job->stamps.running_ns, 0); // it waits again
    pass(f, 1);
    job_set_state(job, JOB_RUNNING);
    pass(f, 1);
    assert_int_equal(job->stamps.ended_ns, 0);
    job_set_state(job, JOB_DONE);
    assert_int_equal(job->stamps.compiling_ns, 5000 * NS_PER_S);
    assert_int_equal(job->stamps.ready_ns, 5003 * NS_PER_S); // the last time
    assert_int_equal(job->stamps.running_ns, 5004 * NS_PER_S);
    assert_int_equal(job->stamps.ended_ns, 5005 * NS_PER_S);
    job = add(f, "s");
    job_set_state(job, JOB_COMPILING);
    job_set_state(job, JOB_READY);
    job_set_state(job, JOB_QUEUED); // its object is missing
    assert_int_equal(job->stamps.compiling_ns, 0);
    assert_int_equal(job->stamps.ready_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(one_job_is_in_each_stage_for_its_time),
        TEST(the_most_advanced_job_counts),
        TEST(a_search_is_remembered_without_jobs_and_its_neighbour_apart),
        TEST(a_finished_job_starts_no_clock),
        TEST(the_number_of_remembered_searches_is_bounded),
        TEST(a_job_knows_when_it_reached_its_states),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The states of a job and the edges between them, and the job table.
#include "daemon/state/job.h"
#include "daemon/state/job_table.h"
#include "proto/messages.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct edge {
    enum job_state from;
    enum job_state to;
};

// The edges of docs/design/kcastd.md and of the note in job.c. All others are defects.
static const struct edge legal[] = {
    {JOB_QUEUED, JOB_COMPILING},    {JOB_QUEUED, JOB_DONE},      {JOB_QUEUED, JOB_CANCELLED},
    {JOB_QUEUED, JOB_BURIED},       {JOB_COMPILING, JOB_READY},  {JOB_COMPILING, JOB_DONE},
    {JOB_COMPILING, JOB_CANCELLED}, {JOB_COMPILING, JOB_BURIED}, {JOB_READY, JOB_RUNNING},
    {JOB_READY, JOB_DONE},          {JOB_READY, JOB_QUEUED},     {JOB_READY, JOB_CANCELLED},
    {JOB_RUNNING, JOB_DONE},        {JOB_RUNNING, JOB_READY},    {JOB_RUNNING, JOB_CANCELLED},
    {JOB_RUNNING, JOB_BURIED},
};

static bool is_legal(enum job_state from, enum job_state to)
{
    for (size_t i = 0; i < ARRAY_LEN(legal); i++) {
        if (legal[i].from == from && legal[i].to == to) {
            return true;
        }
    }
    return false;
}

static void every_pair_of_states_is_an_edge_or_not(void **state)
{
    (void)state;
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        for (int to = 0; to < JOB_STATE_COUNT; to++) {
            assert_int_equal(job_edge_allowed((enum job_state)from, (enum job_state)to),
                             is_legal((enum job_state)from, (enum job_state)to));
        }
    }
}

static void numbers_that_are_no_states_have_no_edges(void **state)
{
    (void)state;
    assert_false(job_edge_allowed((enum job_state)99, JOB_DONE));
    assert_false(job_edge_allowed(JOB_QUEUED, (enum job_state)99));
    assert_false(job_edge_allowed(JOB_QUEUED, (enum job_state) - 1));
}

static void terminal_states_have_no_way_out(void **state)
{
    (void)state;
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        for (int to = 0; to < JOB_STATE_COUNT && job_state_is_terminal((uint64_t)from); to++) {
            assert_false(job_edge_allowed((enum job_state)from, (enum job_state)to));
        }
    }
}

static void every_legal_edge_moves_the_job_and_the_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(legal); i++) {
        struct job_table *jobs = job_table_create(1000, NULL);
        struct job *job = job_table_add(jobs, 1, "local", "s", "k", legal[i].from);

        assert_int_equal(job->search->unfinished, 1);
        job_set_state(job, legal[i].to);
        assert_int_equal(job->state, legal[i].to);
        assert_int_equal(job_table_census(jobs)->state[legal[i].from], 0);
        assert_int_equal(job_table_census(jobs)->state[legal[i].to], 1);
        assert_int_equal(job->search->unfinished, !job_state_is_terminal(legal[i].to));
        job_table_free(jobs);
    }
}

static void an_illegal_edge_aborts(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *job = job_table_add(jobs, 1, "local", "s", "k", JOB_DONE);
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr)) {
            _exit(1);
        }
        job_set_state(job, JOB_RUNNING);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    job_table_free(jobs);
}

static void jobs_are_found_by_number_and_by_key(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *a = job_table_add(jobs, 1, "local", "s", "k", JOB_QUEUED);
    struct job *b = job_table_add(jobs, 2, "local", "t", "k", JOB_QUEUED);

    (void)state;
    assert_ptr_equal(job_table_find(jobs, 1), a);
    assert_ptr_equal(job_table_find_key(jobs, "local", "s", "k"), a);
    assert_ptr_equal(job_table_find_key(jobs, "local", "t", "k"), b);
    assert_null(job_table_find_key(jobs, "local", "t", "kk"));
    assert_null(job_table_find_key(jobs, "local", "u", "k"));
    assert_null(job_table_find(jobs, 3));
    job_table_remove(jobs, b);
    assert_null(job_table_find(jobs, 2));
    assert_null(job_table_find_search(jobs, "local", "t")); // a search without jobs is gone
    assert_int_equal(job_table_count(jobs), 1);
    job_table_free(jobs);
}

static struct bytes some_bytes(size_t len)
{
    return (struct bytes){.data = xcalloc(1, len), .len = len};
}

static void resident_results_stay_within_their_bound(void **state)
{
    struct job_table *jobs = job_table_create(250, NULL);

    (void)state;
    struct job *job[4];
    struct bytes bytes;
    for (uint64_t i = 0; i < 4; i++) {
        char key[8];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        job[i] = job_table_add(jobs, i + 1, "local", "s", key, JOB_DONE);
        job[i]->unsaved = i == 0;
        bytes = some_bytes(100);
        job_table_keep_result(jobs, job[i], &bytes);
        assert_null(bytes.data);
    }
    assert_non_null(job[0]->result.data); // the only copy there is
    assert_null(job[1]->result.data);
    assert_null(job[2]->result.data);
    assert_non_null(job[3]->result.data);
    job_table_free(jobs);
}

static void a_hundred_thousand_jobs_are_small(void **state)
{
    (void)state;
    assert_in_range(sizeof(struct job), 1, 576);
}

// Equal names of two tenants are two searches with a job each.
static void tenants_do_not_meet(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *ours = job_table_add(jobs, 1, "a", "b/s", "k", JOB_QUEUED);
    struct job *theirs = job_table_add(jobs, 2, "b", "b/s", "k", JOB_QUEUED);

    (void)state;
    assert_ptr_not_equal(ours->search, theirs->search);
    assert_ptr_equal(job_table_find_key(jobs, "a", "b/s", "k"), ours);
    assert_ptr_equal(job_table_find_key(jobs, "b", "b/s", "k"), theirs);
    assert_null(job_table_find_key(jobs, "a", "s", "k"));
    assert_null(job_table_find_search(jobs, "c", "b/s"));
    assert_string_equal(ours->search->tenant, "a");
    assert_string_equal(theirs->search->name, "b/s");
    job_table_remove(jobs, ours);
    assert_null(job_table_find_search(jobs, "a", "b/s"));
    assert_non_null(job_table_find_search(jobs, "b", "b/s"));
    job_table_free(jobs);
}

// Adds jobs of a tenant, three per search, until there is no room. Returns their number.
static size_t fill(struct job_table *jobs, const char *tenant, uint64_t *next, size_t jobs_max)
{
    size_t added = 0;

    while (job_table_have_room(jobs, tenant, jobs_max)) {
        char search[32];

        (void)snprintf(search, sizeof(search), "s%d", (int)(*next / 3));
        char key[32];
        (void)snprintf(key, sizeof(key), "k%d", (int)*next);
        (void)job_table_add(jobs, (*next)++, tenant, search, key, JOB_QUEUED);
        added++;
    }
    return added;
}

static void one_tenant_does_not_fill_the_job_table(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);

    (void)state;
    uint64_t next = 1;
    assert_int_equal(fill(jobs, "a", &next, 1000), 800);
    assert_int_equal(fill(jobs, "b", &next, 1000), 160); // four fifths of what is left
    assert_int_equal(fill(jobs, "c", &next, 1000), 32);
    assert_int_equal(fill(jobs, "a", &next, 1000), 0);
    while (job_table_count(jobs) > 192) { // the oldest, all of a
        job_table_remove(jobs, job_table_first(jobs));
    }
    assert_true(fill(jobs, "c", &next, 1000) > 500);
    assert_false(job_table_have_room(jobs, "d", 0));
    assert_true(job_table_have_room(jobs, "d", 1000));
    job_table_free(jobs);

    // A small table accepts jobs until it is full.
    jobs = job_table_create(1000, NULL);
    assert_int_equal(fill(jobs, "a", &next, 1), 1);
    assert_int_equal(fill(jobs, "a", &next, 4), 3);
    job_table_free(jobs);
}

static struct compiled compiled_with_log(size_t len)
{
    struct compiled compiled;

    message_init(&compiled_message, &compiled);
    compiled.log = xcalloc(len + 1, 1);
    memset(compiled.log, 'w', len);
    return compiled;
}

static void what_was_compiled_is_carried_to_the_end_and_no_further(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *job = job_table_add(jobs, 1, "t", "s", "k", JOB_COMPILING);
    struct compiled compiled = compiled_with_log(10);

    (void)state;
    job_carry_compiled(job, &compiled);
    assert_null(compiled.log); // taken
    job_set_state(job, JOB_READY);
    job_set_state(job, JOB_RUNNING);
    job_set_state(job, JOB_READY); // its device was lost
    job_read_compiled(job, &compiled);
    assert_string_equal(compiled.log, "wwwwwwwwww");
    message_clear(&compiled_message, &compiled);
    job_set_state(job, JOB_QUEUED); // its object was lost
    assert_null(job->compiled.data);
    compiled = compiled_with_log(10);
    job_set_state(job, JOB_COMPILING);
    job_carry_compiled(job, &compiled);
    job_set_state(job, JOB_READY);
    job_set_state(job, JOB_DONE);
    assert_null(job->compiled.data);
    job_table_free(jobs);
}

static void of_a_long_log_the_beginning_is_carried(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *job = job_table_add(jobs, 1, "t", "s", "k", JOB_COMPILING);
    struct compiled compiled = compiled_with_log(60000);

    (void)state;
    job_carry_compiled(job, &compiled);
    job_read_compiled(job, &compiled);
    assert_int_equal(strlen(compiled.log), JOB_LOG_MAX);
    message_clear(&compiled_message, &compiled);
    job_table_free(jobs); // what is carried goes with it
}

static void a_long_log_is_not_cut_within_a_character(void **state)
{
    struct job_table *jobs = job_table_create(1000, NULL);
    struct job *job = job_table_add(jobs, 1, "t", "s", "k", JOB_COMPILING);
    struct compiled compiled = compiled_with_log(JOB_LOG_MAX + 100);

    (void)state;
    memcpy(&compiled.log[JOB_LOG_MAX - 2], "\xe2\x82\xac", 3); // the euro sign
    job_carry_compiled(job, &compiled);
    job_read_compiled(job, &compiled);
    assert_int_equal(strlen(compiled.log), JOB_LOG_MAX - 2);
    message_clear(&compiled_message, &compiled);
    job_table_free(jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tenant_does_not_fill_the_job_table),
        cmocka_unit_test(tenants_do_not_meet),
        cmocka_unit_test(every_pair_of_states_is_an_edge_or_not),
        cmocka_unit_test(numbers_that_are_no_states_have_no_edges),
        cmocka_unit_test(terminal_states_have_no_way_out),
        cmocka_unit_test(every_legal_edge_moves_the_job_and_the_counts),
        cmocka_unit_test(an_illegal_edge_aborts),
        cmocka_unit_test(jobs_are_found_by_number_and_by_key),
        cmocka_unit_test(resident_results_stay_within_their_bound),
        cmocka_unit_test(a_hundred_thousand_jobs_are_small),
        cmocka_unit_test(what_was_compiled_is_carried_to_the_end_and_no_further),
        cmocka_unit_test(of_a_long_log_the_beginning_is_carried),
        cmocka_unit_test(a_long_log_is_not_cut_within_a_character),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Lists of jobs: each once, in parts, while jobs come and go.
#include "daemon/jobs/answer.h"
#include "daemon/jobs/listing.h"
#include "daemon/state/job_table.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct caller admin = {.tenant = "local", .role = CALLER_ADMIN};
static const struct caller ann = {.tenant = "ann", .role = CALLER_OBSERVE};

struct fixture {
    struct job_table *jobs;
    struct daemon_parts parts;
    struct status_request request;
    struct listing *listing;
    struct job_info *rows;
    size_t count;
    int steps;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->jobs = job_table_create(1000, NULL);
    f->parts.jobs = f->jobs;
    *state = f;
    return 0;
}

static void clear_rows(struct fixture *f)
{
    for (size_t i = 0; i < f->count; i++) {
        message_clear(&job_info_message, &f->rows[i]);
    }
    free(f->rows);
    f->rows = NULL;
    f->count = 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    clear_rows(f);
    listing_free(f->listing);
    job_table_free(f->jobs);
    free(f);
    return 0;
}

// Adds jobs with the next numbers.
static void add(struct fixture *f, size_t count, const char *tenant, enum job_state state)
{
    for (size_t i = 0; i < count; i++) {
        char key[32];
        uint64_t id = job_table_count(f->jobs) + 1;

        (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)id);
        (void)job_table_add(f->jobs, id, tenant, "s", key, state);
    }
}

static void finish(struct fixture *f)
{
    while (!listing_step(f->listing)) {
        f->steps++;
    }
    listing_take(f->listing, &f->rows, &f->count);
    listing_free(f->listing);
    f->listing = NULL;
}

static void list(struct fixture *f, const struct caller *caller)
{
    clear_rows(f);
    f->steps = 0;
    f->listing = listing_create(&f->parts, caller, &f->request);
    finish(f);
}

// A request of thousands of numbers that are all the same is answered by one row.
static void a_number_is_answered_once(void **state)
{
    struct fixture *f = *state;
    uint64_t ids[4096];

    add(f, 3, "ann", JOB_QUEUED);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        ids[i] = 3 - i % 2;
    }
    f->request = (struct status_request){.jobs = ids, .jobs_count = ARRAY_LEN(ids)};
    list(f, &ann);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->rows[0].job, 3); // in the order of the request
    assert_int_equal(f->rows[1].job, 2);
}

static void equal_numbers_are_removed(void **state)
{
    uint64_t ids[] = {7, 3, 7, 7, 9, 3, 1};
    static const uint64_t left[] = {7, 3, 9, 1};

    (void)state;
    assert_int_equal(listing_unique(ids, ARRAY_LEN(ids)), 4);
    assert_memory_equal(ids, left, sizeof(left));
    assert_int_equal(listing_unique(ids, 0), 0);
}

// What is looked at in one step is bounded, also when nothing of it is listed.
static void a_long_list_takes_many_steps(void **state)
{
    struct fixture *f = *state;

    add(f, 20000, "ann", JOB_DONE);
    add(f, 5000, "ben", JOB_QUEUED);
    f->request = (struct status_request){.all = true};
    list(f, &ann);
    assert_int_equal(f->count, 0);
    assert_true(f->steps >= 4);
    list(f, &admin);
    assert_int_equal(f->count, LISTING_ROWS_MAX);
    assert_true(f->steps >= 30);
}

// Jobs that go between two steps, also the one that was to be next, do not end the walk.
static void jobs_go_while_they_are_listed(void **state)
{
    struct fixture *f = *state;

    add(f, 1000, "ann", JOB_QUEUED);
    f->request = (struct status_request){.all = true};
    f->listing = listing_create(&f->parts, &ann, &f->request);
    assert_false(listing_step(f->listing));
    for (uint64_t id = 1; id <= 990; id++) {
        job_table_remove(f->jobs, job_table_find(f->jobs, id));
    }
    finish(f);
    assert_true(f->count > 10 && f->count < 990);
    assert_int_equal(f->rows[f->count - 1].job, 1000);
    assert_int_equal(f->rows[f->count - 10].job, 991);
    // The last jobs of a search, and with them the search.
    clear_rows(f);
    add(f, 1000, "ben", JOB_QUEUED);
    f->request = (struct status_request){.search = (char *)(uintptr_t) "s"};
    f->listing = listing_create(
        &f->parts, &(struct caller){.tenant = "ben", .role = CALLER_OBSERVE}, &f->request);
    assert_false(listing_step(f->listing));
    struct job *job;
    while ((job = job_table_first(f->jobs))) {
        job_table_remove(f->jobs, job);
    }
    finish(f);
    assert_true(f->count > 0);
}

// The reply of a long list stays small, however long the reasons are.
static void reasons_of_a_long_list_are_short(void **state)
{
    struct fixture *f = *state;
    char *reason = xmalloc(4001);

    memset(reason, 'x', 4000);
    memcpy(reason + LISTING_REASON_SHORT - 1, "\xc3\xa4", 2); // one letter of two bytes
    reason[4000] = '\0';
    add(f, 100, "ann", JOB_QUEUED);
    for (uint64_t id = 1; id <= 100; id++) {
        job_table_find(f->jobs, id)->reason = xstrdup(reason);
    }
    free(reason);
    f->request = (struct status_request){.all = true};
    list(f, &ann);
    assert_int_equal(strlen(f->rows[0].reason), LISTING_REASON_SHORT - 1);
    uint64_t one = 5;
    f->request = (struct status_request){.jobs = &one, .jobs_count = 1};
    list(f, &ann);
    assert_int_equal(strlen(f->rows[0].reason), 4000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_number_is_answered_once),        cmocka_unit_test(equal_numbers_are_removed),
        TEST(a_long_list_takes_many_steps),     TEST(jobs_go_while_they_are_listed),
        TEST(reasons_of_a_long_list_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Parked WAITs: each is answered once, whatever wakes it, and not at all when its caller has gone.
#include "daemon/jobs/wait.h"
#include "daemon/state/job_table.h"
#include "proto/verdict.h"
#include "tests/support/program.h"
#include "tests/support/service_pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_MS 3600000
#define JOBS 3

struct fixture {
    struct service_pair pair;
    struct waits *waits;
    struct job_table *jobs;
    struct job *job[JOBS];
    unsigned requests;
    unsigned refused;  // by waits_park
    unsigned due;      // calls of on_due
    uint64_t asked[8]; // the first number of each WAIT that became due
    size_t ids;        // of the last one
    unsigned answers;  // that the caller got
    unsigned failures;
};

static void answer(struct exchange *exchange, const uint64_t *ids, size_t count)
{
    struct waited waited;

    message_init(&waited_message, &waited);
    waited.unknown = (uint64_t *)(uintptr_t)ids;
    waited.unknown_count = count;
    exchange_reply(exchange, &waited_message, &waited);
}

static void on_due(void *owner, struct exchange *exchange, const uint64_t *ids, size_t count)
{
    struct fixture *f = owner;

    f->asked[f->due++ % ARRAY_LEN(f->asked)] = count > 0 ? ids[0] : 0;
    f->ids = count;
    answer(exchange, ids, count);
}

// Parks for the jobs of these numbers that are known.
static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct fixture *f = owner;
    struct job *jobs[JOBS];
    struct wait wait;
    size_t count = 0;

    assert_int_equal(request->op, OP_WAIT);
    assert_true(exchange_read_body(exchange, request, &wait_message, &wait));
    f->requests++;
    for (size_t i = 0; i < wait.jobs_count; i++) {
        struct job *job = job_table_find(f->jobs, wait.jobs[i]);

        if (job) {
            jobs[count++] = job;
        }
    }
    if (!waits_park(f->waits, exchange, wait.jobs, wait.jobs_count, jobs, count, wait.max_ms)) {
        f->refused++;
        answer(exchange, NULL, 0);
    }
    message_clear(&wait_message, &wait);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    service_pair_init(&f->pair);
    f->jobs = job_table_create(1, NULL);
    for (size_t i = 0; i < JOBS; i++) {
        const char key[] = {(char)('a' + i), '\0'};

        f->job[i] = job_table_add(f->jobs, i + 1, "local", "s", key, JOB_QUEUED);
    }
    f->waits = waits_create(&f->pair.loop, on_due, f);
    service_pair_open(&f->pair, on_request, f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    waits_close(f->waits);
    service_pair_close(&f->pair);
    for (size_t i = 0; i < JOBS; i++) {
        assert_null(f->job[i]->waits);
    }
    job_table_free(f->jobs);
    free(f);
    return 0;
}

static void on_answer(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct fixture *f = owner;

    (void)retry_after_ms;
    (void)reply;
    f->answers++;
    f->failures += !!error;
}

// Sends a WAIT and runs the loop until it has been seen.
static void ask(struct fixture *f, const uint64_t *ids, size_t count, uint64_t max_ms)
{
    struct wait body;
    unsigned before = f->requests;

    message_init(&wait_message, &body);
    body.jobs = (uint64_t *)(uintptr_t)ids;
    body.jobs_count = count;
    body.max_ms = max_ms;
    remote_call(f->pair.remote, OP_WAIT, &wait_message, &body, &waited_message, PROGRAM_LIMIT_MS,
                on_answer, f);
    while (f->requests == before) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
}

static void ask_one(struct fixture *f, uint64_t id, uint64_t max_ms)
{
    ask(f, &id, 1, max_ms);
}

static void until_answers(struct fixture *f, unsigned count)
{
    while (f->answers < count) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
}

static void a_wait_is_answered_when_its_job_is_finished(void **state)
{
    struct fixture *f = *state;

    ask_one(f, 2, HOUR_MS);
    assert_int_equal(waits_count(f->waits), 1);
    waits_wake(f->waits, f->job[0]); // nobody waits for that one
    waits_wake(f->waits, f->job[1]);
    assert_int_equal(f->due, 0); // never inside the call
    until_answers(f, 1);
    assert_int_equal(f->due, 1);
    assert_int_equal(f->asked[0], 2);
    assert_int_equal(waits_count(f->waits), 0);
    waits_wake(f->waits, f->job[1]); // once is enough
    (void)uv_run(&f->pair.loop, UV_RUN_NOWAIT);
    assert_int_equal(f->due, 1);
}

static void jobs_that_end_together_are_one_answer(void **state)
{
    static const uint64_t ids[] = {3, 1, 99, 2};
    struct fixture *f = *state;

    ask(f, ids, ARRAY_LEN(ids), HOUR_MS);
    waits_wake(f->waits, f->job[0]);
    for (size_t i = 0; i < JOBS; i++) {
        assert_null(f->job[i]->waits); // it has left the lists of the others, too
    }
    waits_wake(f->waits, f->job[2]);
    until_answers(f, 1);
    assert_int_equal(f->due, 1);
    assert_int_equal(f->ids, ARRAY_LEN(ids)); // as they were asked, the unknown one included
    assert_int_equal(f->asked[0], 3);
}

static void everybody_who_waits_for_a_job_is_answered_in_order(void **state)
{
    static const uint64_t both[] = {2, 1};
    struct fixture *f = *state;

    ask_one(f, 1, HOUR_MS);
    ask(f, both, 2, HOUR_MS);
    ask_one(f, 3, HOUR_MS);
    waits_wake(f->waits, f->job[0]);
    until_answers(f, 2);
    assert_int_equal(f->due, 2);
    assert_int_equal(f->asked[0], 1);
    assert_int_equal(f->asked[1], 2);
    assert_int_equal(waits_count(f->waits), 1);
    assert_non_null(f->job[2]->waits);
}

static void a_wait_whose_time_is_over_leaves_those_with_more_time(void **state)
{
    struct fixture *f = *state;

    ask_one(f, 1, HOUR_MS);
    ask_one(f, 1, 0);
    until_answers(f, 1);
    assert_int_equal(f->due, 1);
    assert_int_equal(waits_count(f->waits), 1);
    assert_non_null(f->job[0]->waits);
    ask_one(f, 2, 1);
    until_answers(f, 2);
    assert_int_equal(waits_count(f->waits), 1);
}

static void a_wait_for_no_known_job_ends_with_its_time(void **state)
{
    struct fixture *f = *state;

    ask_one(f, 12345, 0);
    until_answers(f, 1);
    assert_int_equal(f->due, 1);
    assert_int_equal(f->asked[0], 12345);
}

static void one_more_than_may_be_parked_is_told_at_once(void **state)
{
    struct fixture *f = *state;

    enum { MOST = 29 }; // of the 32 that the service of the pair allows, one caller has so many

    for (unsigned i = 0; i < MOST; i++) {
        ask_one(f, 1, HOUR_MS);
    }
    assert_int_equal(f->refused, 0);
    ask_one(f, 1, HOUR_MS);
    assert_int_equal(f->refused, 1);
    assert_int_equal(waits_count(f->waits), MOST);
    until_answers(f, 1);
    waits_wake(f->waits, f->job[0]);
    until_answers(f, MOST + 1);
    assert_int_equal(f->due, MOST);
    ask_one(f, 1, HOUR_MS); // there is room again
    assert_int_equal(f->refused, 1);
}

static void a_caller_that_hangs_up_waits_no_more(void **state)
{
    struct fixture *f = *state;

    ask_one(f, 1, HOUR_MS);
    ask_one(f, 2, HOUR_MS);
    remote_close(f->pair.remote);
    f->pair.remote = NULL;
    while (waits_count(f->waits) > 0) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
    assert_null(f->job[0]->waits);
    assert_null(f->job[1]->waits);
    assert_int_equal(f->due, 0);
    assert_int_equal(f->failures, 2);
    waits_wake(f->waits, f->job[0]);
}

static void a_service_that_closes_drops_also_what_is_due(void **state)
{
    struct fixture *f = *state;

    ask_one(f, 1, HOUR_MS);
    ask_one(f, 2, HOUR_MS);
    waits_wake(f->waits, f->job[0]); // due, and not answered yet
    service_close(f->pair.service);
    f->pair.service = NULL;
    assert_int_equal(waits_count(f->waits), 0);
    while (f->failures < 2) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
    assert_int_equal(f->due, 0);
}

static void flushing_answers_everybody_now(void **state)
{
    struct fixture *f = *state;

    for (uint64_t id = 1; id <= JOBS; id++) {
        ask_one(f, id, HOUR_MS);
    }
    waits_wake(f->waits, f->job[2]);
    waits_flush(f->waits);
    assert_int_equal(f->due, 3);
    assert_int_equal(waits_count(f->waits), 0);
    until_answers(f, 3);
    assert_int_equal(f->failures, 0);
    waits_flush(f->waits); // nobody is left
    assert_int_equal(f->due, 3);
    waits_close(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_wait_is_answered_when_its_job_is_finished),
        TEST(jobs_that_end_together_are_one_answer),
        TEST(everybody_who_waits_for_a_job_is_answered_in_order),
        TEST(a_wait_whose_time_is_over_leaves_those_with_more_time),
        TEST(a_wait_for_no_known_job_ends_with_its_time),
        TEST(one_more_than_may_be_parked_is_told_at_once),
        TEST(a_caller_that_hangs_up_waits_no_more),
        TEST(a_service_that_closes_drops_also_what_is_due),
        TEST(flushing_answers_everybody_now),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

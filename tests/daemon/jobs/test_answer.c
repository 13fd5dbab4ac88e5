// Answers about jobs: results from memory and from the ledger, and what is no job at all.
#include "common/clock.h"
#include "common/file.h"
#include "daemon/jobs/answer.h"
#include "daemon/jobs/completion.h"
#include "daemon/store/cache.h"
#include "proto/verdict.h"
#include "tests/support/samples/result_sample.h"
#include "tests/support/service_pair.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct service_pair pair;
    char *dir;
    struct ledger *ledger;
    struct job_table *jobs;
    struct daemon_parts parts;
    struct answers *answers;
    uint64_t next_id;
};

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct fixture *f = owner;
    struct wait wait;

    assert_true(exchange_read_body(exchange, request, &wait_message, &wait));
    answer_due(f->answers, exchange, wait.jobs, wait.jobs_count);
    message_clear(&wait_message, &wait);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-answer", NULL), 0);
    char *path = xasprintf("%s/ledger.db", f->dir);
    service_pair_init(&f->pair);
    assert_int_equal(ledger_open(&f->ledger, path, 0, NULL), 0);
    assert_int_equal(ledger_start(f->ledger, &f->pair.loop, NULL), 0);
    free(path);
    f->jobs = job_table_create(1 << 20, NULL);
    f->parts = (struct daemon_parts){.jobs = f->jobs, .ledger = f->ledger};
    f->parts.completions = completions_create(&f->parts);
    f->answers = answers_create(&f->parts);
    service_pair_open(&f->pair, on_request, f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(answers_pending(f->answers), 0);
    ledger_close(f->ledger);
    service_pair_close(&f->pair);
    answers_free(f->answers);
    completions_free(f->parts.completions);
    job_table_free(f->jobs);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static struct job *add(struct fixture *f, enum job_kind kind, enum job_state state)
{
    char key[16];

    f->next_id++;
    (void)snprintf(key, sizeof(key), "k%u", (unsigned)f->next_id);
    struct job *job = job_table_add(f->jobs, f->next_id, "somebody", "s", key, state);
    job->kind = (uint8_t)kind;
    return job;
}

static struct bytes pack_result(uint64_t verdict)
{
    struct result result;

    message_init(&result_message, &result);
    result.verdict = verdict;
    result.cached = true;
    result.device_class = (char *)(uintptr_t) "class of then";
    return cache_pack(&result_message, &result);
}

// Puts a job with this result into the ledger alone, as after a restart.
static void keep(struct fixture *f, const struct job *job, const struct bytes *result)
{
    const struct ledger_job row = {.id = job->id,
                                   .tenant = "somebody",
                                   .search = "s",
                                   .key = job->key,
                                   .spec = {(unsigned char *)(uintptr_t) "spec", 4}};
    const struct ledger_end end = {.job = job->id, .state = JOB_DONE, .result = result};

    ledger_submit(f->ledger, &row, NULL, NULL, NULL, NULL);
    ledger_finish(f->ledger, &end, NULL, NULL);
}

static struct waited ask(struct fixture *f, const uint64_t *ids, size_t count)
{
    struct waited reply;
    struct wait body;
    struct err err;

    message_init(&wait_message, &body);
    body.jobs = (uint64_t *)(uintptr_t)ids;
    body.jobs_count = count;
    if (service_pair_call(&f->pair, OP_WAIT, &wait_message, &body, &waited_message, &reply, &err) !=
        0) {
        fail_msg("%s", err.text);
    }
    return reply;
}

static void finished_unfinished_and_unknown_jobs_are_told_apart(void **state)
{
    struct fixture *f = *state;
    struct job *waiting = add(f, JOB_MEASURE, JOB_QUEUED);
    struct job *cancelled = add(f, JOB_MEASURE, JOB_CANCELLED);
    const uint64_t ids[] = {99, cancelled->id, waiting->id, 98};

    cancelled->reason = xstrdup("not wanted");
    cancelled->cause = JOB_CAUSE_CLIENT;
    struct waited reply = ask(f, ids, ARRAY_LEN(ids));
    assert_int_equal(reply.jobs_count, 1);
    assert_int_equal(reply.jobs[0].job, cancelled->id);
    assert_string_equal(reply.jobs[0].reason, "not wanted");
    assert_int_equal(reply.jobs[0].cause, JOB_CAUSE_CLIENT);
    assert_null(reply.jobs[0].result);
    assert_int_equal(reply.unknown_count, 2);
    assert_int_equal(reply.unknown[0], 99);
    assert_int_equal(reply.unknown[1], 98);
    message_clear(&waited_message, &reply);
}

static void results_come_from_memory_and_from_the_ledger_in_one_answer(void **state)
{
    struct fixture *f = *state;
    struct job *old = add(f, JOB_MEASURE, JOB_DONE);
    struct job *recent = add(f, JOB_MEASURE, JOB_DONE);
    const uint64_t ids[] = {recent->id, old->id};
    struct bytes wrong = pack_result(VERDICT_WRONG);
    struct bytes crash = pack_result(VERDICT_CRASH);

    job_table_keep_result(f->jobs, recent, &crash);
    keep(f, old, &wrong);
    struct waited reply = ask(f, ids, 2);
    assert_int_equal(reply.jobs_count, 2);
    assert_int_equal(reply.jobs[0].result->verdict, VERDICT_CRASH);
    assert_int_equal(reply.jobs[1].result->verdict, VERDICT_WRONG);
    assert_true(reply.jobs[1].cached); // as the result says, where the job has forgotten it
    assert_string_equal(reply.jobs[1].device_class, "class of then");
    message_clear(&waited_message, &reply);
    bytes_clear(&wrong);
}

// A job whose result was damaged on the disk is forgotten, so that it can be submitted again.
static void a_result_that_is_gone_or_junk_makes_its_job_unknown(void **state)
{
    struct fixture *f = *state;
    struct job *gone = add(f, JOB_MEASURE, JOB_DONE);
    struct job *junk = add(f, JOB_MEASURE, JOB_DONE);
    struct job *whole = add(f, JOB_MEASURE, JOB_DONE);
    struct job *cut = add(f, JOB_COMPILE, JOB_DONE);
    const uint64_t ids[] = {gone->id, junk->id, whole->id, cut->id};
    struct bytes bytes = bytes_copy("\xc1\xff", 2);
    struct bytes wrong = pack_result(VERDICT_WRONG);

    keep(f, junk, &bytes);
    keep(f, whole, &wrong);
    keep(f, cut, &bytes);
    struct waited reply = ask(f, ids, 4);
    assert_int_equal(reply.jobs_count, 1);
    assert_int_equal(reply.jobs[0].job, ids[2]);
    assert_int_equal(reply.jobs[0].result->verdict, VERDICT_WRONG);
    assert_int_equal(reply.unknown_count, 3);
    message_clear(&waited_message, &reply);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(!job_table_find(f->jobs, ids[i]), i != 2);
    }
    bytes_clear(&bytes);
    bytes_clear(&wrong);
}

// The digest of its row matches, but it says what no measurement says.
static void a_result_whose_parts_disagree_is_not_served(void **state)
{
    struct fixture *f = *state;
    struct result result;

    for (int lie = 0; lie < 2; lie++) {
        struct job *job = add(f, JOB_MEASURE, JOB_DONE);
        uint64_t id = job->id;

        result_sample(&result);
        result.verdict = lie ? VERDICT_SLOWER : result.verdict;
        struct bytes packed = cache_pack(&result_message, &result);
        keep(f, job, &packed);
        struct waited reply = ask(f, &id, 1);
        assert_int_equal(reply.jobs_count, !lie);
        assert_int_equal(reply.unknown_count, lie);
        message_clear(&waited_message, &reply);
        bytes_clear(&packed);
        message_clear(&result_message, &result);
    }
}

// The ages of a job's states; those that it has not reached, or before a restart, are absent.
static void a_job_says_how_long_ago_it_reached_its_states(void **state)
{
    struct fixture *f = *state;
    struct clock clock;

    clock_fake_init(&clock, 50 * NS_PER_S);
    job_table_set_clock(f->jobs, &clock);
    struct job *job = add(f, JOB_MEASURE, JOB_QUEUED);
    const enum job_state states[] = {JOB_COMPILING, JOB_READY, JOB_RUNNING, JOB_CANCELLED};
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        job_set_state(job, states[i]);
        clock_fake_advance(&clock, (i + 1) * NS_PER_S);
    }
    struct job *reloaded = add(f, JOB_MEASURE, JOB_CANCELLED);
    const uint64_t ids[] = {job->id, reloaded->id};
    struct waited reply = ask(f, ids, 2);
    const struct job_ages *ages = reply.jobs[0].ages;
    assert_float_equal(ages->compiling, 10, 1e-9);
    assert_float_equal(ages->ready, 9, 1e-9);
    assert_float_equal(ages->running, 7, 1e-9);
    assert_float_equal(ages->ended, 4, 1e-9);
    assert_true(isnan(reply.jobs[1].ages->running) && isnan(reply.jobs[1].ages->ended));
    message_clear(&waited_message, &reply);
    job_table_set_clock(f->jobs, &clock_system);
}

static void a_compile_job_has_what_the_compiler_gave(void **state)
{
    struct fixture *f = *state;
    struct job *job = add(f, JOB_COMPILE, JOB_DONE);
    struct compiled compiled;

    message_init(&compiled_message, &compiled);
    compiled.log = (char *)(uintptr_t) "a warning";
    compiled.object = digest_of("object", 6);
    struct bytes packed = cache_pack(&compiled_message, &compiled);
    keep(f, job, &packed);
    bytes_clear(&packed);
    struct waited reply = ask(f, &job->id, 1);
    assert_null(reply.jobs[0].result);
    assert_string_equal(reply.jobs[0].compiled->log, "a warning");
    message_clear(&waited_message, &reply);
}

static void one_answer_has_a_bounded_number_of_results(void **state)
{
    struct fixture *f = *state;
    uint64_t ids[ANSWER_RESULTS_MAX + 6];

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct job *job = add(f, JOB_MEASURE, JOB_DONE);

        struct bytes result = pack_result(VERDICT_WRONG);

        ids[i] = job->id;
        keep(f, job, &result);
        bytes_clear(&result);
    }
    struct waited reply = ask(f, ids, ARRAY_LEN(ids));
    assert_int_equal(reply.jobs_count, ANSWER_RESULTS_MAX);
    assert_int_equal(reply.unknown_count, 0); // the others are asked for again
    for (size_t i = 0; i < ANSWER_RESULTS_MAX; i++) {
        assert_int_equal(reply.jobs[i].job, ids[i]);
        assert_non_null(reply.jobs[i].result);
    }
    message_clear(&waited_message, &reply);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(finished_unfinished_and_unknown_jobs_are_told_apart),
        TEST(results_come_from_memory_and_from_the_ledger_in_one_answer),
        TEST(a_result_that_is_gone_or_junk_makes_its_job_unknown),
        TEST(a_result_whose_parts_disagree_is_not_served),
        TEST(a_job_says_how_long_ago_it_reached_its_states),
        TEST(a_compile_job_has_what_the_compiler_gave),
        TEST(one_answer_has_a_bounded_number_of_results),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

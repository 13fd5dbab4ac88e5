// Lists of jobs: how they are printed, and whose daemon the words of a command line mean.
#include "client/cmd/tables/job_list.h"
#include "net/auth/caller.h"
#include "proto/verdict.h"
#include "tests/client/cmd/printed.h"
#include <jansson.h>
#include <stdlib.h>
#include <uv.h>

static char *text_of(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

static char *print(const char *url, const struct job_info *job, size_t count, bool json)
{
    struct printed printed = printed_begin(stdout);
    job_list_print(url, job, count, json);
    return printed_end(&printed);
}

// ---- printing ----

static void an_empty_list_says_so_to_people_and_nothing_to_machines(void **state)
{
    (void)state;
    char *text = print(NULL, NULL, 0, false);
    assert_string_equal(text, "no jobs\n");
    free(text);
    text = print("tcp://a:1", NULL, 0, false);
    assert_string_equal(text, "daemon tcp://a:1\nno jobs\n");
    free(text);
    text = print("tcp://a:1", NULL, 0, true);
    assert_string_equal(text, "");
    free(text);
}

static void a_table_has_one_heading_and_a_dash_for_what_is_not_known(void **state)
{
    (void)state;
    const struct job_info job[] = {
        {.job = 7,
         .state = JOB_RUNNING,
         .kind = JOB_MEASURE,
         .device = text_of("cpu0"),
         .key = text_of("k1"),
         .search = text_of("night")},
        {.job = UINT64_MAX, .state = JOB_QUEUED, .kind = JOB_COMPILE, .reason = text_of("waits")},
    };
    char *text = print(NULL, job, ARRAY_LEN(job), false);
    assert_int_equal(printed_count(text, "\n"), 3);
    assert_int_equal(printed_count(text, "state"), 1);
    assert_non_null(strstr(text, "       7  running    measure   cpu0      k1        night\n"));
    assert_non_null(
        strstr(text, "18446744073709551615  queued     compile   -         -         -: waits\n"));
    free(text);
}

static void a_tenant_is_named_before_the_search_unless_it_is_everybody(void **state)
{
    (void)state;
    const struct job_info job[] = {
        {.job = 1, .kind = JOB_MEASURE, .tenant = text_of("ann"), .search = text_of("s")},
        {.job = 2, .kind = JOB_MEASURE, .tenant = text_of(TENANT_LOCAL), .search = text_of("s")},
        {.job = 3, .kind = JOB_MEASURE, .tenant = text_of("bob")},
    };
    char *text = print(NULL, job, ARRAY_LEN(job), false);
    assert_int_equal(printed_count(text, "  ann/s\n"), 1);
    assert_int_equal(printed_count(text, "  s\n"), 1);
    assert_int_equal(printed_count(text, "  bob/-\n"), 1);
    assert_null(strstr(text, TENANT_LOCAL));
    free(text);
}

static void a_state_of_a_later_release_is_unknown(void **state)
{
    (void)state;
    const struct job_info job = {.job = 1, .state = JOB_STATE_COUNT, .kind = JOB_MEASURE};
    char *text = print(NULL, &job, 1, false);
    printed_has(text, "unknown");
    free(text);
}

static json_t *object_of(const char *url, const struct job_info *job)
{
    char *text = print(url, job, 1, true);
    assert_int_equal(printed_count(text, "\n"), 1);
    json_t *ret = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(ret);
    free(text);
    return ret;
}

static const char *word(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void json_has_null_for_what_is_not_known(void **state)
{
    static const char *const absent[] = {"tenant", "search", "key",    "device",
                                         "reason", "cause",  "verdict"};
    (void)state;
    const struct job_info job = {.job = 4, .state = JOB_READY, .kind = JOB_COMPILE, .attempt = 2};
    json_t *object = object_of(NULL, &job);
    for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
        assert_true(json_is_null(json_object_get(object, absent[i])));
    }
    assert_null(json_object_get(object, "pool"));
    assert_int_equal(json_integer_value(json_object_get(object, "job")), 4);
    assert_int_equal(json_integer_value(json_object_get(object, "attempt")), 2);
    assert_string_equal(word(object, "state"), "ready");
    assert_string_equal(word(object, "kind"), "compile");
    json_decref(object);
}

static void json_takes_the_verdict_of_what_there_is(void **state)
{
    (void)state;
    struct result result = {.verdict = VERDICT_WRONG};
    struct compiled compiled = {.verdict = VERDICT_COMPILE_ERROR};
    struct job_info job = {.job = 4, .state = JOB_DONE, .kind = JOB_MEASURE, .result = &result};
    json_t *object = object_of("tcp://b:2", &job);
    assert_string_equal(word(object, "verdict"), verdict_name(VERDICT_WRONG));
    assert_string_equal(word(object, "kind"), "measure");
    assert_string_equal(word(object, "pool"), "tcp://b:2");
    json_decref(object);
    job =
        (struct job_info){.job = 5, .state = JOB_DONE, .kind = JOB_COMPILE, .compiled = &compiled};
    object = object_of(NULL, &job);
    assert_string_equal(word(object, "verdict"), "compile-error");
    json_decref(object);
}

static void json_names_the_cause_of_an_end(void **state)
{
    (void)state;
    struct job_info job = {.job = 4,
                           .state = JOB_CANCELLED,
                           .kind = JOB_MEASURE,
                           .cause = JOB_CAUSE_BUDGET,
                           .reason = text_of("\"used\"\n")};
    json_t *object = object_of(NULL, &job);
    assert_string_equal(word(object, "cause"), "budget");
    assert_string_equal(word(object, "reason"), "\"used\"\n");
    json_decref(object);
    job.cause = JOB_CAUSE_COUNT;
    object = object_of(NULL, &job);
    assert_string_equal(word(object, "cause"), "unknown");
    json_decref(object);
}

// ---- words of a command line ----

static void only_numbers_from_1_are_jobs_whatever_stands_before_the_slash(void **state)
{
    static const char *const good[] = {"1", "18446744073709551615", "host/7", "tcp://h:1/7", "/7"};
    static const char *const bad[] = {"",   "0",   "-1",  "x",   "7x", " 7", "18446744073709551616",
                                      "h/", "h/0", "7/h", "1,2", "0x1"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char *argument = text_of(good[i]);
        struct err err = ERR_INIT;
        if (job_list_check(&argument, 1, &err) != 0) {
            fail_msg("%s: %s", good[i], err.text);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char *argument[] = {text_of("3"), text_of(bad[i])};
        struct err err = ERR_INIT;
        if (job_list_check(argument, 2, &err) != ERR_INVALID) {
            fail_msg("\"%s\" is taken for a job", bad[i]);
        }
        printed_has(err.text, "the job's number");
    }
    assert_int_equal(job_list_check(NULL, 0, NULL), 0);
}

// Three daemons, of which two are on one host and the last does not answer.
struct three {
    uv_loop_t loop;
    struct daemon_link link[3];
    struct daemons daemons;
};

static int set_up(void **state)
{
    static const char *const url[] = {"tcp://near:7000", "tcp://near:7001", "tcp://far:7000"};
    struct three *three = xcalloc(1, sizeof(*three));
    assert_int_equal(uv_loop_init(&three->loop), 0);
    for (size_t i = 0; i < ARRAY_LEN(url); i++) {
        three->link[i].url = text_of(url[i]);
        assert_int_equal(remote_create(&three->link[i].remote, &three->loop, url[i], NULL), 0);
    }
    three->daemons = (struct daemons){.link = three->link, .count = 3, .several = true};
    *state = three;
    return 0;
}

static int tear_down(void **state)
{
    struct three *three = *state;
    for (size_t i = 0; i < 3; i++) {
        remote_close(three->link[i].remote);
    }
    uv_run(&three->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&three->loop), 0);
    free(three);
    return 0;
}

static void jobs_are_sorted_by_daemon_in_the_order_of_the_words(void **state)
{
    struct three *three = *state;
    char *argument[] = {text_of("near:7001/9"), text_of("far/4"), text_of("near:7001/3"),
                        text_of("tcp://near:7001/9"), text_of("far:7000/5")};
    struct job_ids *ids = NULL;
    struct err err = ERR_INIT;
    if (job_list_sort(&ids, &three->daemons, argument, ARRAY_LEN(argument), &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(ids[0].jobs_count, 0);
    assert_int_equal(ids[1].jobs_count, 3);
    assert_int_equal(ids[1].jobs[0], 9);
    assert_int_equal(ids[1].jobs[1], 3);
    assert_int_equal(ids[1].jobs[2], 9); // named twice: the daemon is asked twice
    assert_int_equal(ids[2].jobs_count, 2);
    assert_int_equal(ids[2].jobs[0], 4);
    assert_int_equal(ids[2].jobs[1], 5);
    job_list_free(ids, three->daemons.count);
}

static void a_wrong_word_sorts_nothing(void **state)
{
    static const struct {
        const char *word, *sentence;
        int rc;
    } wrong[] = {
        {"7", "could be at each of the daemons; write HOST:PORT/7", ERR_USAGE},
        {"near/7", "\"near\" has several daemons", ERR_USAGE},
        {"away/7", "names no daemon \"away\"", ERR_NOT_FOUND},
        {"near:7002/7", "names no daemon \"near:7002\"", ERR_NOT_FOUND},
        {"fa/7", "names no daemon \"fa\"", ERR_NOT_FOUND},
        {"far/x", "the job's number", ERR_INVALID},
        {"far/", "the job's number", ERR_INVALID},
        {"/7", "could be at each of the daemons", ERR_USAGE},
    };
    struct three *three = *state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        char *argument[] = {text_of("far/1"), text_of(wrong[i].word)};
        struct job_ids *ids = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(job_list_sort(&ids, &three->daemons, argument, 2, &err), wrong[i].rc);
        printed_has(err.text, wrong[i].sentence);
        assert_null(ids);
    }
}

static void a_job_of_a_daemon_that_does_not_answer_fails_as_its_connection_did(void **state)
{
    struct three *three = *state;
    remote_close(three->link[2].remote);
    three->link[2].remote = NULL;
    (void)err_set(&three->link[2].why, ERR_UNREACHABLE, "tcp://far:7000: refused");
    char *argument[] = {text_of("near:7000/1"), text_of("far/1")};
    struct job_ids *ids = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(job_list_sort(&ids, &three->daemons, argument, 2, &err), ERR_UNREACHABLE);
    assert_string_equal(err.text, "tcp://far:7000: refused");
    assert_int_equal(job_list_sort(&ids, &three->daemons, argument, 1, NULL), 0);
    assert_int_equal(ids[0].jobs_count, 1);
    job_list_free(ids, three->daemons.count);
}

static void the_only_daemon_need_not_be_named(void **state)
{
    struct three *three = *state;
    const struct daemons one = {.link = three->link, .count = 1};
    char *argument[] = {text_of("5"), text_of("near/6"), text_of("/7")};
    struct job_ids *ids = NULL;
    assert_int_equal(job_list_sort(&ids, &one, argument, 3, NULL), 0);
    assert_int_equal(ids[0].jobs_count, 3);
    assert_int_equal(ids[0].jobs[2], 7);
    job_list_free(ids, 1);
    assert_int_equal(job_list_sort(&ids, &one, NULL, 0, NULL), 0);
    assert_int_equal(ids[0].jobs_count, 0);
    job_list_free(ids, 1);
    job_list_free(NULL, 3);
}

int main(void)
{
#define WITH_DAEMONS(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_says_so_to_people_and_nothing_to_machines),
        cmocka_unit_test(a_table_has_one_heading_and_a_dash_for_what_is_not_known),
        cmocka_unit_test(a_tenant_is_named_before_the_search_unless_it_is_everybody),
        cmocka_unit_test(a_state_of_a_later_release_is_unknown),
        cmocka_unit_test(json_has_null_for_what_is_not_known),
        cmocka_unit_test(json_takes_the_verdict_of_what_there_is),
        cmocka_unit_test(json_names_the_cause_of_an_end),
        cmocka_unit_test(only_numbers_from_1_are_jobs_whatever_stands_before_the_slash),
        WITH_DAEMONS(jobs_are_sorted_by_daemon_in_the_order_of_the_words),
        WITH_DAEMONS(a_wrong_word_sorts_nothing),
        WITH_DAEMONS(a_job_of_a_daemon_that_does_not_answer_fails_as_its_connection_did),
        WITH_DAEMONS(the_only_daemon_need_not_be_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

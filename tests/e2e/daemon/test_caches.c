// The caches of results and compilations: what is in them is not made again, and what is damaged
// is.
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up_one_core(void **state)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = "--devices=cpu:1";
    return daemon_client_start(client) ? 0 : -1;
}

// --- what is cached

static void a_known_result_is_not_measured_again_unless_asked_for(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "//! log2 -0.25\n");

    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "a", &spec).job, JOB_DONE,
                         VERDICT_SLOWER);
    spec.anchor_log2 = 0.1; // decides when to stop, not what is measured
    struct submitted reply = daemon_client_submit_ok(client, "another", "b", &spec);
    assert_true(reply.cached);
    assert_int_equal(reply.state, JOB_DONE);
    struct job_info info;
    daemon_client_wait(client, reply.job, &info);
    assert_true(info.result->cached);
    assert_float_equal(info.result->speedup->log2, -0.25, 1e-9);
    message_clear(&job_info_message, &info);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    spec.fresh = true;
    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "c", &spec).job, JOB_DONE,
                         VERDICT_SLOWER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 2);
    spec.fresh = false;
    spec.repeat = 7;
    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "d", &spec).job, JOB_DONE,
                         VERDICT_SLOWER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 3);
    assert_int_equal(daemon_client_runs(client, "compile", "//! log2 -0.25\n"), 1);
}

static void failures_are_known_too(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "//! verdict 8\n");

    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "a", &spec).job, JOB_DONE,
                         VERDICT_TIMEOUT);
    assert_true(daemon_client_submit_ok(client, "test", "b", &spec).cached);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

static void equal_jobs_at_the_same_time_are_measured_once(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);
    uint64_t first = daemon_client_submit_ok(client, "test", "a", &spec).job;
    uint64_t second = daemon_client_submit_ok(client, "test", "b", &spec).job;

    assert_int_not_equal(first, second);
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, first, JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, second, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 1);
    free(candidate);
    free(gate);
}

static void the_result_under_a_bad_control_is_not_cached(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "//! bad-control\n");

    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "a", &spec).job, JOB_DONE,
                         VERDICT_FASTER);
    assert_false(daemon_client_submit_ok(client, "test", "b", &spec)
                     .cached); // and its control is the second bad one
    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "b", &spec).job, JOB_DONE,
                         VERDICT_FASTER);
    struct status status;
    daemon_client_status(client, &status);
    assert_string_equal(status.devices[0].state, "quarantined");
    assert_non_null(strstr(status.devices[0].reason, "against itself"));
    message_clear(&status_message, &status);
}

// --- damaged entries, another compiler

static void change_ledger(const struct daemon_client *client, const char *sql)
{
    char *path = xasprintf("%s/ledger.db", client->state);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_changes(db) > 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(path);
}

static void restart(struct daemon_client *client)
{
    daemon_client_disconnect(client);
    (void)program_kill(&client->program);
    assert_true(daemon_client_start(client));
}

static void measure(struct daemon_client *client, const char *key, const char *candidate)
{
    daemon_client_expect(client, daemon_client_accepted(client, key, candidate), JOB_DONE,
                         VERDICT_FASTER);
}

// Rows whose content is no message any more are as good as none.
static void damaged_cache_entries_are_made_again(void **state)
{
    struct daemon_client *client = *state;
    static const char candidate[] = "int x;\n";

    measure(client, "a", candidate);
    measure(client, "b", candidate);
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 1);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    change_ledger(client, "UPDATE compiled SET compiled = x'ddffffffff'");
    change_ledger(client, "UPDATE result SET result = x'81'");
    assert_true(daemon_client_start(client));
    measure(client, "c", candidate);
    assert_int_equal(daemon_client_runs(client, "compile", candidate), 2);
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 2);
    measure(client, "d", candidate); // and are whole again
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 2);
}

// The same of a finished job that nobody has fetched, found when the daemon starts and when it has
// been running for long: it is unknown, and whoever waits for it submits it again.
static void a_damaged_job_is_unknown_and_comes_again(void **state)
{
    struct daemon_client *client = *state;
    static const char candidate[] = "int x;\n";

    for (int stopped = 0; stopped < 2; stopped++) {
        uint64_t job = daemon_client_accepted(client, "a", candidate);

        daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
        restart(client); // so that the result is on the disk alone
        if (stopped) {
            daemon_client_disconnect(client);
            assert_int_equal(program_stop(&client->program), 0);
        }
        change_ledger(client, "UPDATE job SET result = zeroblob(length(result))");
        if (stopped) {
            assert_true(daemon_client_start(client));
        }
        struct waited waited;
        daemon_client_wait_once(client, &job, 1, 1, &waited);
        assert_int_equal(waited.jobs_count, 0);
        assert_int_equal(waited.unknown_count, 1);
        message_clear(&waited_message, &waited);
        uint64_t again = daemon_client_accepted(client, "a", candidate);
        assert_int_not_equal(again, job);
        daemon_client_expect(client, again, JOB_DONE, VERDICT_FASTER);
    }
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 1); // the cache was whole
}

// Another version of the compiler makes other objects, also of what is known.
static void another_compiler_compiles_again(void **state)
{
    struct daemon_client *client = *state;
    const char *toolchain[] = {"KCAST_FAKE_TOOLCHAIN=fake-cc 1.0", "KCAST_FAKE_TOOLCHAIN=fake-cc 2",
                               "KCAST_FAKE_TOOLCHAIN=fake-cc 1.0"};
    const size_t compilations[] = {1, 2, 2};
    struct job_spec spec;

    for (size_t i = 0; i < 3; i++) {
        client->variable[0] = toolchain[i];
        restart(client);
        char key[16];
        (void)snprintf(key, sizeof(key), "k%zu", i);
        spec = daemon_client_spec(client, "int x;\n");
        spec.kind = JOB_COMPILE;
        spec.reference = spec.baseline = (struct digest){0};
        daemon_client_expect(client, daemon_client_submit_ok(client, "test", key, &spec).job,
                             JOB_DONE, 0);
        assert_int_equal(daemon_client_runs(client, "compile", "int x;\n"), compilations[i]);
    }
}

// Two searches want the same object while it is being made.
static void equal_compilations_at_the_same_time_are_one(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.kind = JOB_COMPILE;
    spec.reference = spec.baseline = (struct digest){0};
    struct submitted one = daemon_client_submit_ok(client, "one", "k", &spec);
    (void)daemon_client_gate_wait(gate);
    struct submitted two = daemon_client_submit_ok(client, "two", "k", &spec);
    daemon_client_until(client, two.job, JOB_COMPILING);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, one.job, JOB_DONE, 0);
    daemon_client_expect(client, two.job, JOB_DONE, 0);
    assert_int_equal(daemon_client_runs(client, "compile", candidate), 1);
    free(candidate);
    free(gate);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_known_result_is_not_measured_again_unless_asked_for),
        TEST(failures_are_known_too),
        TEST(equal_jobs_at_the_same_time_are_measured_once),
        TEST(the_result_under_a_bad_control_is_not_cached),
        cmocka_unit_test_setup_teardown(damaged_cache_entries_are_made_again, set_up_one_core,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_job_is_unknown_and_comes_again, set_up_one_core,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(another_compiler_compiles_again, set_up_one_core,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(equal_compilations_at_the_same_time_are_one,
                                        set_up_one_core, daemon_client_tear_down),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

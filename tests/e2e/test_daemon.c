// kcastd as a whole, over the wire, with an executor that does as it is told: jobs, caches, WAIT,
// CANCEL, ACK, limits.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int set_up_small(void **state)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = "--queue-max=2";
    client->option[1] = "--jobs-max=4";
    return daemon_client_start(client) ? 0 : -1;
}

static int submit_code(struct daemon_client *client, const char *key, const struct job_spec *spec,
                       struct err *err)
{
    *err = (struct err)ERR_INIT;
    struct submitted reply;
    return daemon_client_submit(client, "test", key, spec, &reply, err);
}

static struct submitted submit_ok(struct daemon_client *client, const char *search, const char *key,
                                  const struct job_spec *spec)
{
    struct submitted reply;
    struct err err = ERR_INIT;

    if (daemon_client_submit(client, search, key, spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply;
}

// --- results

static void a_measured_job_gives_a_result(void **state)
{
    struct daemon_client *client = *state;
    const char *candidate = "//! log2 0.75\n";
    struct job_info info;
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    struct digest digest = digest_of(candidate, strlen(candidate));

    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_string_equal(info.search, "test");
    assert_string_equal(info.key, "k");
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_float_equal(info.result->speedup->log2, 0.75, 1e-9);
    assert_non_null(info.result->control);
    assert_string_equal(info.result->device, "cpu0");
    assert_string_equal(info.result->device_class, "fake-cpu");
    assert_string_equal(info.result->sandbox, "on");
    assert_true(digest_equal(&info.result->candidate, &digest));
    assert_true(info.result->seed != 0);
    assert_true(info.result->measured_at > 1e9);
    assert_true(info.result->seconds->held > 0);
    assert_non_null(info.result->compiled);
    assert_int_equal(info.result->compiled->features_count, 1);
    assert_false(info.result->cached);
    message_clear(&job_info_message, &info);
}

static void a_compile_job_gives_object_and_features_and_is_cached(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");

    spec.kind = JOB_COMPILE;
    spec.reference = (struct digest){0};
    spec.baseline = (struct digest){0};
    struct job_info info;
    for (int i = 0; i < 2; i++) {
        daemon_client_wait(client, submit_ok(client, "test", i ? "b" : "a", &spec).job, &info);
        assert_int_equal(info.state, JOB_DONE);
        assert_int_equal(info.compiled->verdict, VERDICT_NONE);
        assert_int_equal(info.compiled->features_count, 1);
        assert_false(digest_is_zero(&info.compiled->object));
        assert_int_equal(info.compiled->cached, i == 1);
        message_clear(&job_info_message, &info);
    }
    assert_int_equal(daemon_client_runs(client, "compile", NULL), 1);
    spec.fresh = true;
    daemon_client_expect(client, submit_ok(client, "test", "c", &spec).job, JOB_DONE, 0);
    assert_int_equal(daemon_client_runs(client, "compile", NULL), 2);
}

static void a_candidate_that_does_not_compile_is_not_measured(void **state)
{
    struct daemon_client *client = *state;
    struct job_info info;
    uint64_t job = daemon_client_accepted(client, "k", "//! compile-error\n");

    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.result->verdict, VERDICT_COMPILE_ERROR);
    assert_non_null(strstr(info.result->reason, "candidate.c"));
    assert_non_null(info.result->compiled->log);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, daemon_client_accepted(client, "l", "//! compile-error\n"),
                         JOB_DONE, VERDICT_COMPILE_ERROR);
    assert_int_equal(daemon_client_runs(client, "compile", "//! compile-error\n"), 1);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 0);
}

static void a_reference_that_does_not_compile_is_the_problems_fault(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");

    spec.reference = daemon_client_put(client, "//! compile-error\n", 18);
    struct job_info info;
    for (int i = 0; i < 2; i++) {
        daemon_client_wait(client, submit_ok(client, "test", i ? "a" : "b", &spec).job, &info);
        assert_int_equal(info.result->verdict, VERDICT_COMPILE_ERROR);
        assert_non_null(strstr(info.result->reason, "reference.c of problem copy"));
        assert_null(info.result->compiled);
        assert_false(info.result->cached);
        message_clear(&job_info_message, &info);
    }
}

// --- submitting

static void the_same_submit_twice_is_one_job(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct submitted first = submit_ok(client, "test", "k", &spec);
    struct submitted second = submit_ok(client, "test", "k", &spec);

    assert_int_equal(first.job, second.job);
    assert_false(first.duplicate);
    assert_true(second.duplicate);
    daemon_client_expect(client, first.job, JOB_DONE, VERDICT_FASTER);
    second = submit_ok(client, "test", "k", &spec);
    assert_int_equal(first.job, second.job);
    assert_int_equal(second.state, JOB_DONE);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

struct race {
    uint64_t job[16];
    size_t answers;
    size_t new_ones;
};

static void on_submitted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct race *race = owner;
    const struct submitted *submitted = reply;

    (void)retry_after_ms;
    if (error) {
        fail_msg("%s", error->text);
    }
    race->new_ones += !submitted->duplicate;
    race->job[race->answers++] = submitted->job;
}

static void sixteen_equal_submits_at_once_by_two_clients_are_one_job(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct remote *other = NULL;

    assert_int_equal(remote_create(&other, &client->loop, client->program.url, NULL), 0);
    struct submit body;
    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t) "test";
    body.key = (char *)(uintptr_t) "k";
    body.spec = &spec;
    struct race race = {0};
    for (int i = 0; i < 16; i++) {
        remote_call(i % 2 ? other : client->remote, OP_SUBMIT, &submit_message, &body,
                    &submitted_message, PROGRAM_LIMIT_MS, on_submitted, &race);
    }
    while (race.answers < 16) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    for (int i = 1; i < 16; i++) {
        assert_int_equal(race.job[i], race.job[0]);
    }
    assert_int_equal(race.new_ones, 1);
    daemon_client_expect(client, race.job[0], JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    remote_close(other);
}

static void the_same_key_for_something_else_is_a_conflict(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct job_spec other = daemon_client_spec(client, "int y;\n");

    (void)submit_ok(client, "test", "k", &spec);
    struct err err;
    assert_int_equal(submit_code(client, "k", &other, &err), ERR_CONFLICT);
    other = spec;
    other.max_seconds = 3;
    assert_int_equal(submit_code(client, "k", &other, &err), ERR_CONFLICT);
    (void)submit_ok(client, "another search", "k", &other);
}

static void a_missing_blob_is_named(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");

    spec.candidate = digest_of("never sent", 10);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&spec.candidate, hex);
    struct err err;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_NEED_BLOB);
    assert_non_null(strstr(err.text, hex));
    struct blob_have have;
    message_init(&blob_have_message, &have);
    have.digests = (struct digest[]){spec.problem, spec.candidate};
    have.digests_count = 2;
    struct blob_missing missing;
    assert_int_equal(daemon_client_call(client, OP_BLOB_HAVE, &blob_have_message, &have,
                                        &blob_missing_message, &missing, &err),
                     0);
    assert_int_equal(missing.digests_count, 1);
    assert_true(digest_equal(&missing.digests[0], &spec.candidate));
    message_clear(&blob_missing_message, &missing);
}

static void what_cannot_be_a_job_is_refused_with_its_reason(void **state)
{
    struct daemon_client *client = *state;
    const struct job_spec good = daemon_client_spec(client, "int x;\n");
    struct job_spec spec = good;

    spec.kind = 9;
    struct err err;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    spec.reference = (struct digest){0};
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    spec.max_seconds = -1;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    spec.anchor_log2 = (double)INFINITY;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    assert_int_equal(submit_code(client, "", &spec, &err), ERR_INVALID);
    spec.device_class = (char *)(uintptr_t) "gpu";
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "fake-cpu"));
    spec = good;
    spec.problem = daemon_client_put(client, "{\"name\": 1}", 11);
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "problem.json"));
    daemon_client_expect(client, submit_ok(client, "test", "k", &good).job, JOB_DONE, 0);
}

static void limits_are_busy_and_not_forever(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);
    uint64_t job[2];

    job[0] = submit_ok(client, "test", "a", &spec).job;
    spec.repeat = 1;
    job[1] = submit_ok(client, "test", "b", &spec).job;
    spec.repeat = 2;
    struct err err;
    assert_int_equal(submit_code(client, "c", &spec, &err), ERR_BUSY); // two of this search
    spec.repeat = 1;
    (void)submit_ok(client, "test", "b", &spec); // a known key is always answered
    spec.repeat = 2;
    (void)submit_ok(client, "other", "c", &spec);
    for (int i = 0; i < 3; i++) {
        (void)daemon_client_gate_wait(gate);
        daemon_client_gate_open(gate);
    }
    daemon_client_expect(client, job[0], JOB_DONE, 0);
    daemon_client_expect(client, job[1], JOB_DONE, 0);
    (void)submit_ok(client, "test", "d", &spec); // the search's place is free again
    spec.repeat = 3;
    assert_int_equal(submit_code(client, "e", &spec, &err), ERR_BUSY); // four jobs altogether
    daemon_client_ack(client, job[0]);
    spec.repeat = 2;
    (void)submit_ok(client, "test", "e", &spec);
    free(candidate);
    free(gate);
}

static void a_flood_of_refusals_does_not_fill_the_log(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    size_t refusals = 200, lines = 0;

    spec.kind = 9;
    struct err err;
    for (size_t i = 0; i < refusals; i++) {
        assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    }
    char *log = program_log(&client->program);
    for (const char *at = log; (at = strstr(at, "submit-refused")); at++) {
        lines++;
    }
    assert_in_range(lines, 1, refusals / 2);
    assert_non_null(strstr(log, "code=invalid"));
    free(log);
}

// --- caches

static void a_known_result_is_not_measured_again_unless_asked_for(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "//! log2 -0.25\n");

    daemon_client_expect(client, submit_ok(client, "test", "a", &spec).job, JOB_DONE,
                         VERDICT_SLOWER);
    spec.anchor_log2 = 0.1; // decides when to stop, not what is measured
    struct submitted reply = submit_ok(client, "another", "b", &spec);
    assert_true(reply.cached);
    assert_int_equal(reply.state, JOB_DONE);
    struct job_info info;
    daemon_client_wait(client, reply.job, &info);
    assert_true(info.result->cached);
    assert_float_equal(info.result->speedup->log2, -0.25, 1e-9);
    message_clear(&job_info_message, &info);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    spec.fresh = true;
    daemon_client_expect(client, submit_ok(client, "test", "c", &spec).job, JOB_DONE,
                         VERDICT_SLOWER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 2);
    spec.fresh = false;
    spec.repeat = 7;
    daemon_client_expect(client, submit_ok(client, "test", "d", &spec).job, JOB_DONE,
                         VERDICT_SLOWER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 3);
    assert_int_equal(daemon_client_runs(client, "compile", "//! log2 -0.25\n"), 1);
}

static void failures_are_known_too(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "//! verdict 8\n");

    daemon_client_expect(client, submit_ok(client, "test", "a", &spec).job, JOB_DONE,
                         VERDICT_TIMEOUT);
    assert_true(submit_ok(client, "test", "b", &spec).cached);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

static void equal_jobs_at_the_same_time_are_measured_once(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);
    uint64_t first = submit_ok(client, "test", "a", &spec).job;
    uint64_t second = submit_ok(client, "test", "b", &spec).job;

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

    daemon_client_expect(client, submit_ok(client, "test", "a", &spec).job, JOB_DONE,
                         VERDICT_FASTER);
    assert_false(
        submit_ok(client, "test", "b", &spec).cached); // and its control is the second bad one
    daemon_client_expect(client, submit_ok(client, "test", "b", &spec).job, JOB_DONE,
                         VERDICT_FASTER);
    struct status status;
    daemon_client_status(client, &status);
    assert_string_equal(status.devices[0].state, "quarantined");
    assert_non_null(strstr(status.devices[0].reason, "against itself"));
    message_clear(&status_message, &status);
}

// --- WAIT

static void unknown_jobs_are_told_at_once(void **state)
{
    struct daemon_client *client = *state;
    const uint64_t jobs[] = {12345, 12346};
    struct waited waited;

    daemon_client_wait_once(client, jobs, 2, 20000, &waited);
    assert_int_equal(waited.unknown_count, 2);
    assert_int_equal(waited.unknown[1], 12346);
    assert_int_equal(waited.jobs_count, 0);
    message_clear(&waited_message, &waited);
}

static void a_wait_ends_empty_when_its_time_is_over(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);

    (void)daemon_client_gate_wait(gate);
    struct waited waited;
    daemon_client_wait_once(client, &job, 1, 20, &waited);
    assert_int_equal(waited.jobs_count, 0);
    assert_int_equal(waited.unknown_count, 0);
    message_clear(&waited_message, &waited);
    daemon_client_wait_once(client, &job, 1, 0, &waited); // a question, no wait
    assert_int_equal(waited.jobs_count, 0);
    message_clear(&waited_message, &waited);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, 0);
    free(candidate);
    free(gate);
}

static void a_parked_wait_is_answered_when_any_of_its_jobs_ends(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t jobs[3];

    jobs[0] = daemon_client_accepted(client, "a", candidate);
    jobs[1] = daemon_client_accepted(client, "b", "int b;\n");
    jobs[2] = jobs[1]; // asked for twice
    (void)daemon_client_gate_wait(gate);
    struct long_poll poll[2] = {0};
    daemon_client_park(client, jobs, 3, 20000, &poll[0]);
    daemon_client_park(client, jobs, 1, 20000, &poll[1]);
    struct status status = {0};
    do {
        message_clear(&status_message, &status);
        daemon_client_status(client, &status);
    } while (status.waits < 2);
    message_clear(&status_message, &status);
    struct job_info info;
    daemon_client_cancel(client, jobs[1], &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_int_equal(info.cause, JOB_CAUSE_CLIENT);
    message_clear(&job_info_message, &info);
    while (poll[0].answers == 0) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    assert_int_equal(poll[0].first, jobs[1]);
    assert_int_equal(poll[1].answers, 0);
    daemon_client_gate_open(gate);
    while (poll[1].answers == 0) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    assert_int_equal(poll[1].first, jobs[0]);
    free(candidate);
    free(gate);
}

static void many_results_come_in_several_answers(void **state)
{
    struct daemon_client *client = *state;
    uint64_t jobs[100];

    for (int i = 0; i < 100; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        jobs[i] = daemon_client_accepted(client, key, "//! compile-error\n");
    }
    struct waited waited;
    size_t left = 100;
    while (left > 0) {
        daemon_client_wait_once(client, jobs, left, 20000, &waited);
        assert_in_range(waited.jobs_count, 1, 64);
        for (size_t i = 0; i < waited.jobs_count; i++) {
            for (size_t k = 0; k < left; k++) {
                if (jobs[k] == waited.jobs[i].job) {
                    jobs[k] = jobs[--left];
                    break;
                }
            }
        }
        message_clear(&waited_message, &waited);
    }
}

// --- ACK

static void an_acknowledged_result_is_gone_but_not_forgotten(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    uint64_t job = submit_ok(client, "test", "k", &spec).job;

    daemon_client_ack(client, job); // not finished (or just): only a finished one is forgotten
    struct submitted again = submit_ok(client, "test", "k", &spec);
    daemon_client_expect(client, again.job, JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, again.job, JOB_DONE,
                         VERDICT_FASTER); // until the ACK as often as one likes
    daemon_client_ack(client, again.job);
    daemon_client_ack(client, again.job); // twice is fine
    struct waited waited;
    daemon_client_wait_once(client, &again.job, 1, 20000, &waited);
    assert_int_equal(waited.unknown_count, 1);
    message_clear(&waited_message, &waited);
    again = submit_ok(client, "test", "k", &spec);
    assert_int_not_equal(again.job, job);
    assert_true(again.cached);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

// --- CANCEL

static void a_queued_job_is_cancelled_at_once(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t busy = daemon_client_accepted(client, "busy", candidate);

    (void)daemon_client_gate_wait(gate);
    uint64_t job = daemon_client_accepted(client, "k", "int waiting;\n");
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) { // with one, it waits for the compiler
        daemon_client_until(client, job, JOB_READY);
    }
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_non_null(info.reason);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, job, JOB_CANCELLED, 0);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, busy, JOB_DONE, 0);
    assert_int_equal(daemon_client_runs(client, "measure", "int waiting;\n"), 0);
    free(candidate);
    free(gate);
}

// Until a process is gone; its end is the event, seen by asking the kernel.
static void until_gone(pid_t pid)
{
    while (program_alive(pid)) {
        sched_yield();
    }
}

static void a_compiling_job_is_cancelled_and_its_compiler_killed(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_COMPILING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    until_gone(pid);
    daemon_client_expect(client, daemon_client_accepted(client, "l", "int x;\n"), JOB_DONE, 0);
    free(candidate);
    free(gate);
}

static void a_compilation_that_another_job_wants_goes_on(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    uint64_t other = daemon_client_accepted(client, "l", candidate);

    (void)daemon_client_gate_wait(gate);
    daemon_client_until(client, other, JOB_COMPILING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, other, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "compile", candidate), 1);
    free(candidate);
    free(gate);
}

static void a_running_job_is_cancelled_and_its_executor_killed(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_RUNNING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, daemon_client_accepted(client, "l", "int next;\n"), JOB_DONE,
                         VERDICT_FASTER);
    assert_false(program_alive(pid)); // before the next job had the device
    daemon_client_expect(client, job, JOB_CANCELLED, 0);
    free(candidate);
    free(gate);
}

static void a_finished_job_stays_as_it_is(void **state)
{
    struct daemon_client *client = *state;
    uint64_t job = daemon_client_accepted(client, "k", "int x;\n");

    daemon_client_expect(client, job, JOB_DONE, 0);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
}

static void a_search_is_cancelled_as_a_whole_and_others_are_not(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);

    for (uint64_t i = 0; i < 20; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        spec.repeat = i;
        (void)submit_ok(client, "doomed", key, &spec);
    }
    spec.candidate = daemon_client_put(client, "int x;\n", 7);
    uint64_t other = submit_ok(client, "other", "k", &spec).job;
    (void)daemon_client_gate_wait(gate);
    struct job_ids ids;
    message_init(&job_ids_message, &ids);
    ids.search = (char *)(uintptr_t) "doomed";
    struct job_infos infos;
    assert_int_equal(daemon_client_call(client, OP_CANCEL, &job_ids_message, &ids,
                                        &job_infos_message, &infos, NULL),
                     0);
    assert_int_equal(infos.jobs_count, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(infos.jobs[i].state, JOB_CANCELLED);
    }
    message_clear(&job_infos_message, &infos);
    daemon_client_expect(client, other, JOB_DONE, VERDICT_FASTER);
    free(candidate);
    free(gate);
}

// --- the rest

static void a_newcomer_overtakes_a_flood(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int flood;\n");

    for (uint64_t i = 0; i < 200; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        spec.repeat = i + 1;
        (void)submit_ok(client, "flood", key, &spec);
    }
    spec.candidate = daemon_client_put(client, "int one;\n", 9);
    uint64_t one = submit_ok(client, "one", "k", &spec).job;
    daemon_client_expect(client, one, JOB_DONE, VERDICT_FASTER);
    struct status status;
    daemon_client_status(client, &status);
    assert_true(status.states[JOB_QUEUED] + status.states[JOB_READY] > 20);
    message_clear(&status_message, &status);
}

static void status_tells_about_devices_and_jobs(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);

    (void)daemon_client_gate_wait(gate);
    daemon_client_until(client, job, JOB_RUNNING);
    struct status status;
    daemon_client_status(client, &status);
    assert_true(status.devices_count >= 1);
    assert_string_equal(status.devices[0].device_class, "fake-cpu");
    assert_string_equal(status.devices[0].state, "busy");
    assert_int_equal(status.devices[0].job, job);
    assert_int_equal(status.jobs_count, 1);
    assert_string_equal(status.jobs[0].device, "cpu0");
    assert_int_equal(status.states[JOB_RUNNING], 1);
    assert_string_equal(status.sandbox, "on");
    assert_string_equal(status.state_dir, client->state);
    assert_true(status.compile_slots >= 1);
    assert_true(status.requests > 1);
    message_clear(&status_message, &status);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, 0);
    daemon_client_status(client, &status);
    assert_int_equal(status.results_cached, 1);
    assert_int_equal(status.devices[0].jobs_done, 1);
    assert_non_null(status.devices[0].control);
    message_clear(&status_message, &status);
    free(candidate);
    free(gate);
}

// Where devices own every core, nothing is compiled while something is measured.
static void compilations_and_measurements_take_turns_when_they_share_cores(void **state)
{
    struct daemon_client *client = *state;
    char *devices = xasprintf("--devices=cpu:%ld", sysconf(_SC_NPROCESSORS_ONLN));

    client->option[0] = devices;
    assert_true(daemon_client_start(client));
    uint64_t job[8];
    for (int i = 0; i < 8; i++) {
        char candidate[32];

        (void)snprintf(candidate, sizeof(candidate), "int x%d;\n", i);
        job[i] = daemon_client_accepted(client, candidate, candidate);
    }
    for (int i = 0; i < 8; i++) {
        daemon_client_expect(client, job[i], JOB_DONE, VERDICT_FASTER);
    }
    struct bytes log = {0};
    assert_int_equal(file_read(&log, client->log, 1 << 20, NULL), 0);
    int compiling = 0;
    int measuring = 0;
    for (const char *line = (char *)log.data; *line; line = strchr(line, '\n') + 1) {
        compiling += strncmp(line, "compile ", 8) == 0;
        compiling -= strncmp(line, "compile-end ", 12) == 0;
        measuring += strncmp(line, "measure ", 8) == 0;
        measuring -= strncmp(line, "measure-end ", 12) == 0;
        assert_false(compiling > 0 && measuring > 0);
    }
    assert_int_equal(compiling + measuring, 0);
    bytes_clear(&log);
    free(devices);
}

static void an_operation_of_the_future_is_unsupported(void **state)
{
    struct daemon_client *client = *state;
    struct empty body;

    message_init(&empty_message, &body);
    struct empty reply;
    assert_int_equal(daemon_client_call(client, (enum op)31, &empty_message, &body, &empty_message,
                                        &reply, NULL),
                     ERR_UNSUPPORTED);
    assert_int_equal(daemon_client_call(client, OP_FORECAST, &empty_message, &body, &empty_message,
                                        &reply, NULL),
                     ERR_UNSUPPORTED);
}

static void hello_says_who_it_is(void **state)
{
    struct daemon_client *client = *state;
    struct hello_reply reply;
    struct err err = ERR_INIT;

    assert_int_equal(remote_hello_sync(client->remote, "kcastd", &reply, &err), 0);
    assert_string_equal(reply.program, "kcastd");
    assert_int_equal(reply.pid, client->program.pid);
    assert_true(reply.message_max >= (1U << 20));
    message_clear(&hello_reply_message, &reply);
    assert_int_not_equal(remote_hello_sync(client->remote, "kcast-worker", &reply, &err), 0);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_measured_job_gives_a_result),
        TEST(a_compile_job_gives_object_and_features_and_is_cached),
        TEST(a_candidate_that_does_not_compile_is_not_measured),
        TEST(a_reference_that_does_not_compile_is_the_problems_fault),
        TEST(the_same_submit_twice_is_one_job),
        TEST(sixteen_equal_submits_at_once_by_two_clients_are_one_job),
        TEST(the_same_key_for_something_else_is_a_conflict),
        TEST(a_missing_blob_is_named),
        TEST(what_cannot_be_a_job_is_refused_with_its_reason),
        TEST(a_flood_of_refusals_does_not_fill_the_log),
        cmocka_unit_test_setup_teardown(limits_are_busy_and_not_forever, set_up_small,
                                        daemon_client_tear_down),
        TEST(a_known_result_is_not_measured_again_unless_asked_for),
        TEST(failures_are_known_too),
        TEST(equal_jobs_at_the_same_time_are_measured_once),
        TEST(the_result_under_a_bad_control_is_not_cached),
        TEST(unknown_jobs_are_told_at_once),
        TEST(a_wait_ends_empty_when_its_time_is_over),
        TEST(a_parked_wait_is_answered_when_any_of_its_jobs_ends),
        TEST(many_results_come_in_several_answers),
        TEST(an_acknowledged_result_is_gone_but_not_forgotten),
        TEST(a_queued_job_is_cancelled_at_once),
        TEST(a_compiling_job_is_cancelled_and_its_compiler_killed),
        TEST(a_compilation_that_another_job_wants_goes_on),
        TEST(a_running_job_is_cancelled_and_its_executor_killed),
        TEST(a_finished_job_stays_as_it_is),
        TEST(a_search_is_cancelled_as_a_whole_and_others_are_not),
        TEST(a_newcomer_overtakes_a_flood),
        TEST(status_tells_about_devices_and_jobs),
        cmocka_unit_test_setup_teardown(
            compilations_and_measurements_take_turns_when_they_share_cores, daemon_client_set_up,
            daemon_client_tear_down),
        TEST(an_operation_of_the_future_is_unsupported),
        TEST(hello_says_who_it_is),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

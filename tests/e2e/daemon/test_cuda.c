// kcastd and GPUs, with an executor that only says it has some: which devices are offered, which
// problems go where, what kcast-exec is told, and which process answers.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state, const char *gpus, const char *devices)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = devices;
    client->option[1] = "--exec-grace=100ms";
    client->variable[0] = gpus;
    return daemon_client_start(client) ? 0 : -1;
}

static int set_up_one(void **state)
{
    return set_up(state, "KCAST_FAKE_GPUS=1", "--devices=cpu:1+cuda");
}

static int set_up_two(void **state)
{
    return set_up(state, "KCAST_FAKE_GPUS=2", "--devices=cuda:1+cpu:1");
}

static int set_up_none(void **state)
{
    return set_up(state, NULL, "--devices=auto");
}

static struct job_spec spec_of(struct daemon_client *client, const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.problem =
        daemon_client_put(client, daemon_client_cuda_problem, strlen(daemon_client_cuda_problem));
    return spec;
}

static uint64_t submit(struct daemon_client *client, const char *search, const char *key,
                       const struct job_spec *spec)
{
    struct submitted reply;
    struct err err = ERR_INIT;

    if (daemon_client_submit(client, search, daemon_client_key_of(key), spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply.job;
}

static void devices_of_both_kinds_are_shown(void **state)
{
    struct daemon_client *client = *state;
    struct status status;

    daemon_client_status(client, &status);
    assert_int_equal(status.devices_count, 2);
    assert_string_equal(status.devices[0].name, "cpu0");
    assert_string_equal(status.devices[0].language, "c");
    assert_string_equal(status.devices[1].name, "cuda0");
    assert_string_equal(status.devices[1].language, "cuda");
    assert_string_equal(status.devices[1].device_class, "Fake 1, sm_90");
    assert_string_equal(status.devices[1].toolchain, "fake-nvrtc 1.0");
    assert_int_equal(status.devices[1].facts_count, 1);
    message_clear(&status_message, &status);
}

static void a_gpu_can_be_picked(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = spec_of(client, "//! tell\n");
    struct job_info info;

    daemon_client_wait(client, submit(client, "test", "k", &spec), &info);
    assert_string_equal(info.result->device, "cuda1");
    assert_non_null(strstr(info.result->reason, "uuid=GPU-fake-1 "));
    message_clear(&job_info_message, &info);
}

// Each problem to the devices of its language, whatever is named first.
static void a_problem_goes_where_its_language_runs(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec cuda = spec_of(client, "//! tell\n");
    struct job_spec c = daemon_client_spec(client, "//! tell\n");
    struct job_info info;

    daemon_client_wait(client, submit(client, "test", "cuda", &cuda), &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_string_equal(info.result->device, "cuda0");
    assert_string_equal(info.result->device_class, "Fake 1, sm_90");
    assert_string_equal(info.result->trust, "sealed");
    assert_non_null(strstr(info.result->reason, "facts=1"));
    message_clear(&job_info_message, &info);
    daemon_client_wait(client, submit(client, "test", "c", &c), &info);
    assert_string_equal(info.result->device, "cpu0");
    assert_string_equal(info.result->trust, "c");
    message_clear(&job_info_message, &info);
    assert_int_equal(daemon_client_runs(client, "cuda-measure", NULL), 1);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    assert_int_equal(daemon_client_runs(client, "cuda-compile", NULL), 3);
    assert_int_equal(daemon_client_runs(client, "compile", NULL), 3);
}

static void what_runs_nowhere_is_refused(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = spec_of(client, "int x;\n");
    struct submitted reply;
    struct err err = ERR_INIT;

    assert_int_equal(daemon_client_submit(client, "test", "a", &spec, &reply, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "no device of this daemon runs cuda problems"));
    assert_non_null(strstr(err.text, "fake-cpu (c)"));
    err_clear(&err);
    spec.kind = JOB_COMPILE;
    assert_int_equal(daemon_client_submit(client, "test", "b", &spec, &reply, &err), ERR_NOT_FOUND);
    err_clear(&err);
    spec.device_class = (char *)"fake-cpu";
    assert_int_equal(daemon_client_submit(client, "test", "c", &spec, &reply, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "do not run cuda problems"));
}

// The job was accepted by a daemon that had a GPU.
static void a_job_whose_gpu_has_gone_is_buried(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = spec_of(client, candidate);
    uint64_t job = submit(client, "test", "k", &spec);

    (void)daemon_client_gate_wait(gate);
    daemon_client_until(client, job, JOB_RUNNING);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    client->option[0] = "--devices=cpu:1";
    assert_true(daemon_client_start(client));
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_non_null(strstr(info.reason, "no device of this daemon runs cuda problems"));
    message_clear(&job_info_message, &info);
    free(candidate);
    free(gate);
}

// "name=" and what follows it in the log of the fake compiler.
static char *told(const struct compiled *compiled, const char *name)
{
    const char *at = strstr(compiled->log, name);

    assert_non_null(at);
    at += strlen(name);
    return xstrndup(at, strcspn(at, " \n"));
}

static void expect_told(const struct compiled *compiled, const char *name, const char *value)
{
    char *is = told(compiled, name);

    assert_string_equal(is, value);
    free(is);
}

static void the_compiler_is_told_all_about_it(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = spec_of(client, "int x;\n");
    char *problem_len = xasprintf("%zu", strlen(daemon_client_cuda_problem));
    char *hidden, *again;

    spec.kind = JOB_COMPILE;
    struct job_info info;
    daemon_client_wait(client, submit(client, "test", "a", &spec), &info);
    expect_told(info.compiled, "language=", "cuda");
    expect_told(info.compiled, "target=", "sm_90");
    expect_told(info.compiled, "role=", "0");
    expect_told(info.compiled, "problem=", problem_len);
    expect_told(info.compiled, "facts=", "1");
    expect_told(info.compiled, "name=", "candidate.cu");
    hidden = told(info.compiled, "hidden=");
    message_clear(&job_info_message, &info);
    // The same for the same candidate, in this daemon and the next one; and measure hears it too.
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    assert_true(daemon_client_start(client));
    spec.fresh = true;
    daemon_client_wait(client, submit(client, "test", "b", &spec), &info);
    assert_int_equal(daemon_client_runs(client, "cuda-compile", "int x;\n"), 2);
    expect_told(info.compiled, "hidden=", hidden);
    message_clear(&job_info_message, &info);
    spec = spec_of(client, "//! tell\n");
    daemon_client_wait(client, submit(client, "test", "c", &spec), &info);
    again = told(info.result->compiled, "hidden=");
    assert_string_not_equal(again, hidden);
    assert_non_null(strstr(info.result->reason, again));
    message_clear(&job_info_message, &info);
    free(again);
    free(hidden);
    free(problem_len);
}

// As a candidate, the baseline is compiled once more: another role.
static void a_source_is_compiled_for_its_role(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = spec_of(client, "int x;\n");

    spec.baseline = spec.candidate;
    daemon_client_expect(client, submit(client, "test", "a", &spec), JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "cuda-compile", "int x;\n"), 2);
    spec.baseline = daemon_client_put(client, "//! compile-error\n", 18);
    struct job_info info;
    daemon_client_wait(client, submit(client, "test", "b", &spec), &info);
    assert_int_equal(info.result->verdict, VERDICT_COMPILE_ERROR);
    assert_non_null(strstr(info.result->reason, "baseline.cu of problem copy does not compile"));
    message_clear(&job_info_message, &info);
}

static void an_object_for_another_target_is_a_lie(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = spec_of(client, "//! compile-wrong-target\n");
    struct job_info info;

    daemon_client_wait(client, submit(client, "test", "a", &spec), &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_non_null(strstr(info.reason, "an object for sm_1 instead of sm_90"));
    message_clear(&job_info_message, &info);
}

// --- starting

static void expect_refusal(struct daemon_client *client, int code, const char *text)
{
    assert_false(daemon_client_start(client));
    assert_int_equal(program_wait(&client->program), code);
    char *log = program_log(&client->program);
    if (!strstr(log, text)) {
        fail_msg("%s", log);
    }
    free(log);
}

static void gpus_that_must_be_there_are_missed(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--devices=cuda";
    expect_refusal(client, EXIT_INVALID, "no GPU can be used here: libcuda.so.1 is not there");
    client->variable[0] = "KCAST_FAKE_GPUS=2,1";
    client->option[0] = "--devices=cuda:1";
    expect_refusal(client, EXIT_INVALID, "GPU 1 (Fake 1) cannot be used: it is too old");
    client->option[0] = "--devices=cuda:2";
    expect_refusal(client, EXIT_INVALID, "no GPU 2 here");
    client->variable[0] = "KCAST_FAKE_GPUS=garbage";
    client->option[0] = "--devices=cuda";
    expect_refusal(client, EXIT_PROTOCOL, "kcast-exec cuda-probe");
}

// Kernels on it can read the executor's memory.
static void a_gpu_that_reads_memory_of_processes_takes_an_option(void **state)
{
    struct daemon_client *client = *state;
    struct status status;

    client->variable[0] = "KCAST_FAKE_GPUS=1,0,1";
    client->option[0] = "--devices=cuda";
    expect_refusal(client, EXIT_INVALID, "allow it with --pageable-gpus");
    client->option[1] = "--pageable-gpus";
    assert_true(daemon_client_start(client));
    daemon_client_status(client, &status);
    assert_int_equal(status.devices_count, 1);
    assert_string_equal(status.devices[0].name, "cuda0");
    message_clear(&status_message, &status);
}

static void gpus_that_may_be_there_are_not_missed(void **state)
{
    static const char *const gpus[] = {NULL, "KCAST_FAKE_GPUS=garbage", "KCAST_FAKE_GPUS=1,1"};
    struct daemon_client *client = *state;

    for (size_t i = 0; i < ARRAY_LEN(gpus); i++) {
        client->variable[0] = gpus[i];
        client->option[0] = "--devices=auto";
        assert_true(daemon_client_start(client));
        char *log = program_log(&client->program);
        assert_non_null(strstr(log, "no-gpu reason="));
        free(log);
        daemon_client_disconnect(client);
        assert_int_equal(program_stop(&client->program), 0);
    }
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(devices_of_both_kinds_are_shown, set_up_one),
        TEST(a_gpu_can_be_picked, set_up_two),
        TEST(a_problem_goes_where_its_language_runs, set_up_one),
        TEST(what_runs_nowhere_is_refused, set_up_none),
        TEST(a_job_whose_gpu_has_gone_is_buried, set_up_one),
        TEST(the_compiler_is_told_all_about_it, set_up_one),
        TEST(a_source_is_compiled_for_its_role, set_up_one),
        TEST(an_object_for_another_target_is_a_lie, set_up_one),
        TEST(gpus_that_must_be_there_are_missed, daemon_client_set_up),
        TEST(gpus_that_may_be_there_are_not_missed, daemon_client_set_up),
        TEST(a_gpu_that_reads_memory_of_processes_takes_an_option, daemon_client_set_up),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// One of two devices loses every job it gets. It is blamed, not the jobs: they are measured on the
// other one, and failing fast attracts no work. Or it is removed while it measures.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The fake executor's GPU 0 is the first one that is asked, and bad.
static int set_up(void **state)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = "--devices=cuda";
    client->option[1] = "--exec-grace=100ms";
    client->variable[0] = "KCAST_FAKE_GPUS=2";
    client->variable[1] = "KCAST_FAKE_BAD=GPU-fake-0";
    return daemon_client_start(client) ? 0 : -1;
}

static uint64_t submit(struct daemon_client *client, const char *key, const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.problem =
        daemon_client_put(client, daemon_client_cuda_problem, strlen(daemon_client_cuda_problem));
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_submit(client, "test", daemon_client_key_of(key), &spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply.job;
}

// The job is measured on the good GPU, after so many losses.
static void expect_elsewhere(struct daemon_client *client, uint64_t job, uint64_t losses)
{
    struct job_info info;

    daemon_client_wait(client, job, &info);
    if (info.state != JOB_DONE) {
        fail_msg("job %llu is %s: %s", (unsigned long long)job, job_state_name(info.state),
                 info.reason ? info.reason : "no reason");
    }
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_string_equal(info.result->device, "cuda1");
    assert_int_equal(info.attempt, losses);
    message_clear(&job_info_message, &info);
}

// Until the first GPU is in this state; the second one serves all the time.
static void until_first_is(struct daemon_client *client, const char *state)
{
    struct status status;
    bool is = false;

    while (!is) { // until the runner's limit
        struct waited waited;

        daemon_client_status(client, &status);
        assert_string_equal(status.devices[0].name, "cuda0");
        is = strcmp(status.devices[0].state, state) == 0;
        assert_true(strcmp(status.devices[1].state, "busy") == 0 ||
                    strcmp(status.devices[1].state, "ready") == 0);
        message_clear(&status_message, &status);
        uint64_t none = 0;
        daemon_client_wait_once(client, &none, 0, 2, &waited);
        message_clear(&waited_message, &waited);
    }
}

// While the good GPU is held the bad one is asked again and again: three different jobs are enough.
static void the_device_is_blamed_and_no_job_is_lost(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);
    uint64_t holds = submit(client, "holds", source);

    (void)daemon_client_gate_wait(gate); // the good one has it, after the bad one
    uint64_t lost[2];
    lost[0] = submit(client, "a", "int a;\n");
    lost[1] = submit(client, "b", "int b;\n");
    until_first_is(client, "quarantined");
    uint64_t late = submit(client, "c", "int c;\n");
    daemon_client_until(client, late, JOB_READY);
    daemon_client_until(client, lost[0], JOB_READY);
    daemon_client_gate_open(gate);
    expect_elsewhere(client, holds, 1);
    expect_elsewhere(client, lost[0], 1);
    expect_elsewhere(client, lost[1], 1);
    expect_elsewhere(client, late, 0);
    assert_int_equal(daemon_client_runs(client, "cuda-measure", NULL), 4 + 3);
    free(source);
    free(gate);
}

// With nothing to do the bad one would always be the one that was held least.
static void failing_fast_attracts_no_work(void **state)
{
    struct daemon_client *client = *state;

    expect_elsewhere(client, submit(client, "first", "int first;\n"), 1);
    for (int i = 0; i < 8; i++) {
        char source[32];

        (void)snprintf(source, sizeof(source), "int x%d;\n", i);
        expect_elsewhere(client, submit(client, source, source), 0);
    }
    assert_int_equal(daemon_client_runs(client, "cuda-measure", NULL), 1 + 1 + 8);
}

static void write_nvml(const char *variable, const char *text)
{
    struct err err = ERR_INIT;

    assert_int_equal(file_replace(strchr(variable, '=') + 1, text, strlen(text), false, &err), 0);
}

// It is gone for NVML at once, for the job when its process ends; both go on elsewhere, and it
// comes back through a probe.
static void a_gpu_is_removed_while_it_measures(void **state)
{
    struct daemon_client *client = *state;
    char *folder = gpu_fake_folder();
    char *libraries = xasprintf("LD_LIBRARY_PATH=%s", folder);
    char *nvml = xasprintf("KCAST_FAKE_NVML=%s/nvml", client->program.dir);
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);

    client->option[0] = "--devices=cuda";
    client->option[1] = "--exec-grace=100ms";
    client->variable[0] = "KCAST_FAKE_GPUS=2";
    client->variable[1] = nvml;
    client->variable[2] = libraries;
    write_nvml(nvml, "count=2\n");
    assert_true(daemon_client_start(client));
    uint64_t job = submit(client, "on it", source);
    pid_t pid = daemon_client_gate_wait(gate);
    write_nvml(nvml, "count=2\nGPU0.lost=1\n");
    until_first_is(client, "lost");
    daemon_client_until(client, job, JOB_RUNNING); // as long as its process lives
    expect_elsewhere(client, submit(client, "other", "int other;\n"), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)daemon_client_gate_wait(gate); // on the other one
    write_nvml(nvml, "count=2\n");
    until_first_is(client, "ready");
    daemon_client_gate_open(gate);
    expect_elsewhere(client, job, 1);
    free(source);
    free(gate);
    free(nvml);
    free(libraries);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_device_is_blamed_and_no_job_is_lost, set_up,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(failing_fast_attracts_no_work, set_up,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(a_gpu_is_removed_while_it_measures, daemon_client_set_up,
                                        daemon_client_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

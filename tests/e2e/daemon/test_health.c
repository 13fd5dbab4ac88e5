// kcastd, the real kcast-exec, a GPU and an NVML that are not there (tests/support/fake_gpu,
// fake_nvml): what NVML reads decides whether a GPU takes jobs, and everybody can see why.
#include "common/clock.h"
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/gpu.h"
#include "tests/support/until.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define UNTIL_NS (110 * NS_PER_S)
#define ECC_BEFORE "GPU0.ecc=3\n" // what its memory has had before the daemon starts

struct fixture {
    struct daemon_client *client;
    char *nvml, *libraries; // "NAME=value"
    bool no_compiler;       // and so no GPU that could be used
};

static const char *state_path(const struct fixture *fixture)
{
    return strchr(fixture->nvml, '=') + 1;
}

static void write_state(const struct fixture *fixture, const char *text)
{
    struct err err = ERR_INIT;

    assert_int_equal(file_replace(state_path(fixture), text, strlen(text), false, &err), 0);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    char *folder = gpu_fake_folder();
    void *client;

    (void)daemon_client_set_up(&client);
    fixture->client = client;
    fixture->nvml = malloc(4200);
    fixture->libraries = malloc(4200);
    snprintf(fixture->nvml, 4200, "KCAST_FAKE_NVML=%s/nvml", fixture->client->program.dir);
    snprintf(fixture->libraries, 4200, "LD_LIBRARY_PATH=%s", folder);
    free(folder);
    write_state(fixture, "count=1\n" ECC_BEFORE);
    fixture->client->real_exec = true;
    fixture->client->option[0] = "--devices=cuda";
    fixture->client->variable[0] = fixture->nvml;
    fixture->client->variable[1] = fixture->libraries;
    *state = fixture;
    if (!daemon_client_start(fixture->client)) {
        char *log = program_log(&fixture->client->program);

        fixture->no_compiler = strstr(log, "no CUDA compiler");
        free(log);
        return fixture->no_compiler ? 0 : -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *client = fixture->client;

    unlink(state_path(fixture));
    (void)daemon_client_tear_down(&client);
    free(fixture->nvml);
    free(fixture->libraries);
    free(fixture);
    return 0;
}

static void need_compiler(const struct fixture *fixture)
{
    if (fixture->no_compiler) {
        printf("skipped because there is no CUDA compiler\n");
        skip();
    }
}

// Until the GPU is in this state; its reason must have this in it ("" for none).
static void expect(struct daemon_client *client, const char *state, const char *why)
{
    uint64_t started_ns = clock_now_ns(&clock_system);
    struct until until = {0};
    bool found = false;

    while (!found) {
        struct status status;
        char is[32], because[256];

        daemon_client_status(client, &status);
        assert_int_equal(status.devices_count, 1);
        const char *reason = status.devices[0].reason;
        snprintf(is, sizeof(is), "%s", status.devices[0].state);
        snprintf(because, sizeof(because), "%s", reason ? reason : "");
        message_clear(&status_message, &status);
        found = strcmp(is, state) == 0 &&
                (why[0] == '\0' ? because[0] == '\0' : !!strstr(because, why));
        if (!found && clock_now_ns(&clock_system) - started_ns > UNTIL_NS) {
            fail_msg("cuda0 stays %s (%s) and is not %s", is, because[0] ? because : "no reason",
                     state);
        }
        if (!found) {
            until_look_again(&until, "its state", __FILE__, __LINE__);
        }
    }
}

static double reading(struct daemon_client *client, const char *name)
{
    struct status status;

    daemon_client_status(client, &status);
    double value = NAN;
    for (size_t i = 0; i < status.devices[0].readings_count; i++) {
        if (strcmp(status.devices[0].readings[i].name, name) == 0) {
            value = status.devices[0].readings[i].value;
        }
    }
    message_clear(&status_message, &status);
    return value;
}

static void heat_keeps_jobs_away_until_it_has_gone(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    expect(fixture->client, "ready", "");
    write_state(fixture, "GPU0.throttle=0x40\nGPU0.temperature=95\n");
    expect(fixture->client, "suspect", "too hot (95 degrees)");
    assert_float_equal(reading(fixture->client, "temperature_c"), 95, 0);
    assert_true(reading(fixture->client, "read_seconds_ago") >= 0);
    write_state(fixture, "GPU0.temperature=50\n");
    expect(fixture->client, "ready", "");
}

// As the daemon says when it has read for the first time.
static bool pids_mean_something(struct daemon_client *client)
{
    bool unknown = false, known = false;

    while (!unknown && !known) {
        char *log = program_log(&client->program);

        unknown = strstr(log, "gpu-health state=on processes=unknown");
        known = strstr(log, "gpu-health state=on processes=known");
        free(log);
    }
    return known;
}

static void a_stranger_keeps_jobs_away(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    char text[64];
    // This test itself, which the daemon did not start.
    snprintf(text, sizeof(text), "GPU0.process=%d:1024\n", getpid());
    write_state(fixture, text);
    snprintf(text, sizeof(text), "process %d, which is not ours", getpid());
    if (!pids_mean_something(fixture->client)) {
        skip(); // in a container the numbers mean nothing, and the daemon says so
    }
    expect(fixture->client, "suspect", text);
    write_state(fixture, "count=1\n");
    expect(fixture->client, "ready", "");
}

static void memory_errors_put_it_out_of_service(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    UNTIL(reading(fixture->client, "ecc_uncorrected") == 3);
    expect(fixture->client, "ready", ""); // only what is new counts
    write_state(fixture, "GPU0.ecc=5\n");
    expect(fixture->client, "quarantined", "5 uncorrected errors, 2 of them new");
}

static void an_event_puts_it_out_of_service(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    UNTIL(!isnan(reading(fixture->client, "temperature_c")));
    write_state(fixture, "GPU0.xid=31,95\n");
    expect(fixture->client, "quarantined", "Xid 95 (uncontained ECC error)");
}

static void a_lost_gpu_comes_back_when_it_works(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    UNTIL(!isnan(reading(fixture->client, "temperature_c")));
    write_state(fixture, "GPU0.lost=1\n");
    expect(fixture->client, "lost", "the driver has lost it");
    write_state(fixture, "count=1\n");
    expect(fixture->client, "ready", ""); // by way of a probe
}

// The driver is unloaded and loaded again: NVML has to be opened anew.
static void a_gpu_outlives_its_driver(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    UNTIL(!isnan(reading(fixture->client, "temperature_c")));
    write_state(fixture, "gone=1\n");
    expect(fixture->client, "lost", "the driver is not loaded");
    write_state(fixture, "GPU0.temperature=33\n");
    expect(fixture->client, "ready", ""); // by way of a probe
    UNTIL(reading(fixture->client, "temperature_c") == 33);
    // Events come as before.
    write_state(fixture, "GPU0.xid=95\n");
    expect(fixture->client, "quarantined", "Xid 95");
}

static void call_drain(struct daemon_client *client, char *device, bool undrain, int expected)
{
    struct drain request = {
        .devices = &device, .devices_count = 1, .undrain = undrain, .reason = "new fans"};
    struct empty reply;
    struct err err = ERR_INIT;

    assert_int_equal(daemon_client_call(client, OP_DRAIN, &drain_message, &request, &empty_message,
                                        &reply, &err),
                     expected);
}

static void an_operator_drains_it(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    call_drain(fixture->client, "cuda7", false, ERR_NOT_FOUND);
    call_drain(fixture->client, "cuda0", false, 0);
    expect(fixture->client, "draining", "new fans");
    call_drain(fixture->client, "cuda0", true, 0);
    expect(fixture->client, "ready", "");
}

static struct probed call_probe(struct daemon_client *client)
{
    struct probe_request request = {.device = "cuda0"};
    struct probed probed;
    struct err err = ERR_INIT;

    if (daemon_client_call(client, OP_PROBE, &probe_request_message, &request, &probed_message,
                           &probed, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return probed;
}

static void an_operator_has_it_probed(void **state)
{
    struct fixture *fixture = *state;
    char *device = "cuda0";
    struct quarantine request = {.devices = &device, .devices_count = 1, .reason = "wrong results"};

    need_compiler(fixture);
    expect(fixture->client, "ready", "");
    struct empty reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_call(fixture->client, OP_QUARANTINE, &quarantine_message,
                                        &request, &empty_message, &reply, &err),
                     0);
    expect(fixture->client, "quarantined", "wrong results");
    struct probed probed = call_probe(fixture->client);
    assert_true(probed.passed);
    assert_string_equal(probed.state, "ready");
    assert_true(probed.facts_count > 0); // what NVML reads
    message_clear(&probed_message, &probed);
    expect(fixture->client, "ready", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(heat_keeps_jobs_away_until_it_has_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stranger_keeps_jobs_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_errors_put_it_out_of_service, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_event_puts_it_out_of_service, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_gpu_comes_back_when_it_works, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_gpu_outlives_its_driver, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_operator_drains_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_operator_has_it_probed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

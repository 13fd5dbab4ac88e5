// kcastd --http: what Prometheus, a supervisor and a script read, over a real socket, while jobs
// run, devices are drained and callers misbehave.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER_MAX ((size_t)1 << 20)

struct fixture {
    struct daemon_client *client;
    char *http; // url
    char *answer;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    void *client;

    (void)daemon_client_set_up(&client);
    fixture->client = client;
    fixture->client->option[0] = "--http=127.0.0.1:0";
    fixture->answer = malloc(ANSWER_MAX);
    *state = fixture;
    if (!daemon_client_start(fixture->client)) {
        return -1;
    }
    struct status status;
    daemon_client_status(fixture->client, &status);
    fixture->http = xstrdup(status.http);
    message_clear(&status_message, &status);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *client = fixture->client;

    (void)daemon_client_tear_down(&client);
    free(fixture->http);
    free(fixture->answer);
    free(fixture);
    return 0;
}

static int dial(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)strtoul(strrchr(fixture->http, ':') + 1, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

// The body of the answer, which must have this status.
static const char *get(struct fixture *fixture, const char *path, unsigned status)
{
    char request[512], want[32];
    int fd = dial(fixture);

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    size_t len = 0;
    ssize_t got;
    while ((got = recv(fd, fixture->answer + len, ANSWER_MAX - 1 - len, 0)) > 0) {
        len += (size_t)got;
    }
    close(fd);
    fixture->answer[len] = '\0';
    snprintf(want, sizeof(want), "HTTP/1.1 %u ", status);
    if (strncmp(fixture->answer, want, strlen(want)) != 0) {
        fail_msg("GET %s: %s", path, fixture->answer);
    }
    char *body = strstr(fixture->answer, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

// A sample of /metrics by its name with labels; fails when it is not there.
static double metric(struct fixture *fixture, const char *name)
{
    const char *text = get(fixture, "/metrics", 200);
    char *line = xasprintf("\n%s ", name);
    const char *at = strstr(text, line);

    if (!at) {
        fail_msg("no %s in:\n%s", name, text);
    }
    double value = strtod(at + strlen(line), NULL);
    free(line);
    return value;
}

static void drain(struct daemon_client *client, const char *device, bool undrain)
{
    char *name[] = {(char *)(uintptr_t)device};
    struct drain request = {
        .devices = name, .devices_count = 1, .undrain = undrain, .reason = "new fan"};
    struct empty reply;
    struct err err = ERR_INIT;

    assert_int_equal(daemon_client_call(client, OP_DRAIN, &drain_message, &request, &empty_message,
                                        &reply, &err),
                     0);
}

static void a_measurement_is_counted(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(metric(fixture, "kcastd_verdicts_total{verdict=\"faster\"}"), 0);
    assert_int_equal(metric(fixture, "kcastd_well"), 1);
    uint64_t job = daemon_client_accepted(fixture->client, "one", "//! log2 1\n");
    daemon_client_expect(fixture->client, job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(metric(fixture, "kcastd_verdicts_total{verdict=\"faster\"}"), 1);
    assert_int_equal(metric(fixture, "kcastd_jobs_ended_total{state=\"done\"}"), 1);
    assert_int_equal(metric(fixture, "kcastd_jobs{state=\"done\"}"), 1);
    assert_int_equal(metric(fixture, "kcastd_device_runs_total{device=\"cpu0\"}"), 1);
    assert_int_equal(metric(fixture, "kcastd_requests_total{op=\"submit\"}"), 1);
    assert_true(metric(fixture, "kcastd_device_seconds_total") > 0);
    assert_true(metric(fixture, "kcastd_compile_seconds_total") > 0);
    assert_true(metric(fixture, "kcastd_ledger_bytes") > 4096);
    assert_true(metric(fixture, "kcastd_resident_bytes") > 4096);
    // The same again comes from the cache, and is no measurement.
    job = daemon_client_accepted(fixture->client, "two", "//! log2 1\n");
    daemon_client_expect(fixture->client, job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(metric(fixture, "kcastd_verdicts_total{verdict=\"faster\"}"), 1);
    assert_int_equal(metric(fixture, "kcastd_jobs_cached_total"), 1);
}

static void searches_are_bounded_and_escaped(void **state)
{
    struct fixture *fixture = *state;
    struct job_spec spec = daemon_client_spec(fixture->client, "//! log2 1\n");
    char name[64];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "a\"b\\c %d", i);
        struct submitted reply;
        struct err err = ERR_INIT;
        assert_int_equal(daemon_client_submit(fixture->client, name, "one", &spec, &reply, &err),
                         0);
        daemon_client_expect(fixture->client, reply.job, JOB_DONE, 0);
        message_clear(&submitted_message, &reply);
    }
    const char *at = get(fixture, "/metrics", 200);
    size_t series = 0;
    for (; (at = strstr(at, "\nkcastd_search_device_seconds_total{")); at++) {
        series++;
    }
    assert_true(series > 0 && series <= 65);
    assert_non_null(strstr(get(fixture, "/metrics", 200),
                           "kcastd_search_device_seconds_total"
                           "{tenant=\"local\",search=\"a\\\"b\\\\c 0\"}"));
}

static void failures_are_counted_by_code(void **state)
{
    struct fixture *fixture = *state;
    char *name[] = {"cpu99"};
    struct drain request = {.devices = name, .devices_count = 1};
    struct empty reply;
    struct err err = ERR_INIT;

    assert_int_equal(daemon_client_call(fixture->client, OP_DRAIN, &drain_message, &request,
                                        &empty_message, &reply, &err),
                     ERR_NOT_FOUND);
    assert_int_equal(metric(fixture, "kcastd_request_failures_total{code=\"not-found\"}"), 1);
}

static void health_follows_the_devices(void **state)
{
    struct fixture *fixture = *state;

    assert_string_equal(get(fixture, "/healthz", 200), "ok\n");
    drain(fixture->client, "cpu0", false);
    assert_non_null(strstr(get(fixture, "/healthz", 503), "cpu0 is draining: new fan"));
    assert_int_equal(metric(fixture, "kcastd_well"), 0);
    struct status status;
    daemon_client_status(fixture->client, &status);
    assert_non_null(strstr(status.illness, "no device takes jobs"));
    message_clear(&status_message, &status);
    drain(fixture->client, "cpu0", true);
    assert_string_equal(get(fixture, "/healthz", 200), "ok\n");
}

static void status_is_json(void **state)
{
    struct fixture *fixture = *state;
    json_error_t error;
    json_t *root = json_loads(get(fixture, "/status.json", 200), 0, &error);
    const json_t *device = json_array_get(json_object_get(root, "devices"), 0);

    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(device, "name")), "cpu0");
    assert_string_equal(json_string_value(json_object_get(device, "state")), "ready");
    json_decref(root);
    assert_non_null(strstr(get(fixture, "/", 200), "/metrics"));
    (void)get(fixture, "/nothing", 404);
}

// Every metric is explained to administrators, and none that is not there.
static void the_manual_has_every_metric(void **state)
{
    struct fixture *fixture = *state;
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/docs/operations.md", root ? root : ".");
    struct bytes manual = {0};
    struct err err = ERR_INIT;
    const char *at = get(fixture, "/metrics", 200);

    assert_int_equal(file_read(&manual, path, (size_t)1 << 20, &err), 0);
    char *text = xstrndup((const char *)manual.data, manual.len);
    size_t count = 0;
    for (; (at = strstr(at, "# TYPE ")); at++, count++) {
        char name[64];

        assert_int_equal(sscanf(at, "# TYPE %63s ", name), 1);
        if (!strstr(text, name)) {
            fail_msg("docs/operations.md does not have %s", name);
        }
    }
    assert_true(count > 20);
    free(text);
    bytes_clear(&manual);
    free(path);
}

static void misbehaving_callers_do_not_hinder_others(void **state)
{
    struct fixture *fixture = *state;
    int silent[80];

    for (size_t i = 0; i < 80; i++) {
        silent[i] = dial(fixture);
    }
    uint64_t job = daemon_client_accepted(fixture->client, "one", "//! log2 1\n");
    daemon_client_expect(fixture->client, job, JOB_DONE, VERDICT_FASTER);
    for (size_t i = 0; i < 80; i++) {
        (void)send(silent[i], "\x16\x03\x01\r\n\r\n", 7, MSG_NOSIGNAL);
        close(silent[i]);
    }
}

static void an_open_address_is_refused(void **state)
{
    (void)state;
    void *made;
    (void)daemon_client_set_up(&made);
    struct daemon_client *client = made;
    client->option[0] = "--http=0.0.0.0:0";
    assert_false(daemon_client_start(client));
    char *log = program_log(&client->program);
    assert_non_null(strstr(log, "--http: 0.0.0.0:0 is not on loopback"));
    free(log);
    (void)daemon_client_tear_down(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_measurement_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(searches_are_bounded_and_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_are_counted_by_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(health_follows_the_devices, set_up, tear_down),
        cmocka_unit_test_setup_teardown(status_is_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_manual_has_every_metric, set_up, tear_down),
        cmocka_unit_test_setup_teardown(misbehaving_callers_do_not_hinder_others, set_up,
                                        tear_down),
        cmocka_unit_test(an_open_address_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What is served over HTTP: where, in which form, and when it says that all is not well.
#include "daemon/devices/device.h"
#include "daemon/monitor.h"
#include "tests/daemon/served_workshop.h"
#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct workshop *w;
    struct monitor *monitor;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    (void)signal(SIGPIPE, SIG_IGN);
    f->w = served_open(1);
    assert_int_equal(monitor_create(&f->monitor, &f->w->loop, "127.0.0.1:0", &f->w->parts, NULL),
                     0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    monitor_close(f->monitor);
    served_close(f->w);
    free(f);
    return 0;
}

// The whole answer to a GET, malloc'd. *ret_body is where its body begins.
static char *get(struct fixture *f, const char *path, const char **ret_body)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    struct strbuf answer = STRBUF_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned short port;

    assert_int_equal(sscanf(monitor_url(f->monitor), "http://127.0.0.1:%hu", &port), 1);
    address.sin_port = htons(port);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    char *request = xasprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%hu\r\n\r\n", path, port);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    free(request);
    for (;;) {
        char piece[4096];
        ssize_t len = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

        if (len == 0) {
            break;
        }
        if (len > 0) {
            strbuf_add(&answer, piece, (size_t)len);
        } else {
            (void)uv_run(&f->w->loop, UV_RUN_NOWAIT);
        }
    }
    close(fd);
    char *text = xstrdup(strbuf_text(&answer));
    strbuf_release(&answer);
    const char *body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    *ret_body = body + 4;
    return text;
}

static unsigned status_of(const char *answer)
{
    unsigned status;

    assert_int_equal(sscanf(answer, "HTTP/1.%*u %u", &status), 1);
    return status;
}

// Asks for /healthz and compares status and a part of the body.
static void assert_health(struct fixture *f, unsigned status, const char *says)
{
    const char *body;
    char *answer = get(f, "/healthz", &body);

    assert_int_equal(status_of(answer), status);
    if (!strstr(body, says)) {
        fail_msg("\"%s\" does not say \"%s\"", body, says);
    }
    free(answer);
}

static void health_follows_the_devices_and_the_end(void **state)
{
    struct fixture *f = *state;
    struct device *device = &f->w->devices.device[0];

    assert_health(f, 200, "ok\n");
    device_drain(device, "its fan is changed");
    assert_health(f, 503, "its fan is changed");
    device_undrain(device);
    assert_health(f, 200, "ok\n");
    monitor_stopping(f->monitor);
    assert_health(f, 503, "stopping\n");
    monitor_stopping(NULL);
}

static void metrics_are_of_the_type_that_prometheus_expects(void **state)
{
    struct fixture *f = *state;
    const char *body;
    char *answer = get(f, "/metrics", &body);

    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "text/plain; version=0.0.4; charset=utf-8"));
    assert_int_equal(strncmp(body, "# HELP kcastd_", 14), 0);
    free(answer);
}

static void the_status_is_json_and_shows_every_tenant(void **state)
{
    struct fixture *f = *state;
    const char *body;

    counters_search(&f->w->counters, "somebody", "quo\"te")->measured = 3;
    char *answer = get(f, "/status.json", &body);
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "application/json"));
    json_t *json = json_loads(body, 0, NULL);
    assert_non_null(json);
    const json_t *search = json_array_get(json_object_get(json, "searches"), 0);
    assert_string_equal(json_string_value(json_object_get(search, "name")), "quo\"te");
    assert_string_equal(json_string_value(json_object_get(search, "tenant")), "somebody");
    assert_int_equal(json_array_size(json_object_get(json, "devices")), 1);
    json_decref(json);
    free(answer);
}

static void the_front_page_lists_the_others_and_nothing_else_is_there(void **state)
{
    static const char *const missing[] = {"/metric", "/metrics/", "/status", "//", "/../healthz"};
    struct fixture *f = *state;
    const char *body;
    char *answer = get(f, "/", &body);

    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(body, "/metrics /healthz /status.json"));
    free(answer);
    for (size_t i = 0; i < ARRAY_LEN(missing); i++) {
        answer = get(f, missing[i], &body);
        assert_int_equal(status_of(answer), 404);
        free(answer);
    }
}

static void an_address_that_is_refused_names_the_option(void **state)
{
    static const struct {
        const char *address;
        enum err_code code;
    } cases[] = {{"0.0.0.0:0", ERR_DENIED}, {"127.0.0.1", ERR_INVALID}, {"", ERR_INVALID}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct monitor *monitor = NULL;
        struct err err = ERR_INIT;

        assert_int_equal(
            monitor_create(&monitor, &f->w->loop, cases[i].address, &f->w->parts, &err),
            cases[i].code);
        assert_null(monitor);
        assert_non_null(strstr(err.text, "--http"));
    }
    struct monitor *second = NULL;
    struct err err = ERR_INIT;
    const char *taken = monitor_url(f->monitor) + strlen("http://");
    assert_int_equal(monitor_create(&second, &f->w->loop, taken, &f->w->parts, &err), ERR_BUSY);
    assert_null(second);
    monitor_close(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(health_follows_the_devices_and_the_end),
        TEST(metrics_are_of_the_type_that_prometheus_expects),
        TEST(the_status_is_json_and_shows_every_tenant),
        TEST(the_front_page_lists_the_others_and_nothing_else_is_there),
        TEST(an_address_that_is_refused_names_the_option),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

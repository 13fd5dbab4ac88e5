// HTTP/2 with a foreign server: nghttp2's proxy, with TLS and ALPN, in front of
// tests/support/endpoint_stub. The protocol and the number of connections are read from the proxy's
// log.
#include "common/mem.h"
#include "tests/support/endpoint_stub.h"
#include "tests/support/program.h"
#include "tests/support/tls_stub.h"
#include "tests/support/until.h"
#include "worker/endpoint/http.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PROXY "/usr/sbin/nghttpx"
#define AT_ONCE 40
#define PORT_TRIES 5
#define PATIENT_MS 60000 // a deadline that no test reaches
#define SHORT_MS 300     // a deadline that is to be reached

struct rig {
    uv_loop_t loop;
    struct stub *stub;
    struct program proxy;
    struct http *http;
    char *url; // the proxy's
    unsigned open;
};

struct end {
    struct rig *rig;
    bool done;
    struct http_reply reply;
};

// What the proxy has served, by its log.
struct served {
    size_t requests, connections;
    bool all_http2, none_http2;
};

// Answers never, later or at once, by the path of the request.
static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    (void)owner;
    reply->status = 200;
    reply->body = "{}";
    if (strstr(request->head, "/v1/silent")) {
        reply->silent = true;
    } else if (strstr(request->head, "/v1/limited")) {
        reply->status = 429;
        reply->headers = "Retry-After: 7\r\nX-RateLimit-Remaining-Tokens: 0\r\n";
    }
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return ntohs(address.sin_port);
}

// Another process may take the port before the proxy does. The proxy then ends, and another port is
// tried.
static void start_proxy(struct rig *rig, const char *protocols, const char *key, const char *cert)
{
    const char *stub = strrchr(stub_url(rig->stub), ':') + 1;
    char *backend = xasprintf("--backend=127.0.0.1,%.*s", (int)strcspn(stub, "/"), stub);
    char *list = xasprintf("--npn-list=%s", protocols);
    bool ready = false;

    for (int i = 0; i < PORT_TRIES && !ready; i++) {
        unsigned port = free_port();
        char *front = xasprintf("--frontend=127.0.0.1,%u", port);
        const char *argv[] = {PROXY,
                              "--conf=/dev/null",
                              "--workers=1",
                              "--no-ocsp",
                              "--accesslog-file=/dev/stdout",
                              "--accesslog-format=served $protocol_version $remote_port",
                              list,
                              backend,
                              front,
                              key,
                              cert,
                              NULL};

        program_start(&rig->proxy, argv, NULL);
        ready = program_wait_ready(&rig->proxy);
        free(rig->url);
        rig->url = xasprintf("https://127.0.0.1:%u/v1", port);
        free(front);
    }
    assert_true(ready);
    free(backend);
    free(list);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void open_rig(struct rig *rig, const char *protocols)
{
    struct tls_stub *tls = tls_stub_start(TLS_STUB_GOOD); // only its certificate is used
    struct http_config config = {.user_agent = "test/1", .body_max = 65536};
    char *key, *cert;

    *rig = (struct rig){.open = 0};
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    rig->stub = stub_start(&rig->loop, answer, NULL);
    program_init(&rig->proxy);
    key = xasprintf("%s/key.pem", rig->proxy.dir);
    cert = xasprintf("%s/cert.pem", rig->proxy.dir);
    write_text(key, tls_stub_key(tls));
    write_text(cert, tls_stub_certificate(tls));
    (void)tls_stub_stop(tls);
    start_proxy(rig, protocols, key, cert);
    config.ca_file = cert;
    struct err err = ERR_INIT;
    assert_int_equal(http_create(&rig->http, &rig->loop, &config, &err), 0);
    free(key);
    free(cert);
}

static struct served read_served(const struct rig *rig)
{
    char *log = program_output(&rig->proxy);
    struct served served = {.all_http2 = true, .none_http2 = true};
    unsigned long port[AT_ONCE * 2];

    for (const char *line = log; *line; line = strchrnul(line, '\n'), line += *line != '\0') {
        char protocol[16];
        unsigned long from;

        if (sscanf(line, "served %15s %lu", protocol, &from) != 2) {
            continue;
        }
        served.requests++;
        served.all_http2 &= strcmp(protocol, "HTTP/2") == 0;
        served.none_http2 &= strcmp(protocol, "HTTP/1.1") == 0;
        size_t i = 0;
        while (i < served.connections && port[i] != from) {
            i++;
        }
        if (i == served.connections && i < ARRAY_LEN(port)) {
            port[served.connections++] = from;
        }
    }
    free(log);
    return served;
}

// The proxy writes the line of a request some time after the answer has arrived, so the log is not
// read before it has as many lines as there were answers.
static struct served close_rig(struct rig *rig, size_t answers)
{
    UNTIL(read_served(rig).requests >= answers);
    http_close(rig->http);
    (void)program_stop(&rig->proxy);
    struct served served = read_served(rig);
    program_release(&rig->proxy);
    stub_stop(rig->stub);
    while (uv_run(&rig->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    free(rig->url);
    return served;
}

static void on_done(void *owner, const struct http_reply *reply)
{
    struct end *end = owner;

    assert_false(end->done);
    end->done = true;
    end->reply = *reply;
    end->rig->open--;
    uv_stop(&end->rig->loop);
}

static struct http_call *begin(struct rig *rig, struct end *end, const char *path,
                               uint64_t deadline_ms)
{
    char *url = xasprintf("%s%s", rig->url, path);
    struct http_request request = {
        .url = url, .body = "{}", .len = 2, .deadline_ms = deadline_ms, .connect_ms = PATIENT_MS};

    *end = (struct end){.rig = rig};
    rig->open++;
    struct http_call *call = http_start(rig->http, &request, on_done, end);
    free(url);
    return call;
}

// Runs the loop until no more than so many requests are open.
static void wait(struct rig *rig, unsigned open)
{
    while (rig->open > open) {
        (void)uv_run(&rig->loop, UV_RUN_DEFAULT); // returns after uv_stop
    }
}

static void expect_answer(const struct end *end, long status)
{
    if (end->reply.err.code != ERR_NONE) {
        fail_msg("%s", end->reply.err.text);
    }
    assert_int_equal(end->reply.status, status);
    assert_true(end->reply.sent);
}

// The first request gets no answer. Requests after it can therefore be answered on its connection
// only when requests share it.
static void requests_share_one_connection(void **state)
{
    struct end silent, end[AT_ONCE];

    (void)state;
    struct rig rig;
    open_rig(&rig, "h2,http/1.1");
    struct http_call *call = begin(&rig, &silent, "/silent", PATIENT_MS);
    for (size_t i = 0; i < AT_ONCE; i++) {
        (void)begin(&rig, &end[i], "/chat/completions", PATIENT_MS);
    }
    wait(&rig, 1);
    assert_false(silent.done);
    for (size_t i = 0; i < AT_ONCE; i++) {
        expect_answer(&end[i], 200);
    }
    http_cancel(call); // its stream ends and the connection stays
    rig.open--;
    (void)begin(&rig, &end[0], "/chat/completions", PATIENT_MS);
    wait(&rig, 0);
    expect_answer(&end[0], 200);
    struct served served = close_rig(&rig, AT_ONCE + 1);
    assert_true(served.all_http2);
    assert_int_equal(served.connections, 1);
}

static void a_deadline_ends_one_stream_only(void **state)
{
    struct end silent, other;

    (void)state;
    struct rig rig;
    open_rig(&rig, "h2,http/1.1");
    (void)begin(&rig, &other, "/chat/completions", PATIENT_MS);
    wait(&rig, 0); // the connection is established
    (void)begin(&rig, &silent, "/silent", SHORT_MS);
    wait(&rig, 0);
    assert_int_equal(silent.reply.err.code, ERR_TIMED_OUT);
    assert_true(silent.reply.sent);
    (void)begin(&rig, &other, "/chat/completions", PATIENT_MS);
    wait(&rig, 0);
    expect_answer(&other, 200);
    struct served served = close_rig(&rig, 2);
    assert_true(served.all_http2);
    assert_int_equal(served.connections, 1);
}

static void what_says_when_to_come_again_comes_along(void **state)
{
    (void)state;
    struct rig rig;
    open_rig(&rig, "h2,http/1.1");
    struct end limited;
    (void)begin(&rig, &limited, "/limited", PATIENT_MS);
    wait(&rig, 0);
    expect_answer(&limited, 429);
    assert_non_null(strstr(limited.reply.headers, "retry-after: 7\n"));
    assert_non_null(strstr(limited.reply.headers, "x-ratelimit-remaining-tokens: 0\n"));
    struct served served = close_rig(&rig, 1);
    assert_true(served.all_http2 && served.requests == 1);
}

// Requests wait for the handshake only, not for the first answer on the connection.
static void without_http2_each_has_its_own_connection(void **state)
{
    struct end silent, end[4];

    (void)state;
    struct rig rig;
    open_rig(&rig, "http/1.1");
    (void)begin(&rig, &silent, "/silent", PATIENT_MS);
    for (size_t i = 0; i < ARRAY_LEN(end); i++) {
        (void)begin(&rig, &end[i], "/chat/completions", PATIENT_MS);
    }
    wait(&rig, 1);
    for (size_t i = 0; i < ARRAY_LEN(end); i++) {
        expect_answer(&end[i], 200);
    }
    assert_false(silent.done);
    struct served served = close_rig(&rig, ARRAY_LEN(end)); // cancels what has no answer
    assert_true(served.none_http2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_share_one_connection),
        cmocka_unit_test(a_deadline_ends_one_stream_only),
        cmocka_unit_test(what_says_when_to_come_again_comes_along),
        cmocka_unit_test(without_http2_each_has_its_own_connection),
    };

    if (access(PROXY, X_OK) != 0) {
        puts("skipped because " PROXY " is not there; it is in the package nghttp2-proxy");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

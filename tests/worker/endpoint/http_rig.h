// One request to a server that answers as a script says (tests/support/endpoint_stub): what the
// tests of HTTP share.
#ifndef TESTS_WORKER_ENDPOINT_HTTP_RIG_H
#define TESTS_WORKER_ENDPOINT_HTTP_RIG_H

#include "common/mem.h"
#include "tests/support/endpoint_stub.h"
#include "tests/support/tls_stub.h"
#include "worker/endpoint/http.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define KEY "secret-4711"
#define BODY "{\"ask\":1}"
#define BODY_MAX ((size_t)64 << 10)
#define PATIENT_MS 60000 // a deadline that no test reaches
#define SHORT_MS 300     // one that is to be reached

// What the stub does, request by request; the last one is repeated.
struct script {
    struct stub_reply reply[4];
    size_t count;
    char head[4][1024]; // of the requests that came
};

struct rig {
    uv_loop_t loop;
    struct http *http;
    struct stub *stub;
    struct script script;
};

struct end {
    uv_loop_t *loop;
    unsigned done; // times
    struct http_reply reply;
    char body[256];
};

static inline void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct script *script = owner;

    if (request->number < ARRAY_LEN(script->head)) {
        (void)snprintf(script->head[request->number], sizeof(script->head[0]), "%s\n%s",
                       request->head, request->body);
    }
    *reply = script->reply[request->number < script->count ? request->number : script->count - 1];
}

static inline void open_rig(struct rig *rig, const struct stub_reply *reply, size_t count,
                            const char *ca_file)
{
    struct http_config config = {.user_agent = "test/1", .body_max = BODY_MAX, .ca_file = ca_file};

    *rig = (struct rig){.script.count = count};
    memcpy(rig->script.reply, reply, count * sizeof(*reply));
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    rig->stub = stub_start(&rig->loop, answer, &rig->script);
    struct err err = ERR_INIT;
    assert_int_equal(http_create(&rig->http, &rig->loop, &config, &err), 0);
}

// Nothing may be left of anything.
static inline void close_rig(struct rig *rig)
{
    http_close(rig->http);
    stub_stop(rig->stub);
    while (uv_run(&rig->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig->loop), 0);
}

static inline void on_done(void *owner, const struct http_reply *reply)
{
    struct end *outcome = owner;
    size_t len = reply->body.len < 255 ? reply->body.len : 255;

    outcome->done++;
    outcome->reply = *reply;
    uv_stop(outcome->loop); // a turn that ran a timer would go on to wait for a socket
    if (len > 0) {
        memcpy(outcome->body, reply->body.data, len);
    }
    outcome->body[len] = '\0';
    assert_null(strstr(reply->err.text, KEY));
    assert_null(strstr(reply->headers, KEY));
}

static inline struct http_call *begin(struct rig *rig, const char *url, uint64_t deadline_ms,
                                      struct end *outcome)
{
    const char *headers[] = {"Content-Type: application/json", "Authorization: Bearer " KEY, NULL};
    struct http_request request = {.url = url,
                                   .headers = headers,
                                   .body = BODY,
                                   .len = strlen(BODY),
                                   .deadline_ms = deadline_ms,
                                   .connect_ms = 20000};

    outcome->loop = &rig->loop;
    struct http_call *call = http_start(rig->http, &request, on_done, outcome);
    assert_int_equal(outcome->done, 0); // never inside the call
    return call;
}

static inline struct end post_to(struct rig *rig, const char *url, uint64_t deadline_ms)
{
    struct end outcome = {.done = 0};

    (void)begin(rig, url, deadline_ms, &outcome);
    while (outcome.done == 0) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    }
    assert_int_equal(http_count(rig->http), 0);
    return outcome;
}

static inline struct end post(struct stub_reply reply, uint64_t deadline_ms)
{
    struct rig rig;

    open_rig(&rig, &reply, 1, NULL);
    struct end outcome = post_to(&rig, stub_url(rig.stub), deadline_ms);
    close_rig(&rig);
    return outcome;
}

static inline void expect(const struct end *outcome, enum err_code code, const char *why)
{
    if (outcome->reply.err.code != code || !strstr(outcome->reply.err.text, why)) {
        fail_msg("%s instead of %s: %s", err_name(outcome->reply.err.code), err_name(code),
                 outcome->reply.err.text);
    }
}

#define RAW(text)                                                                                  \
    {                                                                                              \
        .raw = text, .raw_len = sizeof(text) - 1                                                   \
    }
#define RAW_CUT(text)                                                                              \
    {                                                                                              \
        .raw = text, .raw_len = sizeof(text) - 1, .cut = true                                      \
    }

#endif

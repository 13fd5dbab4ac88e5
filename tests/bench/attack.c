// Design note. Connections are streams (net/rpc/stream.h), which let a caller send without reading.
// Each is kept filled with requests, and made again when the daemon closes it.
#include "tests/bench/attack.h"

#include "common/mem.h"
#include "net/rpc/frames.h"
#include "net/rpc/stream.h"
#include "proto/messages.h"
#include "tests/bench/samples.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define AHEAD ((size_t)256 << 10) // bytes that wait to be sent on a connection
#define NUMBERS 4096              // jobs of one request
#define LARGE ((size_t)4 << 20)   // bytes of a large blob

// --- requests

static void pack(struct strbuf *frame, enum op op, uint64_t id, const struct message *message,
                 const void *body)
{
    struct request request = {.op = op, .deadline_ms = 60000};
    struct err err = ERR_INIT;

    frame_begin_request(frame, (uint32_t)id);
    if (request_pack(frame, &request, message, body, &err) != 0) {
        die(&err);
    }
    frame_end(frame);
}

static void make_status_same(const struct target *target, struct strbuf *frame, uint64_t number)
{
    uint64_t jobs[NUMBERS];
    struct status_request body = {.jobs = jobs, .jobs_count = NUMBERS};

    for (size_t i = 0; i < NUMBERS; i++) {
        jobs[i] = target->first_job;
    }
    pack(frame, OP_STATUS, number + 2, &status_request_message, &body);
}

static void make_status_all(const struct target *target, struct strbuf *frame, uint64_t number)
{
    struct status_request body = {.all = true};

    (void)target;
    pack(frame, OP_STATUS, number + 2, &status_request_message, &body);
}

static void make_wait(const struct target *target, struct strbuf *frame, uint64_t number,
                      uint64_t first, uint64_t max_ms)
{
    uint64_t jobs[NUMBERS];
    struct wait body = {.jobs = jobs, .jobs_count = NUMBERS, .max_ms = max_ms};

    (void)target;
    for (size_t i = 0; i < NUMBERS; i++) {
        jobs[i] = first + i % (target->job_count);
    }
    pack(frame, OP_WAIT, number + 2, &wait_message, &body);
}

static void make_wait_unknown(const struct target *target, struct strbuf *frame, uint64_t number)
{
    make_wait(target, frame, number, UINT64_C(1) << 40, 0);
}

static void make_wait_parked(const struct target *target, struct strbuf *frame, uint64_t number)
{
    make_wait(target, frame, number, target->first_job, 20000);
}

static void make_cancel(const struct target *target, struct strbuf *frame, uint64_t number)
{
    uint64_t jobs[NUMBERS];
    struct job_ids body = {.jobs = jobs, .jobs_count = NUMBERS};

    for (size_t i = 0; i < NUMBERS; i++) {
        jobs[i] = target->first_job + i % target->job_count;
    }
    pack(frame, OP_CANCEL, number + 2, &job_ids_message, &body);
}

static void make_have(const struct target *target, struct strbuf *frame, uint64_t number)
{
    struct digest digests[1024];
    struct blob_have body = {.digests = digests, .digests_count = ARRAY_LEN(digests)};

    for (size_t i = 0; i < ARRAY_LEN(digests); i++) {
        digests[i] = target->known;
        digests[i].byte[0] ^= (unsigned char)i;
    }
    pack(frame, OP_BLOB_HAVE, number + 2, &blob_have_message, &body);
}

static void make_put(struct strbuf *frame, uint64_t number, size_t len)
{
    static unsigned char *data;

    if (!data) {
        data = xcalloc(1, LARGE);
        (void)!getrandom(data, 64, 0);
    }
    memcpy(data + 64, &number, sizeof(number));
    struct blob_put body = {.digest = digest_of(data, len), .data = {data, len}};
    pack(frame, OP_BLOB_PUT, number + 2, &blob_put_message, &body);
}

static void make_put_large(const struct target *target, struct strbuf *frame, uint64_t number)
{
    (void)target;
    make_put(frame, number, LARGE);
}

static void make_put_small(const struct target *target, struct strbuf *frame, uint64_t number)
{
    (void)target;
    make_put(frame, number, 1000);
}

// Most of a large frame, of which the rest never comes.
static void make_part(const struct target *target, struct strbuf *frame, uint64_t number)
{
    static const char zeroes[1 << 16];

    make_put_large(target, frame, number);
    size_t announced = frame->len;
    strbuf_release(frame);
    frame_begin_request(frame, (uint32_t)number + 2);
    while (frame->len + sizeof(zeroes) < announced) {
        strbuf_add(frame, zeroes, sizeof(zeroes));
    }
    size_t len = frame->len;
    frame->len = announced;
    frame_end(frame); // which announces more than there is
    frame->len = len;
}

static void make_hello(const struct target *target, struct strbuf *frame, uint64_t number)
{
    struct hello_request body = {.version_min = 1, .version_max = UINT32_MAX};

    (void)target;
    pack(frame, OP_HELLO, number + 2, &hello_request_message, &body);
}

static void make_budget(const struct target *target, struct strbuf *frame, uint64_t number)
{
    struct budget_request body;

    (void)target;
    message_init(&budget_request_message, &body);
    pack(frame, OP_BUDGET, number + 2, &budget_request_message, &body);
}

// New jobs without end, whose candidate is not there.
static void make_submit(const struct target *target, struct strbuf *frame, uint64_t number)
{
    struct job_spec spec;
    struct submit body;
    char key[32];

    message_init(&job_spec_message, &spec);
    spec.kind = 1;
    spec.problem = spec.reference = spec.baseline = target->known;
    spec.candidate = digest_of(&number, sizeof(number));
    message_init(&submit_message, &body);
    (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)number);
    body.search = (char *)(uintptr_t) "missing"; // packed, never changed
    body.key = key;
    body.spec = &spec;
    pack(frame, OP_SUBMIT, number + 2, &submit_message, &body);
}

// --- connections

struct attacker {
    const struct attack *attack;
    const struct target *target;
    uv_loop_t loop;
    uint64_t number; // of the next request
};

struct line_in {
    struct attacker *attacker;
    struct stream *stream;
    size_t sent; // requests
};

static void connect_one(struct line_in *line);

static void fill(struct line_in *line)
{
    const struct attack *attack = line->attacker->attack;

    while (attack->make && stream_is_open(line->stream) && stream_unsent(line->stream) < AHEAD &&
           (attack->requests == 0 || line->sent < attack->requests)) {
        struct strbuf frame = STRBUF_INIT;

        attack->make(line->attacker->target, &frame, line->attacker->number++);
        line->sent++;
        stream_send(line->stream, &frame);
    }
}

static void on_greeting(void *owner)
{
    struct line_in *line = owner;
    struct strbuf frame = STRBUF_INIT;
    struct hello_request hello = {.version_min = 1, .version_max = UINT32_MAX};
    struct request request = {.op = OP_HELLO,
                              .token = (char *)(uintptr_t)line->attacker->target->token};
    struct err err = ERR_INIT;

    frame_begin_request(&frame, 1);
    if (request_pack(&frame, &request, &hello_request_message, &hello, &err) != 0) {
        die(&err);
    }
    frame_end(&frame);
    stream_send(line->stream, &frame);
}

static bool on_frame(void *owner, const struct frames_view *frame)
{
    struct line_in *line = owner;
    bool first = line->sent == 0;

    (void)frame;
    fill(line); // the daemon takes large requests once it has answered the HELLO
    return first || line->attacker->attack->reads;
}

static void on_sent(void *owner)
{
    struct line_in *line = owner;

    if (line->sent > 0) {
        fill(line);
    }
}

static void on_end(void *owner, const struct err *why)
{
    (void)why;
    connect_one(owner);
}

static void connect_one(struct line_in *line)
{
    const struct target *target = line->attacker->target;
    const struct stream_config config = {.message_max = (size_t)32 << 20,
                                         .tls = target->tls,
                                         .tls_host = target->host,
                                         .on_greeting = on_greeting,
                                         .on_frame = on_frame,
                                         .on_sent = on_sent,
                                         .on_end = on_end,
                                         .owner = line};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(target->port)};

    (void)inet_pton(AF_INET, target->host, &to.sin_addr);
    line->sent = 0;
    line->stream = stream_connect(&line->attacker->loop, (const struct sockaddr *)&to, &config);
}

// --- the attack on the monitoring

static void run_http(const struct target *target)
{
    static const char *const request[] = {
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n",
    };
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(target->http_port)};
    int fd[128];

    (void)inet_pton(AF_INET, target->host, &to.sin_addr);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        fd[i] = -1;
    }
    for (uint64_t i = 0;; i++) {
        int *at = &fd[i % ARRAY_LEN(fd)];

        if (*at >= 0) {
            close(*at);
        }
        *at = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (*at >= 0 && connect(*at, (struct sockaddr *)&to, sizeof(to)) == 0) {
            (void)!send(*at, request[i % 2], strlen(request[i % 2]), MSG_NOSIGNAL);
        }
    }
}

// --- all of them

const struct attack attacks[] = {
    {.name = "nothing"},
    {.name = "STATUS, one job 4096 times, unread", .connections = 64, .make = make_status_same},
    {.name = "STATUS of all jobs, unread", .connections = 200, .make = make_status_all},
    {.name = "STATUS of all jobs", .connections = 16, .reads = true, .make = make_status_all},
    {.name = "WAIT for 4096 unknown jobs",
     .connections = 16,
     .reads = true,
     .make = make_wait_unknown},
    {.name = "WAIT for 4096 jobs, parked",
     .connections = 200,
     .reads = true,
     .make = make_wait_parked},
    {.name = "1200 idle connections", .connections = 1200, .reads = true},
    {.name = "HELLO", .connections = 16, .reads = true, .make = make_hello},
    {.name = "BUDGET, unread", .connections = 200, .make = make_budget},
    {.name = "BLOB_HAVE of 1024", .connections = 16, .reads = true, .make = make_have},
    {.name = "SUBMIT without the source", .connections = 16, .reads = true, .make = make_submit},
    {.name = "large requests that do not end",
     .connections = 200,
     .requests = 1,
     .reads = true,
     .make = make_part},
    {.name = "small blobs", .connections = 16, .reads = true, .make = make_put_small},
    {.name = "large blobs", .connections = 64, .reads = true, .make = make_put_large},
    {.name = "GET, unread", .run = run_http},
    {.name = "CANCEL of 4096 jobs, unread", .connections = 64, .make = make_cancel},
};
const size_t attack_count = ARRAY_LEN(attacks);

void attack_run(const struct attack *attack, const struct target *target)
{
    struct attacker attacker = {.attack = attack, .target = target};
    struct line_in *lines = xcalloc(attack->connections + 1, sizeof(*lines));

    if (attack->run) {
        attack->run(target);
    }
    (void)uv_loop_init(&attacker.loop);
    for (size_t i = 0; i < attack->connections; i++) {
        lines[i].attacker = &attacker;
        connect_one(&lines[i]);
    }
    for (;;) {
        (void)uv_run(&attacker.loop, UV_RUN_DEFAULT);
        (void)pause(); // it has no connections
    }
}

// kcastd when a part of it, of its callers or of its executors goes lost at a bad moment: what was
// promised is kept, nothing is measured twice, and what is not to blame is not blamed.
#include "common/file.h"
#include "net/rpc/frames.h"
#include "net/url.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/until.h"
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GPUS 3

// --- callers

// The bytes of a SUBMIT as a connection's first, after the greeting.
static struct strbuf submit_bytes(const char *key, const struct job_spec *spec)
{
    struct strbuf bytes = STRBUF_INIT, frame = STRBUF_INIT;
    struct submit body;

    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t) "test";
    body.key = (char *)(uintptr_t)key;
    body.spec = (struct job_spec *)(uintptr_t)spec;
    strbuf_add(&bytes, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
    frame_begin_request(&frame, 1);
    struct request request = {.op = OP_SUBMIT};
    struct err err = ERR_INIT;
    assert_int_equal(request_pack(&frame, &request, &submit_message, &body, &err), 0);
    frame_end(&frame);
    strbuf_add(&bytes, frame.data, frame.len);
    strbuf_release(&frame);
    return bytes;
}

// A connection that has sent this and reads nothing.
static int connect_and_send(const char *url_text, const struct strbuf *bytes)
{
    struct url url;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(url_parse(&url, url_text, NULL), 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(url.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, bytes->data, bytes->len, MSG_NOSIGNAL), bytes->len);
    return fd;
}

// The jobs of the search that the daemon has.
static size_t count_jobs(struct daemon_client *client)
{
    struct status_request body;

    message_init(&status_request_message, &body);
    body.search = (char *)(uintptr_t) "test";
    struct status reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_call(client, OP_STATUS, &status_request_message, &body,
                                        &status_message, &reply, &err),
                     0);
    size_t count = reply.jobs_count;
    message_clear(&status_message, &reply);
    return count;
}

// The job is there, and its caller is not: whoever asks again under the same key gets the same job.
static void a_lost_reply_is_given_again(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct strbuf bytes = submit_bytes("k", &spec);
    int fd = connect_and_send(client->program.url, &bytes);

    while (count_jobs(client) == 0) {
    }
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "k", &spec, &reply, &err), 0);
    assert_true(reply.duplicate);
    assert_int_equal(count_jobs(client), 1);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    strbuf_release(&bytes);
}

struct ending_call {
    size_t answers;
    enum err_code code;
};

static void on_submitted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct ending_call *outcome = owner;

    (void)retry_after_ms;
    (void)reply;
    outcome->answers++;
    outcome->code = error ? error->code : ERR_NONE;
}

// The caller gives up while the request is under way; the daemon hears it all the same.
static void a_reply_after_the_deadline_is_given_again(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct submit body;

    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t) "test";
    body.key = (char *)(uintptr_t) "k";
    body.spec = &spec;
    assert_int_equal(kill(client->program.pid, SIGSTOP), 0);
    struct ending_call outcome = {0};
    remote_call(client->remote, OP_SUBMIT, &submit_message, &body, &submitted_message, 50,
                on_submitted, &outcome);
    while (outcome.answers == 0) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    assert_int_equal(outcome.code, ERR_TIMED_OUT);
    assert_int_equal(kill(client->program.pid, SIGCONT), 0);
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "k", &spec, &reply, &err), 0);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(count_jobs(client), 1);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    assert_int_equal(outcome.answers, 1);
}

// A process of its own that submits and is then killed.
static void a_killed_client_finds_its_result_later(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);
    struct strbuf bytes = submit_bytes("k", &spec);
    pid_t pid = fork();

    if (pid == 0) {
        (void)connect_and_send(client->program.url, &bytes);
        for (;;) {
            (void)pause();
        }
    }
    (void)daemon_client_gate_wait(gate); // it is being measured
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    daemon_client_gate_open(gate);
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "k", &spec, &reply, &err), 0);
    assert_true(reply.duplicate);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER); // until it is acknowledged
    daemon_client_ack(client, reply.job);
    struct waited waited;
    daemon_client_wait_once(client, &reply.job, 1, 0, &waited);
    assert_int_equal(waited.unknown_count, 1);
    message_clear(&waited_message, &waited);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    strbuf_release(&bytes);
    free(candidate);
    free(gate);
}

// --- strangers

struct hostile {
    const char *name;
    enum op op;
    const void *body;
    size_t len;
    const char *error; // NULL: it is answered
};

// A request with this body, as a frame.
static void send_body(int fd, const struct hostile *hostile)
{
    struct request request;

    message_init(&request_message, &request);
    request.version = 1;
    request.op = hostile->op;
    request.body =
        (struct bytes){.data = (unsigned char *)(uintptr_t)hostile->body, .len = hostile->len};
    struct strbuf frame = STRBUF_INIT;
    frame_begin_request(&frame, 7);
    struct err err = ERR_INIT;
    assert_int_equal(message_pack(&request_message, &request, &frame, &err), 0);
    frame_end(&frame);
    assert_int_equal(send(fd, frame.data, frame.len, MSG_NOSIGNAL), frame.len);
    strbuf_release(&frame);
}

static void receive(int fd, void *data, size_t len)
{
    assert_int_equal(recv(fd, data, len, MSG_WAITALL), len);
}

static void expect_answer(int fd, const struct hostile *hostile)
{
    static const unsigned char header[FRAMES_WORD_LEN] = {0x80, 0, 0, 7};
    unsigned char length[FRAMES_LENGTH_LEN];

    receive(fd, length, sizeof(length));
    size_t len = (size_t)length[6] << 8 | length[7];
    unsigned char frame[8192];
    assert_in_range(len, sizeof(header) + 1, sizeof(frame));
    receive(fd, frame, len);
    assert_memory_equal(frame, header, sizeof(header));
    struct reply reply;
    assert_int_equal(
        message_read(&reply_message, &reply, frame + sizeof(header), len - sizeof(header), NULL),
        0);
    if (hostile->error ? !reply.error || strcmp(reply.error, hostile->error) != 0 : !!reply.error) {
        fail_msg("%s: %s (%s)", hostile->name, reply.error ? reply.error : "no error",
                 reply.text ? reply.text : "");
    }
    message_clear(&reply_message, &reply);
}

// The most address space that the daemon has had, in KiB.
static unsigned long long peak_kib(const struct daemon_client *client)
{
    char *path = xasprintf("/proc/%d/status", (int)client->program.pid);
    struct bytes text = {0};

    assert_int_equal(file_read(&text, path, 65536, NULL), 0);
    const char *at = strstr((char *)text.data, "VmPeak:");
    assert_non_null(at);
    unsigned long long peak = strtoull(at + 7, NULL, 10);
    bytes_clear(&text);
    free(path);
    return peak;
}

// What follows the greeting is well-formed up to the bodies; each of them has its error, and the
// connection goes on. None of them takes a gigabyte, though some announce several.
static void hostile_requests_are_answered_and_take_no_memory(void **state)
{
    static const unsigned char array[] = {0xdd, 0xff, 0xff, 0xff, 0xff};
    static const unsigned char map[] = {0xdf, 0xff, 0xff, 0xff, 0xff};
    static const unsigned char bin[] = {0x81, 0x01, 0xc6, 0x7f, 0xff, 0xff, 0xff};
    static const unsigned char text[] = {0x81, 0x01, 0xdb, 0xff, 0xff, 0xff, 0xff, 'a'};
    static const unsigned char jobs[] = {0x81, 0x01, 0xdd, 0x7f, 0xff, 0xff, 0xff, 0x01};
    static const unsigned char twice[] = {0x82, 0x01, 0x90, 0x01, 0x90};
    static const unsigned char cut[] = {0x82, 0x01, 0x91, 0x07, 0x02};
    static const unsigned char unknown[] = {0x83, 0x01, 0x91, 0x07, 0x2a, 0x81,
                                            0xa1, 'k',  0x90, 0xa1, 'z',  0xc3};
    static unsigned char deep[5000];
    const struct hostile hostile[] = {
        {"an array of 4 billion", OP_SUBMIT, array, sizeof(array), "protocol"},
        {"a map of 4 billion", OP_SUBMIT, map, sizeof(map), "protocol"},
        {"2 GiB of bytes", OP_BLOB_PUT, bin, sizeof(bin), "protocol"},
        {"4 GiB of text", OP_SUBMIT, text, sizeof(text), "protocol"},
        {"2 billion jobs", OP_WAIT, jobs, sizeof(jobs), "protocol"},
        {"a key twice", OP_WAIT, twice, sizeof(twice), "protocol"},
        {"a cut message", OP_WAIT, cut, sizeof(cut), "protocol"},
        {"nesting", OP_SUBMIT, deep, sizeof(deep), "protocol"},
        {"no operation", (enum op)9999, unknown, sizeof(unknown), "unsupported"},
        {"unknown keys", OP_WAIT, unknown, sizeof(unknown), NULL},
    };
    struct daemon_client *client = *state;

    daemon_client_expect(client, daemon_client_accepted(client, "a", "int a;\n"), JOB_DONE, 0);
    unsigned long long peak = peak_kib(client);
    memset(deep, 0x91, sizeof(deep));
    struct strbuf greeting = STRBUF_INIT;
    strbuf_add(&greeting, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
    int fd = connect_and_send(client->program.url, &greeting);
    unsigned char bytes[FRAMES_GREETING_LEN];
    receive(fd, bytes, sizeof(bytes));
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        send_body(fd, &hostile[i]);
        expect_answer(fd, &hostile[i]);
    }
    close(fd);
    daemon_client_expect(client, daemon_client_accepted(client, "b", "int b;\n"), JOB_DONE, 0);
    assert_true(peak_kib(client) - peak < (1 << 20));
    strbuf_release(&greeting);
}

// --- the daemon

static void expect_attempt(struct daemon_client *client, uint64_t job, unsigned attempt)
{
    struct job_info info;

    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_int_equal(info.attempt, attempt);
    message_clear(&job_info_message, &info);
}

// Done and not acknowledged, running and waiting at the moment of the kill; and what was compiled
// stays compiled.
static void a_killed_daemon_goes_on_where_it_was(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t done = daemon_client_accepted(client, "done", "int done;\n");

    daemon_client_expect(client, done, JOB_DONE, VERDICT_FASTER);
    uint64_t running = daemon_client_accepted(client, "running", candidate);
    (void)daemon_client_gate_wait(gate);
    uint64_t waiting = daemon_client_accepted(client, "waiting", "int waiting;\n");
    daemon_client_until(client, running, JOB_RUNNING);
    daemon_client_until(client, waiting, JOB_READY);
    daemon_client_disconnect(client);
    assert_int_equal(program_kill(&client->program), -9);
    assert_true(daemon_client_start(client));
    expect_attempt(client, done, 0);
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    expect_attempt(client, running, 1);
    expect_attempt(client, waiting, 0);
    assert_int_equal(daemon_client_runs(client, "measure", "int done;\n"), 1);
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 2);
    assert_int_equal(daemon_client_runs(client, "measure", "int waiting;\n"), 1);
    assert_int_equal(daemon_client_runs(client, "compile", candidate), 1);
    assert_int_equal(daemon_client_runs(client, "compile", "int waiting;\n"), 1);
    free(candidate);
    free(gate);
}

// --- executors

static int set_up_gpus(void **state)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = "--devices=cuda";
    client->option[1] = "--exec-slack=3s";
    client->option[2] = "--exec-grace=100ms";
    client->variable[0] = "KCAST_FAKE_GPUS=3";
    return daemon_client_start(client) ? 0 : -1;
}

static struct job_spec gpu_spec(struct daemon_client *client, const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.problem =
        daemon_client_put(client, daemon_client_cuda_problem, strlen(daemon_client_cuda_problem));
    spec.max_seconds = 100; // its deadline is so far away that this machine's speed decides nothing
    return spec;
}

static uint64_t submit_spec(struct daemon_client *client, const char *candidate,
                            const struct job_spec *spec)
{
    char *key = xasprintf("%s %llu", candidate, (unsigned long long)spec->repeat);
    struct submitted reply;
    struct err err = ERR_INIT;

    if (daemon_client_submit(client, "test", daemon_client_key_of(key), spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(key);
    return reply.job;
}

static uint64_t submit_to_gpu(struct daemon_client *client, const char *candidate, uint64_t repeat)
{
    struct job_spec spec = gpu_spec(client, candidate);

    spec.repeat = repeat;
    return submit_spec(client, candidate, &spec);
}

// A job that ends every executor is buried after the second one; a device is only suspected after
// three different jobs, so all go on.
static void a_poisonous_job_spoils_no_device(void **state)
{
    struct daemon_client *client = *state;
    struct job_info info;

    for (uint64_t poison = 0; poison < 2; poison++) {
        daemon_client_wait(client, submit_to_gpu(client, "//! run-crash\n", poison), &info);
        assert_int_equal(info.state, JOB_BURIED);
        assert_int_equal(info.attempt, 2);
        assert_non_null(strstr(info.reason, "signal 11"));
        message_clear(&job_info_message, &info);
    }
    assert_int_equal(daemon_client_runs(client, "cuda-measure", "//! run-crash\n"), 4);
    uint64_t good = submit_to_gpu(client, "int good;\n", 0);
    daemon_client_expect(client, good, JOB_DONE, VERDICT_FASTER);
    struct status status;
    daemon_client_status(client, &status);
    assert_int_equal(status.devices_count, GPUS);
    for (size_t i = 0; i < GPUS; i++) {
        assert_string_equal(status.devices[i].state, "ready");
        assert_null(status.devices[i].reason);
    }
    message_clear(&status_message, &status);
}

// The number of the device that is lost to a process that does not die, GPUS when there is none.
static size_t lost_device(struct daemon_client *client)
{
    struct status status;

    daemon_client_status(client, &status);
    size_t lost = GPUS;
    for (size_t i = 0; i < GPUS; i++) {
        if (strcmp(status.devices[i].state, "lost") == 0) {
            assert_int_equal(lost, GPUS);
            lost = i;
            assert_non_null(strstr(status.devices[i].reason, "does not die"));
        }
    }
    message_clear(&status_message, &status);
    return lost;
}

// A tracer that does not look holds a process in its own end, SIGKILL or not: as a process that
// waits in the kernel for a driver. Its device is lost, its job and the others go elsewhere.
static void a_process_that_does_not_die_costs_its_device(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = gpu_spec(client, candidate);
    spec.max_seconds = 0.1; // it is to miss its deadline
    uint64_t job = submit_spec(client, candidate, &spec);
    pid_t pid = daemon_client_gate_wait(gate);
    struct job_info info;

    if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACEEXIT) != 0) {
        printf("skipped because processes may not be traced here\n");
        daemon_client_cancel(client, job, &info);
        message_clear(&job_info_message, &info);
        free(candidate);
        free(gate);
        skip();
    }
    size_t lost;
    // Its deadline passes, then the grace, then the time that a killed process has to be gone.
    UNTIL((lost = lost_device(client)) != GPUS);
    (void)daemon_client_gate_wait(gate); // the second attempt, on another device
    daemon_client_gate_open(gate);
    expect_attempt(client, job, 1);
    for (uint64_t i = 0; i < 2 * GPUS; i++) {
        daemon_client_wait(client, submit_to_gpu(client, "int good;\n", i), &info);
        assert_int_equal(info.state, JOB_DONE);
        assert_int_not_equal(info.result->device[4] - '0', lost);
        message_clear(&job_info_message, &info);
    }
    assert_true(program_alive(pid));
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    while (program_alive(pid)) {
    }
    free(candidate);
    free(gate);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
#define GPU_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_lost_reply_is_given_again),
        TEST(a_reply_after_the_deadline_is_given_again),
        TEST(a_killed_client_finds_its_result_later),
        TEST(hostile_requests_are_answered_and_take_no_memory),
        TEST(a_killed_daemon_goes_on_where_it_was),
        GPU_TEST(a_poisonous_job_spoils_no_device),
        GPU_TEST(a_process_that_does_not_die_costs_its_device),
    };
#undef TEST
#undef GPU_TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/support/daemon_client.h"
#include "common/clock.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_MS PROGRAM_LIMIT_MS
#define UNTIL_NS (PROGRAM_LIMIT_MS * NS_PER_MS)

#define PROBLEM(language, entry)                                                                   \
    "{\"name\": \"copy\", \"title\": \"Copy\", \"license\": \"MIT\", \"language\": \"" language    \
    "\"," entry " \"params\": [{\"name\": \"N\", \"type\": \"int\"}],"                             \
    " \"tensors\": [{\"name\": \"A\", \"direction\": \"in\", \"dtype\": \"f32\","                  \
    " \"shape\": [\"N\"],"                                                                         \
    " \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"                    \
    " {\"name\": \"B\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"],"           \
    " \"tolerance\": 1}],"                                                                         \
    " \"cases\": {\"check\": [{\"N\": 17}],"                                                       \
    " \"bench\": [{\"params\": {\"N\": 4096}, \"weight\": 1}],"                                    \
    " \"hidden\": {\"N\": {\"min\": 1, \"max\": 300}}},"                                           \
    " \"cache\": \"warm\", \"work\": {\"flops\": \"N\", \"bytes\": \"8*N\"}}"

const char daemon_client_problem[] = PROBLEM("c", " \"entry\": \"copy\",");
const char daemon_client_cuda_problem[] = PROBLEM("cuda", "");

static const char reference_source[] =
    "void reference(const float *A, double *B, double *B_scale, int64_t N)\n"
    "{ for (int64_t i = 0; i < N; i++) { B[i] = A[i]; B_scale[i] = 1; } }\n";
static const char baseline_source[] = "void copy(const float *A, float *B, int64_t N)\n"
                                      "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n";

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "test support: %s: %s\n", what, why);
    abort();
}

void daemon_client_init(struct daemon_client *client)
{
    memset(client, 0, sizeof(*client));
    program_init(&client->program);
    client->state = xasprintf("%s/state", client->program.dir);
    client->log = xasprintf("%s/fake.log", client->program.dir);
    (void)signal(SIGPIPE, SIG_IGN); // a daemon that is killed is an error of write(2)
    (void)uv_loop_init(&client->loop);
}

int daemon_client_set_up(void **state)
{
    struct daemon_client *client = xmalloc(sizeof(*client));

    daemon_client_init(client);
    *state = client;
    return 0;
}

int daemon_client_set_up_started(void **state)
{
    (void)daemon_client_set_up(state);
    return daemon_client_start(*state) ? 0 : -1;
}

int daemon_client_tear_down(void **state)
{
    struct daemon_client *client = *state;

    // Whatever the test did, the daemon ends in good order; with a sanitizer that includes having
    // freed everything.
    daemon_client_disconnect(client);
    int code = 0;
    if (client->program.pid > 0) {
        code = program_stop(&client->program);
    }
    if (code != 0) {
        char *log = program_log(&client->program);

        fprintf(stderr, "kcastd ended with %d:\n%s", code, log);
        free(log);
    }
    daemon_client_release(client);
    free(client);
    return code;
}

static char *exec_path(const struct daemon_client *client)
{
    return client->real_exec ? program_path("kcast-exec") : program_support_path("fake_exec");
}

bool daemon_client_start(struct daemon_client *client)
{
    char *program = program_path("kcastd");
    char *state = xasprintf("--state=%s", client->state);
    char *exec_file = exec_path(client);
    char *exec = xasprintf("--exec=%s", exec_file);
    char *log = xasprintf("KCAST_FAKE_LOG=%s", client->log);
    const char *argv[DAEMON_OPTION_MAX + 8] = {
        program, state, exec, "--listen=tcp://127.0.0.1:0", "--devices=cpu:1", "--parent-death"};
    const char *environment[DAEMON_OPTION_MAX + 2] = {log};

    for (size_t i = 0; client->option[i]; i++) {
        argv[6 + i] = client->option[i]; // a later one wins
    }
    for (size_t i = 0; client->variable[i]; i++) {
        environment[1 + i] = client->variable[i];
    }
    program_start(&client->program, argv, environment);
    bool ready = client->no_wait || program_wait_ready(&client->program);
    if (ready && !client->no_wait) {
        daemon_client_connect(client);
    }
    free(log);
    free(exec);
    free(exec_file);
    free(state);
    free(program);
    return ready;
}

void daemon_client_connect(struct daemon_client *client)
{
    struct err err = ERR_INIT;

    if (remote_create(&client->remote, &client->loop, client->program.url, &err) != 0) {
        fail("remote", err.text);
    }
}

void daemon_client_disconnect(struct daemon_client *client)
{
    if (client->remote) {
        remote_close(client->remote);
        client->remote = NULL;
        (void)uv_run(&client->loop, UV_RUN_DEFAULT);
    }
}

void daemon_client_release(struct daemon_client *client)
{
    daemon_client_disconnect(client);
    (void)uv_loop_close(&client->loop);
    program_release(&client->program);
    free(client->state);
    free(client->log);
}

int daemon_client_call(struct daemon_client *client, enum op op, const struct message *body_message,
                       const void *body, const struct message *answer_message, void *reply,
                       struct err *err)
{
    return remote_call_sync(client->remote, op, body_message, body, answer_message, reply, CALL_MS,
                            err);
}

// A call that has to succeed.
static void must(struct daemon_client *client, enum op op, const struct message *body_message,
                 const void *body, const struct message *answer_message, void *reply)
{
    struct err err = ERR_INIT;

    if (daemon_client_call(client, op, body_message, body, answer_message, reply, &err) != 0) {
        fail(op_name(op), err.text);
    }
}

struct digest daemon_client_put(struct daemon_client *client, const void *data, size_t len)
{
    struct blob_put body;

    message_init(&blob_put_message, &body);
    body.digest = digest_of(data, len);
    body.data = (struct bytes){.data = (unsigned char *)(uintptr_t)data, .len = len};
    struct empty reply;
    must(client, OP_BLOB_PUT, &blob_put_message, &body, &empty_message, &reply);
    return body.digest;
}

struct job_spec daemon_client_spec(struct daemon_client *client, const char *candidate)
{
    struct job_spec spec;

    message_init(&job_spec_message, &spec);
    spec.kind = JOB_MEASURE;
    spec.problem = daemon_client_put(client, daemon_client_problem, strlen(daemon_client_problem));
    spec.reference = daemon_client_put(client, reference_source, strlen(reference_source));
    spec.baseline = daemon_client_put(client, baseline_source, strlen(baseline_source));
    spec.candidate = daemon_client_put(client, candidate, strlen(candidate));
    return spec;
}

const char *daemon_client_key_of(const char *source)
{
    static char key[1024];

    (void)snprintf(key, sizeof(key), "%s", source);
    for (char *at = key; *at != '\0'; at++) {
        *at = *at < ' ' ? ' ' : *at;
    }
    return key;
}

int daemon_client_submit(struct daemon_client *client, const char *search, const char *key,
                         const struct job_spec *spec, struct submitted *ret, struct err *err)
{
    struct submit body;

    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t)search;
    body.key = (char *)(uintptr_t)key;
    body.spec = (struct job_spec *)(uintptr_t)spec;
    return daemon_client_call(client, OP_SUBMIT, &submit_message, &body, &submitted_message, ret,
                              err);
}

struct submitted daemon_client_submit_ok(struct daemon_client *client, const char *search,
                                         const char *key, const struct job_spec *spec)
{
    struct submitted reply;
    struct err err = ERR_INIT;

    if (daemon_client_submit(client, search, daemon_client_key_of(key), spec, &reply, &err) != 0) {
        fail(key, err.text);
    }
    return reply;
}

uint64_t daemon_client_accepted(struct daemon_client *client, const char *key,
                                const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    return daemon_client_submit_ok(client, "test", key, &spec).job;
}

void daemon_client_wait_once(struct daemon_client *client, const uint64_t *jobs, size_t count,
                             uint64_t max_ms, struct waited *ret)
{
    struct wait body;

    message_init(&wait_message, &body);
    body.jobs = (uint64_t *)(uintptr_t)jobs;
    body.jobs_count = count;
    body.max_ms = max_ms;
    must(client, OP_WAIT, &wait_message, &body, &waited_message, ret);
}

void daemon_client_wait(struct daemon_client *client, uint64_t job, struct job_info *ret)
{
    struct waited reply;

    for (;;) {
        daemon_client_wait_once(client, &job, 1, 20000, &reply);
        if (reply.unknown_count > 0) {
            fail("wait", "the daemon does not know the job");
        }
        if (reply.jobs_count > 0) {
            break;
        }
        message_clear(&waited_message, &reply);
    }
    *ret = reply.jobs[0];
    memset(&reply.jobs[0], 0, sizeof(reply.jobs[0]));
    message_clear(&waited_message, &reply);
}

void daemon_client_expect(struct daemon_client *client, uint64_t job, uint64_t state,
                          uint64_t verdict)
{
    struct job_info info;

    daemon_client_wait(client, job, &info);
    struct strbuf text = STRBUF_INIT;
    if (info.state != state ||
        (verdict != 0 && (!info.result || info.result->verdict != verdict))) {
        message_json(&job_info_message, &info, &text);
        fail("unexpected end", strbuf_text(&text));
    }
    message_clear(&job_info_message, &info);
}

static void on_waited(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct long_poll *poll = owner;
    const struct waited *waited = reply;

    (void)retry_after_ms;
    if (error) {
        fail("WAIT", error->text);
    }
    poll->answers++;
    poll->jobs = waited->jobs_count;
    poll->first = waited->jobs_count ? waited->jobs[0].job : 0;
}

void daemon_client_park(struct daemon_client *client, uint64_t *jobs, size_t count, uint64_t max_ms,
                        struct long_poll *poll)
{
    struct wait body;

    message_init(&wait_message, &body);
    body.jobs = jobs;
    body.jobs_count = count;
    body.max_ms = max_ms;
    remote_call(client->remote, OP_WAIT, &wait_message, &body, &waited_message, PROGRAM_LIMIT_MS,
                on_waited, poll);
}

void daemon_client_cancel(struct daemon_client *client, uint64_t job, struct job_info *ret)
{
    struct job_ids body;

    message_init(&job_ids_message, &body);
    body.jobs = &job;
    body.jobs_count = 1;
    struct job_infos reply;
    must(client, OP_CANCEL, &job_ids_message, &body, &job_infos_message, &reply);
    if (reply.jobs_count != 1) {
        fail("cancel", "not exactly one job in the answer");
    }
    *ret = reply.jobs[0];
    memset(&reply.jobs[0], 0, sizeof(reply.jobs[0]));
    message_clear(&job_infos_message, &reply);
}

void daemon_client_ack(struct daemon_client *client, uint64_t job)
{
    struct job_ids body;

    message_init(&job_ids_message, &body);
    body.jobs = &job;
    body.jobs_count = 1;
    struct empty reply;
    must(client, OP_ACK, &job_ids_message, &body, &empty_message, &reply);
}

void daemon_client_status(struct daemon_client *client, struct status *ret)
{
    struct status_request body;

    message_init(&status_request_message, &body);
    body.all = true;
    must(client, OP_STATUS, &status_request_message, &body, &status_message, ret);
}

static uint64_t state_of(struct daemon_client *client, uint64_t job)
{
    struct status_request body;

    message_init(&status_request_message, &body);
    body.jobs = &job;
    body.jobs_count = 1;
    struct status reply;
    must(client, OP_STATUS, &status_request_message, &body, &status_message, &reply);
    if (reply.jobs_count != 1) {
        fail("until", "the daemon does not know the job");
    }
    uint64_t state = reply.jobs[0].state;
    message_clear(&status_message, &reply);
    return state;
}

void daemon_client_until(struct daemon_client *client, uint64_t job, uint64_t state)
{
    uint64_t started_ns = clock_now_ns(&clock_system);
    uint64_t is;

    while ((is = state_of(client, job)) != state) {
        if (job_state_is_terminal(is)) {
            fail("until", job_state_name(is));
        }
        if (clock_now_ns(&clock_system) - started_ns > UNTIL_NS) {
            fail("until", "it stays in its state for too long");
        }
        // A very short long poll, so that asking does not take the processor from what is waited
        struct waited reply;
        // for.
        daemon_client_wait_once(client, &job, 1, 2, &reply);
        message_clear(&waited_message, &reply);
    }
}

size_t daemon_client_runs(const struct daemon_client *client, const char *mode,
                          const char *candidate)
{
    char hex[DIGEST_HEX_LEN + 1] = "";

    if (candidate) {
        struct digest digest = digest_of(candidate, strlen(candidate));

        digest_hex(&digest, hex);
        hex[16] = '\0';
    }
    struct bytes text = {0};
    if (file_read(&text, client->log, (size_t)16 << 20, NULL) != 0) {
        return 0;
    }
    size_t count = 0;
    char *line_start;
    char *save = NULL;
    for (line_start = strtok_r((char *)text.data, "\n", &save); line_start;
         line_start = strtok_r(NULL, "\n", &save)) {
        size_t len = strlen(mode);

        count += strncmp(line_start, mode, len) == 0 && line_start[len] == ' ' &&
                 (!candidate || strcmp(line_start + len + 1, hex) == 0);
    }
    bytes_clear(&text);
    return count;
}

char *daemon_client_gate(struct daemon_client *client, const char *name)
{
    char *path = xasprintf("%s/%s", client->program.dir, name);
    char *go = xasprintf("%s.go", path);

    if (mkfifo(path, 0600) != 0 || mkfifo(go, 0600) != 0) {
        fail("mkfifo", path);
    }
    free(go);
    return path;
}

// Opening waits for the executor; the daemon's own deadlines end it when it never comes.
pid_t daemon_client_gate_wait(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (len <= 0) {
        fail("gate", path);
    }
    close(fd);
    return (pid_t)strtol(text, NULL, 10);
}

void daemon_client_gate_open(const char *path)
{
    char *go = xasprintf("%s.go", path);
    int fd = open(go, O_WRONLY | O_CLOEXEC);

    if (fd < 0) {
        fail("gate", go);
    }
    close(fd);
    free(go);
}

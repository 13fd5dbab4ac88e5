// A daemon (tests/client/pool/fake_jobs.h) and a worker (tests/client/forecast/fake_worker.h) that
// invent their answers, in one process, for tests of the client.
#ifndef TESTS_CLIENT_FAKE_DAEMON_H
#define TESTS_CLIENT_FAKE_DAEMON_H

#include "tests/client/forecast/fake_worker.h"
#include "tests/client/pool/fake_jobs.h"
#include "tests/support/own_url.h"

static inline void fake_on_daemon(void *owner, struct exchange *exchange,
                                  const struct request *request)
{
    static const char *const features[] = {"fake"};
    struct fake *fake = owner;
    if (fake->behaviour.busy && request->op != OP_HELLO) {
        struct err error = ERR_INIT;
        err_set(&error, ERR_BUSY, "the house is full");
        exchange_fail_busy(exchange, &error, 50);
        return;
    }
    struct empty nothing = {0};
    union {
        struct blob_have have;
        struct blob_put put;
        struct submit submit;
        struct wait wait;
        struct status_request status;
        struct job_ids ids;
    } body;
    switch (request->op) {
    case OP_HELLO:
        if (fake->behaviour.foreign) {
            struct err error = ERR_INIT;
            err_set(&error, ERR_VERSION, "this kcastd is of another time");
            exchange_fail(exchange, &error);
            break;
        }
        exchange_hello(exchange, request, "kcastd", features, 1, 10000, NULL);
        break;
    case OP_BLOB_HAVE:
        if (exchange_read_body(exchange, request, &blob_have_message, &body.have)) {
            struct blob_missing missing = {.digests =
                                               xcalloc(body.have.digests_count + 1, DIGEST_LEN)};
            for (size_t i = 0; i < body.have.digests_count; i++) {
                if (!fake_source(fake, &body.have.digests[i])) {
                    missing.digests[missing.digests_count++] = body.have.digests[i];
                }
            }
            exchange_reply(exchange, &blob_missing_message, &missing);
            message_clear(&blob_missing_message, &missing);
            message_clear(&blob_have_message, &body.have);
        }
        break;
    case OP_BLOB_PUT:
        if (exchange_read_body(exchange, request, &blob_put_message, &body.put)) {
            if (!fake_source(fake, &body.put.digest)) {
                struct fake_blob *blob = xcalloc(1, sizeof(*blob));
                blob->digest = body.put.digest;
                blob->data.data =
                    (unsigned char *)xstrndup((char *)body.put.data.data, body.put.data.len);
                HASH_ADD(hh, fake->blob, digest.byte, DIGEST_LEN, blob);
            }
            exchange_reply(exchange, &empty_message, &nothing);
            message_clear(&blob_put_message, &body.put);
        }
        break;
    case OP_SUBMIT:
        if (exchange_read_body(exchange, request, &submit_message, &body.submit)) {
            fake_submit(fake, exchange, &body.submit);
            message_clear(&submit_message, &body.submit);
        }
        break;
    case OP_WAIT:
        if (exchange_read_body(exchange, request, &wait_message, &body.wait)) {
            fake_wait(fake, exchange, &body.wait);
            message_clear(&wait_message, &body.wait);
        }
        break;
    case OP_STATUS:
        if (exchange_read_body(exchange, request, &status_request_message, &body.status)) {
            fake_status(fake, exchange, &body.status);
            message_clear(&status_request_message, &body.status);
        }
        break;
    case OP_CANCEL:
        if (exchange_read_body(exchange, request, &job_ids_message, &body.ids)) {
            fake_cancel(fake, exchange, &body.ids);
            message_clear(&job_ids_message, &body.ids);
        }
        break;
    case OP_ACK:
        if (exchange_read_body(exchange, request, &job_ids_message, &body.ids)) {
            fake_ack(fake, &body.ids);
            exchange_reply(exchange, &empty_message, &nothing);
            message_clear(&job_ids_message, &body.ids);
        }
        break;
    default:
        exchange_reply(exchange, &empty_message, &nothing);
    }
}

// SIGUSR1, between runs: forgets what the worker was told and asked.
static inline void fake_on_signal(uv_signal_t *signal, int number)
{
    struct fake *fake = signal->data;
    (void)number;
    memset(fake->first_told, 0, sizeof(fake->first_told));
    while (fake->told_count > 0) {
        free(fake->told[--fake->told_count]);
    }
    fake->asked_count = 0;
}

// SIGUSR2: drains the daemon's devices or ends that.
static inline void fake_on_drain(uv_signal_t *signal, int number)
{
    struct fake *fake = signal->data;
    (void)number;
    fake->draining = !fake->draining;
}

// SIGHUP: all compilations that are submitted from now on end.
static inline void fake_on_compile(uv_signal_t *signal, int number)
{
    struct fake *fake = signal->data;
    (void)number;
    fake->behaviour.compiles = 0;
}

// Serves as daemon, on the url pool, and as worker; writes both urls to fd. Never returns.
static inline void fake_serve(int fd, uint64_t seed, const char *pool,
                              const struct fake_behaviour *behaviour)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));
    uv_signal_t forget, drain, compile;
    fake->behaviour = *behaviour;
    (void)signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&fake->loop);
    uv_signal_init(&fake->loop, &forget);
    forget.data = fake;
    uv_signal_start(&forget, fake_on_signal, SIGUSR1);
    uv_signal_init(&fake->loop, &drain);
    drain.data = fake;
    uv_signal_start(&drain, fake_on_drain, SIGUSR2);
    uv_signal_init(&fake->loop, &compile);
    compile.data = fake;
    uv_signal_start(&compile, fake_on_compile, SIGHUP);
    stats_rng_init(&fake->rng, seed, 1);
    for (size_t i = 0; i < ARRAY_LEN(fake->wait); i++) {
        uv_timer_init(&fake->loop, &fake->wait[i].timer);
        fake->wait[i].timer.data = &fake->wait[i];
        fake->wait[i].fake = fake;
    }
    struct service_config config = {.url = pool,
                                    .exchanges_max = 64,
                                    .parked_max = 32,
                                    .message_max = 16 << 20,
                                    .epoch = 1,
                                    .on_request = fake_on_daemon,
                                    .owner = fake};
    struct err error = ERR_INIT;
    if (service_create(&fake->pool, &fake->loop, &config, &error) != 0) {
        _exit(1);
    }
    fake->worker_config = config;
    fake->worker_config.on_request = fake_on_worker;
    fake->worker_config.url = own_url();
    fake_open_worker(fake);
    fake->worker_config.url = xstrdup(service_url(fake->worker)); // the same when it comes again
    uv_timer_init(&fake->loop, &fake->leave);
    fake->leave.data = fake;
    if (fake->behaviour.late) {
        fake_on_leave(&fake->leave);
    }
    dprintf(fd, "%s %s\n", service_url(fake->pool), fake->worker_config.url);
    close(fd);
    uv_run(&fake->loop, UV_RUN_DEFAULT);
    _exit(0);
}

struct fake_process {
    pid_t pid;
    char pool[64], worker[64]; // urls of the two
};

// Starts both in a child process, which ends with this one. The caller must not have threads.
static inline void fake_start_as(struct fake_process *ret, uint64_t seed, const char *pool,
                                 const struct fake_behaviour *behaviour)
{
    int fd[2];
    pid_t parent = getpid();
    if (pipe(fd) != 0) {
        abort();
    }
    ret->pid = fork();
    if (ret->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        close(fd[0]);
        fake_serve(fd[1], seed, pool, behaviour);
    }
    close(fd[1]);
    FILE *in = fdopen(fd[0], "r");
    char line[256] = "";
    if (!in || !fgets(line, sizeof(line), in) ||
        sscanf(line, "%63s %63s", ret->pool, ret->worker) != 2) {
        abort();
    }
    fclose(in);
}

static inline void fake_start_at(struct fake_process *ret, uint64_t seed, const char *pool)
{
    const struct fake_behaviour usual = {0};
    fake_start_as(ret, seed, pool, &usual);
}

static inline void fake_start(struct fake_process *ret, uint64_t seed)
{
    fake_start_at(ret, seed, own_url());
}

static inline void fake_stop(struct fake_process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
}

#endif

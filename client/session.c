// Connections are made on first use and kept. Of several urls the first that answers is taken.
//
// SIGINT and SIGTERM set a flag that every loop of the client checks after each turn. A second
// signal ends the process at once, and private programs die with it.
#include "client/session.h"

#include "client/credentials.h"
#include "client/local.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/version.h"
#include "net/auth/identity.h"
#include "net/url.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
    const struct session_options *options;
    uv_loop_t loop;
    uv_signal_t signal[2];
    bool interrupted;
    struct local *local;   // NULL until --local needs it
    struct remote *daemon; // NULL until session_daemon is called
    struct remote *worker;
    struct credentials credentials; // empty until a tls:// url needs them
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct session *session = handle->data;
    (void)number;
    if (session->interrupted) {
        _exit(EXIT_INTERRUPTED);
    }
    session->interrupted = true;
}

int session_create(struct session **ret, const struct session_options *options, struct err *err)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct session *session = xcalloc(1, sizeof(*session));
    session->options = options;
    int rc = uv_loop_init(&session->loop);
    if (rc != 0) {
        free(session);
        return err_set(err, ERR_SYSTEM, "cannot start an event loop: %s", uv_strerror(rc));
    }
    // A connection that broke is to be an error of write(2), not a signal.
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(&session->loop, &session->signal[i]);
        session->signal[i].data = session;
        uv_signal_start(&session->signal[i], on_signal, numbers[i]);
        uv_unref((uv_handle_t *)&session->signal[i]);
    }
    *ret = session;
    return 0;
}

void session_free(struct session *session)
{
    if (!session) {
        return;
    }
    remote_close(session->daemon);
    remote_close(session->worker);
    credentials_release(&session->credentials);
    local_free(session->local);
    for (size_t i = 0; i < ARRAY_LEN(session->signal); i++) {
        uv_close((uv_handle_t *)&session->signal[i], NULL);
    }
    uv_run(&session->loop, UV_RUN_DEFAULT);
    uv_loop_close(&session->loop);
    free(session);
}

const struct session_options *session_options(const struct session *session)
{
    return session->options;
}

uv_loop_t *session_loop(struct session *session)
{
    return &session->loop;
}

bool session_interrupted(const struct session *session)
{
    return session->interrupted;
}

void session_interrupt(struct session *session)
{
    session->interrupted = true;
}

static bool was_interrupted(const void *owner)
{
    return session_interrupted(owner);
}

int session_remote(struct session *session, const char *url, struct remote **ret, struct err *err)
{
    const struct session_options *options = session->options;
    struct credential_files files = {.ca = options->tls_ca,
                                     .cert = options->tls_cert,
                                     .key = options->tls_key,
                                     .token = options->token_file};
    struct url address;
    int rc = url_parse(&address, url, err);
    if (rc != 0 || !address.tls) {
        return rc != 0 ? rc : remote_create(ret, &session->loop, url, err);
    }
    if (!session->credentials.tls) {
        identity_protect_process();
        rc = credentials_load(&session->credentials, &files, err);
    }
    return rc == 0 ? remote_create_tls(ret, &session->loop, url, session->credentials.tls,
                                       session->credentials.token, err)
                   : rc;
}

static int connect_one(struct session *session, const char *url, const char *program,
                       struct remote **ret, struct err *err)
{
    struct remote *remote;
    int rc = session_remote(session, url, &remote, err);
    if (rc != 0) {
        return rc;
    }
    struct hello_reply hello;
    rc = remote_hello_sync(remote, program, &hello, err);
    if (rc != 0) {
        remote_close(remote);
        return rc;
    }
    message_clear(&hello_reply_message, &hello);
    *ret = remote;
    return 0;
}

// Connects to the first of the comma-separated urls that answers. The error is that of the last
// url.
static int connect_any(struct session *session, const char *urls, const char *program,
                       struct remote **ret, struct err *err)
{
    struct err last = ERR_INIT;
    int rc = err_set(&last, ERR_USAGE, "no address of a %s is given", program);
    while (*urls != '\0' && rc != 0 && !session->interrupted) {
        size_t len = strcspn(urls, ",");
        if (len > 0) {
            char *url = xstrndup(urls, len);
            err_clear(&last);
            rc = connect_one(session, url, program, ret, &last);
            free(url);
        }
        urls += len + (urls[len] == ',');
    }
    return rc == 0 ? 0 : err_set(err, last.code, "%s", last.text);
}

static int connect_local(struct session *session, enum local_program program, const char *name,
                         struct remote **ret, struct err *err)
{
    int rc = 0;
    if (!session->local) {
        rc = local_create(&session->local, &session->loop, session->options->local_state,
                          session->options->sandbox, was_interrupted, session_warn, session, err);
    }
    const char *url;
    if (rc == 0) {
        rc = local_start(session->local, program, &url, err);
    }
    return rc == 0 ? connect_one(session, url, name, ret, err) : rc;
}

int session_daemon(struct session *session, struct remote **ret, struct err *err)
{
    int rc = 0;
    if (!session->daemon) {
        const char *urls = session->options->pool ? session->options->pool : KCAST_DEFAULT_POOL;
        rc = session->options->local
                 ? connect_local(session, LOCAL_DAEMON, "kcastd", &session->daemon, err)
                 : connect_any(session, urls, "kcastd", &session->daemon, err);
    }
    *ret = session->daemon;
    return rc;
}

int session_worker(struct session *session, struct remote **ret, struct err *err)
{
    if (session->options->no_worker) {
        return err_set(err, ERR_UNREACHABLE, "--no-worker was given");
    }
    int rc = 0;
    if (!session->worker) {
        const char *urls =
            session->options->worker ? session->options->worker : KCAST_DEFAULT_WORKER;
        rc = session->options->local
                 ? connect_local(session, LOCAL_WORKER, "kcast-worker", &session->worker, err)
                 : connect_any(session, urls, "kcast-worker", &session->worker, err);
    }
    *ret = session->worker;
    return rc;
}

void session_warn(const char *sentence)
{
    if (sentence) {
        printable_printf(stderr, "kcast: %s\n", sentence);
    }
}

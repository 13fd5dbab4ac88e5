// What a command talks to: the daemons of --pool, the worker of --worker, or private ones for
// --local. Created by main from the global options; connects on first use, so that commands that
// need nobody start nothing.
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include "common/err.h"
#include "net/rpc/remote.h"
#include <stdbool.h>
#include <uv.h>

struct session_options { // global options, valid before and after the subcommand
    char *
        pool; // urls, comma-separated: tcp://, tls://; of all addresses of a name: dns://, dns+tls://
    char *worker;
    bool local;
    char *local_state; // state folder of the private daemon and worker; default: a temporary one
    bool json;
    bool quiet;
    char *sandbox; // "on" or "off", for --local
    bool help, version;
    bool no_worker;
    char *tls_ca, *tls_cert, *tls_key, *token_file; // as in client/credentials.h
};

struct session;
MUST_CHECK int session_create(struct session **ret, const struct session_options *options,
                              struct err *err);
// Stops private daemons (SIGTERM, wait, SIGKILL); leaves no process.
void session_free(struct session *session);

const struct session_options *session_options(const struct session *session);
uv_loop_t *session_loop(struct session *session);
// The daemon (of several urls the first that answers; client/daemon pool.h and client/pool/daemons.h use all of
// them) / the worker, after HELLO. Starts private ones for --local.
// A remote for the url; one of tls:// with the session's certificates and token, which are read when
// the first needs them. The caller's, remote_close.
MUST_CHECK int session_remote(struct session *session, const char *url, struct remote **ret,
                              struct err *err);
MUST_CHECK int session_pool(struct session *session, struct remote **ret, struct err *err);
MUST_CHECK int session_worker(struct session *session, struct remote **ret, struct err *err);
// A timer's callback that somebody waits for with uv_run(loop, UV_RUN_ONCE) must call
// uv_stop(loop): a timer may run before the loop blocks, and would not end its waiting otherwise.
// Becomes true on SIGINT or SIGTERM; long commands end soon after, with ERR_STOPPED.
bool session_interrupted(const struct session *session);

#endif

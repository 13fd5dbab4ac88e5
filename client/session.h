// What a command talks to: the daemons of --pool and the worker of --worker, or private ones with
// --local. Created by main from the global options, and handed to every command. It connects on
// first use, so that commands which need nobody start nothing. It knows addresses and connections,
// not what is said over them.
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include "common/err.h"
#include "net/rpc/remote.h"
#include <stdbool.h>
#include <uv.h>

struct session_options { // global options, valid before and after the subcommand
    char *pool;          // urls of daemons, separated by commas; see client/pool/hosts.h
    char *worker;        // urls of workers, separated by commas; the first that answers is taken
    bool local;          // start a private daemon and worker
    char *local_state;   // their state folder; NULL: a temporary one
    bool json;           // print JSON on stdout
    bool quiet;          // no progress and no remarks on stderr
    char *sandbox;       // "on" or "off", for the private daemon
    bool help, version;
    bool no_worker;                                 // use no worker
    char *tls_ca, *tls_cert, *tls_key, *token_file; // see client/credentials.h
};

struct session;
// Starts the event loop and catches SIGINT and SIGTERM. options must outlive the session.
MUST_CHECK int session_create(struct session **ret, const struct session_options *options,
                              struct err *err);
// Closes connections and stops private programs (SIGTERM, wait, SIGKILL), so that no process is
// left. NULL is fine.
void session_free(struct session *session);

const struct session_options *session_options(const struct session *session);
// The loop on which everything runs. Whoever waits with uv_run(loop, UV_RUN_ONCE) relies on timers'
// callbacks to call uv_stop(loop), since a timer may run before the loop blocks.
uv_loop_t *session_loop(struct session *session);
// Makes a connection for a url. One for tls:// uses the session's certificates and token, which are
// read when the first such url needs them. The caller's, to be closed with remote_close.
MUST_CHECK int session_remote(struct session *session, const char *url, struct remote **ret,
                              struct err *err);
// The first daemon of --pool that answers HELLO, or the private one with --local. Owned by the
// session. client/pool/daemon_pool.h and client/pool/daemons.h use all daemons of --pool.
MUST_CHECK int session_daemon(struct session *session, struct remote **ret, struct err *err);
// The same for the worker. ERR_UNREACHABLE with --no-worker.
MUST_CHECK int session_worker(struct session *session, struct remote **ret, struct err *err);
// Becomes true on SIGINT or SIGTERM; long commands then end soon, with ERR_STOPPED.
bool session_interrupted(const struct session *session);
// Makes it true, as a signal would.
void session_interrupt(struct session *session);
// Prints a sentence on stderr that a user has to know also with --quiet. NULL: nothing.
void session_warn(const char *sentence);

#endif

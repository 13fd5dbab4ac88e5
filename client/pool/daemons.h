// The daemons of --pool for commands that speak with each of them once, such as status, jobs,
// cancel and drain. All are greeted at the same time. A search uses client/pool/daemon_pool.h
// instead.
#ifndef CLIENT_POOL_DAEMONS_H
#define CLIENT_POOL_DAEMONS_H

#include "client/session.h"
#include "common/err.h"
#include "net/rpc/remote.h"
#include <stdbool.h>
#include <stddef.h>

struct daemon_link {
    char *url;
    char *name;            // host name that its certificate must show; NULL: the one in the url
    struct remote *remote; // NULL when it does not answer or is no daemon of this version
    struct err why;        // the reason then; a sentence that begins with the url
};

struct daemons {
    struct daemon_link *link; // in the order of --pool
    size_t count;
    // --pool names several, a dns:// name or a file: output tells them apart by their urls.
    bool several;
};

// Connects to all daemons; to a single url, or with --local, by session_daemon. Fails when none
// answers.
MUST_CHECK int daemons_connect(struct daemons *ret, struct session *session, struct err *err);
// A zeroed struct counts as released.
void daemons_release(struct daemons *daemons);

// Finds the daemon that an argument names. The part behind the last "/" of word, such as a device
// or the number of a job, becomes *ret_rest. The part before it names the daemon: by its url, by
// HOST:PORT, or by HOST where that is unique. Without a "/" the only daemon is meant; that is an
// error when --pool names several.
MUST_CHECK int daemons_find(const struct daemons *daemons, const char *word,
                            const struct daemon_link **ret, const char **ret_rest, struct err *err);

// The arguments that concern one daemon.
struct daemon_arguments {
    char **word; // what stands behind the daemon's name; points into the caller's words
    size_t count;
};

// Groups arguments by daemon: *ret has an entry for each of daemons, in their order, and is freed
// by daemon_arguments_free. Fails where daemons_find fails for one of them.
MUST_CHECK int daemons_group_arguments(struct daemon_arguments **ret, const struct daemons *daemons,
                                       char **word, size_t count, struct err *err);
// daemons is their number. NULL is fine.
void daemon_arguments_free(struct daemon_arguments *arguments, size_t daemons);

#endif

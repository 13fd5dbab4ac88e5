// The daemons of --pool for commands that speak with each of them once (status, jobs, cancel,
// drain): greeted all at the same time. A search has a daemon pool (client/daemon pool.h) instead.
#ifndef CLIENT_POOL_DAEMONS_H
#define CLIENT_POOL_DAEMONS_H

#include "client/session.h"
#include "common/err.h"
#include "net/rpc/remote.h"
#include <stdbool.h>
#include <stddef.h>

struct daemon_link {
    char *url;
    char *name;            // whom its certificate must name; NULL: whom the url names
    struct remote *remote; // NULL: it does not answer, or is none of ours
    struct err why;        // then, a sentence that begins with the url
};

struct daemons {
    struct daemon_link *link; // in the order of --pool
    size_t count;
    bool several; // --pool names several, or a dns:// name: they are told apart by their urls
};

// Connects to all of them (of a single url, or --local: session_pool). Fails when none answers.
MUST_CHECK int daemons_connect(struct daemons *ret, struct session *session, struct err *err);
// Zeroed, it is released already.
void daemons_release(struct daemons *daemons);

// What stands behind the last "/" of word (a device, a job's number) is *ret_rest, and what stands
// before it names the daemon: its url, or HOST:PORT, or HOST where there is no other. Without a "/"
// the only daemon is meant, when --pool names one only.
MUST_CHECK int daemons_find(const struct daemons *daemons, const char *word,
                            const struct daemon_link **ret, const char **ret_rest, struct err *err);

// What the words of one daemon say of it.
struct daemon_arguments {
    char **word; // their rests; they point into the caller's words
    size_t count;
};

// The words by daemon: *ret has an entry for each of daemons, in their order, and is freed by
// daemon_arguments_free. Fails where daemons_find does for one of them.
MUST_CHECK int daemons_group_arguments(struct daemon_arguments **ret, const struct daemons *daemons,
                                       char **word, size_t count, struct err *err);
void daemon_arguments_free(struct daemon_arguments *words, size_t daemons); // NULL is fine

#endif

// Private programs for --local: a kcastd and a kcast-worker that this process starts on free ports
// of 127.0.0.1, with a state folder of their own, and stops again. They are found beside the
// running binary and end with this process, however it ends. Called by the session only.
#ifndef CLIENT_LOCAL_H
#define CLIENT_LOCAL_H

#include "common/err.h"
#include <stdbool.h>
#include <uv.h>

enum local_program { LOCAL_DAEMON, LOCAL_WORKER, LOCAL_COUNT };

struct local;

// Prepares, but starts nothing yet. state is the folder for ledgers and blobs; NULL stands for a
// temporary one that local_free removes. sandbox is "on", "off", or NULL for the daemon's default.
// Waiting ends with ERR_STOPPED as soon as interrupted(owner) is true. A program that ends by
// itself is started again, and warn gets a sentence about it.
MUST_CHECK int local_create(struct local **ret, uv_loop_t *loop, const char *state,
                            const char *sandbox, bool (*interrupted)(const void *owner),
                            void (*warn)(const char *sentence), const void *owner, struct err *err);

// Starts a program, unless it runs already, and waits until it reports READY. *ret_url is its
// address, owned by local. On failure the sentence ends with the last line that the program logged.
MUST_CHECK int local_start(struct local *local, enum local_program program, const char **ret_url,
                           struct err *err);

// Ends the programs with SIGTERM, after ten seconds with SIGKILL, waits for them, and removes
// temporary folders. NULL is fine.
void local_free(struct local *local);

#endif

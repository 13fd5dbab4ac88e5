// Private programs for --local: a kcastd and a kcast-worker that this process starts on free ports
// of 127.0.0.1, with a state folder of their own, and stops again. They are found beside the
// running binary and end with it, however it ends.
#ifndef CLIENT_LOCAL_H
#define CLIENT_LOCAL_H

#include "common/err.h"
#include <stdbool.h>
#include <uv.h>

enum local_program { LOCAL_DAEMON, LOCAL_WORKER, LOCAL_COUNT };

struct local;

// state: folder for ledgers and blobs; NULL for a temporary one that local_free removes. sandbox:
// "on", "off", or NULL for the daemon's default. interrupted(owner) becoming true ends waiting.
// Starts nothing yet.
MUST_CHECK int local_create(struct local **ret, uv_loop_t *loop, const char *state,
                            const char *sandbox, bool (*interrupted)(const void *owner),
                            const void *owner, struct err *err);

// Starts a program, unless it runs, and waits until it says READY. *ret_url is its address and
// stays local's. On failure the sentence ends with the last line that the program logged.
MUST_CHECK int local_start(struct local *local, enum local_program program, const char **ret_url,
                           struct err *err);

// Ends the programs (SIGTERM, after ten seconds SIGKILL), waits for them, removes temporary
// folders. NULL is fine.
void local_free(struct local *local);

#endif

// The candidates that a command line names: files of source code, which become blobs of a daemon
// pool. They are read before a daemon is asked anything, so that a wrong path is told at once. Called
// by `kcast measure` and `kcast forecast`. Knows nothing of problems and jobs.
#ifndef CLIENT_CMD_CANDIDATES_H
#define CLIENT_CMD_CANDIDATES_H

#include "client/pool/daemon_pool.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stddef.h>

struct candidate_file {
    const char *path;          // as given; the caller's
    struct bytes source;       // until candidates_add
    struct digest digest;      // of its source
    struct compiled *compiled; // set by the command when it has one; owned
    struct result *result;     // set by the command when it has one; owned
    struct err error;          // set by the command: why there is neither
    bool done;                 // set by the command: there is an answer
};

// Reads the files. *ret has count entries and is for candidates_free. ERR_NOT_FOUND, ERR_SYSTEM, or
// ERR_INVALID for an empty file.
MUST_CHECK int candidates_read(struct candidate_file **ret, char **path, size_t count,
                               struct err *err);
// Makes the sources blobs of the daemon pool.
void candidates_add(struct candidate_file *file, size_t count, struct daemon_pool *daemon_pool);
void candidates_free(struct candidate_file *file, size_t count); // NULL is fine

// A search name for the jobs of one command that no other command uses; malloc'd.
char *candidates_search_name(const char *command);

#endif

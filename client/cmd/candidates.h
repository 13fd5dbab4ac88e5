// The candidates that a command line names: files of source code.
#ifndef CLIENT_CMD_CANDIDATES_H
#define CLIENT_CMD_CANDIDATES_H

#include "client/pool/daemon_pool.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stddef.h>

struct candidate_file {
    const char *path;          // as given
    struct digest digest;      // of its source, which is a blob of the daemon pool
    struct compiled *compiled; // for users of this struct
    struct result *result;     // the same
    struct err error;          // why there is neither
    bool done;
};

// Reads the files and hands their bytes to daemon pool. *ret has count entries; free with candidates_free.
MUST_CHECK int candidates_read(struct candidate_file **ret, char **path, size_t count,
                               struct daemon_pool *daemon_pool, struct err *err);
void candidates_free(struct candidate_file *file, size_t count);

// A name for the jobs of one command, that no other command uses; malloc'd.
char *candidates_search_name(const char *command);

#endif

// The candidates that a command line names: files of source code.
#ifndef CLIENT_CANDIDATES_H
#define CLIENT_CANDIDATES_H

#include "client/fleet.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/all.h"
#include <stddef.h>

struct candidate_file {
    const char *path;          // as given
    struct digest digest;      // of its source, which is a blob of the fleet
    struct compiled *compiled; // for users of this struct
    struct result *result;     // the same
    struct err error;          // why there is neither
    bool done;
};

// Reads the files and hands their bytes to fleet. *ret has count entries; free with candidates_free.
MUST_CHECK int candidates_read(struct candidate_file **ret, char **path, size_t count,
                               struct fleet *fleet, struct err *err);
void candidates_free(struct candidate_file *file, size_t count);

// A name for the jobs of one command, that no other command uses; malloc'd.
char *candidates_search_name(const char *command);

#endif

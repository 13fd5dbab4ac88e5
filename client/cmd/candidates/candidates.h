// The candidates that a command line names: files of source code, all files of a folder, or stdin,
// which become blobs of a daemon pool. They are read before a daemon is asked anything, so that a
// wrong path is told at once. Called by `kcast measure` and `kcast forecast`. Knows nothing of
// jobs.
#ifndef CLIENT_CMD_CANDIDATES_CANDIDATES_H
#define CLIENT_CMD_CANDIDATES_CANDIDATES_H

#include "client/pool/daemon_pool.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stddef.h>

#define CANDIDATES_MAX 4096

struct candidate_file {
    char *path;           // as given, or below a folder that was given; "-" for stdin
    struct bytes source;  // until candidates_add
    struct digest digest; // of its source
    size_t header_lines;  // lines that --define has put before the file's own
    char *params;         // names of the parameters that its //@ tune lines declare, divided by
                          // blanks; NULL: it has none
    struct compiled *compiled; // set by the command when it has one; owned
    struct result *result;     // set by the command when it has one; owned
    struct err error;          // set by the command: why there is neither
    bool done;                 // set by the command: there is an answer
};

struct candidates {
    struct candidate_file *file;
    size_t count;
};

// Reads the files. `extension` is that of the problem's sources, "c": a folder stands for its files
// with that ending (of a CUDA problem those in Python, too), sorted by name. defines are lines of
// NAME=VALUE or NAME; NULL: none. A template with defines becomes the source of the point that they
// name, so they must give every parameter one of its values; before another file they become
// #define lines. *ret is for candidates_free. ERR_NOT_FOUND, ERR_SYSTEM, ERR_USAGE for defines that
// do not fit, ERR_LIMIT, or ERR_INVALID for an empty file or folder.
MUST_CHECK int candidates_read(struct candidates *ret, char **path, size_t count,
                               const char *extension, const char *defines, struct err *err);
// Makes the sources blobs of the daemon pool.
void candidates_add(struct candidates *candidates, struct daemon_pool *daemon_pool);
void candidates_free(struct candidates *candidates);

// The name of a candidate's file for people: its path, or "<stdin>".
const char *candidates_name(const struct candidate_file *file);

// A search name for the jobs of one command that no other command uses; malloc'd.
char *candidates_search_name(const char *command);

#endif

// The parts of a run file that client/run/run.c and client/run/run_file.c share. Nobody else
// includes this.
#ifndef CLIENT_RUN_RUN_FILE_PRIVATE_H
#define CLIENT_RUN_RUN_FILE_PRIVATE_H

#include "client/run/run.h"
#include <sqlite3.h>

struct run {
    sqlite3 *db;
    char *path;
    char *warning;           // what run_warning says; NULL: nothing
    bool has_digests;        // the file has them: RUN_FORMAT, not RUN_FORMAT_OLD
    int lock_fd;             // descriptor that holds the flock; -1 for readers
    bool in_transaction;     // between run_begin and run_commit
    uint64_t last;           // number of the last event that was appended
    uint64_t last_committed; // number of the last event before the open transaction
    sqlite3_stmt *append;    // the statements are prepared on first use; NULL before
    sqlite3_stmt *put;
    sqlite3_stmt *get;
};

// Turns the last failure of the database into an error. doing names what was attempted.
// ERR_CORRUPT with a sentence about this event.
MUST_CHECK int run_damaged(const struct run *run, uint64_t sequence, struct err *err);
MUST_CHECK int run_fail(const struct run *run, const char *doing, struct err *err);
// Executes SQL that returns no rows.
MUST_CHECK int run_execute(struct run *run, const char *sql, const char *doing, struct err *err);

// The digest of an event by the names of the columns.
#define RUN_EVENT_DIGEST "row_digest('event', sequence, at, kind, body)"

#endif

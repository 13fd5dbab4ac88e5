// The inside of a run file, for client/run/run.c and client/run/run_file.c only.
#ifndef CLIENT_RUN_RUN_FILE_PRIVATE_H
#define CLIENT_RUN_RUN_FILE_PRIVATE_H

#include "client/run/run.h"
#include <sqlite3.h>

struct run {
    sqlite3 *db;
    char *path;
    int lock_fd;             // holds the flock; -1 for readers
    bool in_transaction;     // between run_begin and run_commit
    uint64_t last;           // sequence of the last event appended
    uint64_t last_committed; // the same, before the open transaction
    sqlite3_stmt *append;    // prepared on first use
    sqlite3_stmt *put;
    sqlite3_stmt *get;
};

// The error for the database's last failure.
MUST_CHECK int run_fail(const struct run *run, const char *doing, struct err *err);
// Statements without results.
MUST_CHECK int run_execute(struct run *run, const char *sql, const char *doing, struct err *err);

#endif

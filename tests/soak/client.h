// A client of the soak test: a process that submits, waits, cancels and acknowledges. It may be
// killed at any moment, and continues from its journal when it is started again.
#ifndef TESTS_SOAK_CLIENT_H
#define TESTS_SOAK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#define SOAK_EXIT_VIOLATION 3
// A file in the folder. When it exists, clients start nothing new and end when all is acknowledged.
#define SOAK_STOP "stop"
// A file to which executors write what they do and clients what they were told, in one order.
#define SOAK_LOG "executors"

struct client_plan {
    const char *dir;
    const char *url;
    uint64_t seed;
    unsigned number;
    unsigned life;     // how often the client was started before
    bool real;         // there may be jobs for the real kcast-exec
    unsigned think_ms; // longest pause between two steps
};

// Runs until the file SOAK_STOP exists and all jobs are acknowledged, and returns 0. It exits with
// SOAK_EXIT_VIOLATION when the daemon broke a promise; the journal then has a sentence.
int client_run(const struct client_plan *plan);

#endif

// A client of the soak test: a process that submits, waits, cancels and acknowledges, may be killed
// at any moment, and goes on from its journal when it is started again.
#ifndef TESTS_SOAK_CLIENT_H
#define TESTS_SOAK_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#define SOAK_EXIT_VIOLATION 3
#define SOAK_STOP "stop" // a file in the folder: nothing new any more, end when all is acknowledged
#define SOAK_LOG "executors" // what executors do, and what clients were told, in one order

struct client_plan {
    const char *dir;
    const char *url;
    uint64_t seed;
    unsigned number;
    unsigned life;     // how often it was started before
    bool real;         // there may be jobs for the real kcast-exec
    unsigned think_ms; // at most, between two steps
};

// Until SOAK_STOP is there and all jobs are acknowledged: 0. SOAK_EXIT_VIOLATION when something was
// not as promised; the journal says what.
int client_run(const struct client_plan *plan);

#endif

// The process between us and a program that proposes. It starts the program in a session of its own
// and collects every process that the program leaves behind. When the program's first process ends,
// or when we close our end of `life` or are gone, it kills what is left and ends itself. So nothing
// outlives a program, whatever it started and however we ended.
#ifndef CLIENT_PROGRAM_KEEPER_H
#define CLIENT_PROGRAM_KEEPER_H

#include "common/err.h"
#include <sys/types.h>

struct keeper {
    pid_t pid;
    int output; // reads what the program writes to stdout
    int errors; // reads what the program writes to stderr
    int status; // reads an int, the wait status of the program, then the end of the file
    int life;   // to be closed to end the program
};

// Starts `/bin/sh -c command` with the file input on its stdin; input stays the caller's. The four
// descriptors are the caller's, who waits for the process when it has read the end of status.
MUST_CHECK int keeper_start(struct keeper *ret, const char *command, int input, struct err *err);

#endif

// One run of a program, on the loop: a text goes in, another comes out, within a time and a size.
// Used by client/program/program_proposer.c. It knows nothing of searches.
#ifndef CLIENT_PROGRAM_PROGRAM_H
#define CLIENT_PROGRAM_PROGRAM_H

#include "common/err.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define PROGRAM_WORDS_MAX 200 // characters of what a program said last on stderr

struct program_bounds {
    uint64_t ms;       // from its start to its end
    size_t output_max; // bytes of stdout
};

struct program_end {
    const struct strbuf *output; // what it wrote to stdout, as far as it was allowed to
    bool late;                   // it was killed at the end of its time
    bool flooded;                // it was killed because it wrote too much
    int status;                  // as of waitpid
    double seconds;
    char words[PROGRAM_WORDS_MAX + 1]; // the last line of its stderr, printable; empty: none
};

struct program_run;
// Runs once, on the loop, when the program and all that it started are gone. *end and the program
// are freed after it.
typedef void program_callback(void *owner, const struct program_end *end);

// Starts `/bin/sh -c command` with the text on its stdin.
MUST_CHECK int program_run_start(struct program_run **ret, uv_loop_t *loop, const char *command,
                                 const struct program_bounds *bounds, const char *text, size_t len,
                                 program_callback *callback, void *owner, struct err *err);
// Kills the program and all that it started, and waits until they are gone. The callback does not
// run any more.
void program_run_kill(struct program_run *program);

#endif

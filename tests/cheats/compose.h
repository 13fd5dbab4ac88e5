// Candidates put together from three texts: what the problem's kit says about its arguments, the
// problem's own baseline under another name, and a mechanism that is written once for all problems.
// A mechanism is a file of tests/cheats/cpu or tests/cheats/honest. It defines cheat(), and may
// have lines
//     //@ variant NAME DEFINES…     a variation: its macros, as NAME or NAME=VALUE
//     //@ on PROBLEM…               the only problems for which it makes sense
//     //@ refused TEXT              it is refused, with a sentence that contains the text
// A mechanism that mentions the macro TWIN does its work honestly where that is defined. The twin
// of any other is the baseline itself, called in the same way.
#ifndef TESTS_CHEATS_COMPOSE_H
#define TESTS_CHEATS_COMPOSE_H

#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/problem.h"
#include <stdbool.h>

#define COMPOSE_PROBLEMS 7

// A problem of problems/cpu with smaller benchmark cases.
struct cheat_problem {
    const char *name;
    struct bytes json; // with the benchmark cases of the battery
    struct problem *problem;
    struct bytes reference, baseline; // sources
    struct bytes kit;
};

// One variation of a mechanism.
struct mechanism {
    char *name; // "file/variant", or "file"
    char *text; // of the file
    char *defines;
    char *refused; // part of the sentence by which it is refused; NULL: it is not
    uint32_t on;   // bits of the problems
    bool has_own_twin;
};

struct mechanisms {
    struct mechanism *list; // in the order of their names
    size_t count;
};

// These end the program with a sentence when a file is missing or not as it should be. With full
// the benchmark cases are the problem's own.
void compose_problems(struct cheat_problem out[static COMPOSE_PROBLEMS], bool full);
void compose_problems_release(struct cheat_problem *problems);
// All mechanisms of a folder below tests/cheats whose names contain the text, or all when it is
// NULL.
void compose_mechanisms(struct mechanisms *out, const char *folder, const char *containing);
void compose_mechanisms_release(struct mechanisms *mechanisms);

// Appends the candidate. mechanism NULL is the baseline called through the kit.
void compose_source(const struct cheat_problem *problem, const struct mechanism *mechanism,
                    bool twin, struct strbuf *out);

#endif

// The child that runs the compiler: process 1 of its pid namespace. Its own code is trusted, gcc
// and objdump, which work on hostile text, are its children and get none of its descriptors.
#ifndef EXECUTOR_CPU_JAIL_H
#define EXECUTOR_CPU_JAIL_H

#include "executor/cpu/control.h"
#include "executor/sandbox/zygote.h"
#include <stdint.h>

#define JAIL_FLAGS_MAX 4097
#define JAIL_WORDS_MAX 256
#define JAIL_TEXT_MAX 256
// objdump's text: of an ordinary object some 100 KiB
#define JAIL_LISTING_MAX ((uint64_t)64 << 20)

// Descriptors: 0 source, 1 header, 2 glue, 3 compiler's output, 4 object, 5 objdump's output, 6
// struct jail_outcome; memfds all.
enum jail_file {
    JAIL_SOURCE,
    JAIL_HEADER,
    JAIL_GLUE,
    JAIL_LOG,
    JAIL_OBJECT,
    JAIL_LISTING,
    JAIL_OUTCOME,
    JAIL_FILE_COUNT
};

struct jail_spec {
    enum child_role role;
    char name[65];              // "candidate.c"
    char flags[JAIL_FLAGS_MAX]; // further ones, separated by blanks
    char dir[128];              // to work in when the sandbox is off
    uint64_t max_memory, max_output, cpu_seconds;
};

struct jail_outcome {
    bool finished;               // everything below is valid
    bool compiled;               // the object is there
    bool too_large;              // it is larger than max_output
    int compiler_status;         // wait status
    char version[JAIL_TEXT_MAX]; // "12.2.0"; "" when unknown
    char setup[JAIL_TEXT_MAX];   // why the jail could not be set up; "" when it could
};

int jail_main(const struct zygote_child *child, const struct sandbox_filter *filter);

#endif

// The child that runs gcc and objdump: process 1 of its pid namespace. executor/cpu/child.c starts
// it for executor/cpu/compile.c. Its own code is trusted; gcc and objdump, which read hostile text,
// are its children and inherit none of its descriptors but their output. It must not know what the
// result is used for.
#ifndef EXECUTOR_CPU_JAIL_H
#define EXECUTOR_CPU_JAIL_H

#include "executor/cpu/control.h"
#include "executor/sandbox/zygote.h"
#include <stdint.h>

#define JAIL_FLAGS_MAX 4097 // bytes with the NUL
#define JAIL_WORDS_MAX 256  // flags
#define JAIL_TEXT_MAX 256   // bytes with the NUL
// Bytes of objdump's text. For an ordinary object it is some 100 KiB.
#define JAIL_LISTING_MAX ((uint64_t)64 << 20)

// What stands for gcc's wait status when it could not be started, and the exit statuses of a child
// that could not become gcc. gcc itself ends with 0 to 4.
#define JAIL_NO_COMPILER (-1)
#define JAIL_EXIT_NO_LIMITS 126
#define JAIL_EXIT_NO_PROGRAM 127

// The descriptors that a jail is given, all memfds.
enum jail_file {
    JAIL_SOURCE,
    JAIL_HEADER,
    JAIL_GLUE,    // source of kcast_entry, which calls the candidate's entry
    JAIL_LOG,     // gcc's output
    JAIL_OBJECT,  // the shared object
    JAIL_LISTING, // objdump's output
    JAIL_OUTCOME, // struct jail_outcome
    JAIL_FILE_COUNT
};

struct jail_spec {
    enum child_role role;
    char name[65];              // name of the source file: "candidate.c"
    char flags[JAIL_FLAGS_MAX]; // additional flags, separated by blanks
    char dir[128];              // working directory when the sandbox is off
    uint64_t max_memory, max_output;
    uint64_t cpu_seconds; // of processor time, of each process
    double wall_seconds;  // until everything is killed
};

struct jail_outcome {
    bool finished;               // everything below is valid
    bool compiled;               // there is an object
    bool too_large;              // the object is larger than max_output and was not copied
    bool timed_out;              // wall_seconds were over, and everything was killed
    double cpu_seconds;          // that gcc, objdump and what they started have used
    int compiler_status;         // wait status of gcc
    char version[JAIL_TEXT_MAX]; // gcc's version: "12.2.0"; "" when unknown
    char setup[JAIL_TEXT_MAX];   // why the jail could not be set up; "" when it could
};

// Returns the exit status of the child.
int jail_main(const struct zygote_child *child, const struct sandbox_filter *filter);

#endif

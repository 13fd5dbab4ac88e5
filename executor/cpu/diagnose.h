// From gcc's output to one sentence that helps the author of a candidate. The compilation calls
// this. It must not know how gcc was run.
#ifndef EXECUTOR_CPU_DIAGNOSE_H
#define EXECUTOR_CPU_DIAGNOSE_H

#include <stddef.h>
#include <stdint.h>

struct diagnose_limits {
    uint64_t max_memory; // bytes
    uint64_t max_output; // bytes
    uint64_t processes;  // of the jail; 0: not limited
    double max_seconds;
};

// Returns the sentence, malloc'd: about a missing entry, about an exhausted limit, the first line
// with an error, or else how the compiler ended and its first words. It is never blank. log is
// NUL-terminated text; name is the file's name in it; status is gcc's wait status.
char *diagnose(const char *log, const char *name, const struct diagnose_limits *limits, int status);

#endif

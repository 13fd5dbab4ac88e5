// From gcc's output to one sentence that helps the author of a candidate. The compilation calls
// this. It must not know how gcc was run.
#ifndef EXECUTOR_CPU_DIAGNOSE_H
#define EXECUTOR_CPU_DIAGNOSE_H

#include <stddef.h>
#include <stdint.h>

struct diagnose_limits {
    uint64_t max_memory; // bytes
    uint64_t max_output; // bytes
};

// Returns the sentence, malloc'd: about a missing entry, about an exhausted limit, or the first
// line with an error. log is NUL-terminated text; name is the file's name in it.
char *diagnose(const char *log, const char *name, const struct diagnose_limits *limits);

#endif

// From the compiler's output to one sentence that helps whoever wrote the candidate.
#ifndef EXECUTOR_CPU_DIAGNOSE_H
#define EXECUTOR_CPU_DIAGNOSE_H

#include <stddef.h>
#include <stdint.h>

struct diagnose_limits {
    uint64_t max_memory; // bytes
    uint64_t max_output; // bytes
};

// The sentence, malloc'd: a missing entry, an exhausted limit, or the first error line quoted. log
// is NUL-terminated text; name is what the file is called in it.
char *diagnose(const char *log, const char *name, const struct diagnose_limits *limits);

#endif

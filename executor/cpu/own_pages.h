// Pages that a process shares with nobody, so that what one runner does to its processor's cache is
// nothing to another. executor/cpu/runner.c calls it before it confines itself. It owns nothing,
// and must not know what the process becomes.
#ifndef EXECUTOR_CPU_OWN_PAGES_H
#define EXECUTOR_CPU_OWN_PAGES_H

#include "common/err.h"

// Gives this process copies of its own of the pages of this program and of its libraries: code,
// constants, tables of addresses and variables.
//
// The pages of a file, and those of a fork that neither side has written, are the same physical
// memory in every process. A candidate that flushes or evicts such a line (clflushopt needs no
// permission and takes nanoseconds) makes the next launch of the baseline fetch it from memory.
// After this call no line that a runner can name is one that another runner needs, but for the
// tensors, which the harness writes before each launch.
//
// To be called before anything is confined, by a process with one thread. ERR_SYSTEM: no memory;
// the process is then to end, since a part may have been replaced.
int own_pages(struct err *err);

#endif

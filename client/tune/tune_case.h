// The benchmark cases of a problem one by one: which of them a command line names, and the problem
// with only one of them. Called by tune.c and `kcast tune`. Does no I/O.
#ifndef CLIENT_TUNE_TUNE_CASE_H
#define CLIENT_TUNE_TUNE_CASE_H

#include "client/problem/problem_dir.h"
#include "common/err.h"
#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>

#define TUNE_ALL SIZE_MAX // all benchmark cases together, instead of the index of one

// Sets chosen[i] for the benchmark cases that `wanted` names. It consists of lists separated by
// commas; a list consists of NAME=VALUE separated by blanks. A case is chosen when it has all the
// values of one list. NULL chooses every case. ERR_INVALID when a list names no case; the sentence
// says which cases there are.
MUST_CHECK int tune_select(bool chosen[static PROBLEM_CASE_MAX], const struct problem *problem,
                           const char *wanted, struct err *err);

// Makes a copy of the problem with that benchmark case alone, or with all of them for TUNE_ALL, and
// with this text as its template. The cases that are only checked stay, so that a configuration
// must be correct for all shapes and fast for one. *ret is the caller's (problem_dir_release).
MUST_CHECK int tune_narrow(struct problem_dir *ret, const struct problem_dir *dir,
                           const struct bytes *kernel, size_t bench, struct err *err);

#endif

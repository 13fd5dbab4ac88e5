// The benchmark cases of a problem one by one: which are meant, and the problem that has only one
// of them. Pure: no I/O.
#ifndef CLIENT_TUNE_TUNE_CASE_H
#define CLIENT_TUNE_TUNE_CASE_H

#include "client/problem/problem_dir.h"
#include "common/err.h"
#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>

#define TUNE_ALL SIZE_MAX // instead of the index of a benchmark case: all of them together

// The cases that `wanted` names: lists separated by commas of NAME=VALUE separated by blanks; a
// case is meant when it has all the values of one list. NULL: every case. ERR_INVALID when a list
// names no case; the sentence says which cases there are.
MUST_CHECK int tune_select(bool chosen[static PROBLEM_CASE_MAX], const struct problem *problem,
                           const char *wanted, struct err *err);

// A copy of the problem with that benchmark case alone (or TUNE_ALL) and this text as its template;
// checks and hidden cases stay, so that a configuration must be right for all shapes and fast for
// one. *ret is the caller's (problem_dir_release).
MUST_CHECK int tune_narrow(struct problem_dir *ret, const struct problem_dir *dir,
                           const struct bytes *kernel, size_t bench, struct err *err);

#endif

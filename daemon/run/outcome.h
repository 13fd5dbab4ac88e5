// What kcast-exec says, held against what it was asked: a report is believed only where it can be
// true. Pure functions.
#ifndef DAEMON_RUN_OUTCOME_H
#define DAEMON_RUN_OUTCOME_H

#include "common/err.h"
#include "proto/messages.h"

// What a compilation was asked to do.
struct compile_expectation {
    const char *target; // cuda: architecture; NULL: a C source
    bool sandbox_off;
};

// Reads and checks the report of `kcast-exec compile` or `cuda-compile`. On success *ret is owned
// by the caller, its verdict is known, and when it is VERDICT_NONE there is an object (a
// cuda_object for the target, with code in each variant) and compiled->object is its digest
// (computed here). ERR_PROTOCOL otherwise.
MUST_CHECK int outcome_read_compile(struct compile_outcome *ret, const struct bytes *outcome,
                                    const struct compile_expectation *expected, struct err *err);

// What a measurement was asked to do.
struct outcome_expectation {
    struct digest problem;
    struct digest candidate; // of its source
    bool sandbox_off;
};

// Reads and checks the report of `kcast-exec measure`: a known verdict; for ratios an estimate and
// cases with finite numbers that can be true; no digest that differs from the expected ones. *ret
// is owned by the caller on success.
MUST_CHECK int outcome_read_measure(struct measure_outcome *ret, const struct bytes *outcome,
                                    const struct outcome_expectation *expected, struct err *err);

// Reads and checks the report of `kcast-exec probe`: class and toolchain are there.
MUST_CHECK int outcome_read_probe(struct probe_outcome *ret, const struct bytes *outcome,
                                  struct err *err);

// Reads and checks the report of `kcast-exec cuda-probe`: a toolchain when there is a GPU; no two
// GPUs alike; each that can be used has a class and a target.
MUST_CHECK int outcome_read_cuda_probe(struct cuda_probe_outcome *ret, const struct bytes *outcome,
                                       struct err *err);

#endif

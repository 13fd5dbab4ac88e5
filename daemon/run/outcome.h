// Reads what kcast-exec writes, and checks it against what it was asked: an outcome is believed
// only where it can be true. Called by compiler.c, measure.c and the upkeep of devices, also on
// other threads than the loop's. Pure functions; nothing here knows jobs or devices.
#ifndef DAEMON_RUN_OUTCOME_H
#define DAEMON_RUN_OUTCOME_H

#include "common/err.h"
#include "proto/messages.h"

// All functions below set *ret only on success; the caller then owns it. An outcome that cannot be
// read or cannot be true is ERR_PROTOCOL, and the sentence says what is wrong with it.

// What a compilation was asked to do.
struct compile_expectation {
    const char *target; // cuda: the architecture, "sm_90"; NULL: a C source
    bool sandbox_off;
    bool complete;     // all variants were asked for
    bool machine_code; // features of machine code were asked for
    bool unsealed;     // the object may be one that runs unsealed
};

// The outcome of `kcast-exec compile` or `cuda-compile`. Its verdict is known. When that is
// VERDICT_NONE there is an object (for cuda a cuda_object for the target, with code in each
// variant), and compiled->object is its digest, which is computed here.
MUST_CHECK int outcome_read_compile(struct compile_outcome *ret, const struct bytes *outcome,
                                    const struct compile_expectation *expected, struct err *err);

// What a measurement was asked to do.
struct measure_expectation {
    struct digest problem;
    struct digest candidate; // of its source
    double precision_log2;   // of the measurement; NaN: not known
    bool sandbox_off;
    bool unsealed; // the candidate's object runs unsealed, and only such a one does
};

// The outcome of `kcast-exec measure` or `cuda-measure`. It passes result_check, and no digest
// differs from the expected ones.
MUST_CHECK int outcome_read_measure(struct measure_outcome *ret, const struct bytes *outcome,
                                    const struct measure_expectation *expected, struct err *err);

// The outcome of `kcast-exec probe`. The class of the device and the toolchain are there.
MUST_CHECK int outcome_read_probe(struct probe_outcome *ret, const struct bytes *outcome,
                                  struct err *err);

// The outcome of `kcast-exec cuda-probe`. No two GPUs have the same UUID or number, and each GPU
// that can be used has a class, a target and a toolchain.
MUST_CHECK int outcome_read_cuda_probe(struct cuda_probe_outcome *ret, const struct bytes *outcome,
                                       struct err *err);

#endif

// The workbench: one GPU, one problem, the arms (baseline, candidate, a copy of the baseline) and the
// tensors they share. Every launch goes through here, so that each is prepared and checked the same way.
// executor/gpu/measure.c says what is measured in which order, executor/gpu/race.c does the timing.
//
// Design notes. The arms get the same addresses for every tensor: neither is favoured by where memory
// lies, and an answer remembered by address is wrong for the next contents. Before a run outputs and
// scratch memory are poisoned, inout tensors restored, device variables reset, shared memory overwritten;
// afterwards guards and inputs are compared and the outputs hashed. Outputs whose keyed hash equals that
// of outputs which the oracle has found right for the same contents are right; all others go to the
// oracle. So every launch, timed or not, is verified.
#ifndef EXECUTOR_GPU_BENCH_H
#define EXECUTOR_GPU_BENCH_H

#include "common/stats.h"
#include "executor/gpu/content.h"
#include "executor/gpu/oracle.h"
#include "executor/gpu/program.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"

enum bench_arm { BENCH_BASELINE, BENCH_CANDIDATE, BENCH_CONTROL, BENCH_ARMS };

#define BENCH_SLOTS 2 // contents of a trial that take turns
// Beside 0 and errors: the candidate has failed; verdict and reason are set.
#define BENCH_STOP 1

// The verified outputs of one arm for one content.
struct bench_verified {
    bool known;
    uint64_t hash[PROBLEM_TENSOR_MAX][2];
};

// One case.
struct bench_trial {
    const struct shape_case *shape;
    uint64_t index; // among all cases: part of the contents' name
    char *name;     // "M=384 N=384"
    struct content_sizes sizes;
    uint64_t number[BENCH_SLOTS]; // which contents the slots hold
    struct bench_verified verified[BENCH_ARMS][BENCH_SLOTS];
};

// What one timed launch took.
struct bench_time {
    double ns;       // between the events before and after it
    double clock_hz; // of a multiprocessor meanwhile; NaN: unknown
};

struct bench {
    struct gpu *gpu;
    struct oracle *oracle;
    const struct measure_plan *plan;
    struct problem *problem;
    struct program *arm[BENCH_ARMS]; // NULL: not there
    struct area live[PROBLEM_TENSOR_MAX];
    struct area store[BENCH_SLOTS][PROBLEM_TENSOR_MAX]; // inputs of the slots
    const struct bench_trial *placed;
    size_t slot; // whose inputs are in live
    uint64_t input_hash[BENCH_SLOTS][PROBLEM_TENSOR_MAX][2];
    struct gpu_zones zones;
    struct stats_rng rng;
    uint64_t guard_key, hash_key;
    cu_event begin, end;
    uint64_t launch_limit_ns;
    double baseline_ns; // of the slowest launch of the baseline so far; 0: none yet
    double overhead_ns; // between two events with nothing between them
    // What is reported.
    enum verdict verdict; // NONE while nothing is wrong with the candidate
    char *reason;
    uint64_t checks;
    double max_error, error_bound; // NaN: nothing was compared
    double clock_sum_hz;
    uint64_t clock_count;
    struct accounts seconds;
};

// The arms and the events. plan, gpu and oracle must outlive it; problem is taken.
MUST_CHECK int bench_init(struct bench *bench, struct gpu *gpu, struct oracle *oracle,
                          const struct measure_plan *plan, struct problem *problem_take,
                          struct err *err);
void bench_release(struct bench *bench);

MUST_CHECK int bench_trial_init(struct bench *bench, struct bench_trial *trial,
                                const struct shape_case *shape, uint64_t index, struct err *err);
void bench_trial_release(struct bench_trial *trial);
// Tells the oracle to compute what is expected for the trial's contents.
MUST_CHECK int bench_announce(struct bench *bench, const struct bench_trial *trial,
                              struct err *err);
// Puts the trial on the bench: memory, inputs of all slots, arguments of the given arms (bits 1 <<
// enum bench_arm). BENCH_STOP when the candidate cannot be launched.
MUST_CHECK int bench_place(struct bench *bench, struct bench_trial *trial, unsigned arms,
                           struct err *err);
// Another content in a slot: its outputs have to be verified anew. The trial must be placed.
MUST_CHECK int bench_renew(struct bench *bench, struct bench_trial *trial, size_t slot,
                           uint64_t number, struct err *err);

// One launch of the arm on the contents of the slot, verified. It is timed when time is not NULL: then the
// caches are as the problem says. The host waits for each launch before it queues the next: launches that
// follow each other without a pause take up to 1 us more or less by their place in the queue, on an H200
// (docs/measuring.md).
MUST_CHECK int bench_launch(struct bench *bench, struct bench_trial *trial, enum bench_arm arm,
                            size_t slot, struct bench_time *time, struct err *err);

// Sets verdict and reason (the first stays) and returns BENCH_STOP.
int bench_stop(struct bench *bench, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

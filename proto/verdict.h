// The outcomes of a job (verdicts), the states that it goes through, and its kinds. Daemon,
// executor, worker and client share them. The numbers are on the wire and in files: they never
// change.
#ifndef PROTO_VERDICT_H
#define PROTO_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

// Each row: number, id, name, whether it is a ratio (the candidate was correct and has an
// estimate), meaning. A number is never used again.
// clang-format off
#define VERDICTS(X)                                                                                                      \
    X(0, NONE, "none", false, "not measured")                                                                            \
    X(1, FASTER, "faster", true, "correct, and the interval lies above the baseline")                                    \
    X(2, SLOWER, "slower", true, "correct, and the interval lies below the baseline")                                    \
    X(3, EQUIVALENT, "equivalent", true, "correct, and within the precision of the baseline")                            \
    X(4, INCONCLUSIVE, "inconclusive", true, "correct, but the cap was reached before a decision")                       \
    X(5, WRONG, "wrong", false, "an output was outside its error bound")                                                 \
    X(6, COMPILE_ERROR, "compile-error", false, "the compiler or linker refused it")                                     \
    X(7, CRASH, "crash", false, "it ended by a signal or left its function otherwise")                                   \
    X(8, TIMEOUT, "timeout", false, "a launch took longer than allowed")                                                 \
    X(9, REJECTED, "rejected", false, "it breaks the rules for candidates")                                              \
    X(10, QUARANTINED, "quarantined", false, "physically impossible or tampering; kept with its evidence, never scored")
// clang-format on

enum verdict {
#define X(number, id, name, ratio, text) VERDICT_##id = number,
    VERDICTS(X)
#undef X
};

// The name of a verdict, "unknown" for any other number.
const char *verdict_name(uint64_t verdict);
// Its meaning for people, also defined for any other number.
const char *verdict_meaning(uint64_t verdict);
bool verdict_known(uint64_t verdict);
// Whether the candidate was correct and has an estimate of its speedup.
bool verdict_is_ratio(uint64_t verdict);

// In a search a speedup counts as an improvement from this log2 on, half a percent: for whoever
// measures, forecasts and decides.
#define IMPROVEMENT_MARGIN_LOG2 0.0072
// Whether an interval of log2 speedups lies round 0 and within twice the precision that was asked
// for, half a percent with the usual one: then there is no difference that counts, and the verdict
// is EQUIVALENT. Method: two one-sided tests (Schuirmann 1987).
bool verdict_is_tie(double lo, double hi, double precision_log2);

// The role for which a sealed source is compiled. It decides for which cases: a baseline for the
// benchmark cases only, a candidate for the hidden cases too. A reference has arguments of its own.
enum compile_role { COMPILE_CANDIDATE, COMPILE_BASELINE, COMPILE_REFERENCE };

enum job_kind { JOB_COMPILE = 1, JOB_MEASURE = 2 };

// Each row: number, id, name, whether it is terminal, meaning.
// clang-format off
#define JOB_STATES(X)                                                                    \
    X(0, QUEUED, "queued", false, "accepted and journalled, not started")                \
    X(1, COMPILING, "compiling", false, "waiting for the compile jail")                  \
    X(2, READY, "ready", false, "compiled, waiting for a device")                        \
    X(3, RUNNING, "running", false, "on a device")                                       \
    X(4, DONE, "done", true, "has a result")                                             \
    X(5, CANCELLED, "cancelled", true, "stopped by its client")                          \
    X(6, BURIED, "buried", true, "lost its executor too often; parked, with the reason")
// clang-format on

enum job_state {
#define X(number, id, name, terminal, text) JOB_##id = number,
    JOB_STATES(X)
#undef X
        JOB_STATE_COUNT
};

// Why a job ended without a result. Each row: number, id, name, meaning. A number is never used
// again. NONE is also what a daemon or ledger of before says, which did not know causes.
#define JOB_CAUSES(X)                                                                              \
    X(0, NONE, "none", "it has a result, or has not ended, or nobody said why")                    \
    X(1, CLIENT, "client", "its client cancelled it")                                              \
    X(2, BUDGET, "budget", "its search or tenant has used its device time")                        \
    X(3, LOST_EXECUTOR, "lost-executor",                                                           \
      "the process that compiled or measured it failed more than once")                            \
    X(4, LOST_DAEMON, "lost-daemon", "the daemon went down with it too often")                     \
    X(5, BAD_PROBLEM, "bad-problem", "its problem, reference or baseline cannot be used")          \
    X(6, MISSING_BLOB, "missing-blob", "something that it needs has gone or cannot be read")       \
    X(7, STORAGE, "storage", "what was made for it could not be stored")                           \
    X(8, NO_DEVICE, "no-device", "no device here runs such problems")                              \
    X(9, TOO_LARGE, "too-large", "it does not fit into a message to or from an executor")          \
    X(10, UNREADABLE, "unreadable", "the ledger's copy of what it was to do cannot be read")

enum job_cause {
#define X(number, id, name, text) JOB_CAUSE_##id = number,
    JOB_CAUSES(X)
#undef X
        JOB_CAUSE_COUNT
};
const char *job_cause_name(uint64_t cause); // "unknown" when it is none of them
// The name of a state, "unknown" for any other number.
const char *job_state_name(uint64_t state);
// Whether a job in this state is finished.
bool job_state_is_terminal(uint64_t state);

#endif

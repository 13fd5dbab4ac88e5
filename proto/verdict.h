// The outcomes of a job (verdicts), the states that it goes through, and its kinds. Daemon,
// executor, worker and client share them. The numbers are on the wire and in files: they never
// change.
#ifndef PROTO_VERDICT_H
#define PROTO_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

// Each row: number, id, name, whether it is a ratio (the candidate was correct and has an
// estimate), meaning. A number is never used again.
#define VERDICTS(X)                                                                                \
    X(0, NONE, "none", false, "not measured")                                                      \
    X(1, FASTER, "faster", true, "correct, and the interval lies above the baseline")              \
    X(2, SLOWER, "slower", true, "correct, and the interval lies below the baseline")              \
    X(3, EQUIVALENT, "equivalent", true, "correct, and within the precision of the baseline")      \
    X(4, INCONCLUSIVE, "inconclusive", true, "correct, but the cap was reached before a decision") \
    X(5, WRONG, "wrong", false, "an output was outside its error bound")                           \
    X(6, COMPILE_ERROR, "compile-error", false, "the compiler or linker refused it")               \
    X(7, CRASH, "crash", false, "it ended by a signal or left its function otherwise")             \
    X(8, TIMEOUT, "timeout", false, "a launch took longer than allowed")                           \
    X(9, REJECTED, "rejected", false, "it breaks the rules for candidates")                        \
    X(10, QUARANTINED, "quarantined", false,                                                       \
      "physically impossible or tampering; kept with its evidence, never scored")

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

// The role for which a sealed source is compiled. It decides for which cases: a baseline for the
// benchmark cases only, a candidate for the hidden cases too. A reference has arguments of its own.
enum compile_role { COMPILE_CANDIDATE, COMPILE_BASELINE, COMPILE_REFERENCE };

enum job_kind { JOB_COMPILE = 1, JOB_MEASURE = 2 };

// Each row: number, id, name, whether it is terminal, meaning.
#define JOB_STATES(X)                                                                              \
    X(0, QUEUED, "queued", false, "accepted and journalled, not started")                          \
    X(1, COMPILING, "compiling", false, "waiting for the compile jail")                            \
    X(2, READY, "ready", false, "compiled, waiting for a device")                                  \
    X(3, RUNNING, "running", false, "on a device")                                                 \
    X(4, DONE, "done", true, "has a result")                                                       \
    X(5, CANCELLED, "cancelled", true, "stopped by its client")                                    \
    X(6, BURIED, "buried", true, "lost its executor too often; parked, with the reason")

enum job_state {
#define X(number, id, name, terminal, text) JOB_##id = number,
    JOB_STATES(X)
#undef X
        JOB_STATE_COUNT
};
// The name of a state, "unknown" for any other number.
const char *job_state_name(uint64_t state);
// Whether a job in this state is finished.
bool job_state_is_terminal(uint64_t state);

#endif

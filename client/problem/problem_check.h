// Whether a problem is fit for use: its reference agrees with its baseline, honest variants are
// taken for correct, mutants are not, and its template has points that work. A check is a list of
// trials, each one MEASURE job; this module makes the list, sends it and judges it. Words for
// people are cmd_problem_check.c's.
#ifndef CLIENT_PROBLEM_PROBLEM_CHECK_H
#define CLIENT_PROBLEM_PROBLEM_CHECK_H

#include "client/pool/daemon_pool.h"
#include "client/problem/problem_dir.h"
#include "common/strbuf.h"
#include "problem/template.h"
#include <stdbool.h>

#define CHECK_SAMPLE 12          // points of the template that are tried
#define CHECK_TIMING_SECONDS 1.0 // cap on timing: a trial is there to be verified

enum check_kind { CHECK_HONEST, CHECK_MUTANT, CHECK_TEMPLATE };

enum check_outcome {
    CHECK_WAITING,        // no answer yet
    CHECK_NOT_APPLICABLE, // reason says why
    CHECK_CORRECT,        // verified: what an honest variant must be and an mutant must not
    CHECK_CAUGHT,         // wrong, crash, rejected, quarantined
    CHECK_UNDECIDED,      // did not compile, timed out, or the daemon gave it up: nothing is known
};

struct check_candidate {
    enum check_kind kind;
    const char *name;    // "zeros"; of a point NULL
    const char *what;    // one clause; of a point NULL
    const char *meaning; // of an mutant: what it says when it passes
    char *point_name;    // "MB=32 NB=64"; of the others NULL
    char *source;        // NULL when not applicable
    enum check_outcome outcome;
    uint64_t verdict;              // once there is a result
    char *reason;                  // the daemon's sentence, or why it does not apply; may be NULL
    double max_error, error_bound; // NaN when unknown
    double log2_speedup;           // NaN unless correct
};

struct problem_check {
    const struct problem_dir *dir;
    struct check_candidate *candidate;
    size_t candidate_count;
    bool has_template;
    size_t points; // of the template
};

// Lists the trials: honest variants, every mutant, and CHECK_SAMPLE points of the template drawn
// from seed. ERR_INVALID when the template cannot be read. dir must outlive the check.
MUST_CHECK int problem_check_init(struct problem_check *check, const struct problem_dir *dir,
                                  uint64_t seed, struct err *err);
void problem_check_release(struct problem_check *check);

// Measures every trial that applies; on_progress (may be NULL) is told after each. An error means
// that the check could not be finished; trials without an answer stay CHECK_WAITING.
MUST_CHECK int problem_check_run(struct problem_check *check, struct daemon_pool *daemon_pool,
                                 void (*on_progress)(void *owner, size_t done, size_t total),
                                 void *owner, struct err *err);

// Takes over a result, as problem_check_run does for each answer.
void check_candidate_judge(struct check_candidate *candidate, const struct result *result);
// Whether the outcome is what it has to be. Points of the template are judged together, by
// problem_check_admits.
bool check_candidate_as_expected(const struct check_candidate *candidate);

// The judgement over all trials. Appends one sentence per reason against the problem, each with a
// newline.
bool problem_check_admits(const struct problem_check *check, struct strbuf *reasons);
size_t problem_check_points(const struct problem_check *check,
                            enum check_outcome outcome); // of the sample

#endif

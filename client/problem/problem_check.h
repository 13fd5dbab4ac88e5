// Whether a problem is fit for use: its reference agrees with its baseline, honest variants of the
// baseline are taken for correct, mutants are not, and its template has points that work. A check
// is a list of candidates, each of which is one MEASURE job. This module makes the list, sends it
// to the daemons and judges the answers. Called by `kcast problem check`, which has the words for
// people.
#ifndef CLIENT_PROBLEM_PROBLEM_CHECK_H
#define CLIENT_PROBLEM_PROBLEM_CHECK_H

#include "client/pool/daemon_pool.h"
#include "client/problem/problem_dir.h"
#include "common/strbuf.h"
#include "problem/template.h"
#include <stdbool.h>

#define CHECK_SAMPLE 12          // points of the template that are tried
#define CHECK_TIMING_SECONDS 1.0 // limit of timing, since only verification counts

enum check_kind { CHECK_HONEST, CHECK_MUTANT, CHECK_TEMPLATE };

enum check_outcome {
    CHECK_WAITING,        // There is no answer yet.
    CHECK_NOT_APPLICABLE, // The reason says why.
    CHECK_CORRECT,        // Verified: what an honest variant must be and a mutant must not be.
    CHECK_CAUGHT,         // The verdict is wrong, crash, rejected or quarantined.
    CHECK_UNDECIDED, // It did not compile, timed out, or was given up by the daemon: nothing is
                     // known.
};

struct check_candidate {
    enum check_kind kind;
    const char *name;    // such as "zeros"; NULL for a point of the template
    const char *what;    // one clause that says what it does; NULL for a point
    const char *meaning; // for a mutant: what is wrong with the problem when it is not caught
    char *point_name;    // for a point, such as "MB=32 NB=64"; else NULL; owned
    char *source;        // NULL when not applicable; owned
    enum check_outcome outcome;
    uint64_t verdict;    // enum verdict, once there is a result
    char *reason;        // the daemon's sentence, or why it is not applicable; NULL: none; owned
    double max_error;    // as in struct result; NaN when unknown
    double error_bound;  // as in struct result; NaN when unknown
    double log2_speedup; // NaN unless correct
};

struct problem_check {
    const struct problem_dir *dir; // the caller's
    struct check_candidate *candidate;
    size_t candidate_count;
    bool has_template;
    size_t points; // of the template
};

// Lists the candidates: honest variants, every mutant, and CHECK_SAMPLE points of the template,
// drawn from seed. ERR_INVALID when the template or the baseline cannot be read; *check needs no
// release then. dir must outlive the check.
MUST_CHECK int problem_check_init(struct problem_check *check, const struct problem_dir *dir,
                                  uint64_t seed, struct err *err);
void problem_check_release(struct problem_check *check);

// Measures every candidate that is applicable. Calls on_progress, which may be NULL, at the
// beginning and after each. An error means that the check could not be finished; candidates without
// an answer stay CHECK_WAITING.
MUST_CHECK int problem_check_run(struct problem_check *check, struct daemon_pool *daemon_pool,
                                 void (*on_progress)(void *owner, size_t done, size_t total),
                                 void *owner, struct err *err);

// Copies what a result says, as problem_check_run does for each answer.
void check_candidate_judge(struct check_candidate *candidate, const struct result *result);
// Whether the outcome is what it has to be. A point of the template is as expected once it has an
// answer; problem_check_admits judges the points together.
bool check_candidate_as_expected(const struct check_candidate *candidate);

// Whether the problem is fit for use. Appends one sentence for each reason against it, each with a
// newline.
bool problem_check_admits(const struct problem_check *check, struct strbuf *reasons);
// How many points of the sample have this outcome.
size_t problem_check_points(const struct problem_check *check, enum check_outcome outcome);

#endif

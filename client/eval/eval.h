// Forecasts and what became of them, by engine: read from a run file or from JSON lines, judged by
// client/eval/score.h. Reading is pure: texts and run states in, rows out.
#ifndef CLIENT_EVAL_EVAL_H
#define CLIENT_EVAL_EVAL_H

#include "client/eval/score.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define EVAL_ENGINES_MAX 64
#define EVAL_NAME_MAX 64 // bytes of an engine's name
#define EVAL_NO_ENGINE "unnamed"
#define EVAL_FILE_MAX ((size_t)256 << 20) // bytes of JSON lines

// The forecasts of one engine.
struct eval_set {
    char engine[EVAL_NAME_MAX + 1];
    struct score_row *row; // forecasts with an outcome
    size_t count;
    size_t unmeasured;                     // forecasts without one; quarantined results are none
    struct score_value value[SCORE_COUNT]; // after eval_compute
};

struct eval {
    struct eval_set *set; // in the order in which the engines appear
    size_t set_count;
};

void eval_init(struct eval *eval);
void eval_release(struct eval *eval);

// JSON lines, each an object with
//   "verdict"      a word of proto/verdict.h; absent or "none": no outcome
//   "log2"         measured log2 speedup; required for the verdicts that are a ratio
//   "bins"         probabilities over the bins of proto/bins.h (any positive sum), or
//   "mean_log2"    the forecast's mean alone; with both, the mean is as given
//   "p_correct", "p_improves", "confidence"   in [0, 1]
//   "cluster"      integer or text; lines with the same belong together; absent: a line by itself
//   "propensity"   with which the outcome was to be seen, in (0, 1]; absent: 1
//   "incumbent_log2"  what an improvement had to beat; absent: 0
//   "engine"       text; absent: EVAL_NO_ENGINE
// All but "verdict" may be absent or null. Other keys are ignored, empty lines too. text is
// followed by a NUL. ERR_INVALID and ERR_LIMIT sentences begin with path:line.
MUST_CHECK int eval_read_lines(struct eval *eval, const char *text, size_t len, const char *path,
                               struct err *err);

// The forecasts of a run. Candidates with the same parent are a cluster.
MUST_CHECK int eval_read_run_state(struct eval *eval, const struct run_state *run_state,
                                   const char *path, struct err *err);

// Fills value of every set.
void eval_compute(struct eval *eval, const struct score_options *options);

#endif

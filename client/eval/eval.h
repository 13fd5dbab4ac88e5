// Forecasts and their measured outcomes, grouped by the engine that made the forecasts. They are
// read from a run file or from JSON lines, and scored by client/eval/score.h. `kcast eval` calls
// this. It does no I/O: it is given texts and run states.
#ifndef CLIENT_EVAL_EVAL_H
#define CLIENT_EVAL_EVAL_H

#include "client/eval/score.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

// Limits of one eval; beyond them reading fails with ERR_LIMIT.
#define EVAL_ENGINES_MAX 64
#define EVAL_NAME_MAX 64 // bytes of an engine's name
// The engine's name where a forecast does not give one.
#define EVAL_NO_ENGINE "unnamed"
#define EVAL_FILE_MAX ((size_t)256 << 20) // bytes of JSON lines

// The forecasts of one engine.
struct eval_set {
    char engine[EVAL_NAME_MAX + 1];
    struct score_row *row; // forecasts with an outcome; owned, `count` of them
    size_t count;
    size_t unmeasured; // forecasts without an outcome; a quarantined result is no outcome
    struct score_value value[SCORE_COUNT]; // one for each metric; valid after eval_compute
};

// All engines of one input.
struct eval {
    struct eval_set *set; // owned; in the order in which the engines appear
    size_t set_count;
};

// An eval begins empty. Releasing it leaves it empty again.
void eval_init(struct eval *eval);
void eval_release(struct eval *eval);

// Reads JSON lines. Each is an object with these keys:
//  "verdict"      a word of proto/verdict.h; absent or "none": there is no outcome
//  "log2"         measured log2 speedup; required for the verdicts that are a ratio
//  "bins"         probabilities over the bins of proto/bins.h (any positive sum), or
//  "mean_log2"    the forecast's mean alone; with both, the mean is as given
//  "p_correct", "p_improves", "confidence"   in [0, 1]
//  "cluster"      integer or text; lines with equal values form a cluster; absent: a line is a
//                 cluster by itself
//  "propensity"   probability with which the outcome was to be observed, in (0, 1]; absent: 1
//  "incumbent_log2"  log2 speedup that an improvement had to exceed; absent: 0
//  "engine"       text; absent: EVAL_NO_ENGINE
// All but "verdict" may be absent or null. Other keys and empty lines are ignored. `text` must be
// followed by a NUL. Sentences of ERR_INVALID and ERR_LIMIT begin with path:line. After an error
// the eval holds the lines before it.
MUST_CHECK int eval_read_lines(struct eval *eval, const char *text, size_t len, const char *path,
                               struct err *err);

// Adds the forecasts of a run. Candidates with the same parent form a cluster; a candidate without
// a parent is a cluster by itself. `path` begins the sentences of errors.
MUST_CHECK int eval_read_run_state(struct eval *eval, const struct run_state *run_state,
                                   const char *path, struct err *err);

// Fills `value` of every set.
void eval_compute(struct eval *eval, const struct score_options *options);

#endif

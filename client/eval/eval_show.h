// What `kcast eval` prints: a table, a JSON line for each engine, or a page with two charts for
// each engine. All functions append to a buffer and do no I/O.
#ifndef CLIENT_EVAL_EVAL_SHOW_H
#define CLIENT_EVAL_EVAL_SHOW_H

#include "client/eval/eval.h"
#include "common/strbuf.h"

// What to print; all pointers are borrowed.
struct eval_page {
    const struct eval *eval; // after eval_compute
    const char *path;        // of the input, as the user gave it
    double risk;             // the risk for which SCORE_COVERAGE was computed
    uint64_t draws, seed;
};

// Appends a table for each engine, for people.
void eval_table(struct strbuf *out, const struct eval_page *page);
// Appends a JSON object for each engine, one on each line.
void eval_json(struct strbuf *out, const struct eval_page *page);
// Appends one HTML page. Style and pictures are inline; it has no script and requests nothing.
void eval_html(struct strbuf *out, const struct eval_page *page);

// Each appends one <svg>. `narrow` makes the picture for screens below about 560 pixels.
void eval_chart_reliability(struct strbuf *out, const struct eval_set *set, bool narrow);
void eval_chart_risk(struct strbuf *out, const struct eval_set *set, double risk, bool narrow);

#endif

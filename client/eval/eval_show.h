// What kcast eval shows: a table, a JSON line per engine, a page with two charts per engine. Pure;
// all append to a buffer.
#ifndef CLIENT_EVAL_EVAL_SHOW_H
#define CLIENT_EVAL_EVAL_SHOW_H

#include "client/eval/eval.h"
#include "common/strbuf.h"

struct eval_page {
    const struct eval *eval; // computed
    const char *path;        // of the input, as given
    double risk;             // of SCORE_COVERAGE
    uint64_t draws, seed;
};

void eval_table(struct strbuf *out, const struct eval_page *page);
void eval_json(struct strbuf *out, const struct eval_page *page);
// One HTML page: inline style and pictures, no script, no request to anywhere.
void eval_html(struct strbuf *out, const struct eval_page *page);

// Each appends one <svg>; narrow: for screens below about 560 pixels.
void eval_chart_reliability(struct strbuf *out, const struct eval_set *set, bool narrow);
void eval_chart_risk(struct strbuf *out, const struct eval_set *set, double risk, bool narrow);

#endif

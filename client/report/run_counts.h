// What became of the candidates of a run, in rows whose sum is the number of candidates considered.
// Summaries, reports and their JSON print these rows. Only what a forecast decided counts as saved:
// a candidate that did not compile, that was there already, or that the search did not come to
// would not have been measured without forecasts either. Pure.
#ifndef CLIENT_REPORT_RUN_COUNTS_H
#define CLIENT_REPORT_RUN_COUNTS_H

#include "client/run/run_state.h"
#include <jansson.h>
#include <stdint.h>

// Columns: id, name in --json, meaning. Each candidate is in exactly one row.
#define RUN_COUNT_ROWS(X)                                                                          \
    X(MEASURED, "measured", "measured")                                                            \
    X(AUDIT, "audits", "measured as an audit: its forecast would have left it out")                \
    X(TRUSTED, "trusted", "not measured: the forecast was trusted")                                \
    X(NOT_COMPILED, "not_compiled", "did not compile, or was rejected")                            \
    X(DUPLICATE, "duplicates", "duplicate: source or machine code of another")                     \
    X(NOT_REACHED, "not_reached", "never reached: the search ended before it was decided")         \
    X(NO_RESULT, "no_result", "no result: given up by the daemon, or under way")

// A saving below this is not worth words.
#define RUN_COUNTS_SAVING_LEAST 1.05

enum run_count_row {
#define X(id, name, text) RUN_COUNT_##id,
    RUN_COUNT_ROWS(X)
#undef X
        RUN_COUNT_ROW_COUNT
};

struct run_counts {
    uint64_t considered;               // all candidates: the sum of the rows
    uint64_t row[RUN_COUNT_ROW_COUNT]; // by enum run_count_row
    uint64_t measured;                 // measured for the search or as audits
    uint64_t screened;                 // candidates that a screening has chosen
    uint64_t compared;                 // the most points of one screening
    uint64_t ranked;                   // proposals that were taken after they had been ranked
    uint64_t proposals;                // the most proposals that were ranked at a time
    uint64_t waiting;                  // proposals that are no candidates yet
    // How many times as many measurements there would have been without forecasts: measured and
    // trusted ones over measured ones. NaN when nothing was trusted or nothing was measured.
    double saving;
};

// Counts the candidates of the run so far.
struct run_counts run_counts_of(const struct run_state *run_state);
// A row's name in --json, and its meaning for people. They are constant.
const char *run_count_name(enum run_count_row row);
const char *run_count_meaning(enum run_count_row row);
// {considered, each row by its name, and screened, compared, ranked, proposals and waiting, which
// are no rows}. A new
// reference.
json_t *run_counts_json(const struct run_counts *counts);

#endif

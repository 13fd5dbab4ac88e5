// Design. A row is a group of fates (client/report/report.h), so that this table and the one of the
// fates cannot contradict each other. Only two rows need more than the fate: what was measured may
// be an audit, and what is not finished may have been decided about.
#include "client/report/run_counts.h"

#include "client/report/report.h"
#include <math.h>

static const struct {
    const char *name, *meaning;
} rows[RUN_COUNT_ROW_COUNT] = {
#define X(id, name_, text) [RUN_COUNT_##id] = {name_, text},
    RUN_COUNT_ROWS(X)
#undef X
};

const char *run_count_name(enum run_count_row row)
{
    return rows[row].name;
}

const char *run_count_meaning(enum run_count_row row)
{
    return rows[row].meaning;
}

static enum run_count_row row_of(const struct run_state_candidate *candidate)
{
    uint64_t decision = candidate->decided.decision;
    switch (report_fate_of(candidate)) {
    case FATE_REJECTED:
    case FATE_COMPILE_ERROR:
        return RUN_COUNT_NOT_COMPILED;
    case FATE_TRUSTED:
        return RUN_COUNT_TRUSTED;
    case FATE_SAME_OBJECT:
    case FATE_SAME_SOURCE:
        return RUN_COUNT_DUPLICATE;
    case FATE_LOST:
        return RUN_COUNT_NO_RESULT;
    case FATE_PENDING:
        return decision == 0 ? RUN_COUNT_NOT_REACHED : RUN_COUNT_NO_RESULT;
    default:
        return decision == DECISION_AUDIT ? RUN_COUNT_AUDIT : RUN_COUNT_MEASURED;
    }
}

struct run_counts run_counts_of(const struct run_state *run_state)
{
    struct run_counts counts = {
        .considered = run_state->considered, .waiting = run_state->waiting_count, .saving = NAN};
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_proposed *proposed = &run_state->candidate[i].proposed;
        if (run_state_is_replaced(&run_state->candidate[i])) {
            continue;
        }
        uint64_t points = proposed->draw == 0 ? proposed->screened : 0;
        counts.row[row_of(&run_state->candidate[i])]++;
        counts.screened += points > 0;
        counts.ranked += proposed->ranked > 0;
        counts.proposals =
            proposed->ranked > counts.proposals ? proposed->ranked : counts.proposals;
        counts.compared = points > counts.compared ? points : counts.compared;
    }
    counts.measured = counts.row[RUN_COUNT_MEASURED] + counts.row[RUN_COUNT_AUDIT];
    uint64_t trusted = counts.row[RUN_COUNT_TRUSTED];
    if (trusted > 0 && counts.measured > 0) {
        counts.saving = (double)(counts.measured + trusted) / (double)counts.measured;
    }
    return counts;
}

json_t *run_counts_json(const struct run_counts *counts)
{
    json_t *ret = json_object();
    json_object_set_new(ret, "considered", json_integer((json_int_t)counts->considered));
    for (enum run_count_row row = 0; row < RUN_COUNT_ROW_COUNT; row++) {
        json_object_set_new(ret, rows[row].name, json_integer((json_int_t)counts->row[row]));
    }
    json_object_set_new(ret, "screened", json_integer((json_int_t)counts->screened));
    json_object_set_new(ret, "compared", json_integer((json_int_t)counts->compared));
    json_object_set_new(ret, "ranked", json_integer((json_int_t)counts->ranked));
    json_object_set_new(ret, "proposals", json_integer((json_int_t)counts->proposals));
    json_object_set_new(ret, "waiting", json_integer((json_int_t)counts->waiting));
    return ret;
}

// Design. An eval is a list of sets, one for each engine, in the order in which the engines appear
// in the input. Each forecast with an outcome becomes a row of its engine's set; a forecast without
// one is only counted. The readers of JSON lines (eval_lines.c) and of run states (below) fill the
// same sets; eval_compute() then scores each of them.
#include "client/eval/eval.h"

#include "client/eval/eval_sets.h"
#include "client/report/report.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void eval_init(struct eval *eval)
{
    *eval = (struct eval){0};
}

void eval_release(struct eval *eval)
{
    for (size_t i = 0; i < eval->set_count; i++) {
        free(eval->set[i].row);
    }
    free(eval->set);
    eval_init(eval);
}

int eval_set_of(struct eval *eval, const char *engine, struct eval_set **ret, struct err *err)
{
    for (size_t i = 0; i < eval->set_count; i++) {
        if (strcmp(eval->set[i].engine, engine) == 0) {
            *ret = &eval->set[i];
            return 0;
        }
    }
    if (eval->set_count == EVAL_ENGINES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d engines", EVAL_ENGINES_MAX);
    }
    if (strlen(engine) > EVAL_NAME_MAX) {
        return err_set(err, ERR_LIMIT, "an engine's name is longer than %d bytes", EVAL_NAME_MAX);
    }
    eval->set = xrealloc(eval->set, eval->set_count + 1, sizeof *eval->set);
    struct eval_set *set = &eval->set[eval->set_count++];
    *set = (struct eval_set){0};
    memcpy(set->engine, engine, strlen(engine) + 1);
    *ret = set;
    return 0;
}

int eval_add(struct eval_set *set, const struct score_row *row, struct err *err)
{
    if (set->count == SCORE_ROWS_MAX) {
        return err_set(err, ERR_LIMIT, "more than %zu forecasts of one engine", SCORE_ROWS_MAX);
    }
    // The array has room for 1, 3, 7, 15 and so on rows: it grows when it is full.
    if ((set->count & (set->count + 1)) == 0) {
        set->row = xrealloc(set->row, 2 * set->count + 1, sizeof *set->row);
    }
    set->row[set->count++] = *row;
    return 0;
}

bool eval_set_bins(struct score_row *row, const double *bins, size_t count)
{
    row->has_bins = false;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (!(bins[i] >= 0) || !isfinite(bins[i])) {
            return false;
        }
        sum += bins[i];
    }
    if (count != BIN_COUNT || !(sum > 0) || !isfinite(sum)) {
        return false;
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        row->bins[i] = bins[i] / sum;
    }
    row->has_bins = true;
    return true;
}

// A run may hold forecasts of a worker of another version. A value that is no probability counts as
// not forecast.
static double probability(double p)
{
    return p >= 0 && p <= 1 ? p : NAN;
}

static struct score_row row_of(const struct run_state_candidate *candidate, uint64_t number)
{
    const struct forecast *forecast = candidate->forecast;
    const struct estimate *speedup = candidate->result->speedup;
    double propensity = candidate->decided.propensity, mean = forecast->mean_log2;
    double confidence = candidate->decided.confidence;
    uint64_t parent = candidate->proposed.parent;
    struct score_row row = {
        .cluster = parent != 0 ? parent : UINT64_MAX - number,
        .weight = propensity >= 1e-9 && propensity <= 1 ? 1 / propensity : 1,
        .p_correct = probability(forecast->p_correct),
        .p_improves = probability(forecast->p_improves),
        .confidence = probability(isfinite(confidence) ? confidence : forecast->confidence),
        .mean_log2 = isfinite(mean) ? mean : NAN,
        .correct = verdict_is_ratio(candidate->result->verdict),
        .improved = improvement_measured(candidate),
        .log2 = speedup ? speedup->log2 : NAN,
    };
    if (forecast->bins) {
        (void)eval_set_bins(&row, forecast->bins, forecast->bins_count);
    }
    return row;
}

static bool has_outcome(const struct result *result)
{
    if (!result || result->verdict == VERDICT_NONE || result->verdict == VERDICT_QUARANTINED) {
        return false;
    }
    return !verdict_is_ratio(result->verdict) ||
           (result->speedup && isfinite(result->speedup->log2));
}

int eval_read_run_state(struct eval *eval, const struct run_state *run_state, const char *path,
                        struct err *err)
{
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        const struct forecast *forecast = candidate->forecast;
        if (!forecast) {
            continue;
        }
        const char *engine = forecast->engine ? forecast->engine : EVAL_NO_ENGINE;
        struct eval_set *set;
        int rc = eval_set_of(eval, engine, &set, err);
        if (rc != 0) {
            return err_wrap(err, "%s", path);
        }
        if (!has_outcome(candidate->result)) {
            set->unmeasured++;
            continue;
        }
        struct score_row row = row_of(candidate, i + 1);
        rc = eval_add(set, &row, err);
        if (rc != 0) {
            return err_wrap(err, "%s", path);
        }
    }
    return 0;
}

void eval_compute(struct eval *eval, const struct score_options *options)
{
    for (size_t i = 0; i < eval->set_count; i++) {
        score_compute(eval->set[i].value, eval->set[i].row, eval->set[i].count, options);
    }
}

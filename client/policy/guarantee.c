// Design note. The method is conformal prediction with one number per search: the corrected number
// of candidates that were expected to lie beyond the greatest margin that would have been said
// falsely. Searches of one space are alike, so that it is by spaces that the constant is judged: it
// is the greatest one with which searches of the spaces that it was not fitted on come true as
// often as is said (scripts/guarantee.py --fit). A bound that holds for any population of spaces,
// from fifteen of them, is met by saying twice as much, and came true in all searches of other
// spaces (docs/evaluation.md).
#include "client/policy/guarantee.h"

#include "client/run/improvement.h"
#include <math.h>
#include <stdio.h>

#define GUARANTEE_EXPECTED 1.01 // scripts/guarantee.py --fit, on the spaces of docs/h200/spaces
#define PROMISES_PRIOR 2.0      // improvements that count as promised and kept from the start

void guarantee_levels(double beyond_log2[static GUARANTEE_LEVELS])
{
    // 0, 0.5, 1 … 4 %, then 22 % more each time, up to 79 %.
    for (size_t i = 0; i < GUARANTEE_LEVELS; i++) {
        double percent = i < 9 ? 0.5 * (double)i : 4 * pow(1.22, (double)i - 8);
        beyond_log2[i] = log2(1 + percent / 100);
    }
}

double guarantee_correction(double promised, double kept)
{
    return (kept + PROMISES_PRIOR) / (promised + PROMISES_PRIOR);
}

void guarantee_promises(const struct run_state *run_state, uint64_t last, double *ret_promised,
                        double *ret_kept)
{
    *ret_promised = *ret_kept = 0;
    for (size_t i = 0; i < run_state->candidate_count && i < last; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        bool screened = candidate->proposed.screened > 0 && candidate->proposed.draw == 0;
        if (screened && candidate->result && candidate->forecast) {
            *ret_promised += candidate->forecast->p_improves;
            *ret_kept += improvement_measured(candidate);
        }
    }
}

// The margin at which the corrected number of candidates beyond falls to GUARANTEE_EXPECTED,
// between two margins by the logarithm of the number; infinite when it stays above.
static double margin_of(const struct run_surveyed *survey, double correction)
{
    double before = NAN;
    for (size_t i = 0; i < survey->expected_count; i++) {
        double number = log(fmax(survey->expected[i] * correction, 1e-12));
        double wanted = log(GUARANTEE_EXPECTED);
        if (number <= wanted) {
            double part = i > 0 ? (before - wanted) / (before - number) : 0;
            double from = i > 0 ? survey->beyond_log2[i - 1] : survey->beyond_log2[0];
            return from + part * (survey->beyond_log2[i] - from);
        }
        before = number;
    }
    return INFINITY;
}

static double percent_of(double log2)
{
    return 100 * (exp2(log2) - 1);
}

// Why nothing can be said; false: something can be.
static bool find_obstacle(const struct run_state *run_state, const struct guarantee *g, char *out,
                          size_t size)
{
    const struct run_surveyed *survey = &run_state->surveyed;
    if (g->forecast == 0) {
        snprintf(out, size, "they could not be forecast%s%.200s", survey->obstacle ? ": " : "",
                 survey->obstacle ? survey->obstacle : "");
        return true;
    }
    if (run_state->measured < GUARANTEE_MEASURED_LEAST) {
        snprintf(out, size, "%llu measurements are too few, it takes %d",
                 (unsigned long long)run_state->measured, GUARANTEE_MEASURED_LEAST);
        return true;
    }
    if (!isfinite(g->beyond_log2)) {
        snprintf(out, size, "by their forecasts one of them may well be more than %.0f %% faster",
                 percent_of(survey->beyond_log2[survey->expected_count - 1]));
        return true;
    }
    return false;
}

double guarantee_percent(const struct guarantee *guarantee)
{
    return round(percent_of(guarantee->stated_log2));
}

static void describe(const struct run_state *run_state, struct guarantee *g)
{
    char why[300];
    unsigned long long unmeasured = g->unmeasured, forecast = g->forecast;
    if (g->unmeasured == 0) {
        snprintf(g->text, sizeof(g->text), "nothing was left unmeasured");
        g->said = true;
        g->beyond_log2 = g->stated_log2 = 0;
    } else if (find_obstacle(run_state, g, why, sizeof(why))) {
        g->beyond_log2 = g->stated_log2 = NAN;
        snprintf(g->text, sizeof(g->text),
                 "nothing can be said of the %llu that were never measured: %s", unmeasured, why);
    } else {
        g->said = true;
        // Rounded up, so that it says no more than it may.
        double percent = ceil(percent_of(g->beyond_log2) - 0.001);
        percent = fmax(percent, GUARANTEE_LEAST_PERCENT);
        g->stated_log2 = log2(1 + percent / 100);
        char of[64] = "";
        if (forecast < unmeasured) {
            snprintf(of, sizeof(of), "%llu looked at of the ", forecast);
        }
        snprintf(g->text, sizeof(g->text),
                 "none of the %s%llu that were never measured is more than %.0f %% faster, with "
                 "%.0f %% confidence",
                 of, unmeasured, guarantee_percent(g), 100 * GUARANTEE_CONFIDENCE);
    }
}

struct guarantee guarantee_of_run(const struct run_state *run_state)
{
    const struct run_surveyed *survey = &run_state->surveyed;
    struct guarantee g = {.beyond_log2 = NAN, .stated_log2 = NAN};
    if (run_state->surveys == 0) {
        return g;
    }
    double promised, kept;
    guarantee_promises(run_state, run_state->candidate_count, &promised, &kept);
    g.unmeasured = survey->unmeasured;
    g.forecast = survey->forecast;
    g.beyond_log2 = margin_of(survey, guarantee_correction(promised, kept));
    describe(run_state, &g);
    return g;
}

// Design. A forecast can be compared with an outcome only where the candidate was measured, and
// what is measured depends on the forecast: confident calls are trusted, and only the audited share
// of them has an outcome. So every outcome has the weight 1 / propensity (Hájek's ratio estimator):
// an audited candidate stands for the trusted ones like it. Intervals use Kish's effective number
// (sum w)^2 / sum w^2 in place of the count.
#include "client/report/report_quality.h"
#include "client/policy/false_omission.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void report_wilson(double share, double n, double z, double *ret_lo, double *ret_hi)
{
    *ret_lo = *ret_hi = NAN;
    if (!(n > 0) || !isfinite(share)) {
        return;
    }
    double square = z * z, denominator = 1 + square / n;
    double centre = (share + square / (2 * n)) / denominator;
    double half = z * sqrt(share * (1 - share) / n + square / (4 * n * n)) / denominator;
    *ret_lo = fmax(0, centre - half);
    *ret_hi = fmin(1, centre + half);
}

static double weight_of(const struct run_state *run_state,
                        const struct run_state_candidate *candidate)
{
    double propensity = run_state_propensity(run_state, candidate);
    return propensity > 0 && propensity <= 1 ? 1 / propensity : 1;
}

// Writes the bins, normalised to the sum 1, into p. False when the forecast has none or they are
// not probabilities.
static bool forecast_bins(const struct forecast *forecast, double p[static BIN_COUNT])
{
    if (!forecast || forecast->bins_count != BIN_COUNT) {
        return false;
    }
    double sum = 0;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        if (!(forecast->bins[i] >= 0) || !isfinite(forecast->bins[i])) {
            return false;
        }
        sum += forecast->bins[i];
    }
    if (!(sum > 0)) {
        return false;
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        p[i] = forecast->bins[i] / sum;
    }
    return true;
}

static void add_coverage(struct report *report, const double p[static BIN_COUNT], double outcome)
{
    for (size_t i = 0; i < REPORT_COVER_COUNT; i++) {
        struct report_coverage *cover = &report->cover[i];
        double tail = (1 - cover->nominal) / 2;
        cover->count++;
        cover->inside += outcome >= bins_quantile(p, tail) && outcome <= bins_quantile(p, 1 - tail);
    }
}

static void add_pair(struct report *report, size_t index)
{
    const struct run_state_candidate *candidate = &report->run_state->candidate[index];
    const struct result *result = candidate->result;
    if (!candidate->forecast || !result || !verdict_is_ratio(result->verdict) || !result->speedup ||
        !isfinite(result->speedup->log2)) {
        return;
    }
    double p[BIN_COUNT];
    bool bins = forecast_bins(candidate->forecast, p);
    double mean = candidate->forecast->mean_log2;
    if (!isfinite(mean) && bins) {
        mean = bins_mean(p);
    }
    if (!isfinite(mean)) {
        return;
    }
    if (bins) {
        add_coverage(report, p, result->speedup->log2);
    }
    report->pair[report->pair_count++] = (struct report_pair){
        .candidate = (uint64_t)index + 1,
        .forecast = mean,
        .forecast_lo = bins ? bins_quantile(p, 0.1) : NAN,
        .forecast_hi = bins ? bins_quantile(p, 0.9) : NAN,
        .log2 = result->speedup->log2,
        .lo = result->speedup->lo,
        .hi = result->speedup->hi,
        .audit = candidate->decided.decision == DECISION_AUDIT,
    };
}

struct ranked {
    double value;
    size_t index;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    return (left->value > right->value) - (left->value < right->value);
}

// Replaces x[] by its ranks. Equal values share their mean rank.
static void to_ranks(double *x, size_t n)
{
    struct ranked *item = xcalloc(n, sizeof *item);
    for (size_t i = 0; i < n; i++) {
        item[i] = (struct ranked){x[i], i};
    }
    qsort(item, n, sizeof *item, by_value);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && !(item[end].value > item[i].value)) {
            end++;
        }
        for (size_t j = i; j < end; j++) {
            x[item[j].index] = (double)(i + end - 1) / 2;
        }
        i = end;
    }
    free(item);
}

static double correlation(const double *x, const double *y, size_t n)
{
    double mean_x = stats_mean(x, n), mean_y = stats_mean(y, n), xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += (x[i] - mean_x) * (y[i] - mean_y);
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        yy += (y[i] - mean_y) * (y[i] - mean_y);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

void report_add_pairs(struct report *report)
{
    static const double nominal[REPORT_COVER_COUNT] = {0.5, 0.8, 0.95};
    for (size_t i = 0; i < REPORT_COVER_COUNT; i++) {
        report->cover[i].nominal = nominal[i];
    }
    report->pair_error = report->pair_rank = NAN;
    report->pair = xcalloc(report->run_state->candidate_count + 1, sizeof *report->pair);
    for (size_t i = 0; i < report->run_state->candidate_count; i++) {
        add_pair(report, i);
    }
    size_t n = report->pair_count;
    if (n == 0) {
        return;
    }
    double *forecast = xcalloc(n, sizeof *forecast), *outcome = xcalloc(n, sizeof *outcome);
    double *gap = xcalloc(n, sizeof *gap);
    for (size_t i = 0; i < n; i++) {
        forecast[i] = report->pair[i].forecast;
        outcome[i] = report->pair[i].log2;
        gap[i] = fabs(forecast[i] - outcome[i]);
    }
    report->pair_error = stats_median(gap, n);
    to_ranks(forecast, n);
    to_ranks(outcome, n);
    if (n >= 3) {
        report->pair_rank = correlation(forecast, outcome, n);
    }
    free(forecast);
    free(outcome);
    free(gap);
}

// Weighted sums of one band of a reliability diagram.
struct band_sums {
    double weight, square, forecast, observed;
    size_t count;
};

struct diagram {
    struct band_sums band[REPORT_BAND_COUNT];
    double brier;
};

static void add_outcome(struct diagram *diagram, double forecast, bool observed, double weight)
{
    size_t index = (size_t)(forecast * REPORT_BAND_COUNT);
    struct band_sums *band =
        &diagram->band[index < REPORT_BAND_COUNT ? index : REPORT_BAND_COUNT - 1];
    band->count++;
    band->weight += weight;
    band->square += weight * weight;
    band->forecast += weight * forecast;
    band->observed += observed ? weight : 0;
    diagram->brier += weight * (forecast - observed) * (forecast - observed);
}

static void finish_diagram(const struct diagram *diagram, struct report_reliability *ret)
{
    double gap = 0, observed = 0;
    for (size_t i = 0; i < REPORT_BAND_COUNT; i++) {
        const struct band_sums *from = &diagram->band[i];
        struct report_band *band = &ret->band[i];
        *band = (struct report_band){.count = from->count, .weight = from->weight};
        band->forecast = band->observed = band->lo = band->hi = NAN;
        if (from->count == 0) {
            continue;
        }
        band->forecast = from->forecast / from->weight;
        band->observed = from->observed / from->weight;
        report_wilson(band->observed, from->weight * from->weight / from->square, REPORT_Z_95,
                      &band->lo, &band->hi);
        ret->count += from->count;
        ret->weight += from->weight;
        gap += from->weight * fabs(band->observed - band->forecast);
        observed += from->observed;
    }
    bool any = ret->count > 0;
    ret->ece = any ? gap / ret->weight : NAN;
    ret->brier = any ? diagram->brier / ret->weight : NAN;
    ret->observed = any ? observed / ret->weight : NAN;
}

static bool probability(double p)
{
    return p >= 0 && p <= 1;
}

void report_add_reliability(struct report *report)
{
    struct diagram correct = {0}, call = {0};
    for (size_t i = 0; i < report->run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &report->run_state->candidate[i];
        const struct forecast *forecast = candidate->forecast;
        if (!forecast || !candidate->result) {
            continue;
        }
        double weight = weight_of(report->run_state, candidate);
        if (probability(forecast->p_correct)) {
            add_outcome(&correct, forecast->p_correct, verdict_is_ratio(candidate->result->verdict),
                        weight);
        }
        double confidence = candidate->decided.confidence;
        if (!isfinite(confidence)) {
            confidence = forecast->confidence;
        }
        if (!probability(forecast->p_improves)) {
            continue;
        }
        if (probability(confidence) && confidence > 0) {
            add_outcome(&call, confidence,
                        (forecast->p_improves >= 0.5) == improvement_measured(candidate), weight);
        } else {
            report->calls_without_record++;
        }
    }
    finish_diagram(&correct, &report->correct);
    finish_diagram(&call, &report->call);
}

void report_add_missed(struct report *report)
{
    struct false_omission known = false_omission_of_run(report->run_state);
    double all = (double)known.discarded, found = (double)known.improvers;

    report->missed = (struct report_missed){
        .trusted = report->run_state->draws > 0 ? report->run_state->trusted : known.discarded,
        .audited = known.audited,
        .improvers = known.improvers,
        .unmeasured = report->run_state->draws > 0 ? report->run_state->trusted
                                                   : known.discarded - known.audited,
        .shown = known.shown,
        .share = known.share,
        .share_hi = known.estimated ? known.upper : NAN,
        .estimate = known.estimated ? fmax(known.share * all - found, 0) : NAN,
        .estimate_hi = known.estimated ? fmax(known.upper * all - found, 0) : NAN,
    };
    snprintf(report->missed.text, sizeof report->missed.text, "%s", known.text);
}

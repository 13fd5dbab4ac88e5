#include "executor/timing.h"
#include "common/stats.h"
#include "executor/multimodal.h"
#include "proto/verdict.h"
#include <math.h>
#include <string.h>

size_t timing_look_blocks(size_t look)
{
    return (size_t)TIMING_FIRST_LOOK << look;
}

size_t timing_looks(uint64_t launches)
{
    size_t looks = 1;

    while (looks < TIMING_LOOKS && (launches == 0 || 2 * timing_look_blocks(looks) <= launches)) {
        looks++;
    }
    return looks;
}

double timing_block_log2(const struct timing_block *block)
{
    for (size_t arm = 0; arm < 2; arm++) {
        if (!(block->cpu[arm][0] > 0) || !(block->cpu[arm][1] > 0)) {
            return NAN;
        }
    }
    return 0.5 * (log2(block->cpu[0][0]) + log2(block->cpu[0][1]) - log2(block->cpu[1][0]) -
                  log2(block->cpu[1][1]));
}

// Returns the mean of ln(wall / cpu) of one arm's two launches, with slack_ns forgiven.
static double excess(const double wall[2], const double cpu[2], double slack_ns)
{
    double sum = 0;
    for (size_t i = 0; i < 2; i++) {
        sum += 0.5 * log(fmax(wall[i] - slack_ns, cpu[i]) / cpu[i]);
    }
    return sum;
}

double timing_block_escape(const struct timing_block *block, double slack_ns)
{
    return excess(block->wall[1], block->cpu[1], slack_ns) -
           excess(block->wall[0], block->cpu[0], slack_ns);
}

enum block_state timing_block_state(const struct timing_block *block, double slack_ns)
{
    double escape = timing_block_escape(block, slack_ns);

    if (fabs(escape) <= TIMING_CLOCKS_DIFFER) {
        return BLOCK_COUNTS;
    }
    return escape > 0 ? BLOCK_ESCAPED : BLOCK_DISTURBED;
}

void timing_block_make_alike(struct timing_block *block)
{
    double first = block->wall[0][0] + block->wall[0][1];
    double second = block->wall[1][0] + block->wall[1][1];

    for (size_t i = 0; i < 2 && first < second; i++) {
        block->cpu[0][i] *= first / second;
    }
}

void timing_add(struct timing_series *series, double log2_ratio)
{
    if (series->count < TIMING_BLOCKS_MAX) {
        series->d[series->count++] = log2_ratio;
    }
}

// The standard deviation between two processes with the same code, as a share of an empty launch.
// Measured: in A/A runs of kernels of 30 to 45 us, with an empty launch of 2.0 us, pairs of
// processes differed by 40 to 70 ns (docs/measuring.md).
#define SYSTEMATIC_SHARE 0.03
#define SYSTEMATIC_MAX 1.0
// However many blocks there are, the half-width stays a little above the systematic part. The
// precision is widened by this factor so that it can be reached.
#define PRECISION_MARGIN 1.15
#define LOOK_ALPHA (TIMING_ALPHA / TIMING_LOOKS) // two-sided level of a look

double timing_systematic(double overhead_ns, double launch_ns)
{
    double share = SYSTEMATIC_SHARE * overhead_ns / launch_ns;
    return share >= 0 ? fmin(share / log(2), SYSTEMATIC_MAX) : 0;
}

static double quantile(double alpha, double degrees)
{
    return stats_t_quantile(1.0 - alpha / 2, degrees);
}

// Returns the half-width of the interval of level alpha.
static double half_of(const struct timing_estimate *estimate, double alpha)
{
    double sampled = estimate->standard_error * estimate->standard_error;
    double all = sampled + estimate->systematic * estimate->systematic;
    double half = INFINITY;

    if (isfinite(all) && estimate->degrees > 0) {
        // Welch and Satterthwaite, with the systematic part taken as known.
        double degrees =
            sampled > 0 ? estimate->degrees * (all / sampled) * (all / sampled) : INFINITY;
        half = sqrt(all) * quantile(alpha, degrees);
    }
    return half;
}

static void interval(struct timing_estimate *estimate)
{
    double half = half_of(estimate, LOOK_ALPHA);

    estimate->lo = estimate->log2 - half;
    estimate->hi = estimate->log2 + half;
}

struct timing_estimate timing_of(const struct timing_series *series)
{
    double sorted[TIMING_BLOCKS_MAX];

    memcpy(sorted, series->d, series->count * sizeof(double));
    struct stats_trimmed trimmed = stats_trimmed_mean(sorted, series->count, TIMING_TRIM);
    struct timing_estimate estimate = {.log2 = trimmed.mean,
                                       .standard_error = trimmed.standard_error,
                                       .degrees = trimmed.degrees,
                                       .systematic = series->systematic,
                                       .blocks = series->count};
    interval(&estimate);
    return estimate;
}

struct timing_estimate timing_of_pairs(const double *baseline_ns, const double *candidate_ns,
                                       size_t blocks, double systematic)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < 2 * blocks; i += 2) {
        double first = log2(baseline_ns[i]), second = log2(baseline_ns[i + 1]);
        double third = log2(candidate_ns[i]), fourth = log2(candidate_ns[i + 1]);

        sum += (first + second - third - fourth) / 2;
        squares += (first - second) * (first - second) + (third - fourth) * (third - fourth);
    }
    // A difference of two launches has twice the variance of one launch, and a block's ratio, half
    // the sum of four, has that of one.
    double degrees = 2 * (double)blocks, variance = squares / 2 / degrees;
    struct timing_estimate estimate = {.log2 = sum / (double)blocks,
                                       .standard_error =
                                           blocks > 0 ? sqrt(variance / (double)blocks) : INFINITY,
                                       .degrees = degrees,
                                       .systematic = systematic,
                                       .blocks = blocks};
    interval(&estimate);
    return estimate;
}

_Static_assert(MODES_MOST == 2 * TIMING_BLOCKS_MAX, "all launches of a case are compared");

// Launches are not quite independent. The rank sums of A/A runs spread by 1.2 to 1.3 times the
// standard deviation that Wilcoxon's variance gives (docs/measuring.md).
#define DEPENDENCE 1.25

// Up to this difference, as a share of the baseline's time, both arms have the same modes.
#define ALIKE 0.15

// Copies the times and moves each within its clock step, by a sequence that fills the step evenly
// (Weyl's, with the golden ratio). Otherwise equal readings of both arms would pile up at a
// difference of 0.
static void spread(const double *ns, size_t count, double quantum_ns, size_t start, double *ret)
{
    for (size_t i = 0; i < count; i++) {
        double at = (double)(start + i) * 0.6180339887498949;

        ret[i] = fmax(ns[i] + quantum_ns * (at - floor(at) - 0.5), 1e-3);
    }
}

// Returns log2 of baseline / candidate for a candidate that takes `shift` less time.
static double ratio_of(double baseline, double shift)
{
    return log2(baseline / (baseline - shift));
}

struct timing_estimate timing_of_launches(const double *baseline_ns, const double *candidate_ns,
                                          size_t count, double quantum_ns, double systematic)
{
    double baseline[MODES_MOST], candidate[MODES_MOST], sorted[MODES_MOST];

    count = count < MODES_MOST ? count : MODES_MOST;
    spread(baseline_ns, count, quantum_ns, 0, baseline);
    spread(candidate_ns, count, quantum_ns, count, candidate);
    memcpy(sorted, baseline, count * sizeof(*sorted));
    double usual = stats_median(sorted, count), z = quantile(LOOK_ALPHA, INFINITY);
    struct stats_shift shift = multimodal_shift(candidate, baseline, count, DEPENDENCE * z);
    if (fmax(fabs(shift.lo), fabs(shift.hi)) < ALIKE * usual) {
        shift = (struct stats_shift){.shift = ratio_of(usual, shift.shift),
                                     .lo = ratio_of(usual, shift.lo),
                                     .hi = ratio_of(usual, shift.hi)};
    } else {
        for (size_t i = 0; i < count; i++) {
            baseline[i] = log2(baseline[i]);
            candidate[i] = log2(candidate[i]);
        }
        shift = stats_shift(candidate, count, baseline, count, DEPENDENCE * z);
    }
    struct timing_estimate estimate = {.log2 = shift.shift,
                                       .standard_error = (shift.hi - shift.lo) / 2 / z,
                                       .degrees = count > 1 ? 2 * (double)count - 2 : 0,
                                       .systematic = systematic,
                                       .blocks = count / 2};
    interval(&estimate);
    return estimate;
}

struct timing_estimate timing_combine(const struct timing_estimate *estimate, const double *weight,
                                      size_t count)
{
    struct timing_estimate sum = {.log2 = 0};
    double variance = 0, denominator = 0;

    for (size_t i = 0; i < count; i++) {
        double part =
            weight[i] * weight[i] * estimate[i].standard_error * estimate[i].standard_error;
        sum.log2 += weight[i] * estimate[i].log2;
        sum.blocks += estimate[i].blocks;
        // The same two processes run every case: their systematic errors add up.
        sum.systematic += fabs(weight[i]) * estimate[i].systematic;
        variance += part;
        denominator += part * part / fmax(estimate[i].degrees, 1e-9);
    }
    sum.standard_error = sqrt(variance);
    sum.degrees = denominator > 0 ? variance * variance / denominator : INFINITY;
    interval(&sum);
    return sum;
}

static double half_width(const struct timing_estimate *estimate)
{
    return (estimate->hi - estimate->lo) / 2;
}

double timing_precision(const struct timing_rule *rule, const struct timing_estimate *estimate)
{
    return fmax(rule->precision_log2,
                PRECISION_MARGIN * quantile(LOOK_ALPHA, INFINITY) * estimate->systematic);
}

// Returns the ratio that the candidate has to beat.
static double to_beat(const struct timing_rule *rule)
{
    return isnan(rule->anchor_log2) ? 0 : rule->anchor_log2;
}

bool timing_is_below(const struct timing_rule *rule, double log2_ratio)
{
    return log2_ratio < to_beat(rule) - TIMING_BELOW_LOG2;
}

bool timing_is_loss(const struct timing_rule *rule, const struct timing_estimate *estimate,
                    double alpha)
{
    return timing_is_below(rule, estimate->log2 + half_of(estimate, alpha));
}

bool timing_is_no_loss(const struct timing_rule *rule, const struct timing_estimate *estimate,
                       double alpha)
{
    return estimate->log2 - half_of(estimate, alpha) > to_beat(rule) - TIMING_BELOW_LOG2;
}

bool timing_is_far_below(const struct timing_rule *rule, double log2_ratio)
{
    return log2_ratio < to_beat(rule) - TIMING_FAR_BELOW_LOG2;
}

static bool is_tie(const struct timing_rule *rule, const struct timing_estimate *estimate)
{
    return verdict_is_tie(estimate->lo, estimate->hi, rule->precision_log2);
}

bool timing_decided(const struct timing_rule *rule, const struct timing_estimate *estimate)
{
    // All comparisons with an anchor that is not a number are false.
    bool below = estimate->hi < rule->anchor_log2 - TIMING_BELOW_LOG2 &&
                 half_width(estimate) <= TIMING_BELOW_PRECISION_LOG2;
    bool differs = estimate->lo > 0 || estimate->hi < 0;
    bool off_anchor = isnan(rule->anchor_log2) || estimate->lo > rule->anchor_log2 ||
                      estimate->hi < rule->anchor_log2 + IMPROVEMENT_MARGIN_LOG2;

    return (differs && off_anchor) || below || is_tie(rule, estimate) ||
           half_width(estimate) <= timing_precision(rule, estimate);
}

enum verdict timing_verdict(const struct timing_rule *rule, const struct timing_estimate *estimate)
{
    double precision = timing_precision(rule, estimate);
    bool precise = half_width(estimate) <= precision;

    // A precise estimate within the precision is no difference, even if its interval excludes 0.
    if (is_tie(rule, estimate) || (precise && fabs(estimate->log2) <= precision)) {
        return VERDICT_EQUIVALENT;
    }
    if (estimate->lo > 0) {
        return VERDICT_FASTER;
    }
    if (estimate->hi < 0) {
        return VERDICT_SLOWER;
    }
    return precise ? VERDICT_EQUIVALENT : VERDICT_INCONCLUSIVE;
}

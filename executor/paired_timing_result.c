// What a paired timing says in a result.
#include "executor/paired_timing.h"

#include "common/mem.h"
#include <math.h>
#include <string.h>

#define OUTCOME_LOG2_MAX 64.0 // larger ratios are reported as this

static double clamp_log2(double value)
{
    return isnan(value) ? 0 : fmin(fmax(value, -OUTCOME_LOG2_MAX), OUTCOME_LOG2_MAX);
}

struct estimate *paired_timing_estimate(const struct timing_estimate *estimate)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    ret->log2 = clamp_log2(estimate->log2);
    ret->lo = isnan(estimate->lo) ? -OUTCOME_LOG2_MAX : clamp_log2(estimate->lo);
    ret->hi = isnan(estimate->hi) ? OUTCOME_LOG2_MAX : clamp_log2(estimate->hi);
    ret->blocks = estimate->blocks;
    return ret;
}

static struct quantiles *outcome_quantiles(const double *ns, size_t count)
{
    double sorted[2 * TIMING_BLOCKS_MAX];
    struct quantiles *ret = xcalloc(1, sizeof(*ret));

    memcpy(sorted, ns, count * sizeof(double));
    stats_sort(sorted, count);
    ret->p10 = stats_quantile(sorted, count, 0.1);
    ret->p50 = stats_quantile(sorted, count, 0.5);
    ret->p90 = stats_quantile(sorted, count, 0.9);
    return ret;
}

void paired_timing_describe(const struct paired_timing *paired_timing, struct result *result)
{
    const struct timed_case *first = &paired_timing->cases[0];

    result->cases = xcalloc(paired_timing->case_count, sizeof(*result->cases));
    result->cases_count = paired_timing->case_count;
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        const struct timed_case *timed = &paired_timing->cases[i];
        struct case_result *entry = &result->cases[i];

        message_init(&case_result_message, entry);
        entry->weight = timed->weight;
        entry->speedup = paired_timing_estimate(&timed->estimate);
        entry->baseline_ns = outcome_quantiles(timed->first_ns, timed->launch_count);
        entry->candidate_ns = outcome_quantiles(timed->second_ns, timed->launch_count);
    }
    result->speedup = paired_timing_estimate(&paired_timing->combined);
    result->baseline_ns = outcome_quantiles(first->first_ns, first->launch_count);
    result->candidate_ns = outcome_quantiles(first->second_ns, first->launch_count);
    result->launches = paired_timing->launches;
}

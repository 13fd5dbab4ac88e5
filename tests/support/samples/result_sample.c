#include "tests/support/samples/result_sample.h"
#include "proto/verdict.h"
#include <math.h>

#define HALF_WIDTH 0.01 // of the interval, in log2
#define NS 100000.0     // median time of the baseline

static struct estimate *estimate_of(uint64_t blocks)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    ret->blocks = blocks;
    return ret;
}

static struct quantiles *quantiles_of(void)
{
    return xcalloc(1, sizeof(struct quantiles));
}

static void move_estimate(struct estimate *estimate, double log2)
{
    estimate->log2 = log2;
    estimate->lo = log2 - HALF_WIDTH;
    estimate->hi = log2 + HALF_WIDTH;
}

static void widen_estimate(struct estimate *estimate, double half_log2)
{
    estimate->lo = estimate->log2 - half_log2;
    estimate->hi = estimate->log2 + half_log2;
}

void result_sample_widen(struct result *result, double half_log2)
{
    widen_estimate(result->speedup, half_log2);
    for (size_t i = 0; i < result->cases_count; i++) {
        widen_estimate(result->cases[i].speedup, half_log2);
    }
}

static void move_times(struct quantiles *times, double p50)
{
    *times = (struct quantiles){.p10 = 0.9 * p50, .p50 = p50, .p90 = 1.2 * p50};
}

void result_sample_move(struct result *result, double log2)
{
    move_estimate(result->speedup, log2);
    move_times(result->baseline_ns, NS);
    move_times(result->candidate_ns, NS / exp2(log2));
    for (size_t i = 0; i < result->cases_count; i++) {
        move_estimate(result->cases[i].speedup, log2);
        move_times(result->cases[i].baseline_ns, NS);
        move_times(result->cases[i].candidate_ns, NS / exp2(log2));
    }
    result->verdict = log2 > HALF_WIDTH    ? VERDICT_FASTER
                      : log2 < -HALF_WIDTH ? VERDICT_SLOWER
                                           : VERDICT_EQUIVALENT;
}

void result_sample(struct result *ret)
{
    message_init(&result_message, ret);
    ret->speedup = estimate_of(48);
    ret->baseline_ns = quantiles_of();
    ret->candidate_ns = quantiles_of();
    ret->cases = xcalloc(2, sizeof(*ret->cases));
    ret->cases_count = 2;
    for (size_t i = 0; i < 2; i++) {
        struct case_result *c = &ret->cases[i];

        message_init(&case_result_message, c);
        c->params = xasprintf("N=%zu", 8 * (i + 1));
        c->weight = i == 0 ? 0.25 : 0.75;
        c->speedup = estimate_of(i == 0 ? 16 : 32);
        c->baseline_ns = quantiles_of();
        c->candidate_ns = quantiles_of();
    }
    ret->seconds = xcalloc(1, sizeof(*ret->seconds));
    message_init(&accounts_message, ret->seconds);
    ret->seconds->held = 1.5;
    ret->launches = 96;
    ret->checks = 110;
    ret->max_error = 0.5;
    ret->error_bound = 4;
    ret->problem = digest_of("problem", 7);
    ret->candidate = digest_of("candidate", 9);
    ret->sandbox = xstrdup("on");
    result_sample_move(ret, 0.5);
}

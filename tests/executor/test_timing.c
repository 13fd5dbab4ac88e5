// The sequential rule on simulated series: how often it calls equal code different, and how often
// it finds a difference.
#include "common/stats.h"
#include "executor/timing.h"
#include "proto/verdict.h"
#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RUNS 2000

// How launches vary: noise of each launch, rare slow launches, and a drift over the series.
struct world {
    double sigma;   // standard deviation of ln(time)
    double outlier; // share of launches that take 15 % longer
    double drift;   // of ln(time) per launch
};

static double launch(struct stats_rng *rng, const struct world *world, double ln_time,
                     size_t *index)
{
    double t = ln_time + world->sigma * stats_rng_normal(rng) + world->drift * (double)(*index)++;
    if (stats_rng_unit(rng) < world->outlier) {
        t += log(1.15);
    }
    return exp(t);
}

// Simulates one measurement of a candidate that is 2^log2 times as fast, by the rule that
// executor/paired_timing.c follows.
static enum verdict simulate(uint64_t seed, const struct world *world, double speedup_log2,
                             struct timing_estimate *ret)
{
    struct stats_rng rng;

    stats_rng_init(&rng, seed, 1);
    struct timing_rule rule = {.precision_log2 = TIMING_PRECISION_LOG2, .anchor_log2 = NAN};
    struct timing_series series = {.count = 0};
    size_t index = 0;
    for (size_t look = 0; look < TIMING_LOOKS; look++) {
        while (series.count < timing_look_blocks(look)) {
            struct timing_block block;
            double candidate = log(1e5) - speedup_log2 * log(2);
            block.cpu[0][0] = launch(&rng, world, log(1e5), &index);
            block.cpu[1][0] = launch(&rng, world, candidate, &index);
            block.cpu[1][1] = launch(&rng, world, candidate, &index);
            block.cpu[0][1] = launch(&rng, world, log(1e5), &index);
            timing_add(&series, timing_block_log2(&block));
        }
        *ret = timing_of(&series);
        if (timing_decided(&rule, ret)) {
            break;
        }
    }
    return timing_verdict(&rule, ret);
}

static const struct world worlds[] = {
    {.sigma = 0.008, .outlier = 0.01, .drift = 0},
    {.sigma = 0.008, .outlier = 0.01, .drift = 1e-4},
    {.sigma = 0.03, .outlier = 0.05, .drift = 0},
    {.sigma = 0.001, .outlier = 0.02, .drift = 1e-5},
};

static void equal_code_is_called_different_in_at_most_one_run_of_twenty(void **state)
{
    (void)state;
    for (size_t w = 0; w < sizeof(worlds) / sizeof(worlds[0]); w++) {
        size_t wrong = 0, outside = 0;
        for (uint64_t run = 0; run < RUNS; run++) {
            struct timing_estimate estimate;
            enum verdict verdict = simulate(run, &worlds[w], 0, &estimate);
            wrong += verdict == VERDICT_FASTER || verdict == VERDICT_SLOWER;
            outside += estimate.lo > 0 || estimate.hi < 0;
        }
        assert_true(wrong <= RUNS / 20);
        assert_true(outside <=
                    RUNS / 20); // the interval covers the truth whichever look is the last
    }
}

static void two_percent_are_found_with_their_sign(void **state)
{
    size_t found = 0, covered = 0, blocks = 0;
    double truth = log2(1.02);

    (void)state;
    for (uint64_t run = 0; run < RUNS; run++) {
        struct timing_estimate estimate;
        double sign = run % 2 ? -1 : 1;
        enum verdict verdict = simulate(run, &worlds[0], sign * truth, &estimate);
        found += verdict == (run % 2 ? VERDICT_SLOWER : VERDICT_FASTER);
        covered += estimate.lo <= sign * truth && sign * truth <= estimate.hi;
        blocks += estimate.blocks;
    }
    assert_true(found >= RUNS * 99 / 100);
    assert_true(covered >= RUNS * 95 / 100);
    assert_true(blocks <= RUNS * 20); // large differences end at the first looks
}

// Launches of 5 us as a GPU's events show them: two modes 8 % apart, in steps of 32 ns.
static double humped_launch(struct stats_rng *rng, double share, double scale)
{
    double ns = 5000 * scale * (1 + 0.004 * stats_rng_normal(rng));

    if (stats_rng_unit(rng) < share) {
        ns *= 1.08;
    }
    return 32 * round(ns / 32);
}

static void two_modes_do_not_blur_short_launches(void **state)
{
    static const double shares[] = {0.1, 0.3, 0.5};

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        double of_launches = 0, of_blocks = 0, scale = 1.03;
        size_t wrong = 0, found = 0;

        for (uint64_t run = 0; run < RUNS; run++) {
            struct timing_estimate equal, slower, blocks;
            struct stats_rng rng;

            stats_rng_init(&rng, run, 3);
            double ns[3][64];
            for (size_t i = 0; i < 64; i++) {
                ns[0][i] = humped_launch(&rng, shares[s], 1);
                ns[1][i] = humped_launch(&rng, shares[s], 1);
                ns[2][i] = humped_launch(&rng, shares[s], scale);
            }
            struct timing_series series = {.count = 0};
            for (size_t i = 0; i < 32; i++) {
                timing_add(&series, (log2(ns[0][2 * i] / ns[1][2 * i]) +
                                     log2(ns[0][2 * i + 1] / ns[1][2 * i + 1])) /
                                        2);
            }
            equal = timing_of_launches(ns[0], ns[1], 64, 32, 0);
            slower = timing_of_launches(ns[0], ns[2], 64, 32, 0);
            blocks = timing_of(&series);
            of_launches += equal.log2 * equal.log2;
            of_blocks += blocks.log2 * blocks.log2;
            wrong += equal.lo > 0 || equal.hi < 0;
            found += slower.hi < 0;
            assert_true(slower.lo <= -log2(scale) + 0.02 && slower.hi >= -log2(scale) - 0.02);
        }
        assert_true(of_launches * 4 < of_blocks); // at most half the standard deviation
        assert_true(wrong <= RUNS / 100);         // the level of one look is 0.8 %
        assert_true(found >= RUNS * 99 / 100);
    }
}

static void launches_beyond_the_last_look_are_left_out(void **state)
{
    enum { MOST = 2 * TIMING_BLOCKS_MAX, COUNT = MOST + 88 };
    static double baseline[COUNT], candidate[COUNT];
    struct timing_estimate most, more;

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 4, 3);
    for (size_t i = 0; i < COUNT; i++) {
        baseline[i] = humped_launch(&rng, 0.5, 1);
        candidate[i] = humped_launch(&rng, 0.5, 1.01);
    }
    most = timing_of_launches(baseline, candidate, MOST, 32, 0);
    more = timing_of_launches(baseline, candidate, COUNT, 32, 0);
    assert_int_equal(more.blocks, TIMING_BLOCKS_MAX);
    assert_true(more.log2 == most.log2 && more.lo == most.lo && more.hi == most.hi);
}

static void launches_limit_the_looks(void **state)
{
    (void)state;
    assert_int_equal(timing_looks(0), TIMING_LOOKS);
    assert_int_equal(timing_looks(1), 1);
    assert_int_equal(timing_looks(64), 3); // 32 blocks of two launches of each arm
    assert_int_equal(timing_looks(511), TIMING_LOOKS - 1);
    assert_int_equal(timing_looks(512), TIMING_LOOKS);
    assert_int_equal(timing_looks(UINT64_MAX), TIMING_LOOKS);
}

static void anchor_keeps_the_timing_going(void **state)
{
    (void)state;
    struct timing_rule rule = {.precision_log2 = 1e-9, .anchor_log2 = NAN};
    struct timing_estimate estimate = {.log2 = 1, .lo = 0.9, .hi = 1.1};
    assert_true(timing_decided(&rule, &estimate));
    rule.anchor_log2 = 1.05;
    assert_false(timing_decided(&rule, &estimate));
    rule.anchor_log2 = 1.2;
    assert_true(timing_decided(&rule, &estimate));
    rule.precision_log2 = 0.1000001;
    rule.anchor_log2 = 1.05;
    assert_true(timing_decided(&rule, &estimate));
}

// Whoever searches does not need to know by how little a candidate is slower or faster than the
// incumbent, once it is no improvement.
static void what_is_no_improvement_on_the_anchor_is_decided(void **state)
{
    (void)state;
    struct timing_rule rule = {.precision_log2 = 1e-9, .anchor_log2 = 1};
    struct timing_estimate estimate = {.log2 = 0.999, .lo = 0.991};
    estimate.hi = 1 + 0.9 * IMPROVEMENT_MARGIN_LOG2;
    assert_true(timing_decided(&rule, &estimate));
    estimate.hi = 1 + 1.1 * IMPROVEMENT_MARGIN_LOG2;
    assert_false(timing_decided(&rule, &estimate));
    estimate.lo = 1.0001; // it is faster, by however little
    assert_true(timing_decided(&rule, &estimate));
    // How it compares with the baseline is decided, too.
    rule.anchor_log2 = 0.001;
    estimate = (struct timing_estimate){.log2 = 0, .lo = -0.005, .hi = 0.005};
    assert_false(timing_decided(&rule, &estimate));
}

// Nobody needs to know by how little two differ that do not differ by what counts.
static void a_tie_needs_no_narrower_interval(void **state)
{
    (void)state;
    struct timing_rule rule = {.precision_log2 = 0.004, .anchor_log2 = NAN};
    struct timing_estimate tie = {.log2 = 0.0005, .lo = -0.0065, .hi = 0.0075};
    struct timing_estimate wide = {.log2 = 0.0005, .lo = -0.0075, .hi = 0.0085};
    struct timing_estimate faster = {.log2 = 0.005, .lo = 0.0005, .hi = 0.0079};

    assert_true(timing_decided(&rule, &tie));
    assert_int_equal(timing_verdict(&rule, &tie), VERDICT_EQUIVALENT);
    rule.anchor_log2 = 1;
    assert_true(timing_decided(&rule, &tie));
    rule.anchor_log2 = NAN;
    assert_false(timing_decided(&rule, &wide));
    assert_int_equal(timing_verdict(&rule, &wide), VERDICT_INCONCLUSIVE);
    assert_int_equal(timing_verdict(&rule, &faster), VERDICT_FASTER);
    rule.precision_log2 = 0.003;
    assert_false(timing_decided(&rule, &tie));
    assert_int_equal(timing_verdict(&rule, &tie), VERDICT_INCONCLUSIVE);
}

// Whoever searches does not need to know how a candidate that is no improvement compares with the
// baseline.
static void well_below_the_anchor_a_narrow_interval_is_enough(void **state)
{
    (void)state;
    struct timing_rule rule = {.precision_log2 = 1e-9, .anchor_log2 = 1};
    struct timing_estimate estimate = {.log2 = 0, .lo = -0.014, .hi = 0.014};
    assert_true(timing_decided(&rule, &estimate));
    assert_int_equal(timing_verdict(&rule, &estimate), VERDICT_INCONCLUSIVE);
    estimate.lo = -0.016;
    assert_false(timing_decided(&rule, &estimate));
    estimate.lo = -0.014;
    rule.anchor_log2 = 0.08; // not 5 % above the interval
    assert_false(timing_decided(&rule, &estimate));
    rule.anchor_log2 = NAN;
    assert_false(timing_decided(&rule, &estimate));
}

static void verdict_follows_the_interval(void **state)
{
    (void)state;
    struct timing_rule rule = {.precision_log2 = 0.0036, .anchor_log2 = NAN};
    const struct {
        double log2, half;
        enum verdict verdict;
    } row[] = {
        {0.5, 0.1, VERDICT_FASTER},
        {-0.5, 0.1, VERDICT_SLOWER},
        {0.001, 0.003, VERDICT_EQUIVALENT},
        {0.1, 0.2, VERDICT_INCONCLUSIVE},
        {0.002, 0.001, VERDICT_EQUIVALENT},
        {0.004, 0.001, VERDICT_FASTER},
        {0.0, INFINITY, VERDICT_INCONCLUSIVE},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct timing_estimate estimate = {
            .log2 = row[i].log2, .lo = row[i].log2 - row[i].half, .hi = row[i].log2 + row[i].half};
        assert_int_equal(timing_verdict(&rule, &estimate), row[i].verdict);
    }
}

static void linear_drift_cancels_within_a_block(void **state)
{
    (void)state;
    struct timing_block block;
    for (size_t i = 0; i < 2; i++) {
        block.cpu[0][i] = 1000 * exp2(0.1 * (double)(i == 0 ? 0 : 3));
        block.cpu[1][i] = 500 * exp2(0.1 * (double)(i + 1));
    }
    assert_true(fabs(timing_block_log2(&block) - 1) < 1e-12);
    block.cpu[0][0] = 0;
    assert_true(isnan(timing_block_log2(&block)));
}

static void blocks_are_void_when_the_clocks_disagree_about_the_arms(void **state)
{
    (void)state;
    struct timing_block block = {.cpu = {{1000, 1000}, {1000, 1000}},
                                 .wall = {{1100, 1100}, {1100, 1100}}};
    assert_int_equal(timing_block_state(&block, 100), BLOCK_COUNTS);
    block.wall[1][0] = 1500;
    assert_int_equal(timing_block_state(&block, 100), BLOCK_ESCAPED);
    assert_true(timing_block_escape(&block, 100) > 0);
    block.wall[0][1] = 1500; // the same in both arms
    assert_int_equal(timing_block_state(&block, 100), BLOCK_COUNTS);
    block.wall[1][0] = 1100;
    assert_int_equal(timing_block_state(&block, 100), BLOCK_DISTURBED);
    assert_true(timing_block_escape(&block, 100) < 0);
}

static void combination_weighs_cases(void **state)
{
    struct timing_estimate each[2] = {
        {.log2 = 1, .standard_error = 0.01, .degrees = 5, .blocks = 8},
        {.log2 = -1, .standard_error = 0.02, .degrees = 9, .blocks = 16}};
    double weight[2] = {0.75, 0.25};
    struct timing_estimate both = timing_combine(each, weight, 2),
                           one = timing_combine(each, (double[]){1}, 1);

    (void)state;
    assert_true(fabs(both.log2 - 0.5) < 1e-12);
    assert_true(fabs(both.standard_error - hypot(0.0075, 0.005)) < 1e-12);
    assert_true(both.degrees > 5 && both.degrees < 14);
    assert_int_equal(both.blocks, 24);
    assert_true(fabs(one.degrees - 5) < 1e-9 && one.log2 == 1);
    assert_true(fabs((one.hi - one.lo) / 2 - 0.01 * stats_t_quantile(1 - 0.05 / 12, 5)) < 1e-9);
}

static void systematic_error_stays_however_many_blocks_there_are(void **state)
{
    (void)state;
    struct timing_series series = {.count = 0};
    series.systematic = timing_systematic(2000, 40000);
    assert_true(series.systematic > 0.001 && series.systematic < 0.004);
    assert_true(timing_systematic(2000, 4e9) < 1e-7);
    assert_true(timing_systematic(2000, 0) <= 1);
    assert_true(timing_systematic(NAN, NAN) == 0);
    for (size_t i = 0; i < TIMING_BLOCKS_MAX; i++) {
        timing_add(&series, 0.5 * series.systematic + (i % 2 ? 1e-6 : -1e-6));
    }
    struct timing_estimate estimate = timing_of(&series);
    assert_true(estimate.lo < 0 && estimate.hi > 0);
    assert_true((estimate.hi - estimate.lo) / 2 > 2 * series.systematic);
    struct timing_rule rule = {.precision_log2 = 1e-6, .anchor_log2 = NAN};
    assert_true(timing_decided(&rule, &estimate)); // more blocks would not help
    assert_int_equal(timing_verdict(&rule, &estimate), VERDICT_EQUIVALENT);
}

static void few_blocks_decide_nothing(void **state)
{
    struct timing_series series = {.count = 0};
    struct timing_estimate estimate = timing_of(&series);

    (void)state;
    struct timing_rule rule = {.precision_log2 = 0.0036, .anchor_log2 = NAN};
    assert_false(timing_decided(&rule, &estimate));
    timing_add(&series, 3);
    estimate = timing_of(&series);
    assert_false(timing_decided(&rule, &estimate));
    assert_int_equal(timing_verdict(&rule, &estimate), VERDICT_INCONCLUSIVE);
    for (size_t i = 0; i < 2 * TIMING_BLOCKS_MAX; i++) {
        timing_add(&series, 3);
    }
    assert_int_equal(series.count, TIMING_BLOCKS_MAX);
}

// A block or two have an interval by how their launches differ. It covers the truth as often as its
// level says, and more often when the machine drifts, which the launches show and the ratio does
// not have.
static void the_noise_within_a_few_blocks_gives_their_interval(void **state)
{
    enum { FEW_RUNS = 40000 };
    static const struct world steady = {.sigma = 0.02}, drifting = {.sigma = 0.02, .drift = 0.02};

    (void)state;
    for (size_t blocks = 1; blocks <= 2; blocks++) {
        size_t covered = 0, covered_drifting = 0;

        for (uint64_t run = 0; run < FEW_RUNS; run++) {
            for (size_t w = 0; w < 2; w++) {
                const struct world *world = w == 0 ? &steady : &drifting;
                struct stats_rng rng;
                double ns[2][4];
                size_t index = 0;

                stats_rng_init(&rng, run, w);
                for (size_t i = 0; i < blocks; i++) { // A B B A
                    ns[0][2 * i] = launch(&rng, world, log(1e5), &index);
                    ns[1][2 * i] = launch(&rng, world, log(2e5), &index);
                    ns[1][2 * i + 1] = launch(&rng, world, log(2e5), &index);
                    ns[0][2 * i + 1] = launch(&rng, world, log(1e5), &index);
                }
                struct timing_estimate estimate = timing_of_pairs(ns[0], ns[1], blocks, 0);
                assert_true(isfinite(estimate.lo) && isfinite(estimate.hi));
                assert_true(estimate.degrees == 2 * (double)blocks && estimate.blocks == blocks);
                *(w == 0 ? &covered : &covered_drifting) += estimate.lo <= -1 && estimate.hi >= -1;
            }
        }
        // The level of one look is 0.83 %; four standard deviations of the share are 0.18 %.
        assert_in_range(covered, FEW_RUNS * 989 / 1000, FEW_RUNS * 994 / 1000);
        assert_true(covered_drifting > covered);
    }
    struct timing_estimate none = timing_of_pairs(NULL, NULL, 0, 0);
    assert_true(none.standard_error > 1e300 && none.degrees == 0);
}

// The systematic error stands in it as well.
static void few_blocks_without_noise_have_the_systematic_error(void **state)
{
    static const double baseline[2] = {1e5, 1e5}, candidate[2] = {3e5, 3e5};
    struct timing_estimate exact = timing_of_pairs(baseline, candidate, 1, 0),
                           wide = timing_of_pairs(baseline, candidate, 1, 0.1);

    (void)state;
    assert_true(exact.standard_error == 0 && fabs(exact.log2 + log2(3)) < 1e-12);
    assert_true((wide.hi - wide.lo) / 2 > 0.2 && (wide.hi - wide.lo) / 2 < 0.3);
}

static void what_is_far_below_is_far_below_what_has_to_be_beaten(void **state)
{
    struct timing_rule rule = {.anchor_log2 = NAN};

    (void)state;
    assert_false(timing_is_far_below(&rule, -0.58));
    assert_true(timing_is_far_below(&rule, -0.59));
    rule.anchor_log2 = -1;
    assert_false(timing_is_far_below(&rule, -0.59));
    rule.anchor_log2 = 1;
    assert_true(timing_is_far_below(&rule, 0.4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_code_is_called_different_in_at_most_one_run_of_twenty),
        cmocka_unit_test(two_percent_are_found_with_their_sign),
        cmocka_unit_test(two_modes_do_not_blur_short_launches),
        cmocka_unit_test(launches_beyond_the_last_look_are_left_out),
        cmocka_unit_test(launches_limit_the_looks),
        cmocka_unit_test(anchor_keeps_the_timing_going),
        cmocka_unit_test(what_is_no_improvement_on_the_anchor_is_decided),
        cmocka_unit_test(a_tie_needs_no_narrower_interval),
        cmocka_unit_test(well_below_the_anchor_a_narrow_interval_is_enough),
        cmocka_unit_test(verdict_follows_the_interval),
        cmocka_unit_test(linear_drift_cancels_within_a_block),
        cmocka_unit_test(blocks_are_void_when_the_clocks_disagree_about_the_arms),
        cmocka_unit_test(combination_weighs_cases),
        cmocka_unit_test(systematic_error_stays_however_many_blocks_there_are),
        cmocka_unit_test(few_blocks_decide_nothing),
        cmocka_unit_test(the_noise_within_a_few_blocks_gives_their_interval),
        cmocka_unit_test(few_blocks_without_noise_have_the_systematic_error),
        cmocka_unit_test(what_is_far_below_is_far_below_what_has_to_be_beaten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

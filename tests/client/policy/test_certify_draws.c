// The bound from audits that were drawn one by one: its figures, and that it holds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/certify.h"
#include "common/stats.h"
#include <math.h>
#include <string.h>

#define POPULATION 200

static double clean_bound(size_t n, double uniform)
{
    struct certify_draw draw[64];
    for (size_t i = 0; i < n; i++) {
        draw[i] = (struct certify_draw){.probability = 1.0 / (double)(100000 - i)};
    }
    return certify_draws(draw, n, 100000, uniform, 0.9).upper;
}

static void clean_draws_bound_the_share(void **state)
{
    (void)state;
    assert_true(fabs(clean_bound(10, 1) - 0.211) < 2e-3);
    assert_true(fabs(clean_bound(60, 1) - 0.039) < 1e-3);
    assert_true(clean_bound(60, 0.5) > clean_bound(60, 1));
    // Draws of which a part goes by promise tell less of the share, but not much less.
    assert_true(fabs(clean_bound(10, CERTIFY_DRAW_UNIFORM) - 0.282) < 2e-3);
    assert_true(fabs(clean_bound(60, CERTIFY_DRAW_UNIFORM) - 0.052) < 1e-3);
    assert_true(clean_bound(5, 1) < 1 && clean_bound(5, 1) > 0.3);
}

static void nothing_is_known_without_draws_or_with_impossible_ones(void **state)
{
    (void)state;
    struct certify_draw draw = {.probability = 0.5};
    struct false_omission omission = certify_draws(NULL, 0, 10, 1, 0.9);
    assert_true(!omission.estimated && omission.upper == 1);
    assert_non_null(strstr(omission.text, "none was audited"));
    omission = certify_draws(&draw, 1, 0, 1, 0.9);
    assert_string_equal(omission.text, "nothing was left unmeasured");
    draw.probability = 0.01; // of ten, each has at least a tenth of its half
    omission = certify_draws(&draw, 1, 10, 0.5, 0.9);
    assert_true(!omission.estimated && omission.upper == 1);
    draw.probability = 1.2;
    assert_false(certify_draws(&draw, 1, 10, 0.5, 0.9).estimated);
    draw.probability = 0.5;
    assert_true(certify_draws(&draw, 1, 10, 0.5, 0.9).estimated);
    assert_false(certify_draws(&draw, 1, 10, 0, 0.9).estimated);
}

static void all_of_a_population_tell_its_share(void **state)
{
    (void)state;
    struct certify_draw draw[10];
    for (size_t i = 0; i < 10; i++) {
        draw[i] = (struct certify_draw){.probability = 1.0 / (double)(10 - i), .improves = i == 4};
    }
    struct false_omission omission = certify_draws(draw, 10, 10, 1, 0.9);
    assert_int_equal(omission.improvers, 1);
    assert_true(fabs(omission.upper - 0.1) < 1e-9); // nothing is left to be unsure of
    assert_false(omission.shown);                   // ten are too few for an estimate
    assert_true(fabs(omission.share - 0.1) < 0.06);
    assert_non_null(strstr(omission.text, "1 of 10 audits improved"));
}

// Draws n of the population as pipeline_survey.c does, in part by promises that may mislead.
static struct false_omission draw_from(const bool *improves, const double *promise, size_t n,
                                       uint64_t seed)
{
    struct certify_draw draw[64];
    bool taken[POPULATION] = {false};
    double uniform = CERTIFY_DRAW_UNIFORM;
    struct stats_rng rng;
    stats_rng_init(&rng, seed, 7);
    for (size_t k = 0; k < n; k++) {
        double sum = 0, chance = 0, at = stats_rng_unit(&rng);
        size_t chosen = POPULATION;
        for (size_t i = 0; i < POPULATION; i++) {
            sum += taken[i] ? 0 : promise[i];
        }
        for (size_t i = 0; i < POPULATION && (chosen == POPULATION || chance <= at); i++) {
            if (!taken[i]) {
                draw[k].probability =
                    uniform / (double)(POPULATION - k) + (1 - uniform) * promise[i] / sum;
                chance += draw[k].probability;
                chosen = i;
            }
        }
        taken[chosen] = true;
        draw[k].improves = improves[chosen];
    }
    return certify_draws(draw, n, POPULATION, uniform, 0.9);
}

static void the_bound_holds_whatever_the_promises_are(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) { // right, wrong and none
        bool improves[POPULATION];
        double promise[POPULATION], mean = 0;
        unsigned missed = 0;
        for (size_t i = 0; i < POPULATION; i++) {
            improves[i] = i % 10 == 0;
            promise[i] = kind == 2 ? 1 : improves[i] == (kind == 0) ? 8 : 1;
        }
        for (uint64_t seed = 1; seed <= 400; seed++) {
            struct false_omission omission = draw_from(improves, promise, 30, seed);
            missed += omission.upper < 0.1;
            mean += omission.share / 400;
        }
        if (missed > 40 || fabs(mean - 0.1) > 0.012) {
            fail_msg("kind %u: missed %u of 400, mean %g", kind, missed, mean);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_draws_bound_the_share),
        cmocka_unit_test(nothing_is_known_without_draws_or_with_impossible_ones),
        cmocka_unit_test(all_of_a_population_tell_its_share),
        cmocka_unit_test(the_bound_holds_whatever_the_promises_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

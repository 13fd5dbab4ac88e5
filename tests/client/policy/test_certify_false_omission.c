// What audits say of what was discarded: how near the bound comes to the exact one of equal audits,
// whether it holds as often as it says, and what is not said from few audits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/certify.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <string.h>

#define RESAMPLES 400
#define ROWS 300

// Fills n rows of one propensity without forecasts. The first `audited` of them were audited, and
// the first `improvers` of these improve.
static void fill(struct certify_row *rows, size_t n, size_t audited, size_t improvers,
                 double propensity)
{
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct certify_row){.score = 0.9,
                                       .forecast = NAN,
                                       .propensity = propensity,
                                       .measured = i < audited,
                                       .improves = i < improvers};
    }
}

static struct false_omission with(size_t n, size_t audited, size_t improvers, double propensity)
{
    static struct certify_row rows[2000];
    fill(rows, n, audited, improvers, propensity);
    return certify_false_omission(rows, n, 0.9);
}

// P(at most k of n) with probability p each.
static double binomial_cdf(size_t k, size_t n, double p)
{
    double sum = 0;
    for (size_t i = 0; i <= k; i++) {
        sum += exp(lgamma((double)n + 1) - lgamma((double)i + 1) - lgamma((double)(n - i) + 1) +
                   (double)i * log(p) + (double)(n - i) * log1p(-p));
    }
    return sum;
}

// The upper end of the exact one-sided interval (Clopper and Pearson 1934).
static double clopper_pearson(size_t k, size_t n, double confidence)
{
    double lo = 0, hi = 1;
    for (size_t step = 0; step < 50; step++) {
        double middle = 0.5 * (lo + hi);
        if (binomial_cdf(k, n, middle) <= 1 - confidence) {
            hi = middle;
        } else {
            lo = middle;
        }
    }
    return hi;
}

static void the_bound_of_equal_audits_is_near_the_exact_one(void **state)
{
    static const struct {
        size_t audits, improvers;
        double most; // the bound over the exact one
    } cases[] = {{10, 0, 1.25}, {60, 0, 1.25}, {150, 0, 1.25}, {10, 1, 1.7},
                 {60, 1, 1.9},  {60, 2, 1.8},  {60, 5, 1.6},   {150, 15, 1.4}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double exact = clopper_pearson(cases[i].improvers, cases[i].audits, 0.9);
        double upper = with(20 * cases[i].audits > 2000 ? 2000 : 20 * cases[i].audits,
                            cases[i].audits, cases[i].improvers, 0.05)
                           .upper;
        print_message("%zu of %zu: exact %.4f, bound %.4f\n", cases[i].improvers, cases[i].audits,
                      exact, upper);
        assert_true(upper >= exact && upper <= cases[i].most * exact);
    }
    assert_true(with(200, 10, 0, 0.05).upper < 0.27);
    assert_true(with(1200, 60, 0, 0.05).upper < 0.05);
}

// Draws whether each of ROWS rows improves, and whether it is audited. stops: as soon as an audit
// has found an improver, which becomes the best to beat, no later row improves. Returns the share.
static double draw(struct certify_row *rows, double share, bool stops, struct stats_rng *rng)
{
    double improvers = 0;
    bool stopped = false;
    fill(rows, ROWS, 0, 0, 0.2);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i].improves = stats_rng_unit(rng) < share && !stopped;
        rows[i].measured = stats_rng_unit(rng) < rows[i].propensity;
        stopped = stopped || (stops && rows[i].measured && rows[i].improves);
        improvers += rows[i].improves;
    }
    return improvers / ROWS;
}

static void the_bound_holds_as_often_as_it_says(void **state)
{
    static const struct {
        double share;
        bool stops;
    } cases[] = {{0.01, false}, {0.04, false}, {0.2, false}, {0.04, true}, {0.2, true}};
    static struct certify_row rows[ROWS];
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        double broken = 0, mean = 0;
        for (size_t r = 0; r < RESAMPLES; r++) {
            struct stats_rng rng;
            stats_rng_init(&rng, 2200 + c, r);
            double share = draw(rows, cases[c].share, cases[c].stops, &rng);
            struct false_omission omission = certify_false_omission(rows, ROWS, 0.9);
            broken += omission.upper < share;
            mean += omission.upper / RESAMPLES;
        }
        print_message("share %.2f%s: above the bound %.3f of the time, mean bound %.3f\n",
                      cases[c].share, cases[c].stops ? " until one is found" : "",
                      broken / RESAMPLES, mean);
        // Three standard deviations of a share among RESAMPLES.
        assert_true(broken / RESAMPLES <= 0.1 + 3 * sqrt(0.1 * 0.9 / RESAMPLES));
        assert_true(cases[c].stops || mean < 3 * cases[c].share + 0.05);
    }
}

static void few_audits_are_said_with_what_they_bound(void **state)
{
    (void)state;
    struct false_omission omission = with(200, 10, 0, 0.05);
    assert_false(omission.shown);
    assert_string_equal(omission.text, "none of 10 audits improved: with 90 % confidence at most "
                                       "23.9 % of the 200 discarded would have");
    omission = with(200, 10, 2, 0.05);
    assert_false(omission.shown);
    assert_non_null(strstr(omission.text, "2 of 10 audits improved: with 90 % confidence"));
    assert_non_null(strstr(with(20, 1, 0, 0.05).text, "none of 1 audit improved: "));
    for (size_t audits = 1; audits < CERTIFY_AUDITS_LEAST; audits++) {
        for (size_t improvers = 0; improvers < 3 && improvers <= audits; improvers++) {
            omission = with(1200, audits, improvers, 0.05);
            assert_false(omission.shown);
            assert_null(strstr(omission.text, "estimated"));
            assert_null(strstr(omission.text, " 0.0 %"));
            assert_true(omission.upper > 0.04);
        }
    }
}

static void many_audits_are_an_estimate_with_its_bound(void **state)
{
    (void)state;
    struct false_omission omission = with(1200, 60, 3, 0.05);
    assert_true(omission.shown);
    assert_non_null(strstr(omission.text, "of the 1200 discarded an estimated 5.0 % would have "
                                          "improved, with 90 % confidence at most "));
    assert_non_null(strstr(omission.text, "by 60 audits"));
    // Where none improved the estimate says less than the bound.
    omission = with(1200, 60, 0, 0.05);
    assert_string_equal(omission.text, "none of 60 audits improved: with 90 % confidence at most "
                                       "4.5 % of the 1200 discarded would have");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_of_equal_audits_is_near_the_exact_one),
        cmocka_unit_test(the_bound_holds_as_often_as_it_says),
        cmocka_unit_test(few_audits_are_said_with_what_they_bound),
        cmocka_unit_test(many_audits_are_an_estimate_with_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

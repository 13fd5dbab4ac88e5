// The bins of the second question: they have the edges that decide, and one density.
#include "worker/prompt/fine_bins.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka.h needs the headers above.
#include <cmocka.h>

static void bins_are_narrow_around_the_best(void **state)
{
    static const char *const name[FINE_BIN_COUNT] = {
        "below 0.5x",     "0.5x to 0.8x",  "0.8x to 0.95x", "0.95x to 1.05x",
        "1.05x to 1.15x", "1.15x to 1.4x", "1.4x to 2x",    "2x or more"};

    (void)state;
    for (size_t bin = 0; bin < FINE_BIN_COUNT; bin++) {
        char got[32];

        fine_bin_name(bin, got);
        assert_string_equal(got, name[bin]);
    }
}

static void the_part_above_falls_from_one_to_nothing(void **state)
{
    (void)state;
    for (size_t bin = 0; bin < FINE_BIN_COUNT; bin++) {
        double p[FINE_BIN_COUNT] = {0}, before = 1;

        p[bin] = 1;
        assert_true(fine_bins_above(p, -60) > 0.999999);
        assert_true(fine_bins_above(p, 60) < 0.000001);
        for (double y = -4; y < 4; y += 0.01) {
            double now = fine_bins_above(p, y);

            assert_true(now <= before && now >= 0 && before - now < 0.2);
            before = now;
        }
    }
}

static void a_margin_lies_inside_the_middle_bin(void **state)
{
    const double same[FINE_BIN_COUNT] = {[3] = 1}, better[FINE_BIN_COUNT] = {[4] = 1},
                 worse[FINE_BIN_COUNT] = {[2] = 1};

    (void)state;
    assert_true(fine_bins_above(better, 0.0072) == 1);
    assert_true(fine_bins_above(worse, 0.0072) == 0);
    double half = fine_bins_above(same, 0.0072);
    assert_true(half > 0.4 && half < 0.5);
    assert_true(fabs(fine_bins_above(same, log2(1.05))) < 1e-12);
    assert_true(fabs(fine_bins_above(same, log2(0.95)) - 1) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_are_narrow_around_the_best),
        cmocka_unit_test(the_part_above_falls_from_one_to_nothing),
        cmocka_unit_test(a_margin_lies_inside_the_middle_bin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

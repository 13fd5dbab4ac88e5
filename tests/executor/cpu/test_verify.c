// The error bound of outputs.
#include "executor/cpu/verify.h"
#include <float.h>
#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct verify_outcome one_f32(double tolerance, float got, double y, double scale)
{
    struct verify_outcome outcome;
    verify_tensor(DTYPE_F32, tolerance, &got, &y, &scale, 1, &outcome);
    return outcome;
}

static void bound_is_tolerance_times_roundoff_times_scale(void **state)
{
    (void)state;
    assert_int_equal(one_f32(4, 1.0f, 1.0, 1.0).wrong, 0);
    const double u = 0x1p-24;
    assert_int_equal(one_f32(4, 1.0f, 1.0 + 3.9 * u, 1.0).wrong, 0);
    assert_int_equal(one_f32(4, 1.0f, 1.0 + 4.1 * u, 1.0).wrong, 1);
    assert_int_equal(one_f32(4, 1.0f, 1.0 + 4.1 * u, 2.0).wrong, 0);
    assert_true(fabs(one_f32(4, 1.0f, 1.0 + 3 * u, 1.0).max_error - 3) < 1e-6);
    assert_int_equal(one_f32(4, 0.0f, 0.0, 0.0).wrong, 0);
    assert_int_equal(one_f32(4, 1e-30f, 0.0, 0.0).wrong, 1);
    assert_int_equal(one_f32(4, 1.0f, 1.0, NAN).wrong, 0); // equal values need no scale
    assert_int_equal(one_f32(4, 1.5f, 1.0, NAN).wrong, 1);
    assert_int_equal(one_f32(0, 1.0f, 1.0, 1.0).wrong, 0);
    assert_int_equal(one_f32(0, nextafterf(1.0f, 2), 1.0, 1.0).wrong, 1);
}

static void nan_and_infinity_pass_only_where_they_are_expected(void **state)
{
    (void)state;
    assert_int_equal(one_f32(4, NAN, 1.0, 1.0).wrong, 1);
    assert_int_equal(one_f32(4, 1.0f, NAN, 1.0).wrong, 1);
    assert_int_equal(one_f32(4, NAN, NAN, NAN).wrong, 0);
    assert_int_equal(one_f32(4, INFINITY, INFINITY, INFINITY).wrong, 0);
    assert_int_equal(one_f32(4, -INFINITY, INFINITY, INFINITY).wrong, 1);
    assert_int_equal(one_f32(4, INFINITY, 1.0, INFINITY).wrong, 1);
    assert_int_equal(one_f32(4, INFINITY, 1e300, 1e300).wrong,
                     0); // the expected value rounds to infinity
    assert_int_equal(one_f32(4, FLT_MAX, 1.0, 1.0).wrong, 1);
}

static void every_wrong_element_is_counted_wherever_it_is(void **state)
{
    enum { COUNT = 1000 };
    double y[COUNT], scale[COUNT];

    (void)state;
    float got[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        got[i] = (float)i;
        y[i] = (double)i;
        scale[i] = (double)i;
    }
    struct verify_outcome outcome;
    for (size_t at = 0; at < COUNT; at++) {
        float right = got[at];
        got[at] += 1;
        verify_tensor(DTYPE_F32, 2, got, y, scale, COUNT, &outcome);
        assert_int_equal(outcome.wrong, 1);
        assert_int_equal(outcome.first, at);
        assert_true(outcome.got == (double)at + 1 && outcome.expected == (double)at);
        got[at] = right;
    }
    got[10] = NAN;
    got[900] = INFINITY;
    verify_tensor(DTYPE_F32, 2, got, y, scale, COUNT, &outcome);
    assert_int_equal(outcome.wrong, 2);
    assert_int_equal(outcome.first, 10);
    assert_true(isinf(outcome.max_error));
}

static void integers_are_equal_or_within_the_tolerance(void **state)
{
    int64_t i64[2] = {1LL << 52, -7};
    double y32[3] = {1, -2, INT32_MAX}, y8[2] = {0, 255}, y64[2] = {0x1p52, -7},
           none[3] = {0, NAN, 0}, ones[3] = {1, 1, 1};

    (void)state;
    int32_t i32[3] = {1, -2, INT32_MAX};
    struct verify_outcome outcome;
    verify_tensor(DTYPE_I32, 0, i32, y32, none, 3, &outcome);
    assert_int_equal(outcome.wrong, 0);
    uint8_t u8[2] = {0, 255};
    verify_tensor(DTYPE_U8, 0, u8, y8, none, 2, &outcome);
    assert_int_equal(outcome.wrong, 0);
    verify_tensor(DTYPE_I64, 0, i64, y64, none, 2, &outcome);
    assert_int_equal(outcome.wrong, 0);
    i32[1] = -3;
    verify_tensor(DTYPE_I32, 0, i32, y32, none, 3, &outcome);
    assert_int_equal(outcome.wrong, 1);
    assert_int_equal(outcome.first, 1);
    verify_tensor(DTYPE_I32, 1, i32, y32, ones, 3, &outcome);
    assert_int_equal(outcome.wrong, 0);
    assert_true(outcome.max_error == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_is_tolerance_times_roundoff_times_scale),
        cmocka_unit_test(nan_and_infinity_pass_only_where_they_are_expected),
        cmocka_unit_test(every_wrong_element_is_counted_wherever_it_is),
        cmocka_unit_test(integers_are_equal_or_within_the_tolerance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

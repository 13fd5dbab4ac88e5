#include "problem/dtype.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>

static void dtypes_have_size_name_and_roundoff(void **state)
{
    (void)state;
    assert_int_equal(dtype_size(DTYPE_F32), sizeof(float));
    assert_int_equal(dtype_size(DTYPE_U8), 1);
    assert_string_equal(dtype_name(DTYPE_I64), "i64");
    assert_string_equal(dtype_c_name(DTYPE_U8), "uint8_t");
    assert_true(dtype_roundoff(DTYPE_F32) == ldexp(1.0, -24) &&
                dtype_roundoff(DTYPE_F64) == ldexp(1.0, -53));
    assert_true(dtype_roundoff(DTYPE_I32) == 1.0);
    assert_true(dtype_size(DTYPE_BF16) == 2 && dtype_size(DTYPE_E4M3) == 1);
    assert_string_equal(dtype_name(DTYPE_E5M2), "e5m2");
    assert_string_equal(dtype_cuda_name(DTYPE_BF16), "__nv_bfloat16");
    assert_null(dtype_c_name(DTYPE_F16));
    assert_true(dtype_roundoff(DTYPE_F16) == ldexp(1.0, -11) &&
                dtype_roundoff(DTYPE_BF16) == ldexp(1.0, -8));
    assert_true(dtype_roundoff(DTYPE_E4M3) == ldexp(1.0, -4) &&
                dtype_roundoff(DTYPE_E5M2) == ldexp(1.0, -3));
    assert_true(dtype_roundoff(DTYPE_I8) == 1.0);
    assert_string_equal(work_unit_name(UNIT_FP8), "fp8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_size_name_and_roundoff),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

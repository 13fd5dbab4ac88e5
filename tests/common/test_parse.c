#include "common/parse.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <string.h>

static void u64_accepts_the_whole_range(void **state)
{
    (void)state;
    uint64_t value = 1;
    assert_int_equal(parse_u64(&value, "0", 0, UINT64_MAX, "n", NULL), 0);
    assert_true(value == 0);
    assert_int_equal(parse_u64(&value, "18446744073709551615", 0, UINT64_MAX, "n", NULL), 0);
    assert_true(value == UINT64_MAX);
    assert_int_equal(parse_u64(&value, "007", 0, 10, "n", NULL), 0);
    assert_true(value == 7);
}

static void u64_refuses_everything_else(void **state)
{
    static const char *const bad[] = {"",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "1.0",
                                      "0x1",
                                      "1e3",
                                      "abc",
                                      "18446744073709551616",
                                      "99999999999999999999999"};

    (void)state;
    uint64_t value = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(parse_u64(&value, bad[i], 0, UINT64_MAX, "retries", &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "retries"));
    }
    assert_int_equal(parse_u64(&value, "5", 6, 9, "n", NULL), ERR_INVALID);
    assert_int_equal(parse_u64(&value, "10", 6, 9, "n", NULL), ERR_INVALID);
    assert_true(value == 42);
}

static void i64_accepts_both_ends(void **state)
{
    (void)state;
    int64_t value = 1;
    assert_int_equal(parse_i64(&value, "-9223372036854775808", INT64_MIN, INT64_MAX, "n", NULL), 0);
    assert_true(value == INT64_MIN);
    assert_int_equal(parse_i64(&value, "9223372036854775807", INT64_MIN, INT64_MAX, "n", NULL), 0);
    assert_true(value == INT64_MAX);
    assert_int_equal(parse_i64(&value, "-0", INT64_MIN, INT64_MAX, "n", NULL), 0);
    assert_true(value == 0);
}

static void i64_refuses_overflow_and_rubbish(void **state)
{
    static const char *const bad[] = {
        "", "-", "--1", "- 1", "9223372036854775808", "-9223372036854775809"};

    (void)state;
    int64_t value = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse_i64(&value, bad[i], INT64_MIN, INT64_MAX, "n", NULL), ERR_INVALID);
    }
    assert_int_equal(parse_i64(&value, "-3", -2, 2, "n", NULL), ERR_INVALID);
    assert_true(value == 42);
}

static void f64_accepts_decimal_numbers(void **state)
{
    (void)state;
    double value = 0;
    assert_int_equal(parse_f64(&value, "-1.25e2", -1e9, 1e9, "x", NULL), 0);
    assert_true(value == -125.0);
    assert_int_equal(parse_f64(&value, ".5", -INFINITY, INFINITY, "x", NULL), 0);
    assert_true(value == 0.5);
    assert_int_equal(parse_f64(&value, "1e-400", -1, 1, "x", NULL), 0);
    assert_true(value == 0.0);
}

static void f64_refuses_what_is_not_finite_or_not_a_number(void **state)
{
    static const char *const bad[] = {"",    "nan",  "inf", "1e999", "0x10", " 1", "1 ",
                                      "1,5", "1.5s", "-",   ".",     "e5",   "1e", "1.2.3"};

    (void)state;
    double value = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse_f64(&value, bad[i], -INFINITY, INFINITY, "x", NULL), ERR_INVALID);
    }
    assert_int_equal(parse_f64(&value, "1.01", 0, 1, "x", NULL), ERR_INVALID);
    assert_true(value == 42);
}

// Covers the installed locales. Where only "C" is installed it repeats the test above.
static void f64_does_not_know_the_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) {
        (void)setlocale(LC_ALL, "fr_FR.UTF-8");
    }
    double value = 0;
    assert_int_equal(parse_f64(&value, "1.5", 0, 2, "x", NULL), 0);
    assert_true(value == 1.5);
    assert_int_equal(parse_f64(&value, "1,5", 0, 2, "x", NULL), ERR_INVALID);
    (void)setlocale(LC_ALL, "C");
}

static void durations_with_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"90", 90000000000},
                {"90s", 90000000000},
                {"250ms", 250000000},
                {"5m", 300000000000},
                {"2h", 7200000000000},
                {"1d", 86400000000000},
                {"1.5s", 1500000000},
                {"0.25", 250000000},
                {"7us", 7000},
                {"3ns", 3},
                {"0", 0},
                {"0.001us", 1},
                {"1h30m", 5400000000000},
                {"1d2h3m4s5ms6us7ns", 93784005006007},
                {"2m1.5s", 121500000000},
                {"1m90s", 150000000000},
                {"0h5m", 300000000000}};

    (void)state;
    uint64_t ns;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ns = 1;
        assert_int_equal(parse_duration(&ns, good[i].text, "timeout", NULL), 0);
        assert_true(ns == good[i].ns);
    }
}

static void durations_that_are_none(void **state)
{
    static const char *const bad[] = {"",
                                      "s",
                                      "-1s",
                                      "1 s",
                                      "1S",
                                      "1.",
                                      ".5s",
                                      "1s1",
                                      "1h30",
                                      "30m1h",
                                      "1h1h",
                                      "1.5h30m",
                                      "1h 30m",
                                      "1h30m ",
                                      "1h-30m",
                                      "213504d",
                                      "0.5ns",
                                      "584554049254d",
                                      "1.0000000000000000001s",
                                      "18446744073709551616ns"};

    (void)state;
    uint64_t ns = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(parse_duration(&ns, bad[i], "timeout", &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "timeout"));
    }
    assert_true(ns == 42);
}

static void sizes_with_units(void **state)
{
    (void)state;
    uint64_t size = 0;
    assert_int_equal(parse_size(&size, "65536", "n", NULL), 0);
    assert_true(size == 65536);
    assert_int_equal(parse_size(&size, "64K", "n", NULL), 0);
    assert_true(size == 65536);
    assert_int_equal(parse_size(&size, "1.5M", "n", NULL), 0);
    assert_true(size == 1572864);
    assert_int_equal(parse_size(&size, "2G", "n", NULL), 0);
    assert_true(size == 2147483648U);
    assert_int_equal(parse_size(&size, "16777215T", "n", NULL), 0);
    assert_true(size == 16777215ULL << 40);
}

static void sizes_that_are_none(void **state)
{
    static const char *const bad[] = {"", "K", "-1", "1k", "1KB", "0.3K", "16777216T", "1 K"};

    (void)state;
    uint64_t size = 42;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse_size(&size, bad[i], "n", NULL), ERR_INVALID);
    }
    assert_true(size == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u64_accepts_the_whole_range),
        cmocka_unit_test(u64_refuses_everything_else),
        cmocka_unit_test(i64_accepts_both_ends),
        cmocka_unit_test(i64_refuses_overflow_and_rubbish),
        cmocka_unit_test(f64_accepts_decimal_numbers),
        cmocka_unit_test(f64_refuses_what_is_not_finite_or_not_a_number),
        cmocka_unit_test(f64_does_not_know_the_locale),
        cmocka_unit_test(durations_with_units),
        cmocka_unit_test(durations_that_are_none),
        cmocka_unit_test(sizes_with_units),
        cmocka_unit_test(sizes_that_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

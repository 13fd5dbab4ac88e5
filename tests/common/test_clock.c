#include "common/clock.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>

static void system_clock_does_not_go_back(void **state)
{
    uint64_t last = clock_now_ns(&clock_system);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_now_ns(&clock_system);

        assert_true(now >= last);
        last = now;
    }
}

static void wall_clock_is_after_2024_and_in_nanoseconds(void **state)
{
    int64_t now = clock_wall_ns(&clock_system);

    (void)state;
    assert_true(now > INT64_C(1704067200) * 1000000000);
    assert_true(now < INT64_C(9000000000) * 1000000000);
}

static void fake_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct clock clock;
    clock_fake_init(&clock, 5 * NS_PER_S);
    assert_int_equal(clock_now_ns(&clock), 5 * NS_PER_S);
    assert_int_equal(clock_now_ns(&clock), 5 * NS_PER_S);
    clock_fake_advance(&clock, 250 * NS_PER_MS);
    assert_int_equal(clock_now_ns(&clock), 5250 * NS_PER_MS);
    assert_int_equal(clock_wall_ns(&clock), 5250 * NS_PER_MS);
}

static void two_fakes_are_independent(void **state)
{
    (void)state;
    struct clock a;
    clock_fake_init(&a, 1);
    struct clock b;
    clock_fake_init(&b, 1);
    clock_fake_advance(&a, 1);
    assert_int_equal(clock_now_ns(&b), 1);
}

static void seconds_of_nanoseconds(void **state)
{
    (void)state;
    assert_true(clock_seconds(1500 * NS_PER_MS) == 1.5);
    assert_true(clock_seconds(0) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_clock_does_not_go_back),
        cmocka_unit_test(wall_clock_is_after_2024_and_in_nanoseconds),
        cmocka_unit_test(fake_clock_moves_only_when_told),
        cmocka_unit_test(two_fakes_are_independent),
        cmocka_unit_test(seconds_of_nanoseconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// What launches of a candidate may take in all.
#include "common/mem.h"
#include "executor/measurement.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECONDS(n) ((uint64_t)(n)*1000000000)

// 60 seconds of verification and 30 of timing: none of the launches has exceeded its limit of 10.
static void launches_that_take_too_long_in_all_are_a_timeout(void **state)
{
    const struct measure_plan plan = {.launch_seconds = 10, .max_seconds = 30};
    struct measurement measurement = {.plan = &plan};

    (void)state;
    for (int i = 0; i < 9; i++) {
        uint64_t now = clock_now_ns(&clock_system);

        assert_int_equal(measurement_add_launch(&measurement, now - SECONDS(9), "n=3"), 0);
    }
    assert_int_equal(measurement.verdict, VERDICT_NONE);
    assert_int_equal(
        measurement_add_launch(&measurement, clock_now_ns(&clock_system) - SECONDS(10), "n=4"),
        MEASURE_STOP);
    assert_int_equal(measurement.verdict, VERDICT_TIMEOUT);
    assert_string_equal(measurement.reason,
                        "its launches have taken more than 90 seconds in all, up to one for n=4");
    free(measurement.reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_that_take_too_long_in_all_are_a_timeout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

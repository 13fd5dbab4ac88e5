// Turns come at each row at first and then at ever larger steps. None is lost and none comes twice.
#include "worker/model/training_schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define ROWS_MAX 4000

static void turns_are_twice_as_far_apart_for_twice_the_rows(void **state)
{
    (void)state;
    const struct training_schedule schedule = {.each = 256, .rows_max = ROWS_MAX};
    assert_int_equal(training_schedule_rows(&schedule, 0), 0);
    assert_int_equal(training_schedule_rows(&schedule, 256), 256);
    assert_int_equal(training_schedule_rows(&schedule, 257), 258);
    assert_int_equal(training_schedule_rows(&schedule, 384), 512);
    assert_int_equal(training_schedule_rows(&schedule, 385), 516);
    assert_int_equal(training_schedule_rows(&schedule, 512), 1024);
    assert_int_equal(training_schedule_rows(&schedule, 640), 2048);
    assert_int_equal(training_schedule_rows(&schedule, 641), 2064);
    assert_int_equal(training_schedule_rows(&schedule, 6410),
                     2064 + 16 * (6410 - 641)); // the step does not grow any more
    assert_int_equal(training_schedule_step_max(&schedule), 16);
}

static void the_last_turn_is_found(void **state)
{
    (void)state;
    for (unsigned quarter = 0; quarter < 4; quarter++) {
        const struct training_schedule schedule = {256, ROWS_MAX, quarter};
        uint64_t before = 0;
        for (uint64_t count = 0; count < 3 * ROWS_MAX; count++) {
            uint64_t turn = training_schedule_turn(&schedule, count);
            assert_true(training_schedule_rows(&schedule, turn) <= count);
            assert_true(training_schedule_rows(&schedule, turn + 1) > count);
            assert_true(turn == before || turn == before + 1);
            before = turn;
        }
    }
}

static void quarters_take_turns_at_different_rows(void **state)
{
    (void)state;
    for (uint64_t count = 1025; count < 2 * ROWS_MAX; count++) {
        unsigned turns = 0;
        for (unsigned quarter = 0; quarter < 4; quarter++) {
            const struct training_schedule schedule = {256, ROWS_MAX, quarter};
            turns += training_schedule_turn(&schedule, count) !=
                     training_schedule_turn(&schedule, count - 1);
        }
        assert_true(turns <= 1);
    }
}

static void few_rows_are_a_turn_each_for_ever(void **state)
{
    (void)state;
    const struct training_schedule schedule = {.each = 100, .rows_max = 100, .quarter = 2};
    assert_int_equal(training_schedule_step_max(&schedule), 1);
    assert_int_equal(training_schedule_turn(&schedule, 12345), 12345);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_twice_as_far_apart_for_twice_the_rows),
        cmocka_unit_test(the_last_turn_is_found),
        cmocka_unit_test(quarters_take_turns_at_different_rows),
        cmocka_unit_test(few_rows_are_a_turn_each_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

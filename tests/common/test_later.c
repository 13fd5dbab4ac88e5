// What the loop is asked to call later is called once, not at once, and in the order of asking.
#include "common/later.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct calls {
    uv_loop_t loop;
    unsigned count;
    int order[4];
};

static struct calls calls;

static void second(void *owner)
{
    calls.order[calls.count++] = *(int *)owner;
}

static void first(void *owner)
{
    static int again = 3;

    calls.order[calls.count++] = *(int *)owner;
    later_run(&calls.loop, second, &again);
    assert_int_equal(calls.count, 1); // nothing is called inside the call
}

static void calls_come_once_later_and_in_order(void **state)
{
    int one = 1, two = 2;

    (void)state;
    assert_int_equal(uv_loop_init(&calls.loop), 0);
    later_run(&calls.loop, first, &one);
    later_run(&calls.loop, second, &two);
    assert_int_equal(calls.count, 0);
    assert_int_equal(uv_run(&calls.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(calls.count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(calls.order[i], i + 1);
    }
    assert_int_equal(uv_loop_close(&calls.loop), 0); // no handle is left
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_come_once_later_and_in_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

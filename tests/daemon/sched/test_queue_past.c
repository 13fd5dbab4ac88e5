// Who cannot use the device that is idle lets others past.
#include "tests/daemon/sched/queue_fixture.h"

// A job that was lost on a device waits for another one, and keeps no other job from that device.
static void who_avoids_a_device_lets_others_past(void **state)
{
    struct queue *queue = queue_create();

    (void)state;
    struct item item[4] = {0};
    for (uint64_t i = 0; i < 3; i++) {
        add(queue, &item[i], 7, 0, i);
    }
    item[0].entry.fair.avoid = item[1].entry.fair.avoid = 1;
    struct queue_grant grant;
    struct fair_terms terms = {.devices = 2, .sole = 1};
    assert_int_equal(next(queue, &terms, 0, &grant), 2); // of the same search, and younger
    queue_finish(queue, &grant, 1, false);
    assert_int_equal(next(queue, &terms, 0, &grant), NONE);
    assert_false(queue_has(queue, &terms, 0));
    add(queue, &item[3], 8, 0, 3);
    assert_int_equal(next(queue, &terms, 0, &grant), 3); // of another one
    queue_finish(queue, &grant, 1, false);
    terms.sole = 2;
    assert_int_equal(next(queue, &terms, 0, &grant), 0); // the other device
    queue_finish(queue, &grant, 1, false);
    terms = (struct fair_terms){.devices = 1, .sole = 1};
    assert_int_equal(next(queue, &terms, 0, &grant), 1); // there is no other any more
    queue_finish(queue, &grant, 1, false);
    queue_free(queue);
}

// A job that needs an unused process waits until there is one, and keeps no other job waiting.
static void what_waits_for_a_process_lets_others_past(void **state)
{
    struct queue *queue = queue_create();
    struct item item[3] = {0};

    (void)state;
    add(queue, &item[0], 7, 0, 0);
    add(queue, &item[1], 7, 0, 1);
    item[0].entry.fair.fresh = true;
    struct queue_grant grant;
    struct fair_terms terms = {.devices = 1, .sole = 1, .fresh_waits = true};
    assert_int_equal(next(queue, &terms, 0, &grant), 1);
    queue_finish(queue, &grant, 1, false);
    assert_false(queue_has(queue, &terms, 0));
    add(queue, &item[2], 8, 0, 2);
    assert_int_equal(next(queue, &terms, 0, &grant), 2); // of another search
    queue_finish(queue, &grant, 1, false);
    terms.fresh_waits = false;
    assert_int_equal(next(queue, &terms, 0, &grant), 0);
    queue_finish(queue, &grant, 1, false);
    queue_free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_avoids_a_device_lets_others_past),
        cmocka_unit_test(what_waits_for_a_process_lets_others_past),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

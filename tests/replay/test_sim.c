// Simulated time: the order of many events, and what scheduling inside of them does.
#include "common/stats.h"
#include "replay/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#define EVENTS 1000

struct events {
    struct sim *sim;
    double due[EVENTS]; // of each event, by its tag
    uint64_t order[EVENTS];
    size_t count; // that have run
};

static void on_event(void *owner, uint64_t tag)
{
    struct events *events = owner;

    assert_true(sim_now(events->sim) == events->due[tag]);
    events->order[events->count++] = tag;
}

static void many_events_run_in_time_and_equal_ones_in_their_order(void **state)
{
    struct events *events = calloc(1, sizeof(*events));

    (void)state;
    assert_non_null(events);
    events->sim = sim_create();
    struct stats_rng rng;
    stats_rng_init(&rng, 3, 0);
    for (uint64_t i = 0; i < EVENTS; i++) {
        events->due[i] = (double)stats_rng_below(&rng, 100); // ten at each time
        sim_after(events->sim, events->due[i], on_event, events, i);
    }
    while (sim_step(events->sim)) {
    }
    assert_int_equal(events->count, EVENTS);
    for (size_t i = 1; i < EVENTS; i++) {
        uint64_t before = events->order[i - 1], now = events->order[i];
        assert_true(events->due[before] < events->due[now] ||
                    (events->due[before] == events->due[now] && before < now));
    }
    sim_free(events->sim);
    free(events);
}

// An event that schedules the next one, half of its time later, until the tag is 0.
static void on_chain(void *owner, uint64_t tag)
{
    struct events *events = owner;

    events->count++;
    if (tag > 0) {
        sim_after(events->sim, 0.5, on_chain, events, tag - 1);
    }
}

static void an_event_may_schedule_the_next_one_from_its_own_time(void **state)
{
    struct events events = {.sim = sim_create()};

    (void)state;
    sim_after(events.sim, 1, on_chain, &events, 200); // more than there is room for at first
    while (sim_step(events.sim)) {
    }
    assert_int_equal(events.count, 201);
    assert_true(sim_now(events.sim) == 101);
    assert_false(sim_step(events.sim));
    assert_true(sim_now(events.sim) == 101); // nothing is due: the time stands
    sim_free(events.sim);
}

static void time_never_goes_back(void **state)
{
    static const double odd[] = {-1, -INFINITY, (double)NAN};
    struct events events = {.sim = sim_create()};

    (void)state;
    sim_after(events.sim, 2, on_chain, &events, 0);
    assert_true(sim_step(events.sim));
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        sim_after(events.sim, odd[i], on_chain, &events, 0);
        assert_true(sim_step(events.sim));
        assert_true(sim_now(events.sim) == 2);
    }
    sim_free(events.sim);
}

static void events_that_have_not_run_are_forgotten_with_the_simulation(void **state)
{
    struct events events = {.sim = sim_create()};

    (void)state;
    assert_false(sim_step(events.sim));
    sim_after(events.sim, 1, on_chain, &events, 5);
    sim_after(events.sim, 2, on_chain, &events, 5);
    sim_free(events.sim);
    assert_int_equal(events.count, 0);
    sim_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_events_run_in_time_and_equal_ones_in_their_order),
        cmocka_unit_test(an_event_may_schedule_the_next_one_from_its_own_time),
        cmocka_unit_test(time_never_goes_back),
        cmocka_unit_test(events_that_have_not_run_are_forgotten_with_the_simulation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

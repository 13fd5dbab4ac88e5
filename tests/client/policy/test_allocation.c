// What generators have brought and cost, and which one is chosen next, on run states made by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/allocation.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

static struct estimate *speedup(double log2)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    *ret = (struct estimate){.log2 = log2, .lo = log2, .hi = log2};
    return ret;
}

// Adds a candidate whose measurement held the device for so many seconds. When y is above 0, the
// candidate becomes the incumbent with the log2 speedup y.
static void add(struct run_state *run_state, uint64_t generator, double held, double y)
{
    size_t n = run_state->candidate_count++;

    run_state->candidate = xrealloc(run_state->candidate, n + 1, sizeof(*run_state->candidate));
    struct run_state_candidate *c = &run_state->candidate[n];
    *c = (struct run_state_candidate){.proposed = {.candidate = n + 1, .generator = generator}};
    c->compiled = xcalloc(1, sizeof(*c->compiled));
    c->compiled->seconds = n % 2 == 0 ? 0.5 : NAN;
    c->result = xcalloc(1, sizeof(*c->result));
    c->result->seconds = xcalloc(1, sizeof(*c->result->seconds));
    c->result->seconds->held = held;
    if (y > 0) {
        run_state->incumbent = xrealloc(run_state->incumbent, run_state->incumbent_count + 1,
                                        sizeof(*run_state->incumbent));
        run_state->incumbent[run_state->incumbent_count++] =
            (struct run_state_incumbent){.event = {.candidate = n + 1, .speedup = speedup(y)}};
    }
}

static void ask(struct run_state *run_state, uint64_t round, uint64_t tokens, double cost)
{
    struct run_asked *asked = xcalloc(1, sizeof(*asked));
    struct run_event event = {
        .sequence = run_state->last_sequence + 1, .kind = RUN_ASKED, .body = asked};

    *asked = (struct run_asked){
        .generator = 1, .round = round, .first_tokens = tokens, .first_cost = cost};
    struct err err = ERR_INIT;
    assert_int_equal(run_state_apply(run_state, &event, &err), 0);
    free(asked);
}

static void begin(struct run_state *run_state)
{
    run_state_init(run_state);
    run_state->last_sequence = 1;
    run_state->started.seed = 1;
}

static void gains_and_costs_go_to_who_made_the_candidate(void **state)
{
    (void)state;
    struct run_state run_state;
    begin(&run_state);
    add(&run_state, 0, 2, 0.5);
    ask(&run_state, 1, 1000, 0.25);
    ask(&run_state, 2, 500, NAN);
    ask(&run_state, 1, 1000, 0.25); // a resumed search asked again: the same answers
    ask(&run_state, 2, 500, NAN);
    add(&run_state, 1, 3, 0.75);
    add(&run_state, 0, 1, 0);
    ask(&run_state, 1, 4000, NAN);
    struct allocation_share share[2];
    allocation_shares(&run_state, 3, 2, share);
    assert_int_equal(share[0].considered, 2);
    assert_int_equal(share[0].measured, 2);
    assert_int_equal(share[0].improvements, 1);
    assert_true(fabs(share[0].gain_log2 - 0.5) < 1e-12);
    assert_true(fabs(share[0].cost - (3 + 0.1 * 1 + 2 * ALLOCATION_CANDIDATE_SECONDS)) < 1e-9);
    assert_int_equal(share[1].tokens, 5500);
    assert_true(fabs(share[1].gain_log2 - 0.25) < 1e-12);
    assert_true(fabs(share[1].money - 0.25) < 1e-12);
    // The cost counts money where tokens have a price, and tokens where they have none.
    assert_true(fabs(share[1].cost - (3 + ALLOCATION_CANDIDATE_SECONDS + 250 + 4)) < 1e-9);
    allocation_shares(&run_state, 1, 2, share);
    assert_int_equal(share[1].considered, 0);
    assert_int_equal(share[0].improvements, 1);
    run_state_release(&run_state);
}

// Counts how often each generator is chosen over many slots.
static void count(const struct run_state *run_state, uint64_t visible, const bool *gone,
                  size_t *chosen)
{
    chosen[0] = chosen[1] = chosen[2] = 0;
    const uint64_t planned[2] = {0};
    for (uint64_t slot = 1; slot <= 200; slot++) {
        size_t choice = allocation_choose(run_state, visible, 2, gone, planned, slot);

        assert_int_equal(allocation_choose(run_state, visible, 2, gone, planned, slot), choice);
        chosen[choice]++;
    }
}

static void only_what_is_visible_decides(void **state)
{
    const bool none[2] = {false, false}, first[2] = {true, false}, both[2] = {true, true};

    (void)state;
    struct run_state run_state;
    begin(&run_state);
    size_t chosen[3];
    count(&run_state, 0, none, chosen);
    assert_int_equal(chosen[0], 200); // at first each generator in turn
    for (size_t i = 0; i < 8; i++) {
        add(&run_state, 0, 1, 0);
    }
    count(&run_state, 0, none, chosen);
    assert_int_equal(chosen[1], 200);
    for (size_t i = 0; i < 8; i++) {
        add(&run_state, 1, 1, 0.1 * (double)(i + 1));
    }
    count(&run_state, 16, none, chosen);
    assert_true(chosen[1] > 180 && chosen[0] > 0); // it improves, but the other is still chosen
    count(&run_state, 8, none, chosen);
    assert_true(chosen[0] > 180); // generator 1 has no outcomes yet
    count(&run_state, 16, first, chosen);
    assert_int_equal(chosen[1], 200);
    count(&run_state, 16, both, chosen);
    assert_int_equal(chosen[2], 200);
    run_state_release(&run_state);
}

static void money_counts(void **state)
{
    (void)state;
    struct run_state run_state;
    begin(&run_state);
    for (size_t i = 0; i < 16; i++) { // both generators improve equally
        ask(&run_state, 1, 0, i % 2 == 0 ? 0.1 : 0);
        add(&run_state, i % 2, 1, 0.1 * (double)(i + 1));
    }
    const bool none[2] = {false, false};
    size_t chosen[3];
    count(&run_state, 16, none, chosen);
    assert_true(chosen[0] > 180);
    run_state_release(&run_state);
}

static void a_gain_is_what_was_added_to_the_incumbent_of_before(void **state)
{
    (void)state;
    struct run_state run_state;
    begin(&run_state);
    assert_true(isnan(improvement_gain(&run_state, 1)));
    add(&run_state, 0, 1, 0.5);
    add(&run_state, 1, 1, 0);
    add(&run_state, 1, 1, 2);
    add(&run_state, 0, 1, 1.75); // its first measurement promised more
    assert_true(improvement_gain(&run_state, 1) == 0.5);
    assert_true(isnan(improvement_gain(&run_state, 2)));
    assert_true(improvement_gain(&run_state, 3) == 1.5);
    assert_true(improvement_gain(&run_state, 4) == -0.25);
    assert_true(isnan(improvement_gain(&run_state, 5)));
    run_state_release(&run_state);
}

static void what_nobody_knows_the_generator_of_is_left_out(void **state)
{
    (void)state;
    struct run_state run_state;
    begin(&run_state);
    add(&run_state, 7, 5, 0.5); // a later release had more generators
    add(&run_state, 0, 2, 0);
    run_state.candidate[1].proposed.duplicate_of = 1;
    ask(&run_state, 1, 1000, 1);
    struct allocation_share share[1];
    allocation_shares(&run_state, 2, 1, share);
    assert_int_equal(share[0].considered, 1); // though a duplicate
    assert_int_equal(share[0].measured, 1);
    assert_int_equal(share[0].improvements, 0);
    assert_true(share[0].device_seconds == 2);
    assert_true(share[0].money == 0 && share[0].tokens == 0);
    const bool gone[1] = {false};
    const uint64_t planned[1] = {0};
    assert_int_equal(allocation_choose(&run_state, 2, 1, gone, planned, 3), 0);
    run_state_release(&run_state);
}

static void who_is_gone_is_never_chosen(void **state)
{
    (void)state;
    struct run_state run_state;
    begin(&run_state);
    for (int i = 0; i < 8; i++) {
        add(&run_state, 0, 1, 0.5 * (i + 1)); // it alone has brought anything
        add(&run_state, 1, 1, 0);
    }
    const uint64_t planned[3] = {0};
    const bool first_gone[3] = {true, false, false}, all_gone[3] = {true, true, true};
    const bool only_last[3] = {true, true, false};
    for (uint64_t slot = 17; slot < 117; slot++) {
        assert_int_not_equal(allocation_choose(&run_state, 16, 3, first_gone, planned, slot), 0);
        assert_int_equal(allocation_choose(&run_state, 16, 3, only_last, planned, slot), 2);
        assert_int_equal(allocation_choose(&run_state, 16, 3, all_gone, planned, slot), 3);
    }
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gains_and_costs_go_to_who_made_the_candidate),
        cmocka_unit_test(only_what_is_visible_decides),
        cmocka_unit_test(money_counts),
        cmocka_unit_test(a_gain_is_what_was_added_to_the_incumbent_of_before),
        cmocka_unit_test(what_nobody_knows_the_generator_of_is_left_out),
        cmocka_unit_test(who_is_gone_is_never_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

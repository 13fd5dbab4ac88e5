// What generators brought and cost, and which one is next, on logs made by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/allot.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

static struct estimate *speedup(double log2)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    *ret = (struct estimate){.log2 = log2, .lo = log2, .hi = log2};
    return ret;
}

// A candidate that held the device for so long; above 0, y is the log2 with which it becomes the
// incumbent.
static void add(struct fold *fold, uint64_t generator, double held, double y)
{
    struct fold_candidate *c;
    size_t n = fold->candidate_count++;

    fold->candidate = xrealloc(fold->candidate, n + 1, sizeof(*fold->candidate));
    c = &fold->candidate[n];
    *c = (struct fold_candidate){.proposed = {.candidate = n + 1, .generator = generator}};
    c->compiled = xcalloc(1, sizeof(*c->compiled));
    c->compiled->seconds = n % 2 == 0 ? 0.5 : NAN;
    c->result = xcalloc(1, sizeof(*c->result));
    c->result->seconds = xcalloc(1, sizeof(*c->result->seconds));
    c->result->seconds->held = held;
    if (y > 0) {
        fold->incumbent =
            xrealloc(fold->incumbent, fold->incumbent_count + 1, sizeof(*fold->incumbent));
        fold->incumbent[fold->incumbent_count++] =
            (struct fold_incumbent){.event = {.candidate = n + 1, .speedup = speedup(y)}};
    }
}

static void ask(struct fold *fold, uint64_t round, uint64_t tokens, double cost)
{
    struct run_asked *asked = xcalloc(1, sizeof(*asked));
    struct run_event event = {
        .sequence = fold->last_sequence + 1, .kind = RUN_ASKED, .body = asked};
    struct err err = ERR_INIT;

    *asked = (struct run_asked){
        .generator = 1, .round = round, .first_tokens = tokens, .first_cost = cost};
    assert_int_equal(fold_apply(fold, &event, &err), 0);
    free(asked);
}

static void begin(struct fold *fold)
{
    fold_init(fold);
    fold->last_sequence = 1;
    fold->started.seed = 1;
}

static void gains_and_costs_go_to_who_made_the_candidate(void **state)
{
    struct allot_share share[2];
    struct fold fold;

    (void)state;
    begin(&fold);
    add(&fold, 0, 2, 0.5);
    ask(&fold, 1, 1000, 0.25);
    ask(&fold, 2, 500, NAN);
    ask(&fold, 1, 1000, 0.25); // begins again: the same answers
    ask(&fold, 2, 500, NAN);
    add(&fold, 1, 3, 0.75);
    add(&fold, 0, 1, 0);
    ask(&fold, 1, 4000, NAN);
    allot_shares(&fold, 3, 2, share);
    assert_int_equal(share[0].considered, 2);
    assert_int_equal(share[0].measured, 2);
    assert_int_equal(share[0].improvements, 1);
    assert_true(fabs(share[0].gain_log2 - 0.5) < 1e-12);
    assert_true(fabs(share[0].cost - (3 + 0.1 * 1 + 2 * ALLOT_CANDIDATE_SECONDS)) < 1e-9);
    assert_int_equal(share[1].tokens, 5500);
    assert_true(fabs(share[1].gain_log2 - 0.25) < 1e-12);
    assert_true(fabs(share[1].money - 0.25) < 1e-12);
    // Money where there is a price, tokens where there is none.
    assert_true(fabs(share[1].cost - (3 + ALLOT_CANDIDATE_SECONDS + 250 + 4)) < 1e-9);
    allot_shares(&fold, 1, 2, share);
    assert_int_equal(share[1].considered, 0);
    assert_int_equal(share[0].improvements, 1);
    fold_release(&fold);
}

// How often each is chosen over many slots.
static void count(const struct fold *fold, uint64_t visible, const bool *gone, size_t *chosen)
{
    const uint64_t planned[2] = {0};

    chosen[0] = chosen[1] = chosen[2] = 0;
    for (uint64_t slot = 1; slot <= 200; slot++) {
        size_t choice = allot_choose(fold, visible, 2, gone, planned, slot);

        assert_int_equal(allot_choose(fold, visible, 2, gone, planned, slot), choice);
        chosen[choice]++;
    }
}

static void only_what_is_visible_decides(void **state)
{
    const bool none[2] = {false, false}, first[2] = {true, false}, both[2] = {true, true};
    size_t chosen[3];
    struct fold fold;

    (void)state;
    begin(&fold);
    count(&fold, 0, none, chosen);
    assert_int_equal(chosen[0], 200); // each in turn, at first
    for (size_t i = 0; i < 8; i++) {
        add(&fold, 0, 1, 0);
    }
    count(&fold, 0, none, chosen);
    assert_int_equal(chosen[1], 200);
    for (size_t i = 0; i < 8; i++) {
        add(&fold, 1, 1, 0.1 * (double)(i + 1));
    }
    count(&fold, 16, none, chosen);
    assert_true(chosen[1] > 180 && chosen[0] > 0); // it improves; the other is not starved
    count(&fold, 8, none, chosen);
    assert_true(chosen[0] > 180); // as many were tried of both, and nothing else is known
    count(&fold, 16, first, chosen);
    assert_int_equal(chosen[1], 200);
    count(&fold, 16, both, chosen);
    assert_int_equal(chosen[2], 200);
    fold_release(&fold);
}

static void money_counts(void **state)
{
    const bool none[2] = {false, false};
    size_t chosen[3];
    struct fold fold;

    (void)state;
    begin(&fold);
    for (size_t i = 0; i < 16; i++) { // both improve equally
        ask(&fold, 1, 0, i % 2 == 0 ? 0.1 : 0);
        add(&fold, i % 2, 1, 0.1 * (double)(i + 1));
    }
    count(&fold, 16, none, chosen);
    assert_true(chosen[0] > 180);
    fold_release(&fold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gains_and_costs_go_to_who_made_the_candidate),
        cmocka_unit_test(only_what_is_visible_decides),
        cmocka_unit_test(money_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

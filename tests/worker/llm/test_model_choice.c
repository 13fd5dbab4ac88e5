// The choice of a model: by improvement per price, by weights at first, and no outcome counts
// twice.
#include "common/mem.h"
#include "worker/llm/model_choice.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct endpoint_config three[] = {
    {.url = "http://one/v1", .model = "small", .weight = 1},
    {.url = "http://two/v1", .model = "large", .weight = 1},
    {.url = "http://three/v1", .model = "small", .weight = 1},
};

static const char *choose(struct model_choice *choice, uint64_t number)
{
    struct digest question = digest_of(&number, sizeof(number));

    return model_choice_next(choice, &question);
}

static void tell(struct model_choice *choice, const char *model, double gain, const char *key)
{
    struct candidate_facts facts = {.id = 1};
    struct outcome outcome = {.candidate = &facts,
                              .model = (char *)(uintptr_t)model,
                              .gain_log2 = gain,
                              .key = (char *)(uintptr_t)key};
    struct observe observe = {.outcomes = &outcome, .outcomes_count = 1};

    model_choice_observe(choice, &observe);
}

// Makes so many choices, where every n-th answer of one model improves on the incumbent. Counts how
// often each model was chosen.
static void play(struct model_choice *choice, uint64_t times, const char *good, double cost_small,
                 size_t *small, size_t *large)
{
    *small = *large = 0;
    for (uint64_t i = 0; i < times; i++) {
        const char *model = choose(choice, i);
        bool is_small = strcmp(model, "small") == 0;
        char *key = xasprintf("s/%llu", (unsigned long long)i);

        *(is_small ? small : large) += 1;
        model_choice_add(choice, model, model, true, is_small ? cost_small : 0.01, 1000);
        if (good && strcmp(model, good) == 0 && i % 4 == 0) {
            tell(choice, model, 0.05, key);
        }
        free(key);
    }
}

static void the_weights_decide_while_nothing_is_known(void **state)
{
    struct model_choice *choice = model_choice_create(three, 3);
    size_t small, large;

    (void)state;
    assert_string_equal(choose(choice, 1), "small"); // two endpoints serve it
    model_choice_add(choice, "small", NULL, false, 0, 0);
    play(choice, 400, NULL, 0.01, &small, &large);
    assert_in_range(small, 220, 300); // two thirds, with the share of exploration
    assert_int_equal(small + large, 400);
    model_choice_free(choice);
}

static void whose_candidates_improve_is_asked_more(void **state)
{
    struct model_choice *choice = model_choice_create(three, 3);
    size_t small, large;

    (void)state;
    play(choice, 400, "large", 0.01, &small, &large);
    assert_true(large > 280 && small >= 10);
    struct endpoint_info info = {.url = NULL};
    model_choice_status(choice, "large", &info);
    assert_int_equal(info.proposals, large);
    assert_true(info.share > 0.6 && info.gain_log2 > 1);
    model_choice_free(choice);
}

// A tenth of the improvement at a hundredth of the price.
static void the_price_counts(void **state)
{
    struct model_choice *choice = model_choice_create(three + 1, 2);
    size_t small = 0, large = 0;

    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        const char *model = choose(choice, i);
        bool is_small = strcmp(model, "small") == 0;
        char *key = xasprintf("s/%llu", (unsigned long long)i);

        *(is_small ? &small : &large) += 1;
        model_choice_add(choice, model, model, true, is_small ? 0.001 : 0.1, 0);
        tell(choice, model, is_small ? 0.01 : 0.1, key);
        free(key);
    }
    assert_true(small > 340 && large >= 10);
    model_choice_free(choice);
}

static void failing_does_not_make_a_model_cheap(void **state)
{
    struct model_choice *choice = model_choice_create(three + 1, 2);

    (void)state;
    size_t failed = 0;
    for (uint64_t i = 0; i < 200; i++) {
        const char *model = choose(choice, i);
        bool fails = strcmp(model, "large") == 0;

        failed += fails;
        model_choice_add(choice, model, model, !fails, fails ? 0 : 0.01, 0);
    }
    assert_in_range(failed, 5, 120);
    model_choice_free(choice);
}

static void an_outcome_counts_once_and_only_a_gain_of_a_model_that_is_here(void **state)
{
    struct model_choice *choice = model_choice_create(three, 3);

    (void)state;
    tell(choice, "large", 0.5, "s/1");
    tell(choice, "large", 0.5, "s/1");
    tell(choice, "large", NAN, "s/2");
    tell(choice, "large", -1, "s/3");
    tell(choice, "other", 1, "s/4");
    tell(choice, NULL, 1, "s/5");
    tell(choice, "large", 0.25, "s/6");
    struct endpoint_info info = {.url = NULL};
    model_choice_status(choice, "large", &info);
    assert_true(fabs(info.gain_log2 - 0.75) < 1e-12);
    model_choice_status(choice, "small", &info);
    assert_true(info.gain_log2 == 0);
    model_choice_free(choice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weights_decide_while_nothing_is_known),
        cmocka_unit_test(whose_candidates_improve_is_asked_more),
        cmocka_unit_test(the_price_counts),
        cmocka_unit_test(failing_does_not_make_a_model_cheap),
        cmocka_unit_test(an_outcome_counts_once_and_only_a_gain_of_a_model_that_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

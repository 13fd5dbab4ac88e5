// What language models cost, and the limits on a search.
#include "worker/llm/spend.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct endpoint_config priced = {
    .price_input = 2, .price_cached = 0.5, .price_output = 8};

static void a_request_is_paid_at_the_endpoint_s_prices(void **state)
{
    static const struct {
        struct answer_usage usage;
        double cost;
    } row[] = {
        {{.input = 0}, 0},
        {{.input = 1000000}, 2},
        {{.output = 1000000}, 8},
        {{.input = 1000000, .cached = 400000, .output = 250000}, 1.2 + 0.2 + 2},
        {{.input = 1000000, .cached = 1000000}, 0.5},
        // An endpoint that says it had more in its cache than it was sent is not paid for less.
        {{.input = 1000000, .cached = UINT64_MAX}, 0.5},
        // What the model thought is a part of what it wrote.
        {{.output = 1000000, .reasoning = 900000}, 8},
    };
    struct spend_book book = {0};
    double sum = 0, tokens = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        double cost = spend_charge(&book, "s", &priced, &row[i].usage);

        if (fabs(cost - row[i].cost) > 1e-12) {
            fail_msg("row %zu costs %g", i, cost);
        }
        sum += row[i].cost;
        tokens += (double)(row[i].usage.input + row[i].usage.output);
        assert_true(fabs(book.cost - sum) < 1e-12);
        assert_true((double)(book.input_tokens + book.output_tokens) == tokens);
    }
    assert_int_equal(spend_may_spend(&book, "s", NULL), 0); // nobody has set a limit
    spend_book_release(&book);
}

static void a_search_ends_at_its_tokens(void **state)
{
    struct spend_book book = {.tokens_per_search = 1000};
    const struct answer_usage usage = {.input = 400, .cached = 400, .output = 100};
    const struct endpoint_config free_of_charge = {.price_input = 0};

    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(spend_may_spend(&book, "a", &err), 0);
    assert_true(spend_charge(&book, "a", &free_of_charge, &usage) == 0);
    assert_int_equal(spend_may_spend(&book, "a", &err), 0);
    (void)spend_charge(&book, "a", &free_of_charge, &usage);
    assert_int_equal(spend_may_spend(&book, "a", &err), ERR_LIMIT);
    assert_string_equal(err.text, "the search has used up its 1000 tokens");
    // Another search has its own, and both count in total.
    assert_int_equal(spend_may_spend(&book, "b", NULL), 0);
    (void)spend_charge(&book, "b", &free_of_charge, &usage);
    assert_int_equal(spend_may_spend(&book, "b", NULL), 0);
    assert_int_equal(book.input_tokens, 1200);
    assert_int_equal(book.output_tokens, 300);
    spend_book_release(&book);
}

static void a_search_ends_at_its_cost(void **state)
{
    struct spend_book book = {.cost_per_search = 2};
    const struct answer_usage usage = {.input = 999999}, rest = {.input = 1};

    (void)state;
    struct err err = ERR_INIT;
    (void)spend_charge(&book, "a", &priced, &usage);
    assert_int_equal(spend_may_spend(&book, "a", &err), 0);
    (void)spend_charge(&book, "a", &priced, &rest);
    assert_int_equal(spend_may_spend(&book, "a", &err), ERR_LIMIT);
    assert_string_equal(err.text, "the search has used up its budget of 2");
    assert_int_equal(spend_may_spend(&book, "", NULL), 0);
    spend_book_release(&book);
}

// Names are as long as the wire allows and may differ in their last byte only.
static void searches_with_long_names_are_told_apart(void **state)
{
    char name[2][129];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        memset(name[i], 's', 128);
        name[i][127] = (char)('0' + (int)i);
        name[i][128] = '\0';
    }
    struct spend_book book = {.tokens_per_search = 10};
    const struct answer_usage usage = {.output = 10};
    (void)spend_charge(&book, name[0], &priced, &usage);
    assert_int_equal(spend_may_spend(&book, name[0], NULL), ERR_LIMIT);
    assert_int_equal(spend_may_spend(&book, name[1], NULL), 0);
    spend_book_release(&book);
}

static void many_searches_are_kept_and_released(void **state)
{
    struct spend_book book = {.tokens_per_search = 3};
    const struct answer_usage usage = {.output = 1};

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            char name[16];

            (void)snprintf(name, sizeof(name), "%d", i);
            assert_int_equal(spend_may_spend(&book, name, NULL), 0);
            (void)spend_charge(&book, name, &priced, &usage);
        }
    }
    assert_int_equal(spend_may_spend(&book, "999", NULL), ERR_LIMIT);
    assert_int_equal(book.output_tokens, 3000);
    spend_book_release(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_paid_at_the_endpoint_s_prices),
        cmocka_unit_test(a_search_ends_at_its_tokens),
        cmocka_unit_test(a_search_ends_at_its_cost),
        cmocka_unit_test(searches_with_long_names_are_told_apart),
        cmocka_unit_test(many_searches_are_kept_and_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

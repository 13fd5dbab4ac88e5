// What language models cost, and the limits of a search, a day and the worker: reserved before,
// paid after, and kept over a restart.
#include "worker/llm/spend.h"

#include "common/file.h"
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

#define DAY_NS ((uint64_t)86400 * 1000000000)

static const struct endpoint_config priced = {
    .price_input = 2, .price_cached = 0.5, .price_output = 8};
static const struct endpoint_config free_of_charge = {.price_input = 0};

// Reserves, asserting that it goes.
static struct spend_reservation reserve(struct spend_book *book, const char *search, double tokens)
{
    struct spend_reservation reservation = {.open = false};
    const struct endpoint_amount most = {.tokens = tokens};

    assert_int_equal(spend_reserve(book, search, most, false, &reservation, NULL), SPEND_GO);
    return reservation;
}

static enum spend_answer ask(struct spend_book *book, const char *search, double tokens,
                             struct err *err)
{
    struct spend_reservation reservation = {.open = false};
    const struct endpoint_amount most = {.tokens = tokens};
    enum spend_answer answer = spend_reserve(book, search, most, false, &reservation, err);

    (void)spend_settle(book, &reservation, &free_of_charge, NULL);
    return answer;
}

static void pay(struct spend_book *book, const char *search, uint64_t tokens)
{
    struct spend_reservation reservation = reserve(book, search, (double)tokens);
    const struct answer_usage usage = {.output = tokens};

    (void)spend_settle(book, &reservation, &free_of_charge, &usage);
}

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
        // What is written to the cache costs what it costs without one, where no price is given.
        {{.input = 1000000, .written = 500000}, 2},
    };
    struct spend_book book = {.store = NULL};
    double sum = 0, tokens = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct spend_reservation reservation = reserve(&book, "s", 1e6);
        double cost = spend_settle(&book, &reservation, &priced, &row[i].usage);

        if (fabs(cost - row[i].cost) > 1e-12) {
            fail_msg("row %zu costs %g", i, cost);
        }
        sum += row[i].cost;
        tokens += (double)(row[i].usage.input + row[i].usage.output);
        assert_true(fabs(book.cost - sum) < 1e-12);
        assert_true((double)(book.input_tokens + book.output_tokens) == tokens);
    }
    struct endpoint_config writes = priced;
    writes.price_cache_write = 2.5;
    assert_true(fabs(spend_price(&writes, &row[7].usage) - (1 + 1.25)) < 1e-12);
    spend_book_release(&book);
}

static void a_search_ends_at_its_tokens(void **state)
{
    struct spend_book book = {.limits.search.tokens = 1000};
    struct err err = ERR_INIT;

    (void)state;
    pay(&book, "a", 500);
    assert_int_equal(ask(&book, "a", 500, &err), SPEND_GO);
    pay(&book, "a", 500);
    assert_int_equal(ask(&book, "a", 1, &err), SPEND_NEVER);
    assert_int_equal(err.code, ERR_LIMIT);
    assert_string_equal(err.text, "the search has used up its 1000 tokens");
    // Another search has its own, and both count in total.
    pay(&book, "b", 500);
    assert_int_equal(ask(&book, "b", 1, NULL), SPEND_GO);
    assert_int_equal(book.output_tokens, 1500);
    spend_book_release(&book);
}

static void a_search_ends_at_its_cost(void **state)
{
    struct spend_book book = {.limits.search.cost = 2};
    const struct answer_usage usage = {.input = 999999}, rest = {.input = 1};
    struct err err = ERR_INIT;

    (void)state;
    struct spend_reservation reservation = reserve(&book, "a", 0);
    (void)spend_settle(&book, &reservation, &priced, &usage);
    reservation = reserve(&book, "a", 0);
    (void)spend_settle(&book, &reservation, &priced, &rest);
    assert_int_equal(ask(&book, "a", 1, &err), SPEND_NEVER);
    assert_string_equal(err.text, "the search has used up its budget of 2");
    assert_int_equal(ask(&book, "", 1, NULL), SPEND_GO);
    spend_book_release(&book);
}

// Requests at once leave room for each other; near the limit they go one after the other, and the
// last one may go beyond it.
static void what_is_open_counts(void **state)
{
    struct spend_book book = {.limits.search.tokens = 1000};
    const struct answer_usage usage = {.output = 300};

    (void)state;
    struct spend_reservation first = reserve(&book, "a", 400), second = reserve(&book, "a", 400);
    assert_int_equal(ask(&book, "a", 400, NULL), SPEND_LATER);
    assert_int_equal(ask(&book, "b", 400, NULL), SPEND_GO); // another search
    (void)spend_settle(&book, &first, &free_of_charge, &usage);
    assert_int_equal(ask(&book, "a", 300, NULL), SPEND_GO); // 300 are paid, and 400 reserved
    assert_int_equal(ask(&book, "a", 301, NULL), SPEND_LATER);
    (void)spend_settle(&book, &second, &free_of_charge, &usage);
    // Nothing is open: one request that may go beyond the limit.
    struct spend_reservation last = reserve(&book, "a", 5000);
    assert_int_equal(ask(&book, "a", 1, NULL), SPEND_LATER);
    (void)spend_settle(&book, &last, &free_of_charge, NULL); // nobody answered
    assert_int_equal(ask(&book, "a", 400, NULL), SPEND_GO);
    spend_book_release(&book);
}

static void of_what_nothing_is_known_goes_alone_under_a_limit(void **state)
{
    struct spend_book book = {.limits.worker.tokens = 1e9};
    struct spend_reservation one = {.open = false}, two = {.open = false};
    const struct endpoint_amount most = {.tokens = 10};

    (void)state;
    assert_int_equal(spend_reserve(&book, "a", most, true, &one, NULL), SPEND_GO);
    assert_int_equal(spend_reserve(&book, "b", most, true, &two, NULL), SPEND_LATER);
    assert_int_equal(spend_reserve(&book, "b", most, false, &two, NULL), SPEND_LATER);
    (void)spend_settle(&book, &one, &free_of_charge, NULL);
    assert_int_equal(spend_reserve(&book, "b", most, false, &two, NULL), SPEND_GO);
    assert_int_equal(spend_reserve(&book, "a", most, true, &one, NULL), SPEND_LATER);
    (void)spend_settle(&book, &two, &free_of_charge, NULL);
    // Without a limit nobody waits.
    struct spend_book unlimited = {.store = NULL};
    assert_int_equal(spend_reserve(&unlimited, "a", most, true, &one, NULL), SPEND_GO);
    assert_int_equal(spend_reserve(&unlimited, "a", most, true, &two, NULL), SPEND_GO);
    (void)spend_settle(&unlimited, &one, &free_of_charge, NULL);
    (void)spend_settle(&unlimited, &two, &free_of_charge, NULL);
    spend_book_release(&unlimited);
    spend_book_release(&book);
}

// Names are as long as the wire allows and may differ in their last byte only.
static void searches_with_long_names_are_told_apart(void **state)
{
    char name[2][129];
    struct spend_book book = {.limits.search.tokens = 10};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        memset(name[i], 's', 128);
        name[i][127] = (char)('0' + (int)i);
        name[i][128] = '\0';
    }
    pay(&book, name[0], 10);
    assert_int_equal(ask(&book, name[0], 1, NULL), SPEND_NEVER);
    assert_int_equal(ask(&book, name[1], 1, NULL), SPEND_GO);
    spend_book_release(&book);
}

// ---- a day, the worker, and what is kept ----

static int in_folder(void **state)
{
    return file_make_temp_dir((char **)state, "kcast-spend", NULL);
}

static int folder_gone(void **state)
{
    int rc = file_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

static struct endpoint_store *open_store(const char *dir)
{
    char *path = xasprintf("%s/endpoints.db", dir);
    struct endpoint_store *store = NULL;

    assert_int_equal(endpoint_store_open(&store, path, NULL), 0);
    free(path);
    return store;
}

static void a_day_ends_at_midnight_and_the_worker_never(void **state)
{
    (void)state;
    struct clock clock;
    clock_fake_init(&clock, 20000 * DAY_NS);
    struct spend_book book = {.limits = {.day.tokens = 100, .worker.tokens = 250}, .clock = &clock};
    struct err err = ERR_INIT;
    pay(&book, "a", 60);
    pay(&book, "b", 60);
    assert_int_equal(ask(&book, "c", 1, &err), SPEND_NEVER);
    assert_string_equal(err.text, "today's searches have used up their 100 tokens");
    clock_fake_advance(&clock, DAY_NS);
    pay(&book, "c", 130);
    clock_fake_advance(&clock, DAY_NS);
    err_clear(&err);
    assert_int_equal(ask(&book, "d", 1, &err), SPEND_NEVER);
    assert_string_equal(err.text, "the worker has used up its 250 tokens");
    spend_book_release(&book);
}

// A worker that is killed leaves its book as it is; another one opens the file.
static void what_was_spent_and_what_was_open_is_known_after_a_kill(void **state)
{
    struct spend_book before = {.limits.search.tokens = 1000, .store = open_store(*state)};
    struct spend_book after = {.limits.search.tokens = 1000};
    struct err err = ERR_INIT;

    pay(&before, "a", 300);
    (void)reserve(&before, "a", 500);
    (void)reserve(&before, "b", 500);
    after.store = open_store(*state);
    assert_int_equal(ask(&after, "a", 200, NULL), SPEND_GO); // 300 and 500 are gone
    pay(&after, "a", 200);
    assert_int_equal(ask(&after, "a", 1, &err), SPEND_NEVER);
    assert_true(endpoint_store_spent(after.store, "s:b").tokens == 500);
    assert_true(endpoint_store_spent(after.store, "w").tokens == 1500);
    assert_true(endpoint_store_spent(after.store, "s:nobody").tokens == 0);
    spend_book_release(&before);
    spend_book_release(&after);
    endpoint_store_close(before.store);
    endpoint_store_close(after.store);
    // It is counted once.
    struct endpoint_store *again = open_store(*state);
    assert_true(endpoint_store_spent(again, "w").tokens == 1500);
    endpoint_store_close(again);
}

static void a_file_that_cannot_be_read_is_not_made_anew(void **state)
{
    char *path = xasprintf("%s/endpoints.db", (char *)*state);
    struct endpoint_store *store = NULL;
    struct err err = ERR_INIT;
    static const char noise[4096] = "this is no database";

    assert_int_equal(file_replace(path, noise, sizeof(noise), false, NULL), 0);
    assert_int_equal(endpoint_store_open(&store, path, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "holds what was spent"));
    assert_non_null(strstr(err.text, path));
    struct bytes bytes;
    assert_int_equal(file_read(&bytes, path, 1 << 20, NULL), 0);
    assert_int_equal(bytes.len, sizeof(noise));
    bytes_clear(&bytes);
    free(path);
}

static void styles_are_kept_under_their_keys(void **state)
{
    struct endpoint_store *store = open_store(*state);
    struct strbuf text = STRBUF_INIT;

    assert_false(endpoint_store_style(store, "a", &text));
    endpoint_store_set_style(store, "a", "one");
    endpoint_store_set_style(store, "a", "two");
    endpoint_store_set_style(store, "b", "three");
    endpoint_store_close(store);
    store = open_store(*state);
    assert_true(endpoint_store_style(store, "a", &text));
    assert_string_equal(strbuf_text(&text), "two");
    strbuf_release(&text);
    endpoint_store_close(store);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, in_folder, folder_gone)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_paid_at_the_endpoint_s_prices),
        cmocka_unit_test(a_search_ends_at_its_tokens),
        cmocka_unit_test(a_search_ends_at_its_cost),
        cmocka_unit_test(what_is_open_counts),
        cmocka_unit_test(of_what_nothing_is_known_goes_alone_under_a_limit),
        cmocka_unit_test(searches_with_long_names_are_told_apart),
        cmocka_unit_test(a_day_ends_at_midnight_and_the_worker_never),
        IN_FOLDER(what_was_spent_and_what_was_open_is_known_after_a_kill),
        IN_FOLDER(a_file_that_cannot_be_read_is_not_made_anew),
        IN_FOLDER(styles_are_kept_under_their_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Shares of device time and budgets: what people read of them, and what machines do.
#include "client/cmd/tables/share_table.h"
#include "proto/status_json.h"
#include "tests/client/cmd/printed.h"
#include <math.h>
#include <stdlib.h>

// The rows that `kcast status --json` has of these shares.
static json_t *share_table_json(const struct share_info *share, size_t count)
{
    struct status status;
    message_init(&status_message, &status);
    status.shares = (struct share_info *)(uintptr_t)share; // the cast drops const; nothing writes
    status.shares_count = count;
    json_t *whole = status_json(&status, "tcp://127.0.0.1:1");
    json_t *rows = json_incref(json_object_get(whole, "shares"));
    json_decref(whole);
    return rows;
}

static char *text_of(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

// A search of this tenant without weights and budgets: numbers that were not sent are NaN.
static struct share_info share_of(const char *tenant, const char *search)
{
    struct share_info ret;
    message_init(&share_info_message, &ret);
    ret.tenant = text_of(tenant);
    ret.search = text_of(search);
    ret.used_seconds = 12.25;
    return ret;
}

static char *print(const struct share_info *share, size_t count)
{
    struct printed printed = printed_begin(stdout);
    share_table_print(share, count);
    return printed_end(&printed);
}

static char *print_budgets(const char *url, const struct share_info *account, size_t count,
                           bool json)
{
    struct printed printed = printed_begin(stdout);
    share_table_print_budgets(url, account, count, json);
    return printed_end(&printed);
}

static void a_share_is_a_line_with_per_cents_and_counts(void **state)
{
    (void)state;
    struct share_info share[2] = {share_of("ann", "night"), share_of("bob", NULL)};
    share[0].queue_class = text_of("interactive");
    share[0].weight = 2;
    share[0].tenant_weight = 0.5;
    share[0].share = 0.254;
    share[0].recent = 1;
    share[0].held = 3;
    share[0].waiting = UINT64_MAX;
    char *text = print(share, 2);
    assert_int_equal(printed_count(text, "\n"), 2);
    printed_has(text, "  ann/night ");
    printed_has(text, " interactive, weight 2 (tenant 0.5): to have 25 %, had 100 % of late, "
                      "holds 3, 18446744073709551615 waiting, 12.2 device-seconds\n");
    printed_has(text, "\n  bob ");
    printed_has(text, " unknown, weight ");
    free(text);
}

static void no_shares_are_no_lines(void **state)
{
    (void)state;
    char *text = print(NULL, 0);
    assert_string_equal(text, "");
    free(text);
    json_t *rows = share_table_json(NULL, 0);
    assert_true(json_is_array(rows));
    assert_int_equal(json_array_size(rows), 0);
    json_decref(rows);
}

static void only_budgets_that_exist_are_said(void **state)
{
    static const struct {
        double budget, hour, left;
        const char *said;
    } cases[] = {
        {NAN, NAN, NAN, "used 12.2 device-seconds\n"},
        {100, NAN, NAN, "used 12.2 of 100 device-seconds\n"},
        {NAN, 60, 7.5, "used 12.2 device-seconds, 7.5 left of 60 an hour\n"},
        {1e6, 0, 0, "used 12.2 of 1e+06 device-seconds, 0.0 left of 0 an hour\n"},
        {0, NAN, 3, "used 12.2 of 0 device-seconds\n"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct share_info account = share_of("ann", NULL);
        account.weight = 1;
        account.budget_seconds = cases[i].budget;
        account.hour_seconds = cases[i].hour;
        account.left_seconds = cases[i].left;
        char *text = print_budgets(NULL, &account, 1, false);
        assert_int_equal(strncmp(text, "ann  ", 5), 0);
        printed_has(text, cases[i].said);
        free(text);
    }
}

static void the_daemon_is_a_heading_for_people_and_a_key_for_machines(void **state)
{
    (void)state;
    const struct share_info account[2] = {share_of("ann", NULL), share_of("ann", "a/b")};
    char *text = print_budgets("tls://x:1", account, 2, false);
    assert_int_equal(strncmp(text, "daemon tls://x:1\nann ", 21), 0);
    printed_has(text, "\nann/a/b ");
    free(text);
    text = print_budgets("tls://x:1", account, 2, true);
    assert_int_equal(printed_count(text, "\n"), 2);
    assert_int_equal(printed_count(text, "daemon "), 0);
    const char *second = strchr(text, '\n') + 1;
    json_t *object = json_loads(second, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(json_string_value(json_object_get(object, "pool")), "tls://x:1");
    assert_string_equal(json_string_value(json_object_get(object, "search")), "a/b");
    json_decref(object);
    free(text);
    text = print_budgets(NULL, account, 1, true);
    assert_null(strstr(text, "pool"));
    free(text);
}

static void json_has_null_for_every_number_that_was_not_sent(void **state)
{
    static const char *const numbers[] = {
        "weight",        "tenant_weight", "budget_seconds", "per_hour_seconds",
        "per_hour_left", "share",         "recent"};
    (void)state;
    const struct share_info share = share_of("ann", NULL);
    json_t *rows = share_table_json(&share, 1);
    assert_int_equal(json_array_size(rows), 1);
    const json_t *row = json_array_get(rows, 0);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        assert_true(json_is_null(json_object_get(row, numbers[i])));
    }
    assert_true(json_is_null(json_object_get(row, "search")));
    assert_true(json_is_null(json_object_get(row, "queue_class")));
    assert_true(json_real_value(json_object_get(row, "used_seconds")) == 12.25);
    assert_int_equal(json_integer_value(json_object_get(row, "held")), 0);
    json_decref(rows);
}

static void json_rows_stand_in_the_order_of_the_shares(void **state)
{
    (void)state;
    struct share_info share[3] = {share_of("c", "1"), share_of("a", "2"), share_of("b", "3")};
    for (size_t i = 0; i < 3; i++) {
        share[i].device_class = text_of("cpu: x");
        share[i].share = 0.25 * (double)i;
        share[i].held = i;
        share[i].waiting = 10 * i;
    }
    json_t *rows = share_table_json(share, 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(rows, i);
        assert_string_equal(json_string_value(json_object_get(row, "tenant")), share[i].tenant);
        assert_string_equal(json_string_value(json_object_get(row, "device_class")), "cpu: x");
        assert_true(json_real_value(json_object_get(row, "share")) == 0.25 * (double)i);
        assert_int_equal(json_integer_value(json_object_get(row, "waiting")), 10 * i);
    }
    json_decref(rows);
}

static void endless_numbers_are_no_json_numbers(void **state)
{
    (void)state;
    struct share_info account = share_of("ann", NULL);
    account.budget_seconds = INFINITY;
    account.used_seconds = -INFINITY;
    char *text = print_budgets(NULL, &account, 1, true);
    json_t *object = json_loads(text, 0, NULL);
    assert_non_null(object);
    assert_true(json_is_null(json_object_get(object, "budget_seconds")));
    assert_true(json_is_null(json_object_get(object, "used_seconds")));
    json_decref(object);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_is_a_line_with_per_cents_and_counts),
        cmocka_unit_test(no_shares_are_no_lines),
        cmocka_unit_test(only_budgets_that_exist_are_said),
        cmocka_unit_test(the_daemon_is_a_heading_for_people_and_a_key_for_machines),
        cmocka_unit_test(json_has_null_for_every_number_that_was_not_sent),
        cmocka_unit_test(json_rows_stand_in_the_order_of_the_shares),
        cmocka_unit_test(endless_numbers_are_no_json_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The Markdown tables of a replay.
#include "replay/summary_markdown.h"
#include "tests/replay/made_up.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *printed(const struct made_up *m, const struct against *against)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    summary_markdown(&m->tasks, m->outcome, against, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

// The control finds log2 of 1.45 in 4 of 10 s. What the other one finds differs by `ahead` on each
// space; it takes 2 of 10 s.
static struct made_up *make(double ahead_near, double ahead_far)
{
    struct made_up *m = made_up_create();

    for (uint64_t seed = 0; seed < MADE_UP_SEEDS; seed++) {
        made_up_set(m, 0, 0, seed, 1.45, 4, 10);
        made_up_set(m, 1, 0, seed, 1.45, 4, 10);
        made_up_set(m, 0, 1, seed, 1.45 + ahead_near, 2, 10);
        made_up_set(m, 1, 1, seed, 1.45 + ahead_far, 2, 10);
    }
    return m;
}

static void assert_row(double ahead_near, double ahead_far, const char *row)
{
    struct made_up *m = make(ahead_near, ahead_far);
    char *text = printed(m, &(struct against){.variant = {0}, .count = 1});
    const char *last = strstr(text, "\n| `other` |");

    assert_non_null(last);
    last = strstr(last + 1, "\n| `other` |");
    if (!last || strncmp(last + 1, row, strlen(row)) != 0 || last[1 + strlen(row)] != '\n') {
        fail_msg("\"%s\" instead of \"%s\"", last ? last + 1 : text, row);
    }
    free(text);
    made_up_free(m);
}

static void what_was_found_is_a_share_of_each_space_s_best(void **state)
{
    struct made_up *m = make(1.0, -1.0);
    char *text = printed(m, &(struct against){.count = 0});

    (void)state;
    // 10 of 192 candidates were measured.
    assert_string_equal(text, "| variant | near | far | median space | worst space | measured |\n"
                              "| --- | --- | --- | --- | --- | --- |\n"
                              "| `control` | 0.500 | 0.500 | 0.500 | 0.500 | 5.2 % |\n"
                              "| `other` | 1.000 | 0.250 | 0.625 | 0.250 | 5.2 % |\n");
    free(text);
    made_up_free(m);
}

static void a_table_compares_all_others_with_each_named_variant(void **state)
{
    struct made_up *m = make(0, 0);
    char *both = printed(m, &(struct against){.variant = {1, 0}, .count = 2});

    (void)state;
    const char *first = strstr(both, "\n| against `other` |"),
               *second = strstr(both, "\n| against `control` |");
    assert_true(first && second && first < second);
    assert_non_null(strstr(first, "\n| `control` | 1.000 [1.000, 1.000] |"));
    assert_non_null(strstr(second, "\n| `other` | 1.000 [1.000, 1.000] |"));
    assert_null(strstr(second, "\n| `control` |")); // not with itself
    m->tasks.variants = 1;
    char *alone = printed(m, &(struct against){.variant = {0}, .count = 1});
    assert_null(strstr(alone, "against"));
    free(alone);
    free(both);
    made_up_free(m);
}

static void a_row_says_where_a_variant_is_ahead_and_when_it_got_there(void **state)
{
    (void)state;
    assert_row(1.0, 0.0,
               "| `other` | 1.414 [1.000, 2.000] | 0.20 [0.20, 0.20] | 0.20 | 100 %, 100 % | 0.50 "
               "| 3.0 | **near** +100.0 % | 0, 0 |");
    assert_row(0.01, 0.01,
               "| `other` | 1.007 [1.007, 1.007] | 0.20 [0.20, 0.20] | 0.20 | 100 %, 100 % | 0.50 "
               "| 3.0 | **near** +0.7 %, **far** +0.7 % | 0, 0 |");
}

static void a_row_says_where_it_is_behind_and_what_it_never_had(void **state)
{
    (void)state;
    assert_row(-1.0, -1.0,
               "| `other` | 0.500 [0.500, 0.500] | never [never, never] | never | 0 %, 0 % | never "
               "| | none | 2, 2 |");
    // Less by no more than half a percent: never its result, but soon something as good.
    assert_row(-0.005, -0.005,
               "| `other` | 0.997 [0.997, 0.997] | never [never, never] | 0.20 | 0 %, 100 % | "
               "never | | none | 2, 2 |");
}

static void a_difference_that_would_print_as_none_is_none(void **state)
{
    (void)state;
    assert_row(0.0005, -0.0005,
               "| `other` | 1.000 [1.000, 1.000] | 0.20 [0.20, never] | 0.20 | 50 %, 100 % | 0.50 "
               "| 3.0 | none | 0, 0 |");
}

static void costs_that_are_not_those_of_measuring_are_told(void **state)
{
    struct made_up *m = make(1.0, -1.0);
    struct space space = toy_space();

    (void)state;
    space.head.launch_costs = 192;
    recorded_space_free(m->space[0]);
    assert_int_equal(recorded_space_create(&m->space[0], &space, "near", NULL), 0);
    char *text = printed(m, &(struct against){.count = 0});
    assert_non_null(strstr(text, " |\n\nnear: for 192 of 192 candidates a search is charged one "));
    assert_null(strstr(text, "\nfar: "));
    free(text);
    made_up_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_found_is_a_share_of_each_space_s_best),
        cmocka_unit_test(a_table_compares_all_others_with_each_named_variant),
        cmocka_unit_test(a_row_says_where_a_variant_is_ahead_and_when_it_got_there),
        cmocka_unit_test(a_row_says_where_it_is_behind_and_what_it_never_had),
        cmocka_unit_test(a_difference_that_would_print_as_none_is_none),
        cmocka_unit_test(costs_that_are_not_those_of_measuring_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

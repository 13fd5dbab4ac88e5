// The tables and the JSON of a replay.
#include "replay/summary.h"
#include "tests/replay/made_up.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void printer(const struct tasks *, const struct search_outcome *, FILE *);

// What the printer prints. The caller frees it.
static char *printed(const struct made_up *m, printer *print)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    print(&m->tasks, m->outcome, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void assert_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    if (!at || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n') {
        fail_msg("no line \"%s\" in:\n%s", line, text);
    }
}

// The control finds log2 of 1.45 in 4 of 10 s. The other one finds the best, 2.45, in 2 of 10 s on
// the first space, and nothing on the second.
static struct made_up *make(void)
{
    struct made_up *m = made_up_create();

    for (size_t space = 0; space < 2; space++) {
        for (uint64_t seed = 0; seed < MADE_UP_SEEDS; seed++) {
            made_up_set(m, space, 0, seed, 1.45, 4, 10);
            made_up_set(m, space, 1, seed, 2.45, 2, 10);
        }
    }
    for (uint64_t seed = 0; seed < MADE_UP_SEEDS; seed++) {
        *made_up_outcome(m, 1, 1, seed) = (struct search_outcome){.given_seconds = 10,
                                                                  .device_seconds = 1,
                                                                  .considered = 5,
                                                                  .improvers = 3,
                                                                  .missed = 2,
                                                                  .looked_at = 40,
                                                                  .improvers_looked_at = 10,
                                                                  .passed_over = 6,
                                                                  .passed_over_better = 1,
                                                                  .left = 30,
                                                                  .left_better = 5,
                                                                  .audits = {.population = 200,
                                                                             .audited = 8,
                                                                             .found = 1,
                                                                             .improvers = 9,
                                                                             .share = 0.125,
                                                                             .upper = 0.5}};
    }
    return m;
}

static void each_space_has_a_row_of_medians_for_each_variant(void **state)
{
    struct made_up *m = make();
    char *text = printed(m, summary_print);

    (void)state;
    assert_line(text, "near                   control                   0.500 [0.500, 0.500]      "
                      "0 %      10.00 s          40        10");
    assert_line(text, "                       other                     1.000 [1.000, 1.000]    "
                      "100 %      10.00 s          40        10");
    assert_line(text, "                       other                     0.183 [0.183, 0.183]      "
                      "0 %       1.00 s           5         0");
    assert_non_null(strstr(text, "(medians of 4 searches;"));
    free(text);
    made_up_free(m);
}

static void each_variant_is_compared_with_the_first(void **state)
{
    struct made_up *m = make();
    char *text = printed(m, summary_print);

    (void)state;
    assert_line(text, "control                   1.000 [1.000, 1.000]    0.40    1.00    100 %     "
                      "4.0  0 of 0            0 of 0");
    // On half of the searches it has the control's result after 2 of 10 s, on the others never.
    const char *other = strstr(text, "\nother  ");
    assert_non_null(other);
    assert_non_null(
        strstr(other, "]    0.20    0.50     50 %     4.5  8 of 12           4 of 40\n"));
    assert_non_null(strstr(other, "control: control\n"));
    for (uint64_t seed = 0; seed < MADE_UP_SEEDS; seed++) {
        *made_up_outcome(m, 0, 1, seed) = *made_up_outcome(m, 1, 1, seed);
    }
    char *never = printed(m, summary_print);
    assert_non_null(
        strstr(never, "]   never   never      0 %    40.0  16 of 24          8 of 80\n"));
    free(never);
    free(text);
    made_up_free(m);
}

// ---- JSON ----

// Line i of the text, parsed. The caller releases it.
static json_t *parsed_line(const char *text, size_t i)
{
    for (; i > 0; i--) {
        text = strchr(text, '\n') + 1;
    }
    json_error_t fault;
    json_t *ret = json_loadb(text, strcspn(text, "\n"), 0, &fault);
    if (!ret) {
        fail_msg("%.*s: %s", (int)strcspn(text, "\n"), text, fault.text);
    }
    return ret;
}

static void each_search_is_an_object_on_a_line_of_its_own(void **state)
{
    struct made_up *m = make();
    char *text = printed(m, summary_json);
    size_t lines = 0;

    (void)state;
    for (const char *at = text; *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, MADE_UP_OUTCOMES);
    for (size_t i = 0; i < MADE_UP_OUTCOMES; i++) {
        json_t *line = parsed_line(text, i);
        assert_string_equal(json_string_value(json_object_get(line, "space")),
                            i < MADE_UP_OUTCOMES / 2 ? "near" : "far");
        assert_string_equal(json_string_value(json_object_get(line, "policy")),
                            i / MADE_UP_SEEDS % 2 == 0 ? "all" : "risk");
        assert_int_equal(json_integer_value(json_object_get(line, "seed")), 10 + i % MADE_UP_SEEDS);
        json_decref(line);
    }
    json_t *best = parsed_line(text, MADE_UP_SEEDS);
    assert_true(json_number_value(json_object_get(best, "best_log2")) == 2.45);
    assert_true(json_number_value(json_object_get(best, "fraction_of_best")) == 1);
    assert_int_equal(json_integer_value(json_object_get(best, "measured")), 10);
    assert_null(json_object_get(best, "launch_costs"));
    const json_t *step = json_array_get(json_object_get(best, "incumbents"), 0);
    assert_true(json_number_value(json_array_get(step, 0)) == 2);
    assert_true(json_number_value(json_array_get(step, 1)) == 2.45);
    json_t *nothing = parsed_line(text, MADE_UP_OUTCOMES - 1);
    assert_int_equal(json_array_size(json_object_get(nothing, "incumbents")), 0);
    assert_int_equal(json_integer_value(json_object_get(nothing, "looked_at")), 40);
    assert_int_equal(json_integer_value(json_object_get(nothing, "improvers_looked_at")), 10);
    assert_int_equal(json_integer_value(json_object_get(nothing, "passed_over")), 6);
    assert_int_equal(json_integer_value(json_object_get(nothing, "passed_over_better")), 1);
    assert_true(json_number_value(json_object_get(nothing, "passed_over_share")) == 0.6);
    assert_true(json_number_value(json_object_get(nothing, "passed_over_better_share")) == 0.1);
    // 5 of the 10 that were looked at and the 4 that were left without.
    assert_true(fabs(json_number_value(json_object_get(nothing, "left_better_share")) - 5.0 / 14) <
                1e-8);
    assert_int_equal(json_integer_value(json_object_get(nothing, "audit_population")), 200);
    assert_int_equal(json_integer_value(json_object_get(nothing, "audit_measured")), 8);
    assert_int_equal(json_integer_value(json_object_get(nothing, "audit_found")), 1);
    assert_int_equal(json_integer_value(json_object_get(nothing, "audit_improvers")), 9);
    assert_true(json_number_value(json_object_get(nothing, "audit_share")) == 0.125);
    assert_true(json_number_value(json_object_get(nothing, "audit_upper")) == 0.5);
    assert_true(json_is_null(json_object_get(best, "audit_share"))); // nothing was audited
    assert_true(json_is_null(json_object_get(best, "audit_upper")));
    assert_string_equal(json_string_value(json_object_get(nothing, "forecaster")), "static");
    assert_true(json_is_null(json_object_get(best, "passed_over_share"))); // of nothing
    json_decref(best);
    json_decref(nothing);
    free(text);
    made_up_free(m);
}

static void costs_that_are_not_those_of_measuring_are_told(void **state)
{
    struct made_up *m = make();
    char *text = printed(m, summary_print);

    (void)state;
    assert_null(strstr(text, "one kernel launch"));
    free(text);
    struct space space = toy_space();
    space.head.launch_costs = 150;
    recorded_space_free(m->space[1]);
    assert_int_equal(recorded_space_create(&m->space[1], &space, "far", NULL), 0);
    text = printed(m, summary_print);
    assert_line(text,
                "(far: for 150 of 192 candidates a search is charged one kernel launch, because "
                "nothing else was recorded; measuring them takes far longer, so do not compare "
                "searches of this space by device time)");
    assert_null(strstr(text, "(near: "));
    free(text);
    text = printed(m, summary_json);
    json_t *line = parsed_line(text, MADE_UP_OUTCOMES - 1);
    assert_int_equal(json_integer_value(json_object_get(line, "launch_costs")), 150);
    json_decref(line);
    free(text);
    made_up_free(m);
}

// A space has the name of its file, and a variant may have that of a file's line.
static void names_are_json_whatever_they_hold(void **state)
{
    struct made_up *m = make();
    struct space space = toy_space();

    (void)state;
    recorded_space_free(m->space[1]);
    assert_int_equal(recorded_space_create(&m->space[1], &space, "a\"b\\\n\xff\xc3\xa4", NULL), 0);
    m->variant[1].policy = "\"\x1f";
    m->variant[1].strategy = "";
    char *text = printed(m, summary_json);
    json_t *line = parsed_line(text, MADE_UP_OUTCOMES - 1);
    assert_string_equal(json_string_value(json_object_get(line, "space")), "a\"b\\\n?\xc3\xa4");
    assert_string_equal(json_string_value(json_object_get(line, "policy")), "\"\x1f");
    assert_string_equal(json_string_value(json_object_get(line, "strategy")), "");
    json_decref(line);
    free(text);
    made_up_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_space_has_a_row_of_medians_for_each_variant),
        cmocka_unit_test(each_variant_is_compared_with_the_first),
        cmocka_unit_test(each_search_is_an_object_on_a_line_of_its_own),
        cmocka_unit_test(costs_that_are_not_those_of_measuring_are_told),
        cmocka_unit_test(names_are_json_whatever_they_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

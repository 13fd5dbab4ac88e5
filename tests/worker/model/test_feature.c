// Facts become columns. An unknown or absurd value is missing.
#include "worker/model/feature.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FACTS(array) .features = (array), .features_count = ARRAY_LEN(array)

// The value of the column of this name, NaN when there is no such column.
static float value_of(const struct feature_columns *columns, const struct feature_row *row,
                      const char *name)
{
    for (size_t i = 0; i < feature_columns_count(columns); i++) {
        if (strcmp(feature_columns_name(columns, i), name) == 0) {
            return feature_row_value(row, i);
        }
    }
    return NAN;
}

static void counts_and_parameters_become_logarithms(void **state)
{
    (void)state;
    struct fact feature[] = {{"insns", 255}, {"slack", -3}}, base[] = {{"insns", 127}};
    struct fact param[] = {{"MB", 32}, {"PACK", 0}, {"FAST", 1}, {"BIAS", -2}},
                device[] = {{"cores", 8}};
    struct candidate_facts candidate = {FACTS(feature), .params = param,
                                        .params_count = ARRAY_LEN(param)};
    struct feature_facts facts = {&candidate, base, 1, device, 1};
    struct feature_columns *columns = feature_columns_create();
    struct feature_row row = feature_row_learn(columns, &facts);
    assert_float_equal(value_of(columns, &row, "object:insns"), 8, 1e-6);
    assert_float_equal(value_of(columns, &row, "ratio:insns"), 1, 1e-6);
    assert_float_equal(value_of(columns, &row, "object:slack"), -3, 1e-6);
    assert_true(isnan(value_of(columns, &row, "ratio:slack")));
    assert_float_equal(value_of(columns, &row, "param:MB"), 5, 1e-6);
    assert_float_equal(value_of(columns, &row, "param:PACK"), -1, 1e-6);
    assert_float_equal(value_of(columns, &row, "param:FAST"), 0, 1e-6);
    assert_float_equal(value_of(columns, &row, "param:BIAS"), -3, 1e-6);
    assert_float_equal(value_of(columns, &row, "device:cores"), 3, 1e-6);
    feature_row_clear(&row);
    feature_columns_free(columns);
}

static void a_name_keeps_its_column(void **state)
{
    (void)state;
    struct fact first[] = {{"a", 1}, {"b", 3}}, second[] = {{"c", 7}, {"b", 15}, {"b", 31}};
    struct candidate_facts one = {FACTS(first)}, two = {FACTS(second)};
    struct feature_columns *columns = feature_columns_create();
    struct feature_row x = feature_row_learn(columns, &(struct feature_facts){.candidate = &one});
    struct feature_row y = feature_row_learn(columns, &(struct feature_facts){.candidate = &two});
    assert_int_equal(feature_columns_count(columns), 3);
    assert_string_equal(feature_columns_name(columns, 1), "object:b");
    assert_float_equal(feature_row_value(&y, 1), 4,
                       1e-6); // of two values of one name the first counts
    assert_true(isnan(feature_row_value(&y, 0)));
    assert_true(isnan(feature_row_value(&x, 2))); // the column was added after the row
    feature_row_clear(&x);
    feature_row_clear(&y);
    feature_columns_free(columns);
}

static void a_forecast_does_not_add_columns(void **state)
{
    (void)state;
    struct fact known[] = {{"a", 1}}, unknown[] = {{"z", 1}};
    struct candidate_facts one = {FACTS(known)}, two = {FACTS(unknown)};
    struct feature_columns *columns = feature_columns_create();
    struct feature_row x = feature_row_learn(columns, &(struct feature_facts){.candidate = &one});
    struct feature_row y = feature_row_of(columns, &(struct feature_facts){.candidate = &two});
    assert_int_equal(feature_columns_count(columns), 1);
    assert_true(isnan(feature_row_value(&y, 0)));
    feature_row_clear(&x);
    feature_row_clear(&y);
    feature_columns_free(columns);
}

static void absurd_values_are_missing(void **state)
{
    (void)state;
    char longest[65];
    memset(longest, 'x', 64);
    longest[64] = 0;
    struct fact feature[] = {{"nan", NAN}, {"inf", INFINITY}, {"huge", -1e300}, {longest, 1}};
    struct candidate_facts candidate = {FACTS(feature)};
    struct feature_columns *columns = feature_columns_create();
    struct feature_row row =
        feature_row_learn(columns, &(struct feature_facts){.candidate = &candidate});
    assert_int_equal(feature_columns_count(columns),
                     1); // the longest name that a message may carry
    feature_row_clear(&row);
    feature_columns_free(columns);
}

static void columns_are_bounded(void **state)
{
    (void)state;
    struct feature_columns *columns = feature_columns_create();
    for (int i = 0; i < FEATURE_COLUMN_MAX + 50; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        struct fact feature[] = {{name, 1}};
        struct candidate_facts candidate = {FACTS(feature)};
        struct feature_row row =
            feature_row_learn(columns, &(struct feature_facts){.candidate = &candidate});
        feature_row_clear(&row);
    }
    assert_int_equal(feature_columns_count(columns), FEATURE_COLUMN_MAX);
    feature_columns_free(columns);
}

static void sorted_order_does_not_depend_on_arrival(void **state)
{
    (void)state;
    struct fact ab[] = {{"a", 1}, {"b", 1}}, ba[] = {{"b", 1}, {"a", 1}};
    struct candidate_facts one = {FACTS(ab)}, two = {FACTS(ba)};
    const struct candidate_facts *order[] = {&one, &two};
    for (size_t i = 0; i < 2; i++) {
        struct feature_columns *columns = feature_columns_create();
        struct feature_row row =
            feature_row_learn(columns, &(struct feature_facts){.candidate = order[i]});
        size_t *sorted = feature_columns_sorted(columns);
        assert_string_equal(feature_columns_name(columns, sorted[0]), "object:a");
        assert_string_equal(feature_columns_name(columns, sorted[1]), "object:b");
        free(sorted);
        feature_row_clear(&row);
        feature_columns_free(columns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_parameters_become_logarithms),
        cmocka_unit_test(a_name_keeps_its_column),
        cmocka_unit_test(a_forecast_does_not_add_columns),
        cmocka_unit_test(absurd_values_are_missing),
        cmocka_unit_test(columns_are_bounded),
        cmocka_unit_test(sorted_order_does_not_depend_on_arrival),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Columns of a matrix: which carry information, where they are in another matrix, and their copy.
#include "worker/model/columns.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX 4

struct choice {
    size_t rows, columns;
    float x[16];
    bool param[MAX];
    const bool *take;
    size_t chosen[MAX]; // what is expected
    size_t count;
};

static void chooses(const struct choice *choice, size_t row)
{
    size_t count = 99;
    size_t *chosen = columns_informative(choice->x, choice->rows, choice->columns, choice->param,
                                         choice->take, &count);

    if (count != choice->count) {
        fail_msg("row %zu: %zu columns", row, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (chosen[i] != choice->chosen[i]) {
            fail_msg("row %zu: column %zu at place %zu", row, chosen[i], i);
        }
    }
    free(chosen);
}

static void only_what_varies_and_is_new_is_informative(void **state)
{
    static const struct choice row[] = {
        {.rows = 0, .columns = 0},
        {.rows = 0, .columns = 2},
        {.rows = 1, .columns = 2, .x = {1, 2}}, // one row cannot vary
        {.rows = 2, .columns = 2, .x = {1, 5, 2, 5}, .chosen = {0}, .count = 1},
        // Column 1 is column 0 doubled, column 2 its negative plus a constant.
        {.rows = 3, .columns = 3, .x = {1, 2, 9, 2, 4, 8, 5, 10, 5}, .chosen = {0}, .count = 1},
        // Of such columns the parameter is kept, and parameters come first.
        {.rows = 3,
         .columns = 3,
         .x = {1, 2, 0, 2, 4, 1, 5, 10, 0},
         .param = {false, true, false},
         .chosen = {1, 2},
         .count = 2},
        // Not linear: the square.
        {.rows = 3, .columns = 2, .x = {1, 1, 2, 4, 3, 9}, .chosen = {0, 1}, .count = 2},
        // Less than float's noise is no variation.
        {.rows = 2, .columns = 1, .x = {1, 1 + 5e-7f}},
        // One column stands still where the other one moves.
        {.rows = 3, .columns = 2, .x = {1, 1, 2, 2, 3, 2}, .chosen = {0, 1}, .count = 2},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        chooses(&row[i], i);
    }
}

static void a_missing_value_is_information(void **state)
{
    const struct choice row[] = {
        {.rows = 3, .columns = 1, .x = {NAN, NAN, NAN}}, // always missing: says nothing
        {.rows = 3, .columns = 1, .x = {7, NAN, 7}, .chosen = {0}, .count = 1},
        // The same but for where it is missing.
        {.rows = 3, .columns = 2, .x = {1, 1, 2, NAN, 3, 3}, .chosen = {0, 1}, .count = 2},
        {.rows = 3, .columns = 2, .x = {1, 2, NAN, NAN, 3, 6}, .chosen = {0}, .count = 1},
        // Both are missing in the same rows and constant in the others.
        {.rows = 3, .columns = 2, .x = {7, 8, NAN, NAN, 7, 8}, .chosen = {0}, .count = 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        chooses(&row[i], i);
    }
}

static void rows_that_are_not_taken_decide_nothing(void **state)
{
    static const bool take[] = {true, false, true, true}, none[4];
    const struct choice row[] = {
        // Only the row left out differs.
        {.rows = 4, .columns = 1, .x = {1, 9, 1, 1}, .take = take},
        // Only the row left out breaks the line.
        {.rows = 4,
         .columns = 2,
         .x = {1, 2, 5, 0, 2, 4, 3, 6},
         .take = take,
         .chosen = {0},
         .count = 1},
        {.rows = 4, .columns = 2, .x = {1, 2, 5, 0, 2, 4, 3, 6}, .chosen = {0, 1}, .count = 2},
        {.rows = 4, .columns = 1, .x = {1, 2, 3, 4}, .take = none},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        chooses(&row[i], i);
    }
}

static void columns_are_found_by_their_numbers(void **state)
{
    static const size_t name[] = {30, 10, 20}, wanted[] = {20, 30, 20};

    (void)state;
    size_t *index = columns_find(name, 3, wanted, 3);
    assert_non_null(index);
    assert_true(index[0] == 2 && index[1] == 0 && index[2] == 2);
    free(index);
    assert_null(columns_find(name, 2, wanted, 3)); // 20 is in the last column, which is not there
    // Without names a column is called by its index.
    static const size_t places[] = {2, 0};
    index = columns_find(NULL, 3, places, 2);
    assert_true(index[0] == 2 && index[1] == 0);
    free(index);
    assert_null(columns_find(NULL, 2, places, 2));
    // Nothing wanted is nothing missing.
    index = columns_find(NULL, 0, NULL, 0);
    assert_non_null(index);
    free(index);
}

static void rows_and_columns_are_copied_in_the_order_asked_for(void **state)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const size_t index[] = {2, 0, 2};
    static const bool keep[] = {true, false, true}, none[3];

    (void)state;
    size_t rows = 0;
    float *copy = columns_gather(index, 3, x, 3, 3, keep, &rows);
    static const float expected[] = {3, 1, 3, 9, 7, 9};
    assert_int_equal(rows, 2);
    assert_memory_equal(copy, expected, sizeof(expected));
    free(copy);
    copy = columns_gather(index, 1, x, 3, 3, NULL, &rows);
    assert_int_equal(rows, 3);
    assert_true(copy[0] == 3 && copy[1] == 6 && copy[2] == 9);
    free(copy);
    copy = columns_gather(index, 3, x, 3, 3, none, &rows);
    assert_int_equal(rows, 0);
    assert_non_null(copy);
    free(copy);
    // No columns leave as many rows, of nothing.
    copy = columns_gather(NULL, 0, x, 3, 3, keep, &rows);
    assert_int_equal(rows, 2);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_varies_and_is_new_is_informative),
        cmocka_unit_test(a_missing_value_is_information),
        cmocka_unit_test(rows_that_are_not_taken_decide_nothing),
        cmocka_unit_test(columns_are_found_by_their_numbers),
        cmocka_unit_test(rows_and_columns_are_copied_in_the_order_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

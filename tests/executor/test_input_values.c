// Which distribution an input is drawn from.
#include "common/mem.h"
#include "executor/input_values.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES 6
#define LAST (MEASURE_CONTENTS - 1) // of verification

// An input with two further distributions, one with one, one with none, and an output.
static const struct problem sample = {
    .tensor = {{.name = (char *)(uintptr_t) "x",
                .values = {VALUES_NORMAL, 100, 2},
                .also = {{VALUES_UNIFORM, -200, -190}, {VALUES_ONE_HOT, 0, 0}},
                .also_count = 2},
               {.name = (char *)(uintptr_t) "n",
                .direction = DIRECTION_INOUT,
                .values = {VALUES_INTEGERS, 0, 9},
                .also = {{VALUES_INTEGERS, 7, 7}},
                .also_count = 1},
               {.name = (char *)(uintptr_t) "w", .values = {VALUES_NORMAL, 0, 1}},
               {.name = (char *)(uintptr_t) "y", .direction = DIRECTION_OUT}},
    .tensor_count = 4,
};

static void only_the_last_content_of_verification_is_from_further_distributions(void **state)
{
    (void)state;
    for (size_t t = 0; t < 3; t++) {
        const struct tensor *tensor = &sample.tensor[t];

        for (uint64_t index = 0; index < CASES; index++) {
            for (uint64_t content = 0; content < LAST; content++) {
                assert_ptr_equal(input_values(tensor, 1, index, content), &tensor->values);
            }
            assert_ptr_equal(input_values(tensor, 1, index, MEASURE_CONTENTS), &tensor->values);
            assert_ptr_equal(input_values(tensor, 1, index, UINT64_MAX), &tensor->values);
            const struct values *last = input_values(tensor, 0, index, LAST);
            assert_ptr_equal(last, tensor->also_count == 0
                                       ? &tensor->values
                                       : &tensor->also[index % tensor->also_count]);
        }
    }
}

// Whatever the seed is, as many cases one after the other as there are distributions meet them all;
// and each case meets each of them with some seed.
static void with_which_the_first_case_begins_follows_from_the_seed(void **state)
{
    const struct tensor *tensor = &sample.tensor[0];
    const struct values *first = &tensor->also[0], *second = &tensor->also[1];

    (void)state;
    assert_ptr_equal(input_values(tensor, 6, 0, LAST), first);
    assert_ptr_equal(input_values(tensor, 7, 0, LAST), second);
    assert_ptr_equal(input_values(tensor, UINT64_MAX, 0, LAST), second);
    assert_ptr_equal(input_values(tensor, UINT64_MAX, 1, LAST), first);
    assert_ptr_equal(input_values(tensor, UINT64_MAX, 2000, LAST), second);
    assert_ptr_equal(input_values(tensor, 7, 2001, LAST), first);
}

static void a_content_is_further_when_one_of_its_inputs_is(void **state)
{
    struct problem plain = sample;

    (void)state;
    assert_true(input_values_are_further(&sample, LAST));
    assert_false(input_values_are_further(&sample, 0));
    assert_false(input_values_are_further(&sample, MEASURE_CONTENTS));
    plain.tensor[0].also_count = 0;
    assert_true(input_values_are_further(&plain, LAST));
    plain.tensor[1].also_count = 0;
    assert_false(input_values_are_further(&plain, LAST));
}

static void what_the_inputs_are_drawn_from_is_said_where_it_is_not_values(void **state)
{
    static const struct {
        uint64_t seed, index, content;
        const char *text;
    } rows[] = {
        {0, 0, 0, "N=3"},
        {0, 0, LAST,
         "N=3 with x from uniform(low=-200, high=-190), n from integers(low=7, high=7)"},
        {0, 1, LAST, "N=3 with x from one-hot, n from integers(low=7, high=7)"},
        {0, 2000, LAST,
         "N=3 with x from uniform(low=-200, high=-190), n from integers(low=7, high=7)"},
        {1, 2000, LAST, "N=3 with x from one-hot, n from integers(low=7, high=7)"},
        {0, 1, MEASURE_CONTENTS, "N=3"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct measure_case of = {.index = rows[i].index, .name = (char *)(uintptr_t) "N=3"};
        char *text = input_values_where(&sample, &of, rows[i].seed, rows[i].content);

        assert_string_equal(text, rows[i].text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_last_content_of_verification_is_from_further_distributions),
        cmocka_unit_test(with_which_the_first_case_begins_follows_from_the_seed),
        cmocka_unit_test(a_content_is_further_when_one_of_its_inputs_is),
        cmocka_unit_test(what_the_inputs_are_drawn_from_is_said_where_it_is_not_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

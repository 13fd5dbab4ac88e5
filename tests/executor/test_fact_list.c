// Lists of named numbers: they grow, own their names and are searched by them.
#include "executor/fact_list.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void facts_are_found_by_their_whole_name(void **state)
{
    struct compiled compiled; // owns the list
    char name[8] = "fma";

    (void)state;
    message_init(&compiled_message, &compiled);
    assert_true(isnan(fact_list_find(compiled.features, compiled.features_count, "fma")));
    fact_list_add(&compiled.features, &compiled.features_count, name, 3);
    name[0] = 'x'; // the list has a copy
    fact_list_add(&compiled.features, &compiled.features_count, "fma_inner", 4);
    fact_list_add(&compiled.features, &compiled.features_count, "fma", 5);
    fact_list_add(&compiled.features, &compiled.features_count, "", -INFINITY);
    static const struct {
        const char *name;
        double value;
    } row[] = {{"fma", 3}, {"fma_inner", 4}, {"", -INFINITY}}; // the first of a name counts
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        double value = fact_list_find(compiled.features, compiled.features_count, row[i].name);

        assert_true(value == row[i].value);
    }
    assert_true(isnan(fact_list_find(compiled.features, compiled.features_count, "fm")));
    assert_true(isnan(fact_list_find(compiled.features, 1, "fma_inner"))); // beyond the count
    message_clear(&compiled_message, &compiled);
}

static void a_list_grows_and_keeps_its_order(void **state)
{
    struct fact *list = NULL;
    size_t count = 0;
    char name[16];

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "f%zu", i);
        fact_list_add(&list, &count, name, (double)i);
    }
    assert_int_equal(count, 1000);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), "f%zu", i);
        assert_string_equal(list[i].name, name);
        assert_true(fact_list_find(list, count, name) == (double)i);
    }
    for (size_t i = 0; i < count; i++) {
        free(list[i].name);
    }
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_found_by_their_whole_name),
        cmocka_unit_test(a_list_grows_and_keeps_its_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Lists of generators: their names, and their texts in a run's first event.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/propose/generator_list.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

static void parse(struct generator_list *list, const char *names)
{
    struct err err = ERR_INIT;

    if (generator_list_parse(list, names, &err) != 0) {
        fail_msg("%s: %s", names, err.text);
    }
}

static void names_are_taken_apart_where_a_kind_follows(void **state)
{
    (void)state;
    struct generator_list list;
    parse(&list, "tunable");
    assert_int_equal(list.count, 1);
    assert_int_equal(generator_list_llm_index(&list), 1);
    generator_list_release(&list);
    parse(&list, "pool:a,b.jsonl,llm,pool:tunable,c,tunable");
    assert_int_equal(list.count, 4);
    assert_string_equal(list.kind[0], "pool:a,b.jsonl");
    assert_string_equal(list.kind[1], "llm");
    assert_string_equal(list.kind[2], "pool:tunable,c");
    assert_string_equal(list.kind[3], "tunable");
    assert_int_equal(generator_list_llm_index(&list), 1);
    generator_list_release(&list);
    assert_true(generator_list_has_llm("tunable,llm"));
    assert_false(generator_list_has_llm("tunable,pool:llm"));
    assert_false(generator_list_has_llm("space"));
}

static void a_wrong_list_is_one_sentence(void **state)
{
    static const char *const wrong[][2] = {
        {"tunable,llm,tunable", "names tunable twice"},
        {"pool:a,pool:b,pool:c,pool:d,llm", "more than 4"},
    };

    (void)state;
    struct generator_list list;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(generator_list_parse(&list, wrong[i][0], &err), ERR_USAGE);
        assert_non_null(strstr(err.text, wrong[i][1]));
        assert_int_equal(list.count, 0);
    }
}

static void each_text_has_its_place_in_the_run(void **state)
{
    (void)state;
    struct generator_list list;
    parse(&list, "pool:a,llm,pool:b,tunable");
    struct run_started started = {.problem = NULL};
    generator_list_reserve(&list, &started);
    assert_ptr_equal(generator_list_slot(&list, &started, 0), &started.pool_source);
    assert_null(generator_list_slot(&list, &started, 1));
    assert_int_equal(started.more_pool_sources_count, 1);
    assert_ptr_equal(generator_list_slot(&list, &started, 2), &started.more_pool_sources[0]);
    assert_ptr_equal(generator_list_slot(&list, &started, 3), &started.template_source);
    started.more_pool_sources_count = 0; // a run file that lacks the field
    assert_null(generator_list_slot(&list, &started, 2));
    free(started.more_pool_sources);
    generator_list_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_apart_where_a_kind_follows),
        cmocka_unit_test(a_wrong_list_is_one_sentence),
        cmocka_unit_test(each_text_has_its_place_in_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

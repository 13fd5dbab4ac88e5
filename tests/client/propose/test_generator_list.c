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
    generator_list_release(&list);
    parse(&list, "pool:a,b.jsonl,llm,pool:tunable,c,tunable");
    assert_int_equal(list.count, 4);
    assert_string_equal(list.kind[0], "pool:a,b.jsonl");
    assert_string_equal(list.kind[1], "llm");
    assert_string_equal(list.kind[2], "pool:tunable,c");
    assert_string_equal(list.kind[3], "tunable");
    generator_list_release(&list);
    parse(&list, "exec:./a --x 1,2,exec:b | tee c,pool:d,tunable");
    assert_int_equal(list.count, 4);
    assert_string_equal(list.kind[0], "exec:./a --x 1,2");
    assert_string_equal(list.kind[1], "exec:b | tee c");
    generator_list_release(&list);
    assert_true(generator_list_asks("tunable,llm"));
    assert_true(generator_list_asks("tunable,exec:./a"));
    assert_false(generator_list_asks("tunable,pool:llm"));
    assert_false(generator_list_asks("space"));
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

static void no_names_are_an_empty_list_and_an_empty_name_is_a_kind(void **state)
{
    (void)state;
    struct generator_list list;
    parse(&list, NULL);
    assert_int_equal(list.count, 0);
    assert_int_equal(generator_list_points(&list), 0);
    generator_list_release(&list);
    generator_list_release(&list); // once more is fine
    parse(&list, "");
    assert_int_equal(list.count, 1);
    struct err err = ERR_INIT;
    assert_int_equal(generator_list_read(&list, NULL, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "there is no generator \"\""));
    generator_list_release(&list);
}

static void commas_that_no_kind_follows_belong_to_the_path(void **state)
{
    static const struct {
        const char *names, *kind[2]; // the second NULL: there is one
    } cases[] = {
        {"pool:a,b,c", {"pool:a,b,c", NULL}},
        {"pool:a,", {"pool:a,", NULL}},
        {"pool:a,,llm", {"pool:a,", "llm"}},
        {"pool:a,llms", {"pool:a,llms", NULL}},
        {"pool:a,tunable.c", {"pool:a,tunable.c", NULL}},
        {"pool:llm,tunable", {"pool:llm", "tunable"}},
        {"tunable, llm", {"tunable, llm", NULL}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct generator_list list;
        parse(&list, cases[i].names);
        assert_int_equal(list.count, cases[i].kind[1] ? 2 : 1);
        assert_string_equal(list.names, cases[i].names);
        for (size_t k = 0; k < list.count; k++) {
            assert_string_equal(list.kind[k], cases[i].kind[k]);
        }
        generator_list_release(&list);
    }
}

// Sets a text as if it had been read.
static void give(struct generator_list *list, size_t number, const char *text)
{
    list->text[number] = bytes_copy(text, strlen(text));
}

static void points_are_those_of_all_generators_unless_one_has_no_end(void **state)
{
    (void)state;
    struct generator_list list;
    parse(&list, "tunable,pool:a.jsonl");
    give(&list, 0, "//@ tune A in (1, 2, 3)\nint x;\n");
    give(&list, 1, "{\"source\": \"x\"}\n{\"source\": \"y\"}\n");
    assert_int_equal(generator_list_create(&list, "t.c", NULL), 0);
    assert_int_equal(generator_list_points(&list), 5);
    generator_list_release(&list);
    parse(&list, "tunable,llm");
    give(&list, 0, "//@ tune A in (1, 2, 3)\nint x;\n");
    assert_int_equal(generator_list_create(&list, "t.c", NULL), 0);
    assert_int_equal(generator_list_points(&list), 0);
    assert_int_equal(list.generator[0]->point_count, 3);
    generator_list_release(&list);
}

static void an_error_names_the_file_of_the_generator_that_has_it(void **state)
{
    (void)state;
    struct generator_list list;
    parse(&list, "tunable,pool:good.jsonl,pool:some/bad.jsonl");
    give(&list, 0, "//@ tune A in (1, 2, 3)\nint x;\n");
    give(&list, 1, "{\"source\": \"x\"}\n");
    give(&list, 2, "{\"source\": \"x\"}\n{}\n");
    struct err err = ERR_INIT;
    assert_int_equal(generator_list_create(&list, "dir/template.c", &err), ERR_INVALID);
    assert_int_equal(strncmp(err.text, "some/bad.jsonl:2: ", 18), 0);
    assert_non_null(list.generator[1]); // freed with the list
    generator_list_release(&list);
    parse(&list, "tunable");
    give(&list, 0, "//@ tune A in\nint x;\n");
    err_clear(&err);
    assert_int_equal(generator_list_create(&list, "dir/template.c", &err), ERR_INVALID);
    assert_int_equal(strncmp(err.text, "dir/template.c:1", 16), 0);
    generator_list_release(&list);
}

static void a_template_alone_is_a_list_with_a_copy_of_it(void **state)
{
    (void)state;
    char text[] = "//@ tune A in (1, 2)\nint x;\n";
    const struct bytes bytes = {.data = (unsigned char *)text, .len = strlen(text)};
    struct generator_list list;
    generator_list_tunable(&list, &bytes);
    memset(text, '!', sizeof(text) - 1);
    assert_string_equal(list.names, "tunable");
    assert_int_equal(generator_list_create(&list, "t.c", NULL), 0);
    assert_int_equal(generator_list_points(&list), 2);
    generator_list_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_taken_apart_where_a_kind_follows),
        cmocka_unit_test(a_wrong_list_is_one_sentence),
        cmocka_unit_test(each_text_has_its_place_in_the_run),
        cmocka_unit_test(no_names_are_an_empty_list_and_an_empty_name_is_a_kind),
        cmocka_unit_test(commas_that_no_kind_follows_belong_to_the_path),
        cmocka_unit_test(points_are_those_of_all_generators_unless_one_has_no_end),
        cmocka_unit_test(an_error_names_the_file_of_the_generator_that_has_it),
        cmocka_unit_test(a_template_alone_is_a_list_with_a_copy_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

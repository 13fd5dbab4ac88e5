// Generators: the points of a template, folders and JSON lines of sources, and the sentences that
// refuse what is wrong with them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/propose/generator.h"
#include "common/file.h"
#include <stdlib.h>
#include <string.h>

static int create(struct generator **ret, const char *kind, const char *text, struct err *err)
{
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
    return generator_create(ret, kind, &bytes, "here", err);
}

static void template_gives_points_with_parameters_and_neighbours(void **state)
{
    (void)state;
    struct generator *generator;
    struct err err = ERR_INIT;
    assert_int_equal(create(&generator, "tunable",
                            "//@ tune A in (1, 2, 4)\n//@ tune B in (5, 7)\nint x;\n", &err),
                     0);
    assert_int_equal(generator->point_count, 6);
    assert_int_equal(generator->axis_count, 2);
    struct strbuf text = STRBUF_INIT;
    generator->ops->name(generator, 3, &text);
    assert_string_equal(strbuf_text(&text), "A=2 B=7");
    strbuf_reset(&text);
    generator->ops->source(generator, 3, &text);
    assert_non_null(strstr(strbuf_text(&text), "#define A 2"));
    assert_non_null(strstr(strbuf_text(&text), "int x;"));
    struct fact *fact;
    assert_int_equal(generator->ops->params(generator, 3, &fact), 2);
    assert_string_equal(fact[1].name, "B");
    assert_true(fact[1].value == 7);
    double place[GENERATOR_AXIS_MAX];
    generator->ops->position(generator, 3, place);
    assert_true(place[0] == 0.5 && place[1] == 1);
    size_t beside[16];
    assert_int_equal(generator->ops->neighbours(generator, 3, beside, 16), 3);
    assert_int_equal(generator->ops->neighbours(generator, 3, beside, 2), 2);
    free(fact[0].name);
    free(fact[1].name);
    free(fact);
    strbuf_release(&text);
    generator_free(generator);
}

static void json_lines_give_names_and_sources(void **state)
{
    (void)state;
    struct generator *generator;
    struct err err = ERR_INIT;
    assert_int_equal(create(&generator, "pool:x",
                            "{\"name\": \"one\", \"source\": \"int a;\\n\"}\n\n  \n"
                            "{\"source\": \"int b;\", \"other\": [1]}",
                            &err),
                     0);
    assert_int_equal(generator->point_count, 2);
    assert_int_equal(generator->axis_count, 0);
    struct strbuf text = STRBUF_INIT;
    generator->ops->name(generator, 0, &text);
    generator->ops->source(generator, 0, &text);
    generator->ops->name(generator, 1, &text);
    generator->ops->source(generator, 1, &text);
    assert_string_equal(strbuf_text(&text), "oneint a;\nline 4int b;");
    strbuf_release(&text);
    generator_free(generator);
}

static void bad_lines_are_named(void **state)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "here holds no candidates"},
        {"\n \n", "here holds no candidates"},
        {"garbage", "here:1: no JSON"},
        {"{\"source\": \"x\"}\n{\"source\": \"x\"", "here:2: no JSON"},
        {"[]", "here:1: no JSON object"},
        {"7", "here:1: no JSON"},
        {"{}", "here:1: \"source\" is missing"},
        {"{\"source\": \"\"}", "here:1: \"source\""},
        {"{\"source\": 3}", "here:1: \"source\""},
        {"{\"source\": \"x\", \"name\": 3}", "here:1: \"name\" is no text"},
        {"{\"source\": \"a\\u0000b\"}", "here:1: no JSON"},
        {"{\"source\": \"x\", \"name\": \"a\\u001b\"}",
         "here:1: the name of a candidate, \"a\\x1b\", has a control character"},
        {"{\"source\": \"x\", \"name\": \"\\u202e\"}", "here:1: the name of a candidate"},
        {"{\"source\": \"x\", \"source\": \"y\"}", "here:1: no JSON"},
        {"{\"source\": \"\xff\"}", "here:1: no JSON"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct generator *generator = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(create(&generator, "pool:x", cases[i].text, &err), ERR_INVALID);
        if (strncmp(err.text, cases[i].sentence, strlen(cases[i].sentence)) != 0) {
            fail_msg("'%s' gives '%s'", cases[i].text, err.text);
        }
    }
}

static void write_text(const char *folder, const char *name, const char *text)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", folder, name);
    assert_int_equal(file_replace(path, text, strlen(text), false, &err), 0);
    free(path);
}

static void folder_gives_its_sources_in_order_of_names(void **state)
{
    struct problem problem = {.cuda = false};
    struct problem_dir dir = {.problem = &problem};
    (void)state;
    char *folder = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&folder, "kcast-test", &err), 0);
    char *kind = xasprintf("pool:%s", folder);
    struct bytes text = {0};
    assert_int_equal(generator_read(&text, kind, &dir, &err), ERR_INVALID); // empty
    err_clear(&err);
    write_text(folder, "b.c", "int \"b\";\n");
    write_text(folder, "a.c", "int a;\n");
    write_text(folder, "c.txt", "no source");
    write_text(folder, ".hidden.c", "no source");
    assert_int_equal(generator_read(&text, kind, &dir, &err), 0);
    struct generator *generator = NULL;
    assert_int_equal(generator_create(&generator, kind, &text, folder, &err), 0);
    assert_int_equal(generator->point_count, 2);
    struct strbuf names = STRBUF_INIT;
    generator->ops->name(generator, 0, &names);
    generator->ops->name(generator, 1, &names);
    generator->ops->source(generator, 1, &names);
    assert_string_equal(strbuf_text(&names), "a.cb.cint \"b\";\n");
    generator_free(generator);
    bytes_clear(&text);
    write_text(folder, "a.cu", "int cu;\n");
    problem.cuda = true;
    assert_int_equal(generator_read(&text, kind, &dir, &err), 0);
    assert_int_equal(generator_create(&generator, kind, &text, folder, &err), 0);
    assert_int_equal(generator->point_count, 1);
    generator_free(generator);
    bytes_clear(&text);
    problem.cuda = false;
    write_text(folder, "d.c", "\xff\xfe");
    assert_int_equal(generator_read(&text, kind, &dir, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "d.c"));
    assert_int_equal(file_remove_tree(folder, &err), 0);
    strbuf_release(&names);
    free(kind);
    free(folder);
}

static char *line_of(const char *name, size_t name_len, size_t source_len)
{
    struct strbuf line;
    strbuf_init(&line, (size_t)4 << 20);
    strbuf_addf(&line, "{\"name\": \"%s", name);
    for (size_t i = 0; i < name_len; i++) {
        strbuf_addc(&line, 'n');
    }
    strbuf_adds(&line, "\", \"source\": \"");
    for (size_t i = 0; i < source_len; i++) {
        strbuf_addc(&line, 's');
    }
    strbuf_adds(&line, "\"}");
    char *ret = xstrdup(strbuf_text(&line));
    strbuf_release(&line);
    return ret;
}

static void names_and_sources_have_a_longest_length(void **state)
{
    static const struct {
        size_t name, source;
        const char *sentence; // NULL: it is taken
    } cases[] = {
        {1024, 1, NULL},
        {1025, 1, "here:1: the name is longer than 1024 bytes"},
        {0, PROBLEM_SOURCE_MAX, NULL},
        {0, PROBLEM_SOURCE_MAX + 1, "here:1: the source is longer than 1048576 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *line = line_of("", cases[i].name, cases[i].source);
        struct generator *generator = NULL;
        struct err err = ERR_INIT;
        int rc = create(&generator, "pool:x", line, &err);
        assert_int_equal(rc, cases[i].sentence ? ERR_LIMIT : 0);
        assert_string_equal(err.text, cases[i].sentence ? cases[i].sentence : "");
        generator_free(generator);
        free(line);
    }
}

// The bytes of a blob end without a NUL.
static void a_text_ends_where_its_length_says(void **state)
{
    static const char text[] = "{\"source\": \"int a;\"}\r\n \t";
    static const size_t wrong_len[] = {1, 10, 19};
    (void)state;
    struct bytes bytes = {.data = xcalloc(sizeof(text) - 1, 1), .len = sizeof(text) - 1};
    memcpy(bytes.data, text, bytes.len);
    struct generator *generator = NULL;
    assert_int_equal(generator_create(&generator, "pool:x", &bytes, "here", NULL), 0);
    assert_int_equal(generator->point_count, 1);
    generator_free(generator);
    for (size_t i = 0; i < ARRAY_LEN(wrong_len); i++) {
        bytes.len = wrong_len[i];
        struct err err = ERR_INIT;
        assert_int_equal(generator_create(&generator, "pool:x", &bytes, "here", &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "here:1: no JSON"));
    }
    free(bytes.data);
}

static void files_have_neither_places_nor_neighbours(void **state)
{
    (void)state;
    struct generator *generator = NULL;
    assert_int_equal(create(&generator, "pool:x", "{\"source\": \"a\"}\n{\"source\": \"b\"}", NULL),
                     0);
    size_t beside[4];
    double place[1] = {-7};
    struct fact *fact = (struct fact *)beside;
    assert_int_equal(generator->ops->neighbours(generator, 0, beside, 4), 0);
    generator->ops->position(generator, 1, place);
    assert_true(place[0] == -7);
    assert_int_equal(generator->ops->params(generator, 1, &fact), 0);
    assert_null(fact);
    generator_free(generator);
}

static void one_value_is_at_the_beginning_of_its_axis(void **state)
{
    (void)state;
    struct generator *generator = NULL;
    assert_int_equal(create(&generator, "tunable",
                            "//@ tune A in (64)\n//@ tune B in (10, -3, 500)\nint x;\n", NULL),
                     0);
    assert_int_equal(generator->point_count, 3);
    for (size_t point = 0; point < 3; point++) {
        double place[GENERATOR_AXIS_MAX];
        generator->ops->position(generator, point, place);
        assert_true(place[0] == 0);
        assert_true(place[1] == 0.5 * (double)point); // by its place in the list, not its value
        size_t beside[8];
        size_t count = generator->ops->neighbours(generator, point, beside, 8);
        for (size_t i = 0; i < count; i++) {
            assert_true(beside[i] != point && beside[i] < 3);
        }
    }
    generator_free(generator);
}

static void a_language_model_has_no_points_and_reads_nothing(void **state)
{
    (void)state;
    struct bytes text = {.data = (unsigned char *)&text, .len = 1};
    assert_int_equal(generator_read(&text, "llm", NULL, NULL), 0);
    assert_null(text.data);
    assert_int_equal(text.len, 0);
    struct generator *generator = NULL;
    assert_int_equal(generator_create(&generator, "llm", &text, "here", NULL), 0);
    assert_true(generator->asks);
    assert_int_equal(generator->point_count, 0);
    assert_int_equal(generator->axis_count, 0);
    generator_free(generator);
    generator_free(NULL);
}

static void a_command_is_one_line_and_not_too_long(void **state)
{
    static const char *const wrong[][2] = {
        {"exec:", "needs a command after the colon"},
        {"exec:  ", "needs a command after the colon"},
        {"exec:a\nb", "the command of --generator exec:"},
    };
    struct problem_dir dir = {0};
    struct bytes text;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;

        assert_int_not_equal(generator_read(&text, wrong[i][0], &dir, &err), 0);
        assert_non_null(strstr(err.text, wrong[i][1]));
    }
    char *longest = xasprintf("exec:%0*d", GENERATOR_COMMAND_MAX, 1);
    char *longer = xasprintf("%s0", longest);
    struct err err = ERR_INIT;
    assert_int_equal(generator_read(&text, longest, &dir, &err), 0);
    assert_int_equal(generator_read(&text, longer, &dir, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "put it into a script"));
    assert_string_equal(generator_command("exec:./a b"), "./a b");
    assert_null(generator_command("tunable"));
    free(longest);
    free(longer);
}

static void kinds_are_whole_words(void **state)
{
    static const char *const none[] = {"", "LLM", "llm ", "llms", "pool", "tunables", "Tunable"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct generator *generator = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(create(&generator, none[i], "int x;", &err), ERR_USAGE);
        assert_non_null(
            strstr(err.text, "use tunable, llm, exec:COMMAND, pool:DIR or pool:FILE.jsonl"));
        assert_null(generator);
        assert_false(generator_is_llm(none[i]) || generator_is_files(none[i]));
    }
    assert_true(generator_is_files("pool:") && generator_is_files("pool:llm"));
    assert_true(generator_is_llm("llm"));
}

static void wrong_kinds_are_refused(void **state)
{
    struct problem problem = {.cuda = false};
    struct problem_dir dir = {.path = (char *)(uintptr_t) "dir", .problem = &problem};
    (void)state;
    struct bytes text;
    struct err err = ERR_INIT;
    assert_int_equal(generator_read(&text, "dice", &dir, &err), ERR_USAGE);
    err_clear(&err);
    assert_int_equal(generator_read(&text, "tunable", &dir, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "template.c,"));
    err_clear(&err);
    problem.cuda = true;
    assert_int_equal(generator_read(&text, "tunable", &dir, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "template.cu,"));
    err_clear(&err);
    assert_int_equal(generator_read(&text, "pool:", &dir, &err), ERR_USAGE);
    err_clear(&err);
    assert_int_equal(generator_read(&text, "pool:/nowhere/at/all", &dir, &err), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(template_gives_points_with_parameters_and_neighbours),
        cmocka_unit_test(json_lines_give_names_and_sources),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(folder_gives_its_sources_in_order_of_names),
        cmocka_unit_test(names_and_sources_have_a_longest_length),
        cmocka_unit_test(a_text_ends_where_its_length_says),
        cmocka_unit_test(files_have_neither_places_nor_neighbours),
        cmocka_unit_test(one_value_is_at_the_beginning_of_its_axis),
        cmocka_unit_test(a_language_model_has_no_points_and_reads_nothing),
        cmocka_unit_test(a_command_is_one_line_and_not_too_long),
        cmocka_unit_test(kinds_are_whole_words),
        cmocka_unit_test(wrong_kinds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

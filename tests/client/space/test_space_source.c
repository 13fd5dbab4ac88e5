// Sources of a space's candidates: texts that were kept, points of the template, and those that are
// not what was measured.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/space/space_source.h"
#include "common/file.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char template_text[] = "//@ tune A in (1, 2, 4)\nint x;\n";

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
}

static char *literal(const char *text)
{
    return (char *)(uintptr_t)text;
}

// The first candidate of a space with this template (NULL: none), which is freed by the caller.
static int get(struct space_candidate *candidate, const char *template, char **ret, bool *known,
               struct err *err)
{
    struct space space = {.head = {.candidates = 1}, .candidate = candidate};
    if (template) {
        space.head.template_source = bytes_of(template);
    }
    struct space_sources sources;
    assert_int_equal(space_sources_init(&sources, &space, "a.space", NULL), 0);
    struct strbuf out = STRBUF_INIT;
    int rc = space_sources_get(&sources, 0, &out, known, err);
    *ret = xstrdup(strbuf_text(&out));
    strbuf_release(&out);
    space_sources_release(&sources);
    return rc;
}

static void a_kept_text_goes_before_a_point(void **state)
{
    (void)state;
    struct space_candidate candidate = {
        .name = literal("c"), .source = bytes_of("int kept;\n"), .point = 2};
    candidate.digest = digest_of("int kept;\n", 10);
    char *text;
    bool known = false;
    assert_int_equal(get(&candidate, template_text, &text, &known, NULL), 0);
    assert_string_equal(text, "int kept;\n");
    assert_true(known);
    free(text);
}

static void a_point_is_counted_from_1(void **state)
{
    static const char *const define[] = {"#define A 1\n", "#define A 2\n", "#define A 4\n"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(define); i++) {
        struct space_candidate candidate = {.name = literal("c"), .point = i + 1};
        char *text;
        bool known = false;
        assert_int_equal(get(&candidate, template_text, &text, &known, NULL), 0);
        assert_non_null(strstr(text, define[i]));
        assert_true(known);
        free(text);
    }
}

static void what_was_not_kept_is_not_known_and_no_error(void **state)
{
    (void)state;
    const struct space_candidate cases[] = {
        {.name = literal("neither text nor point")},
        {.name = literal("with the digest alone"), .digest = digest_of("x", 1)},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct space_candidate candidate = cases[i];
        char *text;
        bool known = true;
        assert_int_equal(get(&candidate, template_text, &text, &known, NULL), 0);
        assert_string_equal(text, "");
        assert_false(known);
        free(text);
    }
    struct space_candidate point = {.name = literal("without a template"), .point = 1};
    char *text;
    bool known = true;
    assert_int_equal(get(&point, NULL, &text, &known, NULL), 0);
    assert_false(known);
    free(text);
}

static void a_point_that_the_template_does_not_have_is_damage(void **state)
{
    static const uint64_t points[] = {4, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct space_candidate candidate = {.name = literal("far"), .point = points[i]};
        char *text;
        bool known = true;
        struct err err = ERR_INIT;
        assert_int_equal(get(&candidate, template_text, &text, &known, &err), ERR_CORRUPT);
        assert_non_null(strstr(err.text, "candidate \"far\" is no point of the template"));
        assert_true(known); // as it was
        assert_string_equal(text, "");
        free(text);
    }
}

static void a_source_that_was_not_measured_is_damage(void **state)
{
    (void)state;
    struct space_candidate cases[] = {
        {.name = literal("kept"), .source = bytes_of("int x;"), .digest = digest_of("int y;", 6)},
        {.name = literal("point"), .point = 1, .digest = digest_of(template_text, 4)},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text;
        bool known = false;
        struct err err = ERR_INIT;
        assert_int_equal(get(&cases[i], template_text, &text, &known, &err), ERR_CORRUPT);
        assert_non_null(strstr(err.text, "is not the one measured"));
        assert_non_null(strstr(err.text, cases[i].name));
        assert_string_equal(text, ""); // nothing of it is handed out
        free(text);
    }
}

static void a_template_that_is_none_is_refused_with_the_path(void **state)
{
    (void)state;
    const struct space space = {.head = {.template_source = bytes_of("//@ tune A in (\n")}};
    struct space_sources sources;
    struct err err = ERR_INIT;
    assert_int_equal(space_sources_init(&sources, &space, "bad.space", &err), ERR_INVALID);
    assert_int_equal(strncmp(err.text, "bad.space", 9), 0);
}

// ---- paths ----

static void only_the_last_suffix_of_the_name_is_replaced(void **state)
{
    static const char *const cases[][2] = {
        {"a.run", "a.space"},           {"d/a.run", "d/a.space"}, {"a", "a.space"},
        {"a.b.run", "a.b.space"},       {"d.x/a", "d.x/a.space"}, {".run", ".run.space"},
        {"d.x/.run", "d.x/.run.space"}, {"a.", "a.space"},        {"a.space", "a.space"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *path = space_path_of(cases[i][0]);
        assert_string_equal(path, cases[i][1]);
        free(path);
    }
}

static void a_space_is_told_by_its_first_two_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        bool is;
    } cases[] = {
        {"\x1f\x8b", 2, true},  {"\x1f\x8b\x08 and more", 12, true},
        {"\x1f", 1, false},     {"", 0, false},
        {"\x8b\x1f", 2, false}, {"KCSPACE1", 8, false},
    };
    (void)state;
    char *folder = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&folder, "kcast-test", &err), 0);
    char *path = xasprintf("%s/a.space", folder);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(file_replace(path, cases[i].bytes, cases[i].len, false, &err), 0);
        assert_int_equal(space_is(path), cases[i].is);
    }
    assert_int_equal(unlink(path), 0);
    assert_false(space_is(path));
    assert_false(space_is(folder));
    assert_int_equal(file_remove_tree(folder, &err), 0);
    free(path);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_text_goes_before_a_point),
        cmocka_unit_test(a_point_is_counted_from_1),
        cmocka_unit_test(what_was_not_kept_is_not_known_and_no_error),
        cmocka_unit_test(a_point_that_the_template_does_not_have_is_damage),
        cmocka_unit_test(a_source_that_was_not_measured_is_damage),
        cmocka_unit_test(a_template_that_is_none_is_refused_with_the_path),
        cmocka_unit_test(only_the_last_suffix_of_the_name_is_replaced),
        cmocka_unit_test(a_space_is_told_by_its_first_two_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Edits as models write them: what is searched occurs once, blanks may differ, and what cannot be
// done is said.
#include "worker/llm/answer_edits.h"
#include "worker/prompt/prompt_propose.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka.h needs the headers above.
#include <cmocka.h>

#define EDIT(search, replace)                                                                      \
    PROMPT_EDIT_SEARCH "\n" search PROMPT_EDIT_DIVIDE "\n" replace PROMPT_EDIT_REPLACE "\n"

static const char program[] = "// first words\n//@ launch f\nint f()\n{\n    return 1;\n}\n"
                              "int g()\n{\n    return 2;\n}\n";

static void edits_are_made_in_their_order(void **state)
{
    static const struct {
        const char *text, *becomes;
    } row[] = {
        {EDIT("    return 1;\n", "    return 3;\n    // new\n"),
         "// first words\n//@ launch f\nint f()\n{\n    return 3;\n    // new\n}\nint g()\n{\n    "
         "return 2;\n}\n"},
        // Several, of which the second sees what the first has made; and nothing put in place.
        {EDIT("int g()\n{\n", "int h()\n{\n") EDIT("int h()\n{\n    return 2;\n}\n", ""),
         "// first words\n//@ launch f\nint f()\n{\n    return 1;\n}\n"},
        // A new first comment takes the old one's place, but not that of a manifest line.
        {"// other words\n" EDIT("    return 1;\n", "    return 0;\n"),
         "// other words\n//@ launch f\nint f()\n{\n    return 0;\n}\nint g()\n{\n    return 2;\n}"
         "\n"},
        // Blanks at the ends and, where nothing else is found, at the beginnings of lines.
        {EDIT("return 1;  \r\n", "    return 7;\n"),
         "// first words\n//@ launch f\nint f()\n{\n    return 7;\n}\nint g()\n{\n    return 2;\n}"
         "\n"},
        // Empty lines around, marks of other lengths, words left out.
        {"<<<<<<\n\n    return 1;\n\n=====\n    return 8;\n>>>>>>>>\n",
         "// first words\n//@ launch f\nint f()\n{\n    return 8;\n}\nint g()\n{\n    return 2;\n}"
         "\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct err err = ERR_INIT;
        char *got = NULL;

        assert_true(answer_edits_are(row[i].text, strlen(row[i].text)));
        if (answer_edits_apply(&got, program, strlen(program), row[i].text, strlen(row[i].text),
                               10000, &err) != 0) {
            fail_msg("%zu: %s", i, err.text);
        }
        assert_string_equal(got, row[i].becomes);
        free(got);
    }
}

// The comment of a program in Python begins with #; // divides.
static void the_first_comment_is_of_the_programs_language(void **state)
{
    static const char python[] = "# first words\nimport a\ndef f(x):\n    return x // 2\n";
    static const char text[] = "# other words\n" EDIT("    return x // 2\n", "    return x // 4\n");
    struct err err = ERR_INIT;
    char *got = NULL;

    (void)state;
    if (answer_edits_apply(&got, python, strlen(python), text, strlen(text), 10000, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(got, "# other words\nimport a\ndef f(x):\n    return x // 4\n");
    free(got);
}

// Where an edit leaves out blanks at the beginning of lines, what it puts there gets them.
static void what_is_put_in_place_is_as_deep(void **state)
{
    static const char python[] = "import a\ndef f(x):\n    if x:\n        y = 1\n        z = 2\n";
    static const struct {
        const char *text, *becomes;
    } row[] = {
        {EDIT("y = 1\nz = 2\n", "y = 3\n\nif y:\n    z = 4\n"),
         "import a\ndef f(x):\n    if x:\n        y = 3\n\n        if y:\n            z = 4\n"},
        {EDIT("    y = 1\n", "    y = 3\n"),
         "import a\ndef f(x):\n    if x:\n        y = 3\n        z = 2\n"},
        {EDIT("        y = 1\n", "        y = 3\n"),
         "import a\ndef f(x):\n    if x:\n        y = 3\n        z = 2\n"},
        {EDIT("y = 1\n", "        y = 3\n"),
         "import a\ndef f(x):\n    if x:\n        y = 3\n        z = 2\n"},
        {EDIT("y = 1\n", ""), "import a\ndef f(x):\n    if x:\n        z = 2\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct err err = ERR_INIT;
        char *got = NULL;

        if (answer_edits_apply(&got, python, strlen(python), row[i].text, strlen(row[i].text),
                               10000, &err) != 0) {
            fail_msg("%zu: %s", i, err.text);
        }
        assert_string_equal(got, row[i].becomes);
        free(got);
    }
}

static void what_cannot_be_done_is_said(void **state)
{
    static const struct {
        const char *text, *says;
    } row[] = {
        {"int f() { return 1; }", "there is no edit"},
        {EDIT("    return 5;\n", "x\n"), "edit 1 searches for occur 0 times"},
        {EDIT("int g()\n", "x\n") EDIT("{\n", "x\n"), "edit 2 searches for occur 2 times"},
        {EDIT("\n  \n", "x\n"), "edit 1 searches for nothing"},
        {PROMPT_EDIT_SEARCH "\nint g()\n" PROMPT_EDIT_DIVIDE "\nint h()\n", "edit 1 has no end"},
        {PROMPT_EDIT_SEARCH "\nint g()\n" PROMPT_EDIT_REPLACE "\n", "edit 1 has no end"},
        {EDIT("int g()\n", "0123456789012345678901234567890123456789\n"),
         "the program has more than"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct err err = ERR_INIT;
        char *got = NULL;

        assert_true(answer_edits_apply(&got, program, strlen(program), row[i].text,
                                       strlen(row[i].text), strlen(program) + 16, &err) != 0);
        assert_null(got);
        if (!strstr(err.text, row[i].says)) {
            fail_msg("%zu: %s", i, err.text);
        }
    }
    struct strbuf many = STRBUF_INIT;
    for (size_t i = 0; i <= ANSWER_EDITS_MAX; i++) {
        strbuf_adds(&many, EDIT("int g()\n", "int g()\n"));
    }
    struct err err = ERR_INIT;
    char *got = NULL;
    assert_int_equal(
        answer_edits_apply(&got, program, strlen(program), many.data, many.len, 10000, &err),
        ERR_LIMIT);
    strbuf_release(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_made_in_their_order),
        cmocka_unit_test(the_first_comment_is_of_the_programs_language),
        cmocka_unit_test(what_is_put_in_place_is_as_deep),
        cmocka_unit_test(what_cannot_be_done_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

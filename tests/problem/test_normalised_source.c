#include "tests/problem/normalised.h"
#include <stdlib.h>

static void blanks_and_comments_do_not_matter(void **state)
{
    (void)state;
    assert_true(
        same("int f(int a) { return a + 1; }", "int f( int a )\n{\n\treturn a+1; // one\n}\n"));
    assert_true(same("x = a /* or b */ * c;", "x=a*c;"));
    assert_true(same("#define N 4\nint x;", "#define   N /* four */ 4   \n\n\n  int x ;"));
    assert_true(
        same("// first\n//@ launch f grid=(1)\nvoid f() {}", "//@ launch f  grid=(1)\nvoid f(){}"));
    assert_true(same("#define A 1 \\\n + 2\nint x;", "#define A 1 + 2\nint x;"));
}

static void a_cubin_is_what_it_is_but_for_its_lines(void **state)
{
    (void)state;
    assert_true(same("//@ launch k\n// a\nf0VMRgIB\nAB//\n", "//@ launch  k\nf0VMRgIBAB//"));
    assert_false(same("f0VMRgIBAB//C", "f0VMRgIBAB//D"));
    assert_false(same("f0VMRgIB/*AB", "f0VMRgIB/*CD"));
    assert_false(same("//@ launch k\nf0VMRgIB", "//@ launch l\nf0VMRgIB"));
}

static void what_means_something_else_is_something_else(void **state)
{
    static const char *const pair[][2] = {
        {"int x;", "intx;"},
        {"s = L \"a\";", "s = L\"a\";"}, // a macro and a string, or a string of wide characters
        {"x = 1 '+2;", "x = 1'+2;"},
        {"a - -b", "a--b"},
        {"a + +b", "a++b"},
        {"x = a / *p;", "x = a /*p;*/ ;"},
        {"s = \"a b\";", "s = \"ab\";"},
        {"s = \"/* no comment */\";", "s = \"\";"},
        {"s = \"a\\\"// b\";", "s = \"a\\\"\";"},
        {"c = ' ';", "c = '';"},
        {"#define F (x)\n", "#define F(x)\n"},
        {"#define A 1\nint x;", "#define A 1 int x;"},
        {"//@ tune A in (1, 2)\n", "//@ tune A in (1, 3)\n"},
        {"//@ launch f\nint x;", "int x;"},
        {"a = 1;", "a = 2;"},
        {"f(1'000);", "f(1'001);"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++) {
        if (same(pair[i][0], pair[i][1])) {
            fail_msg("\"%s\" is taken for \"%s\"", pair[i][0], pair[i][1]);
        }
    }
}

static void a_comment_that_a_backslash_continues_hides_the_next_line(void **state)
{
    (void)state;
    assert_false(same("// set by hand \\\nint x;\nint y;", "int x; int y;"));
    assert_true(same("// set by hand \\\nint x;\nint y;", "int y;"));
    assert_true(same("// two \\ \t\r\nint x; \\\nint z;\nint y;", "int y;"));
    assert_true(same("// a \\ b\nint y;", "int y;"));
    assert_true(same("int y; // a \\", "int y;"));
}

static void only_the_first_text_of_a_line_is_a_line_of_a_manifest(void **state)
{
    (void)state;
    assert_false(same("x; //@ launch f\ny;", "x; //@ launch f y;"));
    assert_true(same("x; //@ launch f\ny;", "x;y;"));
    assert_false(same("x;\n//@ launch f\ny;", "x;y;"));
}

static void a_character_is_a_literal_also_behind_a_word(void **state)
{
    static const char *const before[] = {"return ", "return", "case\t", "x = L", "u8",
                                         "a+",      "(",      "x1",     "1 + "};
    static const char *const numbers[] = {"1'000", "0x1'f", ".5'0", "1.5'0", "12'3'4"};

    (void)state;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        char *a = xasprintf("%s'\"'; s = \"/* a */\";", before[i]),
             *b = xasprintf("%s'\"'; s = \"/* b */\";", before[i]);
        assert_false(same(a, b));
        free(a);
        free(b);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        char *a = xasprintf("x = %s; /* it's */ y = 2;", numbers[i]),
             *b = xasprintf("x=%s;y=2;", numbers[i]);
        assert_true(same(a, b));
        free(a);
        free(b);
    }
}

static void the_text_keeps_only_blanks_and_line_ends_that_separate(void **state)
{
    static const char *const pairs[][2] = {
        {" int\tmain ( void )\n{\n}\n", "int main(void){}"},
        {"a - -b - - -c", "a- -b- - -c"},
        {"a = b / *p", "a=b/ *p"},
        {"a * / b", "a* /b"},
        {"int/**/x/**/=/**/1;", "int x=1;"},
        {"#if  A\n  x ;\n#endif\ny;", "#if A\nx;\n#endif\ny;"},
        {"x;\n  # define  F(a)  a\n", "x;\n#define F(a)a"},
        {"#define F (a)", "#define F (a)"},
        {"#define M -1\n", "#define M -1"},
        {"  //@  tune A in (1,  2)\n// text\nint x;", "//@tune A in (1,2)\nint x;"},
        {"s = \"a  // \\\" b\" ;", "s=\"a  // \\\" b\";"},
        {"c = '\"' ; d = '/*' ;", "c='\"';d='/*';"},
        {"x = 1'000 ;", "x=1'000;"},
        {"a\\\nb", "a b"},
        {"a \\ \t\nb", "a b"},
        {"a\r\nb\r\n", "a b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_normalised(pairs[i][0], pairs[i][1]);
    }
}

static void a_normalised_text_is_its_own_normalised_text(void **state)
{
    static const char *const sources[] = {
        "int f(int a) { /* x */ return a + + 1; } // end",
        "#define A(x) \\\n  (x)\n#ifdef  B\nchar *s = \"a\\\n b\";\n#endif\n",
        "//@ launch f grid=(1)  block=(2)\n__global__ void f() { asm(\"bar;  \" : : ); }",
        "a / /**/ / b; c < /**/ < d; e = '\\'' ;",
        "s = \"unclosed\nint  x;",
        "1/* x */'+ +1",
        "4' g4' *  x",
        "1. x' +  2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        struct strbuf once = STRBUF_INIT;
        source_normalise(&once, sources[i], strlen(sources[i]));
        assert_true(once.len > 0 && once.len <= strlen(sources[i]));
        assert_normalised(strbuf_text(&once), strbuf_text(&once));
        strbuf_release(&once);
    }
}

// Every prefix of a program, in memory of exactly its size.
static void a_source_that_ends_anywhere_is_read_to_its_end_alone(void **state)
{
    static const char source[] =
        "#define A(x) \\\n x // c\n//@ tune N in (1)\nchar *s = \"a\\\"b\"; /* d */ c = '\\'';\n";

    (void)state;
    for (size_t len = 0; len < sizeof(source); len++) {
        struct strbuf out = STRBUF_INIT;
        char *copy = xmalloc(len + 1);
        memcpy(copy, source, len);
        copy = xrealloc(copy, len > 0 ? len : 1, 1);
        source_normalise(&out, copy, len);
        assert_true(out.len <= len);
        free(copy);
        strbuf_release(&out);
    }
}

static void what_stands_in_the_buffer_before_stays(void **state)
{
    struct strbuf out = STRBUF_INIT;

    (void)state;
    strbuf_adds(&out, "x");
    source_normalise(&out, " y ", 3);
    assert_string_equal(strbuf_text(&out), "xy");
    strbuf_release(&out);
}

static void what_is_no_program_does_no_harm(void **state)
{
    static const char *const odd[] = {"",  "/*", "//", "\"",  "'",   "\"\\",
                                      "/", "#",  "\\", "//@", "/* *"};

    (void)state;
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        assert_true(same(odd[i], odd[i]));
    }
    assert_true(same("", "  /* nothing */ // at all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_and_comments_do_not_matter),
        cmocka_unit_test(what_means_something_else_is_something_else),
        cmocka_unit_test(a_comment_that_a_backslash_continues_hides_the_next_line),
        cmocka_unit_test(only_the_first_text_of_a_line_is_a_line_of_a_manifest),
        cmocka_unit_test(a_character_is_a_literal_also_behind_a_word),
        cmocka_unit_test(the_text_keeps_only_blanks_and_line_ends_that_separate),
        cmocka_unit_test(a_normalised_text_is_its_own_normalised_text),
        cmocka_unit_test(a_cubin_is_what_it_is_but_for_its_lines),
        cmocka_unit_test(a_source_that_ends_anywhere_is_read_to_its_end_alone),
        cmocka_unit_test(what_stands_in_the_buffer_before_stays),
        cmocka_unit_test(what_is_no_program_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

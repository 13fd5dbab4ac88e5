#include "problem/normalised_source.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

static bool same(const char *a, const char *b)
{
    struct digest x = source_normalised_digest(a, strlen(a)),
                  y = source_normalised_digest(b, strlen(b));

    return digest_equal(&x, &y);
}

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

static void what_means_something_else_is_something_else(void **state)
{
    static const char *const pair[][2] = {
        {"int x;", "intx;"},
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
        cmocka_unit_test(what_is_no_program_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

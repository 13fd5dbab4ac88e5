// The normalised text of sources in Python: // divides, # begins a comment, indentation counts.
#include "common/mem.h"
#include "tests/problem/normalised.h"
#include <stdlib.h>

#define DEF "def f(x):\n" // what makes a text Python

// Whether the two of each pair are the same program.
static void expect(const char *const (*pair)[2], size_t count, bool alike)
{
    for (size_t i = 0; i < count; i++) {
        if (same(pair[i][0], pair[i][1]) != alike) {
            fail_msg("\"%s\" is %staken for \"%s\"", pair[i][0], alike ? "not " : "", pair[i][1]);
        }
    }
}

static void comments_and_blanks_do_not_matter(void **state)
{
    static const char *const pair[][2] = {
        {DEF "    return x + 1\n", "# a function\n\n" DEF "    return x+1  # one more\n\n\n"},
        {DEF "    y = x // 2 # half", DEF "    y=x//2"},
        {"@triton.jit\n" DEF "    pass", "@ triton.jit\n# so\n" DEF "\n    pass"},
        {DEF "    g(x, 4,\n      n = 8)", DEF "    g(x,4,n=8)"},
        {DEF "    g(x, # first\n      4)", DEF "    g(x,4)"},
        {DEF "    y = x \\\n        + 1", DEF "    y = x + 1"},
        {DEF "    y = a [ 1 : -1 ]\r\n", DEF "    y = a[1:-1]\n"},
        {DEF "    s = f'{x:>{ n }}' # a", DEF "    s=f'{x:>{ n }}'"},
        {DEF "    s = f\"{', '.join(x)}\" # a\n    y", DEF "    s=f\"{', '.join(x)}\"\n    y"},
        {DEF "\t# deeper\n    pass", DEF "    pass"},
        {DEF "    s = 'it\\'s'  # '", DEF "    s = 'it\\'s'"},
    };

    (void)state;
    expect(pair, sizeof(pair) / sizeof(pair[0]), true);
}

static void what_means_something_else_is_something_else(void **state)
{
    static const char *const pair[][2] = {
        {DEF "    return x // 2", DEF "    return x // 4"},
        {DEF "    return x /* 2 */ 3", DEF "    return x"},
        {DEF "    if x:\n        a()\n    b()", DEF "    if x:\n        a()\n        b()"},
        {DEF "    a\n    b", DEF "    a; b"},
        {DEF "    s = 'a # b'", DEF "    s = 'a"},
        {DEF "    s = 'a # b'", DEF "    s = 'a # c'"},
        {DEF "    s = \"'\"  # '\n    y = 1", DEF "    s = \"'\"  # '\n    y = 2"},
        {DEF "    '''a\n    # b\n    '''", DEF "    '''a\n    # c\n    '''"},
        {DEF "    '''a'# b''' + y", DEF "    '''a'# b''' + z"},
        {DEF "    s = '' 'a'", DEF "    s = '''a'''"},
        {DEF "    s = x in 'a'", DEF "    s = xin'a'"},
        {DEF "    s = f\"{d[\"# a\"]}\"", DEF "    s = f\"{d[\"# b\"]}\""},
        {DEF "    s = rf\"{d[\"# a\"]}\"", DEF "    s = rf\"{d[\"# b\"]}\""},
        {DEF "    return not x", DEF "    return notx"},
        {DEF "    return 1 .real", DEF "    return 1.real"},
        {DEF "    s = 'a\\\nb'", DEF "    s = 'a b'"},
        {DEF "    s = f\"{d[\"(\"]}\"\n    if x:\n        a()\n    b()",
         DEF "    s = f\"{d[\"(\"]}\"\n    if x:\n        a()\n        b()"},
        {DEF "    s = f\"{d[\"a  b\"]}\"", DEF "    s = f\"{d[\"a b\"]}\""},
        {DEF "    s = f\"{d[\n'x']} # one\"", DEF "    s = f\"{d[\n'x']} # two\""},
        {DEF "    s = f\"\"\"{d[\"\"\"\n# a\n\"\"\"]}\"\"\"",
         DEF "    s = f\"\"\"{d[\"\"\"\n# b\n\"\"\"]}\"\"\""},
        {DEF "    s = f'{x:\"# a\"}'", DEF "    s = f'{x:\"# b\"}'"},
        {DEF "    s = f'{{' # a'", DEF "    s = f'{{ # a'"},
        {DEF "    s = 'a\\\r\nb # one'\r\n", DEF "    s = 'a\\\r\nb # two'\r\n"},
        {DEF "# c\rN = 64\n", DEF "# c\rN = 128\n"},
        {DEF "    a()\n\f    b()\n", DEF "    a()\nb()\n"},
        {DEF "    a()\n\\\n    b()\n", DEF "    a()\nb()\n"},
        {"# coding: latin-1\nimport a\ns = '\xe9'\n", "import a\ns = '\xe9'\n"},
        {DEF "    return x < = 1", DEF "    return x <= 1"},
        {DEF "    return 1. e5", DEF "    return 1.e5"},
        {"import torch\nN = 128", "import torch\nN = 256"},
    };

    (void)state;
    expect(pair, sizeof(pair) / sizeof(pair[0]), false);
}

static void the_text_keeps_lines_and_their_indentation(void **state)
{
    static const char *const pairs[][2] = {
        {"\n# c\nimport  triton\n\n\ndef f( x ) :\n\tif x :\n\t\treturn x\n",
         "import triton\ndef f(x):\n\tif x:\n\t\treturn x"},
        {"import a\nfrom .. import b\nx = [ 1,\n  2,\n]\ny = 3",
         "import a\nfrom .. import b\nx=[1,2,]\ny=3"},
        {DEF "    s = f'{x!r:>{y}}'  # a", DEF "    s=f'{x!r:>{y}}'"},
        {DEF "    s = f'{x # a", DEF "    s=f'{x # a"},
        {DEF "    return (x", DEF "    return(x"},
        {DEF "  ) ] }\n  y", DEF "  )]}\n  y"},
        {DEF "    s = 'open\n    y", DEF "    s='open\n    y"},
        {DEF "    s = '''open # \n\n", DEF "    s='''open # \n\n"},
        {DEF "    g('open\n  )", DEF "    g('open\n  )"},
        {DEF "    g(f'{x}', # a\n      2)", DEF "    g(f'{x}',2)"},
        {DEF "    \f a  b", DEF "    \f a  b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_normalised(pairs[i][0], pairs[i][1]);
        assert_normalised(pairs[i][1], pairs[i][1]);
    }
}

// Every prefix of a program, in memory of exactly its size.
static void a_source_that_ends_anywhere_is_read_to_its_end_alone(void **state)
{
    static const char source[] =
        "import a\n" DEF "    s = rf'''a\\'{b}''' # c\n    t = (f\"d\", \\\n"
        "      'e') # f\n";

    (void)state;
    for (size_t len = 0; len < sizeof(source); len++) {
        struct strbuf out = STRBUF_INIT;
        char *copy = xmalloc(len > 0 ? len : 1);

        memcpy(copy, source, len);
        source_normalise(&out, copy, len);
        assert_true(out.len <= len);
        free(copy);
        strbuf_release(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_and_blanks_do_not_matter),
        cmocka_unit_test(what_means_something_else_is_something_else),
        cmocka_unit_test(the_text_keeps_lines_and_their_indentation),
        cmocka_unit_test(a_source_that_ends_anywhere_is_read_to_its_end_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

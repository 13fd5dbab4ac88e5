#include "worker/llm/answer_sources.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four headers above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define MAX 4

static char *found[MAX];

static size_t find(const char *text, bool whole)
{
    for (size_t i = 0; i < MAX; i++) {
        free(found[i]);
        found[i] = NULL;
    }
    return answer_sources(text, whole, found, MAX);
}

static void blocks_are_programs(void **state)
{
    (void)state;
    assert_int_equal(
        find("Two ways.\n```c\nint f() {}\n```\nand\n~~~~\nint g() {}\n```\n~~~~\n", true), 2);
    assert_string_equal(found[0], "int f() {}\n");
    // Another fence character does not end the block.
    assert_string_equal(found[1], "int g() {}\n```\n");
    assert_int_equal(find("```\nmake all\n```\n```cuda\n//@ launch f\nvoid f() {}\n```", true), 1);
    assert_string_equal(found[0], "//@ launch f\nvoid f() {}\n");
    // Fenced blocks are preferred to JSON.
    assert_int_equal(find("  ```c\n{1}\n  ```\n{\"source\": \"{2}\"}", true), 1);
}

static void a_cut_off_program_is_none(void **state)
{
    (void)state;
    assert_int_equal(find("```c\n{1}\n```\n```c\n{2", false), 1);
    assert_int_equal(find("```c\n{1}\n```\n```c\n{2}\n", true), 2);
    assert_string_equal(found[1], "{2}\n");
}

static void json_is_understood(void **state)
{
    (void)state;
    assert_int_equal(
        find("{\"candidates\": [{\"source\": \"f() {}\\n\"}, {\"code\": \"g() {}\"}, 7]}", true),
        2);
    assert_string_equal(found[0], "f() {}\n");
    assert_string_equal(found[1], "g() {}");
    assert_int_equal(find("{\"source\": \"nothing\"}", true), 0);
}

static void nothing_and_too_much(void **state)
{
    char *large = malloc(ANSWER_SOURCE_MAX + 64);

    (void)state;
    assert_int_equal(find("", true), 0);
    assert_int_equal(find("I would rather not.", true), 0);
    assert_int_equal(find("```", true), 0);
    assert_int_equal(
        find("```\n{1}\n```\n```\n{2}\n```\n```\n{3}\n```\n```\n{4}\n```\n```\n{5}\n```\n", true),
        MAX);
    memcpy(large, "```\n{", 5);
    memset(large + 5, 'x', ANSWER_SOURCE_MAX);
    memcpy(large + 5 + ANSWER_SOURCE_MAX, "\n```\n", 6);
    assert_int_equal(find(large, true), 0);
    free(large);
    assert_int_equal(find("", true), 0); // frees the programs found before
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_programs),
        cmocka_unit_test(a_cut_off_program_is_none),
        cmocka_unit_test(json_is_understood),
        cmocka_unit_test(nothing_and_too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

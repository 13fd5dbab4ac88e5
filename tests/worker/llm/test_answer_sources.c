#include "worker/llm/answer_sources.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four headers above.
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 4

static char *found[MAX];
static struct answer_wanted wanted; // zeroed: any block with a brace
static struct err why;

static size_t find(const char *text, bool whole)
{
    for (size_t i = 0; i < MAX; i++) {
        free(found[i]);
        found[i] = NULL;
    }
    return answer_sources(&wanted, text, whole, found, MAX, &why);
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

// Finds one program or none, and says why there is none.
static const char *find_one(const struct answer_wanted *want, const char *text)
{
    wanted = *want;
    err_clear(&why);
    size_t count = find(text, true);
    wanted = (struct answer_wanted){.entry = NULL};
    return count == 1 ? found[0] : why.text;
}

static void what_was_thought_holds_no_candidates(void **state)
{
    static const struct answer_wanted any = {.entry = NULL};
    static const struct {
        const char *text, *is;
    } row[] = {
        {"<think>\n```c\n{1}\n```\n</think>\n```c\n{2}\n```", "{2}\n"},
        {"```c\n{1}\n```\nno\n</think>\n```c\n{2}\n```", "{2}\n"}, // begun before the text
        {"<Thinking>```\n{1}\n```</Thinking>\n```\n{2}\n```\n<reasoning>\n```\n{3}\n```", "{2}\n"},
        {"<think>a</think><think>\n```\n{1}\n```\n</think>\n```\n{2}\n```", "{2}\n"},
        {"<think>\n```\n{1}\n```\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        assert_string_equal(find_one(&any, row[i].text), row[i].is);
    }
}

static void candidates_define_the_entry(void **state)
{
    static const struct answer_wanted want = {.entry = "run"};
    static const struct {
        const char *block;
        bool is;
    } row[] = {
        {"void run(int a) {}", true},
        {"static int help(void) { return 1; }\nvoid\nrun /* here */ (int (*f)(void))\n{ }", true},
        {"void run(int a);\nint help() { }", false},
        {"// void run(int a) {}\nint help() { }", false},
        {"char *s = \"void run() {}\"; int help() { }", false},
        {"int help() { run(1); if (run(2)) { } }", false},
        {"void rerun(int a) {} void run2() {}", false},
        {"int run = 0; int help() {}", false},
        {"void (*p)(void) = run(1), (x) { }", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char text[256];

        snprintf(text, sizeof(text), "```c\n%s\n```", row[i].block);
        const char *got = find_one(&want, text);
        if (row[i].is) {
            assert_memory_equal(got, row[i].block, strlen(row[i].block));
        } else if (strcmp(got, "a block does not define run") != 0) {
            fail_msg("%s: %s", row[i].block, got);
        }
    }
}

static void sealed_candidates_have_a_launch(void **state)
{
    static const struct answer_wanted want = {.launches = true};

    (void)state;
    assert_string_equal(
        find_one(&want, "```\n  //@  launch k grid=(1)\n__global__ void k() {}\n```"),
        "  //@  launch k grid=(1)\n__global__ void k() {}\n");
    assert_string_equal(find_one(&want, "```\nint x; //@ launch k\n__global__ void k() {}\n```"),
                        "a block has no //@ launch line and kernel");
    assert_string_equal(find_one(&want, "```\n//@ launches k\n__global__ void k() {}\n```"),
                        "a block has no //@ launch line and kernel");
    assert_string_equal(find_one(&want, "```\n//@ launch k grid=(1)\nvoid k() {}\n```"),
                        "a block has no //@ launch line and kernel");
}

static void candidates_in_python_define_one_of_three(void **state)
{
    static const struct answer_wanted want = {.python = true, .entry = "rows"};
    static const struct {
        const char *block, *why; // NULL: it is one
    } row[] = {
        {"import triton\ndef rows(x, y):\n    pass\n", NULL},
        {"import triton\ndef  rows (x, y):\n    pass\n", NULL},
        {"def custom_kernel(data):\n    return data[0]\n", NULL},
        {"import torch\nclass ModelNew(torch.nn.Module):\n    pass\n", NULL},
        {"import torch\nrows = torch.compile(f)\n", NULL},
        {"from b import c as rows\n", NULL},
        {"import torch\nif torch:\n    def\trows(x): pass\n", NULL},
        {"import triton\ndef rows2(x, y):\n    return rows(x) == 1\n",
         "a block defines neither rows nor custom_kernel or ModelNew"},
        {"import torch\nx = f(rows=1)\ny.rows = 2\n",
         "a block defines neither rows nor custom_kernel or ModelNew"},
        {"pip install triton\n", "a block is no program in Python"},
        {"//@ launch rows grid=(1)\n__global__ void rows() {}\n",
         "a block is no program in Python"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char text[256];

        snprintf(text, sizeof(text), "```python\n%s```", row[i].block);
        assert_string_equal(find_one(&want, text), row[i].why ? row[i].why : row[i].block);
    }
}

static void edits_begin_from_the_program(void **state)
{
    static const char program[] = "void run() { a(); }\nint x;\n";
    const struct answer_wanted want = {
        .entry = "run", .program = program, .program_len = sizeof(program) - 1};
    const struct answer_wanted alone = {.entry = "run"};
    static const char edit[] = "<<<<<<< SEARCH\nint x;\n=======\nint y;\n>>>>>>> REPLACE\n";
    static const char gone[] =
        "<<<<<<< SEARCH\nvoid run() { a(); }\n=======\nint y() {}\n>>>>>>> REPLACE\n";
    char text[512];

    (void)state;
    snprintf(text, sizeof(text), "```\n%s```", edit);
    assert_string_equal(find_one(&want, text), "void run() { a(); }\nint y;\n");
    assert_string_equal(find_one(&want, edit), "void run() { a(); }\nint y;\n"); // no fence
    assert_string_equal(find_one(&alone, text), "there is no program that edits could begin from");
    snprintf(text, sizeof(text), "```\n%s```", gone);
    assert_string_equal(find_one(&want, text), "a block does not define run");
    snprintf(text, sizeof(text), "```\n%s%s```", edit, edit);
    assert_string_equal(find_one(&want, text), "the lines that edit 2 searches for occur 0 times");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_programs),
        cmocka_unit_test(a_cut_off_program_is_none),
        cmocka_unit_test(json_is_understood),
        cmocka_unit_test(nothing_and_too_much),
        cmocka_unit_test(what_was_thought_holds_no_candidates),
        cmocka_unit_test(candidates_define_the_entry),
        cmocka_unit_test(sealed_candidates_have_a_launch),
        cmocka_unit_test(candidates_in_python_define_one_of_three),
        cmocka_unit_test(edits_begin_from_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

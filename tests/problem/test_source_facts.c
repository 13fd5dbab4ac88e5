// What is known of a source before it is compiled.
#include "problem/source_facts.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void release(struct fact *fact, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(fact[i].name);
    }
    free(fact);
}

// The fact of this name; NaN: there is none.
static double fact_of(const char *source, const struct problem *problem, const char *name)
{
    struct fact *fact;
    size_t count = source_facts(source, strlen(source), problem, &fact);
    double ret = NAN;
    for (size_t i = 0; i < count; i++) {
        ret = strcmp(fact[i].name, name) == 0 ? fact[i].value : ret;
    }
    release(fact, count);
    return ret;
}

static void words_and_definitions_are_counted(void **state)
{
    static const char source[] =
        "#define TILE 32\n#define WIDE 0x10u\n#define TILE 64\n#define NAME tile\n"
        "#define F(x) 3\n#define SUM 1 + 2\n#define NEGATIVE -4\n"
        "__shared__ float4 a[TILE]; // for for for\n"
        "for (int i = 0; i < 8; i++) { while (1) { __syncthreads(); atomicAdd(p, 1); } }\n";
    (void)state;
    assert_true(fact_of(source, NULL, "define:TILE") == 32);
    assert_true(fact_of(source, NULL, "define:WIDE") == 16);
    assert_true(fact_of(source, NULL, "define:NEGATIVE") == -4);
    assert_true(isnan(fact_of(source, NULL, "define:NAME")));
    assert_true(isnan(fact_of(source, NULL, "define:F")));
    assert_true(fact_of(source, NULL, "word:loops") == 2); // comments do not count
    assert_true(fact_of(source, NULL, "word:shared") == 1);
    assert_true(fact_of(source, NULL, "word:vectors") == 1);
    assert_true(fact_of(source, NULL, "word:barriers") == 1);
    assert_true(fact_of(source, NULL, "word:atomics") == 1);
    assert_true(isnan(fact_of(source, NULL, "word:matrix")));
    assert_true(isnan(fact_of(source, NULL, "launch:threads")));
}

static void words_and_definitions_of_python_are_counted(void **state)
{
    static const char source[] =
        "import triton\nimport triton.language as tl\n"
        "DEPTH = 0x40  # DEPTH = 8\nROWS: int = 3\nNAME = DEPTH\nHALF = 0.5\nWIDE = 4 * DEPTH\n"
        "@triton.autotune([triton.Config({\"BLOCK_M\": 128, 'BLOCK_N': 64}, num_stages=3)], "
        "key=['M'])\n"
        "@triton.jit\ndef rows(x, n, BLOCK: tl.constexpr = 256, EVEN: tl.constexpr = True):\n"
        "    a, b, c = 1, -2, n\n    for i in range(0, n, BLOCK):\n        a = 7\n"
        "        v = tl.dot(tl.load(x + i // 8, mask=i < n, other=0), v)  # tl.dot\n"
        "def f(x, n):\n    p, q = (5, 6)\n    if p == 9:\n        n <= 4\n"
        "    rows[(n // 2,)](x, n, num_warps=4 if n > 2 else 8, s='t=3', maxnreg=1_000)\n";
    static const struct {
        const char *name;
        double value;
    } rows[] = {
        {"define:DEPTH", 64},    {"define:ROWS", 3},       {"define:BLOCK_M", 128},
        {"define:BLOCK_N", 64},  {"define:num_stages", 3}, {"define:BLOCK", 256},
        {"define:a", 1},         {"define:b", -2},         {"define:p", 5},
        {"define:q", 6},         {"define:other", 0},      {"define:num_warps", 4},
        {"word:loops", 1},       {"word:matrix", 1},       {"word:loads", 1},
        {"word:branches", 2},    {"define:NAME", NAN},     {"define:HALF", NAN},
        {"define:WIDE", NAN},    {"define:c", NAN},        {"define:t", NAN},
        {"define:maxnreg", NAN}, {"define:EVEN", NAN},     {"define:constexpr", NAN},
        {"define:n", NAN},       {"define:s", NAN},        {"define:int", NAN},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double value = fact_of(source, NULL, rows[i].name);
        if (isnan(rows[i].value) ? !isnan(value) : value != rows[i].value) {
            fail_msg("%s is %g instead of %g", rows[i].name, value, rows[i].value);
        }
    }
    // What only looks like a definition of a name is none, or one of another name.
    static const struct {
        const char *line, *name;
        double value;
    } lines[] = {
        {"if big: BLOCK = 64", "BLOCK", 64},
        {"if big: BLOCK = 64", "big", NAN},
        {"else: BLOCK = 32", "BLOCK", 32},
        {"else: BLOCK = 32", "else", NAN},
        {"for n in z: k = 4", "z", NAN},
        {"if x: a, BN = 128, 64", "BN", 64},
        {"c = 1; d, e = 2, 3", "e", 3},
        {"self.a, self.b = 1, 2", "b", NAN},
        {"x[0], N = 4, 8", "N", NAN},
        {"*p, q = 1, 2, 3", "q", NAN},
        {"x = {'tile size': 64}", "size", NAN},
        {"N = (4) * 32", "N", NAN},
        {"a, b = (1, 2), 3", "b", NAN},
        {"grid = (128, 1)", "grid", NAN},
        {"sizes = 64, 32", "sizes", NAN},
        {"N = 0 or 128", "N", NAN},
        {"N = 8 if big else 4", "N", 8},
        {"f = lambda mode=\"N\": 128", "N", NAN},
        {"R: int | None = 5", "None", NAN},
        {"s = f\"{x}\"  # N=64, slower", "N", NAN},
        {"g(f\"{x}\", # c\n  y, sep=4)", "sep", 4},
        {"x = f(a, b == 4)", "b", NAN},
        {"x = a[N: 4]", "N", NAN},
        {"x = y if z else{'N': 4}", "N", 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        char *text = xasprintf("import a\n%s\n", lines[i].line);
        char *name = xasprintf("define:%s", lines[i].name);
        double value = fact_of(text, NULL, name);

        if (isnan(lines[i].value) ? !isnan(value) : value != lines[i].value) {
            fail_msg("%s: %s is %g instead of %g", lines[i].line, name, value, lines[i].value);
        }
        free(text);
        free(name);
    }
    assert_true(isnan(fact_of("float dot(float a);", NULL, "word:matrix")));
}

static void blanks_and_comments_change_nothing(void **state)
{
    static const char *const pair[] = {"#define N 4\nint f(int a) { return a+1; }",
                                       "#define  N  4\n/* so */ int f( int a )\n{ return a + 1; }"};
    struct fact *fact[2];
    size_t count[2];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        count[i] = source_facts(pair[i], strlen(pair[i]), NULL, &fact[i]);
    }
    assert_int_equal(count[0], count[1]);
    for (size_t i = 0; i < count[0]; i++) {
        assert_string_equal(fact[0][i].name, fact[1][i].name);
        assert_true(fact[0][i].value == fact[1][i].value);
    }
    release(fact[0], count[0]);
    release(fact[1], count[1]);
    assert_true(fact_of(pair[0], NULL, "words") == 8);
    assert_true(fact_of("x = 12 + y3 * 0x1f;", NULL, "numbers") == 2);
}

// Programs that differ only in a word that nobody listed still differ.
static void other_words_are_told_apart(void **state)
{
    size_t different = 0;
    (void)state;
    for (int i = 0; i < 16; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "hash:%d", i);
        different += fact_of("left(x);", NULL, name) != fact_of("right(x);", NULL, name);
    }
    assert_int_equal(different, 2);
}

static void a_launch_is_evaluated_for_the_first_benchmark_case(void **state)
{
    static const char json[] =
        "{\"name\":\"copy\",\"title\":\"Copy\",\"license\":\"MIT\",\"language\":\"cuda\","
        "\"params\":[{\"name\":\"n\",\"type\":\"int\"}],\"tensors\":["
        "{\"name\":\"x\",\"direction\":\"in\",\"dtype\":\"f32\",\"shape\":[\"n\"],"
        "\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
        "{\"name\":\"y\",\"direction\":\"out\",\"dtype\":\"f32\",\"shape\":[\"n\"],\"tolerance\":4}"
        "],"
        "\"cases\":{\"check\":[{\"n\":64}],\"bench\":[{\"params\":{\"n\":1024},\"weight\":1}]},"
        "\"cache\":\"cold\",\"work\":{\"flops\":\"n\",\"bytes\":\"8*n\"}}";
    static const char source[] =
        "#define BLOCK 128\n//@ launch first grid=(n/BLOCK) block=(BLOCK, 2) args=(x, y) smem=256\n"
        "//@ launch second grid=(1) block=(32) args=(x, y)\nvoid first();\n";
    struct problem *problem;
    struct err err = ERR_INIT;
    (void)state;
    if (problem_parse(&problem, json, strlen(json), "problem.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(fact_of(source, problem, "launch:launches") == 2);
    assert_true(fact_of(source, problem, "launch:block_x") == 128);
    assert_true(fact_of(source, problem, "launch:block_y") == 2);
    assert_true(fact_of(source, problem, "launch:grid_x") == 8);
    assert_true(fact_of(source, problem, "launch:smem") == 256);
    assert_true(fact_of(source, problem, "launch:blocks") == 9);
    assert_true(fact_of(source, problem, "launch:threads") == 8 * 256 + 32);
    // A manifest that cannot be read leaves the rest.
    assert_true(isnan(fact_of("//@ launch\n#define A 2\n", problem, "launch:launches")));
    assert_true(fact_of("//@ launch\n#define A 2\n", problem, "define:A") == 2);
    problem_free(problem);
}

static void there_are_never_too_many(void **state)
{
    struct strbuf text = STRBUF_INIT;
    struct fact *fact;
    (void)state;
    for (int i = 0; i < 400; i++) {
        strbuf_addf(&text, "#define N%d %d\n", i, i);
    }
    size_t count = source_facts(strbuf_text(&text), text.len, NULL, &fact);
    assert_true(count > 32 && count <= SOURCE_FACTS_MAX);
    release(fact, count);
    strbuf_release(&text);
    count = source_facts("", 0, NULL, &fact);
    assert_true(count > 0);
    release(fact, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_definitions_are_counted),
        cmocka_unit_test(words_and_definitions_of_python_are_counted),
        cmocka_unit_test(blanks_and_comments_change_nothing),
        cmocka_unit_test(other_words_are_told_apart),
        cmocka_unit_test(a_launch_is_evaluated_for_the_first_benchmark_case),
        cmocka_unit_test(there_are_never_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

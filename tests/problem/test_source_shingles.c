// How alike sources are: layout does not count, every token does, and the order of both does not
// matter.
#include "problem/source_shingles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// cmocka.h needs the headers above.
#include <cmocka.h>

static const char matmul[] =
    "void f(const float *A, const float *B, float *C, int n) {\n"
    "  for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++) {\n"
    "      float s = 0;\n      for (int k = 0; k < n; k++) s += A[i*n+k] * B[k*n+j];\n"
    "      C[i*n+j] = s;\n    }\n}\n";

static double alike(const char *a, const char *b)
{
    struct source_shingles x, y;

    source_shingles_make(&x, a, strlen(a));
    source_shingles_make(&y, b, strlen(b));
    double ret = source_shingles_similarity(&x, &y);
    assert_true(ret == source_shingles_similarity(&y, &x));
    source_shingles_release(&x);
    source_shingles_release(&y);
    return ret;
}

static void layout_and_comments_do_not_count(void **state)
{
    (void)state;
    assert_true(alike("int f(){return 1;}", "/* one */ int f ( )\n{\n\treturn 1; // 1\n}\n") == 1);
    assert_true(alike("", " // nothing\n") == 1);
    assert_true(alike("a b c", "a  b\nc") == 1); // fewer tokens than a shingle
}

static void every_token_counts(void **state)
{
    static const struct {
        const char *a, *b;
    } row[] = {{"x = 10;", "x = 11;"},          {"a b c", "a b d"},        {"a b c", "a b"},
               {"f(\"a b\");", "f(\"a  b\");"}, {"x = 1.5f;", "x = 1.5;"}, {"", "x"}};
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        assert_true(alike(row[i].a, row[i].b) < 1);
    }
}

static void a_small_change_is_nearer_than_a_large_one(void **state)
{
    char small[sizeof(matmul)], other[sizeof(matmul)];

    (void)state;
    memcpy(small, matmul, sizeof(matmul));
    memcpy(other, matmul, sizeof(matmul));
    *strstr(small, "float s = 0") = 'F';
    for (char *at = other; (at = strpbrk(at, "nkC")); at++) {
        *at = 'q';
    }
    assert_true(alike(matmul, small) > 0.8);
    assert_true(alike(matmul, small) > alike(matmul, other));
    assert_true(alike(matmul, other) > alike(matmul, "int main(void) { return 0; }"));
    assert_true(alike(matmul, "int main(void) { return 0; }") < 0.1);
}

static void any_bytes_have_shingles(void **state)
{
    static const char bytes[] = "\"never closed\\\n'\\\0 behind \xff\xfe \"";
    struct source_shingles shingles;

    (void)state;
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        source_shingles_make(&shingles, bytes, len);
        assert_true(shingles.count <= len);
        for (size_t i = 1; i < shingles.count; i++) {
            assert_true(shingles.hash[i - 1] < shingles.hash[i]);
        }
        source_shingles_release(&shingles);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_and_comments_do_not_count),
        cmocka_unit_test(every_token_counts),
        cmocka_unit_test(a_small_change_is_nearer_than_a_large_one),
        cmocka_unit_test(any_bytes_have_shingles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

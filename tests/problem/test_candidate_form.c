// Which form a source of a CUDA problem has, and what its files are called.
#include "problem/candidate_form.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void is(const char *source, enum candidate_form form)
{
    enum candidate_form found = candidate_form(source, strlen(source));

    if (found != form) {
        fail_msg("form %d instead of %d: %s", (int)found, (int)form, source);
    }
}

static void python_is_told_by_its_lines(void **state)
{
    (void)state;
    is("import torch\n", FORM_PYTHON);
    is("# a comment\n\nfrom torch import nn\r\n", FORM_PYTHON);
    is("\"\"\"What it is.\"\"\"\nimport triton.language as tl", FORM_PYTHON);
    is("class ModelNew(torch.nn.Module):\n    pass\n", FORM_PYTHON);
    is("@triton.jit\ndef k(x):\n    pass\n", FORM_PYTHON);
    is("async def f():\n    pass\n", FORM_PYTHON);
    is("def softmax(x, y)\n", FORM_PYTHON); // with a syntax error
    // CUDA in a string of Python.
    is("import torch\nsource = '''\nextern \"C\" __global__ void k() {}\nk<<<1, 1>>>();\n'''\n",
       FORM_PYTHON);
}

static void a_manifest_makes_a_source_sealed(void **state)
{
    (void)state;
    is("//@ launch k grid=(1) block=(1) args=(x)\n", FORM_SEALED);
    is("#define N 1\n  //@ tune N in (1, 2)\nimport x\n", FORM_SEALED);
}

static void cuda_with_a_launch_of_its_own_has_a_launcher(void **state)
{
    (void)state;
    is("extern \"C\" void p(float *x) { k<<<1, 1>>>(x); }\n", FORM_LAUNCHER);
    is("/*\nfrom the paper on scans,\nimport of which is small;\n*/\n"
       "class A : public B {\nclass C {};\nextern \"C\" void p() { k<<<1, 1>>>(); }\n",
       FORM_LAUNCHER);
}

// These are refused as sealed sources, with a sentence about the manifest that they lack.
static void anything_else_is_sealed(void **state)
{
    (void)state;
    is("", FORM_SEALED);
    assert_int_equal(candidate_form(NULL, 0), FORM_SEALED);
    is("extern \"C\" __global__ void k() {}\n", FORM_SEALED);
    is("k<<<1, 1>>>();\n", FORM_SEALED);
    is("import std;\n", FORM_SEALED);
    is("  import torch\n", FORM_SEALED);
    assert_int_equal(candidate_form("\0import torch\n", 14), FORM_SEALED);
}

static void files_are_called_by_their_form(void **state)
{
    (void)state;
    assert_string_equal(candidate_ending("cu", "import torch\n", 13), "py");
    assert_string_equal(candidate_ending("cu", "", 0), "cu");
    assert_string_equal(candidate_ending("c", "import torch\n", 13), "c");
    assert_true(candidate_is_file("a.cu", "cu"));
    assert_true(candidate_is_file("a.py", "cu"));
    assert_true(candidate_is_file("a.b.c", "c"));
    assert_false(candidate_is_file("a.py", "c"));
    assert_false(candidate_is_file(".py", "cu"));
    assert_false(candidate_is_file("py", "cu"));
    assert_false(candidate_is_file("a.cuh", "cu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_is_told_by_its_lines),
        cmocka_unit_test(a_manifest_makes_a_source_sealed),
        cmocka_unit_test(cuda_with_a_launch_of_its_own_has_a_launcher),
        cmocka_unit_test(anything_else_is_sealed),
        cmocka_unit_test(files_are_called_by_their_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Compiles sealed sources with the real NVRTC in the real jail. Skipped without a CUDA compiler.
#include "executor/cpu/child.h"
#include "executor/gpu/compile/compile.h"
#include "executor/gpu/compile/cubin.h"
#include "proto/verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/executor/gpu/compile/compile_fixture.h"

static double feature(const struct compile_outcome *outcome, const char *name)
{
    for (size_t i = 0; i < outcome->compiled->features_count; i++) {
        if (strcmp(outcome->compiled->features[i].name, name) == 0) {
            return outcome->compiled->features[i].value;
        }
    }
    fail_msg("no feature %s", name);
    return 0;
}

static void a_good_source_gives_an_object_and_features(void **state)
{
    struct compile_outcome outcome;
    struct cuda_object object;

    compile(state, LAUNCH BODY, 30, &outcome);
    read_object(&outcome, &object);
    assert_int_equal(object.variants_count, 1);
    assert_string_equal(object.variants[0].kernels[0].symbol, "scale");
    assert_int_equal(object.variants[0].kernels[0].sizes_count, 4);
    assert_int_equal(object.variants[0].kernels[0].sizes[0], 8);
    assert_int_equal(object.variants[0].kernels[0].sizes[2], 4);
    assert_int_equal(object.variants[0].globals_count, 0);
    assert_true(feature(&outcome, "registers") >= 1);
    assert_true(feature(&outcome, "ptx_load_global") >= 1);
    assert_true(feature(&outcome, "grid_blocks") == 4);
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &outcome);
}

// The text of this machine's version of nvdisasm is understood.
static void the_machine_code_is_read_where_there_is_a_disassembler(void **state)
{
    struct fixture *fixture = *state;
    struct compile_outcome outcome;

    compile(state, LAUNCH BODY, 30, &outcome);
    if (!fixture->jail.toolkit.nvdisasm) {
        message_clear(&compile_outcome_message, &outcome);
        printf("skipped because the CUDA toolkit has no nvdisasm\n");
        skip();
    }
    assert_true(feature(&outcome, "sass_total") >= 8);
    assert_true(feature(&outcome, "sass_ldg") == 1);
    assert_true(feature(&outcome, "sass_stg") == 1);
    assert_true(feature(&outcome, "sass_bar") == 0);
    message_clear(&compile_outcome_message, &outcome);
}

static void a_specialised_source_is_compiled_once_for_each_value(void **state)
{
    struct compile_outcome outcome;

    compile(state,
            "//@ specialize n\n//@ launch scale grid=(1) block=(256) args=(x, y)\n"
            "extern \"C\" __global__ void scale(const float *x, float *y)\n"
            "{ for (int i = threadIdx.x; i < KCAST_n; i += 256) y[i] = x[i]; }\n",
            30, &outcome);
    struct cuda_object object;
    read_object(&outcome, &object);
    assert_int_equal(object.variants_count, 2); // 1000 and 100
    assert_int_equal(object.variants[0].values[0], 1000);
    assert_int_equal(object.variants[1].values[0], 100);
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &outcome);
}

static void variables_that_outlive_a_launch_are_listed(void **state)
{
    struct compile_outcome outcome;

    compile(state,
            "__device__ int launches; __constant__ float two = 2;\n" LAUNCH
            "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"
            "{ if (threadIdx.x == 0) launches++; y[0] = a * two * x[n - 1] + launches; }\n",
            30, &outcome);
    struct cuda_object object;
    read_object(&outcome, &object);
    assert_int_equal(object.variants[0].globals_count, 1);
    assert_string_equal(object.variants[0].globals[0].symbol, "launches");
    assert_int_equal(object.variants[0].globals[0].size, 4);
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &outcome);
}

static void templates_and_habitual_headers_compile(void **state)
{
    struct compile_outcome outcome;

    compile(
        state,
        "#include <stdint.h>\n#include <cmath>\n#include <cfloat>\n#include <cassert>\n"
        "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <mma.h>\n"
        "#include <cooperative_groups.h>\n"
        "//@ launch scale<128> grid=(ceildiv(n, 128)) block=(128) args=(x, y, n, a)\n"
        "template <int N> __global__ void scale(const float *x, float *y, int64_t n, double a)\n"
        "{ int64_t i = (int64_t)blockIdx.x * N + threadIdx.x; assert(n > 0);\n"
        "  if (i < n) y[i] = fmaxf((float)(a * x[i]), -FLT_MAX); }\n",
        30, &outcome);
    struct cuda_object object;
    read_object(&outcome, &object);
    assert_string_equal(object.variants[0].kernels[0].name, "scale<128>");
    assert_int_equal(object.variants[0].kernels[0].sizes[2], 8);
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &outcome);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
    refused(state, LAUNCH "extern \"C\" __global__ void scale() { y = ; }\n", VERDICT_COMPILE_ERROR,
            "candidate.cu(2): error");
    refused(state, "//@ launch scale grid=(1) block=(1) args=(x, y)\n" BODY, VERDICT_COMPILE_ERROR,
            "candidate.cu:1: scale has 4 parameters");
    refused(state,
            "//@ launch scale grid=(1) block=(1) args=(n, y, n, a)\n"
            "extern \"C\" __global__ void scale(short x, float *y, int n, float a) {}\n",
            VERDICT_COMPILE_ERROR, "argument 1 does not fit");
    refused(state, BODY, VERDICT_COMPILE_ERROR, "launch");
    refused(state, "//@ launch other grid=(1) block=(1) args=(x)\n" BODY, VERDICT_COMPILE_ERROR,
            "error");
}

static void what_candidates_may_not_use_is_rejected(void **state)
{
    refused(state,
            LAUNCH "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"
                   "{ printf(\"%d\\n\", n); y[0] = a * x[0]; }\n",
            VERDICT_REJECTED, "printf");
    refused(state,
            LAUNCH "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"
                   "{ float *p = (float *)malloc(n); p[0] = x[0]; y[0] = a * p[0]; }\n",
            VERDICT_REJECTED, "malloc");
}

static void the_jail_has_none_of_the_hosts_files(void **state)
{
    refused(state, "#include \"/etc/passwd\"\n" LAUNCH BODY, VERDICT_COMPILE_ERROR, "/etc/passwd");
    refused(state, "#include \"/proc/self/environ\"\n" LAUNCH BODY, VERDICT_COMPILE_ERROR,
            "/proc/self/environ");
}

#define ENDLESS                                                                                    \
    LAUNCH "template <int A, int B> struct deep { static const long v = deep<A - 1, B>::v +"       \
           " deep<A - 1, B + (1 << A)>::v; };\n"                                                   \
           "template <int B> struct deep<0, B> { static const long v = B; };\n"                    \
           "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"        \
           "{ y[0] = deep<24, 0>::v; }\n"

static void a_source_that_takes_for_ever_is_stopped_and_the_next_is_not_harmed(void **state)
{
    refused_within(state, ENDLESS, 0.5, VERDICT_COMPILE_ERROR,
                   "compiling it takes longer than the 0.5 seconds of processor time allowed");
    a_good_source_gives_an_object_and_features(state);
}

static void a_compiler_that_only_lasts_is_the_hosts_fault(void **state)
{
    struct compile_outcome outcome;
    struct err err = ERR_INIT;

    assert_int_equal(try_compile(state, ENDLESS, 1e6, 0.1, 4096, NULL, &outcome, &err),
                     ERR_TIMED_OUT);
    if (!strstr(err.text, "has not ended after 0.1 seconds") || !strstr(err.text, "this host")) {
        fail_msg("%s", err.text);
    }
    a_good_source_gives_an_object_and_features(state);
}

static void variants_share_a_limit_too(void **state)
{
    refused_within(state, LAUNCH BODY, 1e-6, VERDICT_COMPILE_ERROR,
                   "compiling its variants takes longer than the 4e-06 seconds of processor time");
}

#define KERNEL "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"
// 16 and 65536 times the argument, and 65536 times what X is each time.
#define TIMES                                                                                      \
    "#define A(x) x x x x x x x x x x x x x x x x\n"                                               \
    "#define B(x) A(A(A(A(x))))\n"                                                                 \
    "#define X1 X X X X X X X X X X X X X X X X\n"                                                 \
    "#define X2 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1\n"                                 \
    "#define X3 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2\n"                                 \
    "#define X4 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3\n"

static const struct {
    const char *name, *source;
    uint64_t memory_mib;
    const char *words; // part of the reason
} bomb[] = {
    {"templates",
     LAUNCH "template <int A, int B> struct deep { static const long v = deep<A - 1, B>::v +"
            " deep<A - 1, B + (1 << A)>::v; };\n"
            "template <int B> struct deep<0, B> { static const long v = B; };\n" KERNEL
            "{ y[0] = deep<26, 0>::v; }\n",
     512, "compiling it takes more than the 512 MiB of memory allowed"},
    {"templates without an end",
     LAUNCH "template <int N> struct more { static const int v = more<N + 1>::v + 1; };\n" KERNEL
            "{ y[0] = more<0>::v; }\n",
     512, "excessive recursion"},
    {"a constant that takes for ever",
     LAUNCH "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; i++) s += i; return s; "
            "}\ntemplate <long N> struct is { static const long v = N; };\n" KERNEL
            "{ y[0] = is<f(100000000000)>::v; }\n",
     512, "constant value"},
    {"macros", LAUNCH TIMES KERNEL "{ int q = 0; B(B(q++;)) y[0] = q; }\n", 512,
     "compiling it takes more than the 512 MiB of memory allowed"},
    // The compiler's back end ends the process, and its words are on stderr only.
    {"an array", LAUNCH "__device__ int big[1l << 36] = {1};\n" KERNEL "{ y[0] = big[n]; }\n", 512,
     "compiling it takes more than the 512 MiB of memory allowed"},
    {"registers", LAUNCH KERNEL "{ asm(\".reg .b32 t<900000000>;\"); y[0] = 1; }\n", 2048,
     "compiling it takes more than the 2048 MiB of memory allowed"},
    {"assembler", LAUNCH KERNEL "{ asm(\"nonsense.x %r1;\"); y[0] = 1; }\n", 512,
     "Unknown modifier '.x'"},
    {"warnings before an error",
     LAUNCH TIMES "#define W _Pragma(\"nv_diag_warning 177\") { int unused; }\n" KERNEL
                  "{ A(A(A(W))) int bad = ; }\n",
     1024, "error: expected an expression"},
    {"an escape sequence",
     LAUNCH "#error \x1b[2J\xc2\x9b"
            "1m\xe2\x80\xae\n" KERNEL "{}\n",
     512, "#error directive: ?[2J??1m???"},
};

static void what_exhausts_the_compiler_is_refused_with_its_limit(void **state)
{
    for (size_t i = 0; i < sizeof(bomb) / sizeof(bomb[0]); i++) {
        struct compile_outcome outcome;

        // A sanitizer's child, which the compiler is a part of, has no limit of memory.
        if (SANDBOX_SANITIZED && strstr(bomb[i].words, "of memory allowed")) {
            continue;
        }
        compile_with(state, bomb[i].source, 60, bomb[i].memory_mib, NULL, &outcome);
        const char *reason = outcome.compiled->reason ? outcome.compiled->reason : "";
        if (outcome.compiled->verdict != VERDICT_COMPILE_ERROR || !strstr(reason, bomb[i].words)) {
            fail_msg("%s: %s (%s) instead of \"%s\"", bomb[i].name,
                     verdict_name(outcome.compiled->verdict), reason, bomb[i].words);
        }
        message_clear(&compile_outcome_message, &outcome);
    }
}

// What NVRTC makes is larger than the memory in which the jail gives it back.
static void an_object_that_is_too_large_is_the_sources_fault(void **state)
{
    refused(state,
            LAUNCH "__device__ int big[6000000] = {1};\n"
                   "__device__ int more[8000000] = {1};\n"
                   "__device__ int most[9000000] = {1};\n" KERNEL
                   "{ y[0] = big[n] + more[n] + most[n]; }\n",
            VERDICT_COMPILE_ERROR, "its object is larger than the 32 MiB allowed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_source_gives_an_object_and_features, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_machine_code_is_read_where_there_is_a_disassembler,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_specialised_source_is_compiled_once_for_each_value,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(variables_that_outlive_a_launch_are_listed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(templates_and_habitual_headers_compile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_said_with_its_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_candidates_may_not_use_is_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_jail_has_none_of_the_hosts_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_exhausts_the_compiler_is_refused_with_its_limit,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_object_that_is_too_large_is_the_sources_fault, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_source_that_takes_for_ever_is_stopped_and_the_next_is_not_harmed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_compiler_that_only_lasts_is_the_hosts_fault, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(variants_share_a_limit_too, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

static const char problem_text[] =
    "{\"name\": \"scale\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}],"
    "\"cases\": {\"check\": [{\"n\": 100, \"a\": 2}, {\"n\": 1000, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 1000, \"a\": 3}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

#define LAUNCH "//@ launch scale grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n"
#define BODY                                                                                       \
    "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"               \
    "{ int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = a * x[i]; }\n"

struct fixture {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
    bool there;
    char reason[ERR_TEXT_MAX];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    fixture->zygote.socket = -1;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        snprintf(fixture->reason, sizeof(fixture->reason), "%s", err.text);
    } else {
        assert_int_equal(sandbox_filter_build(&fixture->filter, STAGE_COMPILE, &err), 0);
        assert_int_equal(zygote_create(&fixture->zygote, cuda_jail_child, &fixture->filter, &err),
                         0);
        cuda_jail_init(&fixture->jail, &fixture->zygote, &toolkit, false);
        fixture->there = true;
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->there) {
        cuda_jail_release(&fixture->jail);
        zygote_release(&fixture->zygote);
        sandbox_filter_release(&fixture->filter);
    }
    free(fixture);
    return 0;
}

static void compile(void **state, const char *source, double seconds, struct compile_outcome *ret)
{
    struct fixture *fixture = *state;

    if (!fixture->there) {
        printf("skipped because %s\n", fixture->reason);
        skip();
    }
    struct compile_plan plan;
    message_init(&compile_plan_message, &plan);
    plan.source = (struct bytes){.data = (unsigned char *)strdup(source), .len = strlen(source)};
    plan.problem =
        (struct bytes){.data = (unsigned char *)strdup(problem_text), .len = strlen(problem_text)};
    plan.header = strdup("");
    plan.glue = strdup("");
    plan.name = strdup("candidate.cu");
    plan.language = strdup("cuda");
    plan.target = strdup("sm_90");
    plan.max_seconds = seconds;
    plan.max_memory = (uint64_t)4 << 30;
    plan.max_output = (uint64_t)32 << 20;
    struct err err = ERR_INIT;
    int rc = compile_cuda(&plan, &fixture->jail, ret, &err);
    if (rc != 0) {
        print_message("%s\n", err.text);
    }
    assert_int_equal(rc, 0);
    message_clear(&compile_plan_message, &plan);
}

static void refused_within(void **state, const char *source, double seconds, enum verdict verdict,
                           const char *words)
{
    struct compile_outcome outcome;

    compile(state, source, seconds, &outcome);
    if (outcome.compiled->verdict != verdict || !strstr(outcome.compiled->reason, words)) {
        print_message("%s: %s\n", verdict_name(outcome.compiled->verdict),
                      outcome.compiled->reason);
    }
    assert_int_equal(outcome.compiled->verdict, verdict);
    assert_non_null(strstr(outcome.compiled->reason, words));
    assert_int_equal(outcome.object.len, 0);
    message_clear(&compile_outcome_message, &outcome);
}

static void refused(void **state, const char *source, enum verdict verdict, const char *words)
{
    refused_within(state, source, 30, verdict, words);
}

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

static void read_object(const struct compile_outcome *outcome, struct cuda_object *ret)
{
    if (outcome->compiled->verdict != VERDICT_NONE) {
        print_message("%s\n",
                      outcome->compiled->log ? outcome->compiled->log : outcome->compiled->reason);
    }
    assert_int_equal(outcome->compiled->verdict, VERDICT_NONE);
    struct err err = ERR_INIT;
    assert_int_equal(
        message_read(&cuda_object_message, ret, outcome->object.data, outcome->object.len, &err),
        0);
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

static void a_source_that_takes_for_ever_is_stopped_and_the_next_is_not_harmed(void **state)
{
    refused_within(state,
                   LAUNCH
                   "template <int A, int B> struct deep { static const long v = deep<A - 1, B>::v +"
                   " deep<A - 1, B + (1 << A)>::v; };\n"
                   "template <int B> struct deep<0, B> { static const long v = B; };\n"
                   "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"
                   "{ y[0] = deep<24, 0>::v; }\n",
                   2, VERDICT_COMPILE_ERROR, "");
    a_good_source_gives_an_object_and_features(state);
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
        cmocka_unit_test_setup_teardown(
            a_source_that_takes_for_ever_is_stopped_and_the_next_is_not_harmed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

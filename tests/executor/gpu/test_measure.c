// Whole measurements on the fake GPU, in this process, with an oracle process: every verdict and
// the sentence that explains it. The objects are made here without a compiler. Only the executor's
// own kernels need one; without a compiler every test is skipped.
#include "executor/gpu/compile/toolkit.h"
#include "executor/gpu/harness.h"
#include "executor/gpu/measure.h"
#include "proto/verdict.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_object.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROBLEM(check)                                                                             \
    "{\"name\": \"p\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","      \
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"    \
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"        \
    "[\"n\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"            \
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"            \
    "\"tolerance\": 4}], \"cases\": {\"check\": [" check "],"                                      \
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}]},"                        \
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}"
#define CHECK "{\"n\": 300, \"a\": 2}"
#define LAUNCH(kernel)                                                                             \
    "//@ launch " kernel " grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n"
#define SIZES " 8 8 4 4"
#define REFERENCE "//@ launch fk_ref_scale grid=(1) block=(256) args=(x, y, y_scale, n, a)\n"

struct fixture {
    struct gpu gpu;
    struct oracle oracle;
    bool open;
    struct measure_plan plan; // of the next run, which sets the candidate
    struct measure_outcome outcome;
    struct err err;
};

static struct bytes text(const char *from)
{
    return bytes_copy(from, strlen(from));
}

// A candidate with one launch. The name of the kernel tells the fake GPU what it does.
static struct bytes kernel(const char *name)
{
    char *source =
        xasprintf("//@ launch %s grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n", name);
    char *kernels = xasprintf("%s" SIZES, name);
    struct bytes object = gpu_object(source, kernels);

    free(source);
    free(kernels);
    return object;
}

static void replace(struct bytes *to, struct bytes taken)
{
    bytes_clear(to);
    *to = taken;
}

static void close_gpu(struct fixture *fixture)
{
    if (fixture->open) {
        oracle_stop(&fixture->oracle);
        gpu_close(&fixture->gpu);
        fixture->open = false;
    }
}

// Opens oracle and GPU in the same order as executor/gpu/serve.c.
static int open_gpu(struct fixture *fixture, const char *settings)
{
    close_gpu(fixture);
    gpu_fake_set(settings);
    fixture->err = (struct err)ERR_INIT;
    fixture->open = true;
    int rc = oracle_start(&fixture->oracle, "0", &fixture->err);
    if (rc == 0) {
        rc = gpu_open(&fixture->gpu, "0", &fixture->err);
    }
    return rc == 0 ? oracle_ready(&fixture->oracle, &fixture->err) : rc;
}

static void must_open(struct fixture *fixture, const char *settings)
{
    if (open_gpu(fixture, settings) != 0) {
        fail_msg("%s", fixture->err.text);
    }
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct measure_plan *plan = &fixture->plan;

    message_init(&measure_plan_message, plan);
    plan->problem = text(PROBLEM(CHECK));
    plan->reference = gpu_object(REFERENCE, "fk_ref_scale 8 8 8 4 8");
    plan->baseline = kernel("fk_scale");
    plan->seed = 5;
    plan->max_seconds = 1e6; // so that the clock of this machine never ends a paired timing
    plan->launch_seconds = 10;
    message_init(&measure_outcome_message, &fixture->outcome);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    close_gpu(fixture);
    message_clear(&measure_outcome_message, &fixture->outcome);
    message_clear(&measure_plan_message, &fixture->plan);
    free(fixture);
    return 0;
}

static int run(struct fixture *fixture, struct bytes candidate_taken)
{
    struct gpu_harness harness = {.gpu = &fixture->gpu, .oracle = &fixture->oracle};

    replace(&fixture->plan.candidate, candidate_taken);
    fixture->err = (struct err)ERR_INIT;
    struct measure_outcome outcome;
    int rc = measure_run(&measure_gpu, &harness, &fixture->plan, &outcome, &fixture->err);
    if (rc == 0) {
        message_clear(&measure_outcome_message, &fixture->outcome);
        fixture->outcome = outcome;
    }
    return rc;
}

static const struct result *result_of(struct fixture *fixture, struct bytes candidate_taken)
{
    if (run(fixture, candidate_taken) != 0) {
        fail_msg("%s", fixture->err.text);
    }
    return fixture->outcome.result;
}

// Expects a verdict, and its reason to contain the words. With "" there must be no reason.
static void becomes(struct fixture *fixture, struct bytes candidate_taken, enum verdict verdict,
                    const char *words, bool retire)
{
    const struct result *result = result_of(fixture, candidate_taken);
    const char *reason = result->reason ? result->reason : "";

    if (result->verdict != verdict || (words[0] == '\0') != (reason[0] == '\0') ||
        !strstr(reason, words) || fixture->outcome.retire != retire) {
        fail_msg("%s%s: %s; expected %s: %s", verdict_name(result->verdict),
                 fixture->outcome.retire ? ", retired" : "", reason, verdict_name(verdict), words);
    }
}

// Expects an error, because a failure that is not the candidate's has no outcome.
static void fails(struct fixture *fixture, struct bytes candidate_taken, const char *words)
{
    int status = run(fixture, candidate_taken);

    if (status == 0 || !strstr(fixture->err.text, words)) {
        fail_msg("%s; expected: %s", status == 0 ? "no error" : fixture->err.text, words);
    }
}

// ---- verdicts of timing ----

static void times_decide(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "noise=0.2");
    becomes(fixture, kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
    const struct result *result = fixture->outcome.result;
    assert_true(fabs(exp2(result->speedup->log2) - 1 / 0.72) < 0.05); // an event costs 1.25 us
    assert_true(result->checks > 0 && result->launches >= 16 && result->cases_count == 1);
    assert_string_equal(result->cases[0].params, "n=2000 a=2.5");
    assert_true(result->max_error <= 1 && result->error_bound == 4);
    becomes(fixture, kernel("fk_scale_slow10"), VERDICT_SLOWER, "", false);
    becomes(fixture, kernel("fk_scale_late"), VERDICT_SLOWER, "", false);
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    becomes(fixture, kernel("fk_scale_nondet"), VERDICT_EQUIVALENT, "", false);
    assert_null(fixture->outcome.result->control);
}

static void what_noise_hides_is_inconclusive(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "noise=20");
    becomes(fixture, kernel("fk_scale"), VERDICT_INCONCLUSIVE, "", false);
    assert_true(fixture->outcome.result->launches >= 256);
    fixture->plan.max_seconds = 0;
    becomes(fixture, kernel("fk_scale"), VERDICT_INCONCLUSIVE, "no decision within 0 sec", false);
}

static void a_gpu_that_slows_down_changes_no_verdict(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "noise=0.1;fault=slow:30:40"); // while timing is under way
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    must_open(fixture, "noise=0.1;fault=slow:30:40");
    becomes(fixture, kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
}

static void the_control_measures_the_baseline_against_itself(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "noise=0.2");
    fixture->plan.control = true;
    becomes(fixture, kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
    const struct estimate *control = fixture->outcome.result->control;
    assert_non_null(control);
    assert_true(control->lo < 0.002 && control->hi > -0.002 && control->hi - control->lo < 0.05);
    becomes(fixture, kernel("fk_scale_wrong"), VERDICT_WRONG, "y[299] is", false);
    assert_null(fixture->outcome.result->control);
}

static void what_is_too_good_is_quarantined(void **state)
{
    struct fixture *fixture = *state;
    struct measure_plan *plan = &fixture->plan;

    must_open(fixture, "noise=0.2");
    plan->facts = xcalloc(1, sizeof(*plan->facts));
    plan->facts[plan->facts_count++] = (struct fact){.name = xstrdup("peak_bytes"), .value = 1e8};
    becomes(fixture, kernel("fk_scale"), VERDICT_QUARANTINED,
            "less than the 80000 ns that this GPU needs at least", false);
    assert_true(fixture->outcome.result->cases[0].floor_ns == 80000);
    plan->facts[0].value = 1e12;
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// ---- wrong ----

static void wrong_results_are_told(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "");
    becomes(fixture, kernel("fk_scale_wrong"), VERDICT_WRONG, "1 of 300 elements are outside",
            false);
    becomes(fixture, kernel("fk_scale_zero"), VERDICT_WRONG, "y[0] is 0, expected", false);
    becomes(fixture, kernel("fk_scale_memo"), VERDICT_WRONG, "for n=300", false);
    becomes(fixture, kernel("fk_scale_oob"), VERDICT_WRONG, "it wrote outside y, for n=300", false);
    becomes(fixture, kernel("fk_scale_input"), VERDICT_WRONG, "it changed its input x", false);
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// What is written where no tensor lies, and what is wrong only once in timing has begun.
static void nothing_beside_the_tensors_can_be_used(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "");
    becomes(fixture, kernel("fk_scale_slack"), VERDICT_WRONG, "it wrote outside its tensors", true);
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    becomes(fixture, kernel("fk_scale_peek"), VERDICT_CRASH, "CUDA_ERROR_ILLEGAL_ADDRESS", true);
}

static void what_is_forged_in_timing_is_found(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "noise=0.2");
    becomes(fixture, kernel("fk_scale_forge"), VERDICT_WRONG, "2000 of 2000 elements are outside",
            false);
    becomes(fixture, kernel("fk_scale_shift"), VERDICT_WRONG, "1 of 2000 elements are outside",
            false);
    // A candidate whose last bits differ from the baseline's is right, and judged now and then.
    becomes(fixture, kernel("fk_scale_nondet"), VERDICT_EQUIVALENT, "", false);
    assert_true(fixture->outcome.result->checks >= 10);
}

// When a kernel runs, y holds poison, not the right answer of the launch before.
static void nothing_written_is_poison(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "");
    becomes(fixture, kernel("fk_scale_nothing"), VERDICT_WRONG, "nan, expected", false);
    becomes(fixture, kernel("fk_scale_count"), VERDICT_WRONG, "300 of 300 elements", false);
}

static void scratch_is_part_of_it(void **state)
{
    static const char fill[] = "//@ launch fk_axpy grid=(1) block=(64) args=(x, s, n, a)\n"
                               "//@ launch fk_copy grid=(1) block=(64) args=(s, y, n)\n";
    static const char kernels[] = "fk_axpy 8 8 4 4;fk_copy 8 8 4";
    struct fixture *fixture = *state;
    char *zero = xasprintf("//@ scratch s bytes=4 * n init=zero\n%s", fill);
    char *poison = xasprintf("//@ scratch s bytes=4 * n\n%s", fill);

    must_open(fixture, "");
    // Each run has two launches: s = 0 + a x, then y = s.
    assert_true(verdict_is_ratio(result_of(fixture, gpu_object(zero, kernels))->verdict));
    becomes(fixture, gpu_object(poison, kernels), VERDICT_WRONG, "nan, expected", false);
    becomes(fixture,
            gpu_object("//@ scratch s bytes=4 * n - 4\n"
                       "//@ launch fk_copy grid=(1) block=(64) args=(x, s, n)\n" LAUNCH("fk_scale"),
                       "fk_copy 8 8 4;fk_scale" SIZES),
            VERDICT_WRONG, "it wrote outside its scratch memory", false);
    becomes(
        fixture,
        gpu_object("//@ scratch s bytes=1024 * 1024 * 1024\n" LAUNCH("fk_scale"), "fk_scale" SIZES),
        VERDICT_CRASH, "the GPU has no 1024.0 MiB of memory left, for n=300", false);
    free(zero);
    free(poison);
}

static void each_case_has_its_variant(void **state)
{
    static const int64_t values[] = {300, 2000};
    struct fixture *fixture = *state;

    must_open(fixture, "");
    struct cuda_object object;
    gpu_object_init(&object, "//@ specialize n\n" LAUNCH("fk_scale"));
    gpu_object_add(&object, NULL, "fk_scale" SIZES, &values[0], 1);
    gpu_object_add(&object, NULL, "fk_scale" SIZES, &values[1], 1);
    assert_true(verdict_is_ratio(result_of(fixture, gpu_object_pack(&object))->verdict));
    gpu_object_init(&object, "//@ specialize n\n" LAUNCH("fk_scale"));
    gpu_object_add(&object, NULL, "fk_scale" SIZES, &values[0], 1);
    gpu_object_add(&object, NULL, "fk_scale_wrong" SIZES, &values[1], 1);
    free(object.variants[1].kernels[0].name);
    object.variants[1].kernels[0].name = xstrdup("fk_scale");
    becomes(fixture, gpu_object_pack(&object), VERDICT_WRONG, "for n=2000", false);
}

// ---- crashes ----

static void a_launch_that_is_refused_is_a_crash(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "");
    becomes(fixture, kernel("fk_scale_toobig"), VERDICT_CRASH,
            "fk_scale_toobig: it cannot be launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", false);
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// The context is broken afterwards, so the outcome says that the process must not be used again.
static void a_fault_is_a_crash(void **state)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"fk_scale_fault", "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access"},
        {"fk_scale_misaligned", "CUDA_ERROR_MISALIGNED_ADDRESS"},
        {"fk_scale_assert", "the candidate ended with CUDA_ERROR_ASSERT"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        must_open(fixture, "");
        becomes(fixture, kernel(cases[i].name), VERDICT_CRASH, cases[i].words, true);
        fails(fixture, kernel("fk_scale"), "CUDA_ERROR");
    }
    must_open(fixture, "");
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// ---- what is nobody's fault, or the problem's ----

static void a_defective_gpu_is_not_the_candidates_fault(void **state)
{
    static const char *const at[] = {"1", "4", "9", "40"}; // check, harness, timing
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        char *settings = xasprintf("fault=dies:%s", at[i]);

        must_open(fixture, settings);
        fails(fixture, kernel("fk_scale"), "CUDA_ERROR_ECC_UNCORRECTABLE");
        assert_true(fixture->gpu.broken);
        free(settings);
    }
}

static void a_gpu_that_does_not_compute_measures_nothing(void **state)
{
    struct fixture *fixture = *state;

    assert_int_not_equal(open_gpu(fixture, "fault=sick"), 0);
    assert_non_null(strstr(fixture->err.text, "the GPU computes wrong values"));
    assert_int_not_equal(open_gpu(fixture, "fault=context"), 0);
    assert_non_null(strstr(fixture->err.text, "making a CUDA context: CUDA_ERROR_DEVICE_UNAVAIL"));
    assert_int_not_equal(open_gpu(fixture, "fault=init"), 0);
    assert_non_null(strstr(fixture->err.text, "the CUDA driver finds no GPU: CUDA_ERROR_UNKNOWN"));
    assert_int_not_equal(open_gpu(fixture, "fault=no-device"), 0);
    assert_non_null(strstr(fixture->err.text, "CUDA_ERROR_NO_DEVICE"));
    assert_int_not_equal(open_gpu(fixture, "count=0"), 0);
    assert_non_null(strstr(fixture->err.text, "knows of no GPU"));
}

// Every allocation fails once. The result is a sentence about memory, or a complete measurement.
static void memory_may_end_anywhere(void **state)
{
    struct fixture *fixture = *state;
    int at = 0, status;

    do {
        char *settings = xasprintf("noise=0;fault=oom:%d", ++at);

        status = open_gpu(fixture, settings);
        status = status == 0 ? run(fixture, kernel("fk_scale")) : status;
        if (status != 0 && !strstr(fixture->err.text, "MiB of memory left")) {
            fail_msg("%s", fixture->err.text);
        }
        free(settings);
    } while (status != 0 && at < 60);
    assert_in_range(at, 8, 59); // a measurement has at least 8 allocations, and fewer than 59
}

static void a_baseline_that_fails_is_no_verdict(void **state)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"fk_scale_wrong", "the baseline disagrees with the reference: y["},
        {"fk_scale_oob", "the baseline wrote outside y"},
        {"fk_scale_input", "the baseline changed its input x"},
        {"fk_scale_toobig", "the baseline"},
        {"fk_scale_fault", "the baseline ended with CUDA_ERROR_ILLEGAL_ADDRESS"},
    };
    struct fixture *fixture = *state;

    must_open(fixture, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) { // the last one ends the context
        replace(&fixture->plan.baseline, kernel(cases[i].name));
        fails(fixture, kernel("fk_scale"), cases[i].words);
    }
}

// The candidate has changed something in the process that the baseline needs. Where the candidate
// has never run, the baseline is right.
static void a_baseline_that_fails_only_beside_the_candidate_is_its_failure(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "noise=0.2");
    // The baseline's outputs are not judged, but they differ, and then the candidate's are.
    becomes(fixture, kernel("fk_scale_killer"), VERDICT_CRASH,
            "the baseline failed beside it and not alone: it ended with CUDA_ERROR_ILLEGAL_ADDRESS",
            true);
    must_open(fixture, "noise=0.2");
    replace(&fixture->plan.problem,
            text(PROBLEM(CHECK))); // the candidate runs before the baseline is verified
    becomes(fixture, kernel("fk_scale_breaker"), VERDICT_WRONG,
            "the baseline failed beside it and not alone: it disagrees with the reference", true);
}

static void a_reference_that_fails_is_no_verdict(void **state)
{
    struct fixture *fixture = *state;
    struct bytes *reference = &fixture->plan.reference;

    must_open(fixture, "");
    replace(reference, text("nothing packed"));
    fails(fixture, kernel("fk_scale"), "cuda_object");
    replace(reference, gpu_object("//@ launch fk_ref_scale grid=(1) block=(64)"
                                  " args=(x, y, y_scale, n, a) smem=300000\n",
                                  "fk_ref_scale 8 8 8 4 8"));
    fails(fixture, kernel("fk_scale"), "the problem's reference: fk_ref_scale asks for 300000");
    replace(reference, gpu_object(REFERENCE, "fk_ref_scale 8 8 8 4 8"));
    becomes(fixture, kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    replace(reference, gpu_object("//@ launch fk_ref_scale grid=(1) block=(64)"
                                  " args=(x, y, y_scale, 100000 * n, a)\n",
                                  "fk_ref_scale 8 8 8 4 8"));
    fails(fixture, kernel("fk_scale"), "the problem's reference fails: CUDA_ERROR_ILLEGAL_ADDRESS");
}

static void damaged_plans_are_refused(void **state)
{
    struct fixture *fixture = *state;

    must_open(fixture, "");
    fails(fixture, text("nothing packed"), "cuda_object");
    fails(fixture, gpu_object("no manifest\n", "k 8"), "launch");
    replace(&fixture->plan.problem, text("{}"));
    fails(fixture, kernel("fk_scale"), "problem.json");
}

static int find_compiler(void **state)
{
    (void)state;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        printf("skipped because %s\n", err.text);
        exit(0);
    }
    toolkit_release(&toolkit);
    gpu_fake_use("");
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(times_decide),
        TEST(what_noise_hides_is_inconclusive),
        TEST(a_gpu_that_slows_down_changes_no_verdict),
        TEST(the_control_measures_the_baseline_against_itself),
        TEST(what_is_too_good_is_quarantined),
        TEST(wrong_results_are_told),
        TEST(nothing_beside_the_tensors_can_be_used),
        TEST(what_is_forged_in_timing_is_found),
        TEST(nothing_written_is_poison),
        TEST(scratch_is_part_of_it),
        TEST(each_case_has_its_variant),
        TEST(a_launch_that_is_refused_is_a_crash),
        TEST(a_fault_is_a_crash),
        TEST(a_defective_gpu_is_not_the_candidates_fault),
        TEST(a_gpu_that_does_not_compute_measures_nothing),
        TEST(memory_may_end_anywhere),
        TEST(a_baseline_that_fails_is_no_verdict),
        TEST(a_baseline_that_fails_only_beside_the_candidate_is_its_failure),
        TEST(a_reference_that_fails_is_no_verdict),
        TEST(damaged_plans_are_refused),
    };
#undef TEST

    return cmocka_run_group_tests(tests, find_compiler, NULL);
}

// Whole measurements on the fake GPU, in this process, with an oracle process: every verdict and
// the sentence that explains it. The objects are made here without a compiler. Only the executor's
// own kernels need one; without a compiler every test is skipped.
#include "common/strbuf.h"
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include "tests/support/gpu_cubin.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- verdicts of timing ----

static void times_decide(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, trial_kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
    const struct result *result = trial->outcome.result;
    assert_true(fabs(exp2(result->speedup->log2) - 1 / 0.72) < 0.05); // an event costs 1.25 us
    assert_true(result->launches >= 16 && result->cases_count == 1);
    // Some of the timed launches were judged; most were only compared with the baseline's.
    assert_true(result->checks > 0 && result->checks < result->launches);
    assert_string_equal(result->cases[0].params, "n=2000 a=2.5");
    assert_true(result->max_error <= 1 && result->error_bound == 4);
    assert_string_equal(result->sandbox, "on");
    trial->plan.sandbox_off = true;
    trial_becomes(trial, trial_kernel("fk_scale_slow10"), VERDICT_SLOWER, "", false);
    assert_string_equal(trial->outcome.result->sandbox, "off");
    trial->plan.sandbox_off = false;
    trial_becomes(trial, trial_kernel("fk_scale_late"), VERDICT_SLOWER, "", false);
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_becomes(trial, trial_kernel("fk_scale_nondet"), VERDICT_EQUIVALENT, "", false);
    assert_null(trial->outcome.result->control);
}

static void what_noise_hides_is_inconclusive(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=20");
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_INCONCLUSIVE, "", false);
    assert_true(trial->outcome.result->launches >= 256);
    trial->plan.max_seconds = 0;
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_INCONCLUSIVE, "no decision within 0 sec",
                  false);
}

static void a_gpu_that_slows_down_changes_no_verdict(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.1;fault=slow:30:40"); // while timing is under way
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_must_open(trial, "noise=0.1;fault=slow:30:40");
    trial_becomes(trial, trial_kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
}

static void the_control_measures_the_baseline_against_itself(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial->plan.control = true;
    trial_becomes(trial, trial_kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
    const struct estimate *control = trial->outcome.result->control;
    assert_non_null(control);
    assert_true(control->lo < 0.002 && control->hi > -0.002 && control->hi - control->lo < 0.05);
    trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG, "y[299] is", false);
    assert_null(trial->outcome.result->control);
}

static void what_is_too_good_is_quarantined(void **state)
{
    struct trial *trial = *state;
    struct measure_plan *plan = &trial->plan;

    trial_must_open(trial, "noise=0.2");
    plan->facts = xcalloc(1, sizeof(*plan->facts));
    plan->facts[plan->facts_count++] = (struct fact){.name = xstrdup("peak_bytes"), .value = 1e8};
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_QUARANTINED,
                  "less than the 80000 ns that this GPU needs at least", false);
    assert_true(trial->outcome.result->cases[0].floor_ns == 80000);
    plan->facts[0].value = 1e12;
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// ---- wrong ----

static void wrong_results_are_told(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG,
                  "1 of 300 elements are outside", false);
    trial_becomes(trial, trial_kernel("fk_scale_zero"), VERDICT_WRONG, "y[0] is 0, expected",
                  false);
    trial_becomes(trial, trial_kernel("fk_scale_memo"), VERDICT_WRONG, "for n=300", false);
    trial_becomes(trial, trial_kernel("fk_scale_oob"), VERDICT_WRONG,
                  "it wrote outside y, for n=300", false);
    trial_becomes(trial, trial_kernel("fk_scale_input"), VERDICT_WRONG, "it changed its input x",
                  false);
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

#define TWO_OUTPUTS                                                                                \
    "{\"name\": \"p\", \"title\": \"y = a x, z = x\", \"license\": \"MIT\", \"language\": "        \
    "\"cuda\","                                                                                    \
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"    \
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"        \
    "[\"n\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"            \
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"            \
    "\"tolerance\": 4}, {\"name\": \"z\", \"direction\": \"out\", \"dtype\": \"f32\","             \
    "\"shape\": [\"n\"], \"tolerance\": 0}], \"cases\": {\"check\": [" TRIAL_CHECK "],"            \
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}]},"                        \
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"12*n\"}}"

// y = a x and z = x, by two kernels.
static struct bytes two_outputs(const char *makes_y, const char *makes_z)
{
    char *source = xasprintf("//@ launch %s grid=(1) block=(256) args=(x, y, n, a)\n"
                             "//@ launch %s grid=(1) block=(256) args=(x, z, n)\n",
                             makes_y, makes_z);
    char *kernels = xasprintf("%s" TRIAL_SIZES ";%s 8 8 4", makes_y, makes_z);
    struct bytes object = gpu_object(source, kernels);

    free(source);
    free(kernels);
    return object;
}

// Each output of each launch of verification is compared: three on the check case, of which nothing
// is known, and three on the benchmark case, where the other outputs are the baseline's.
static void one_output_of_one_launch_is_wrong(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_replace(&trial->plan.problem, trial_text(TWO_OUTPUTS));
    trial_replace(&trial->plan.baseline, two_outputs("fk_scale", "fk_copy"));
    trial_replace(&trial->plan.reference,
                  gpu_object(TRIAL_REFERENCE "//@ launch fk_ref_copy grid=(1) block=(256)"
                                             " args=(x, z, z_scale, n)\n",
                             "fk_ref_scale 8 8 8 4 8;fk_ref_copy 8 8 8 4"));
    for (int launch = 1; launch <= 6; launch++) {
        const char *where = launch <= 3 ? "299] is" : "1999] is";
        char *scale = xasprintf("fk_scale_wrong%d", launch);
        char *copy = xasprintf("fk_copy_wrong%d", launch);
        char *y = xasprintf("y[%s", where), *z = xasprintf("z[%s", where);

        trial_becomes(trial, two_outputs(scale, "fk_copy"), VERDICT_WRONG, y, false);
        trial_becomes(trial, two_outputs("fk_scale", copy), VERDICT_WRONG, z, false);
        free(scale);
        free(copy);
        free(y);
        free(z);
    }
    trial_becomes(trial, two_outputs("fk_scale", "fk_copy"), VERDICT_EQUIVALENT, "", false);
    trial_becomes(trial, two_outputs("fk_scale_nondet", "fk_copy"), VERDICT_EQUIVALENT, "", false);
}

// y += a x: what is updated is made anew before each launch, and compared after each.
static void what_is_updated_is_an_output_too(void **state)
{
    static const char out[] = "\"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],";
    struct trial *trial = *state;
    const char *all = TRIAL_PROBLEM(TRIAL_CHECK), *at = strstr(all, out);
    char *problem = xasprintf("%.*s\"inout\", \"dtype\": \"f32\", \"shape\": [\"n\"], \"values\":"
                              " {\"distribution\": \"uniform\", \"low\": 1, \"high\": 2},%s",
                              (int)(at - all), all, at + strlen(out));

    trial_must_open(trial, "");
    trial_replace(&trial->plan.problem, trial_text(problem));
    trial_replace(&trial->plan.baseline, trial_kernel("fk_axpy"));
    trial_replace(&trial->plan.reference, gpu_object("//@ launch fk_ref_axpy grid=(1) block=(256)"
                                                     " args=(x, y, y_out, y_scale, n, a)\n",
                                                     "fk_ref_axpy 8 8 8 8 4 8"));
    for (int launch = 1; launch <= 6; launch++) {
        char *candidate = xasprintf("fk_axpy_wrong%d", launch);

        trial_becomes(trial, trial_kernel(candidate), VERDICT_WRONG,
                      launch <= 3 ? "y[299] is" : "y[1999] is", false);
        free(candidate);
    }
    trial_becomes(trial, trial_kernel("fk_axpy_mend2"), VERDICT_WRONG,
                  "it wrote outside its tensors, for n=300 a=2", false);
    trial_becomes(trial, trial_kernel("fk_axpy"), VERDICT_EQUIVALENT, "", false);
    free(problem);
}

// When a kernel runs, y holds poison, not the right answer of the launch before.
static void nothing_written_is_poison(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale_nothing"), VERDICT_WRONG, "nan, expected", false);
    trial_becomes(trial, trial_kernel("fk_scale_count"), VERDICT_WRONG, "300 of 300 elements",
                  false);
}

static void scratch_is_part_of_it(void **state)
{
    static const char fill[] = "//@ launch fk_axpy grid=(1) block=(64) args=(x, s, n, a)\n"
                               "//@ launch fk_copy grid=(1) block=(64) args=(s, y, n)\n";
    static const char kernels[] = "fk_axpy 8 8 4 4;fk_copy 8 8 4";
    struct trial *trial = *state;
    char *zero = xasprintf("//@ scratch s bytes=4 * n init=zero\n%s", fill);
    char *poison = xasprintf("//@ scratch s bytes=4 * n\n%s", fill);

    trial_must_open(trial, "");
    // Each run has two launches: s = 0 + a x, then y = s.
    assert_true(verdict_is_ratio(trial_result(trial, gpu_object(zero, kernels))->verdict));
    trial_becomes(trial, gpu_object(poison, kernels), VERDICT_WRONG, "nan, expected", false);
    trial_becomes(trial,
                  gpu_object("//@ scratch s bytes=4 * n - 4\n"
                             "//@ launch fk_copy grid=(1) block=(64) args=(x, s, n)\n" TRIAL_LAUNCH(
                                 "fk_scale"),
                             "fk_copy 8 8 4;fk_scale" TRIAL_SIZES),
                  VERDICT_WRONG, "it wrote outside its scratch memory", false);
    trial_becomes(trial,
                  gpu_object("//@ scratch s bytes=1024 * 1024 * 1024\n" TRIAL_LAUNCH("fk_scale"),
                             "fk_scale" TRIAL_SIZES),
                  VERDICT_CRASH, "the GPU has no 1024.0 MiB of memory left, for n=300", false);
    free(zero);
    free(poison);
}

static void each_case_has_its_variant(void **state)
{
    static const int64_t values[] = {300, 2000};
    struct trial *trial = *state;

    trial_must_open(trial, "");
    struct cuda_object object;
    gpu_object_init(&object, "//@ specialize n\n" TRIAL_LAUNCH("fk_scale"));
    gpu_object_add(&object, NULL, "fk_scale" TRIAL_SIZES, &values[0], 1);
    gpu_object_add(&object, NULL, "fk_scale" TRIAL_SIZES, &values[1], 1);
    assert_true(verdict_is_ratio(trial_result(trial, gpu_object_pack(&object))->verdict));
    gpu_object_init(&object, "//@ specialize n\n" TRIAL_LAUNCH("fk_scale"));
    gpu_object_add(&object, NULL, "fk_scale" TRIAL_SIZES, &values[0], 1);
    gpu_object_add(&object, NULL, "fk_scale_wrong" TRIAL_SIZES, &values[1], 1);
    free(object.variants[1].kernels[0].name);
    object.variants[1].kernels[0].name = xstrdup("fk_scale");
    trial_becomes(trial, gpu_object_pack(&object), VERDICT_WRONG, "for n=2000", false);
}

// Adds a variant with a device variable, for these values.
static void add_with_variable(struct cuda_object *object, const int64_t *value, size_t value_count)
{
    struct bytes image = gpu_cubin("fk_scale", "counter");

    gpu_object_add(object, &image, "fk_scale" TRIAL_SIZES, value, value_count);
    gpu_object_global(object, "counter");
    bytes_clear(&image);
}

// A module is loaded when a case first needs it. What its variables hold is then noted where no
// launch may look, which the launches before have closed.
static void variables_may_come_with_a_later_case(void **state)
{
    static const int64_t values[] = {300, 2000};
    struct trial *trial = *state;
    struct cuda_object object;

    trial_must_open(trial, "");
    gpu_object_init(&object, TRIAL_LAUNCH("fk_scale"));
    add_with_variable(&object, NULL, 0);
    trial_replace(&trial->plan.baseline, gpu_object_pack(&object));
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_replace(&trial->plan.baseline, trial_kernel("fk_scale"));
    gpu_object_init(&object, "//@ specialize n\n" TRIAL_LAUNCH("fk_scale"));
    gpu_object_add(&object, NULL, "fk_scale" TRIAL_SIZES, &values[0], 1);
    add_with_variable(&object, &values[1], 1);
    trial_becomes(trial, gpu_object_pack(&object), VERDICT_EQUIVALENT, "", false);
}

// ---- crashes ----

static void a_launch_that_is_refused_is_a_crash(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale_toobig"), VERDICT_CRASH,
                  "fk_scale_toobig: it cannot be launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
                  false);
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
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
    struct trial *trial = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        trial_must_open(trial, "");
        trial_becomes(trial, trial_kernel(cases[i].name), VERDICT_CRASH, cases[i].words, true);
        trial_fails(trial, trial_kernel("fk_scale"), "CUDA_ERROR");
    }
    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// ---- what is nobody's fault, or the problem's ----

static void a_defective_gpu_is_not_the_candidates_fault(void **state)
{
    static const char *const at[] = {"1", "4", "9", "40"}; // check, harness, timing
    struct trial *trial = *state;

    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        char *settings = xasprintf("fault=dies:%s", at[i]);

        trial_must_open(trial, settings);
        trial_fails(trial, trial_kernel("fk_scale"), "CUDA_ERROR_ECC_UNCORRECTABLE");
        assert_true(trial->gpu.broken);
        free(settings);
    }
}

static void a_gpu_that_does_not_compute_measures_nothing(void **state)
{
    struct trial *trial = *state;

    assert_int_not_equal(trial_open(trial, "fault=sick"), 0);
    assert_non_null(strstr(trial->err.text, "the GPU computes wrong values"));
    assert_int_not_equal(trial_open(trial, "fault=context"), 0);
    assert_non_null(strstr(trial->err.text, "making a CUDA context: CUDA_ERROR_DEVICE_UNAVAIL"));
    assert_int_not_equal(trial_open(trial, "fault=init"), 0);
    assert_non_null(strstr(trial->err.text, "the CUDA driver finds no GPU: CUDA_ERROR_UNKNOWN"));
    assert_int_not_equal(trial_open(trial, "fault=no-device"), 0);
    assert_non_null(strstr(trial->err.text, "CUDA_ERROR_NO_DEVICE"));
    assert_int_not_equal(trial_open(trial, "count=0"), 0);
    assert_non_null(strstr(trial->err.text, "knows of no GPU"));
}

// Memory ends at each allocation once. The result is a sentence about memory, or a complete
// measurement.
static void memory_may_end_anywhere(void **state)
{
    struct trial *trial = *state;
    int at = 0, status;

    do {
        char *settings = xasprintf("noise=0;fault=full:%d", ++at);

        status = trial_open(trial, settings);
        status = status == 0 ? trial_run(trial, trial_kernel("fk_scale")) : status;
        if (status != 0 && !strstr(trial->err.text, "MiB of memory left")) {
            fail_msg("%s", trial->err.text);
        }
        free(settings);
    } while (status != 0 && at < 60);
    // Result words, what flushes the cache, expected outputs: the rest of so small a problem fits.
    assert_in_range(at, 4, 8);
}

static void a_baseline_that_fails_is_no_verdict(void **state)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"fk_scale_wrong", "the baseline disagrees with the reference: y["},
        {"fk_scale_oob", "the baseline wrote outside y"},
        {"fk_scale_slack", "the baseline wrote outside its tensors, for n=2000 a=2.5; alone it"},
        {"fk_scale_touch", "the baseline wrote outside its tensors, for n=2000 a=2.5; alone it"},
        {"fk_scale_input", "the baseline changed its input x"},
        {"fk_scale_toobig", "the baseline"},
        {"fk_scale_fault", "the baseline ended with CUDA_ERROR_ILLEGAL_ADDRESS"},
    };
    struct trial *trial = *state;

    trial_must_open(trial, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) { // the last one ends the context
        trial_replace(&trial->plan.baseline, trial_kernel(cases[i].name));
        trial_fails(trial, trial_kernel("fk_scale"), cases[i].words);
    }
}

// Memory that a larger problem has left would be looked at again and again.
static void what_larger_problems_leave_is_given_back(void **state)
{
    struct trial *trial = *state;
    struct arena *open = &trial->gpu.open;

    trial_must_open(trial, "noise=0;memory=2G");
    size_t had = open->mapped;
    assert_int_equal(arena_reach(open, 8 * had, &trial->err), 0);
    arena_rewind(open, trial->gpu.open_mark);
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    assert_in_range(open->mapped, had, 2 * had);
    assert_int_equal(arena_reach(open, 2 * had, &trial->err), 0); // which is not worth it
    arena_rewind(open, trial->gpu.open_mark);
    size_t more = open->mapped;
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    assert_int_equal(open->mapped, more);
}

static void damaged_plans_are_refused(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_fails(trial, trial_text("nothing packed"), "cuda_object");
    trial_fails(trial, gpu_object("no manifest\n", "k 8"), "launch");
    trial_replace(&trial->plan.problem, trial_text("{}"));
    trial_fails(trial, trial_kernel("fk_scale"), "problem.json");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_set_up, trial_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(times_decide),
        TEST(what_noise_hides_is_inconclusive),
        TEST(a_gpu_that_slows_down_changes_no_verdict),
        TEST(the_control_measures_the_baseline_against_itself),
        TEST(what_is_too_good_is_quarantined),
        TEST(wrong_results_are_told),
        TEST(one_output_of_one_launch_is_wrong),
        TEST(what_is_updated_is_an_output_too),
        TEST(nothing_written_is_poison),
        TEST(scratch_is_part_of_it),
        TEST(each_case_has_its_variant),
        TEST(variables_may_come_with_a_later_case),
        TEST(a_launch_that_is_refused_is_a_crash),
        TEST(a_fault_is_a_crash),
        TEST(a_defective_gpu_is_not_the_candidates_fault),
        TEST(a_gpu_that_does_not_compute_measures_nothing),
        TEST(memory_may_end_anywhere),
        TEST(a_baseline_that_fails_is_no_verdict),
        TEST(what_larger_problems_leave_is_given_back),
        TEST(damaged_plans_are_refused),
    };
#undef TEST

    return cmocka_run_group_tests(tests, trial_find_compiler, NULL);
}

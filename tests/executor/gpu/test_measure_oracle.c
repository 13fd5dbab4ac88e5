// Whole measurements on the fake GPU, as far as they ask the oracle's process for more than one
// answer: problems that take turns, references that fail, outputs that are asked for together.
// Skipped without a compiler.
#include "common/strbuf.h"
#include "executor/gpu/oracle_process.h"
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include <linux/sockios.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#define CASES_MAX 32

// Gives the plan check cases with these n and one benchmark case.
static void set_cases(struct trial *trial, const int64_t *n, size_t count)
{
    struct strbuf cases = STRBUF_INIT;

    for (size_t i = 0; i < count; i++) {
        strbuf_addf(&cases, "%s{\"n\": %lld, \"a\": 2}", i == 0 ? "" : ", ", (long long)n[i]);
    }
    char *problem = xasprintf(TRIAL_PROBLEM("%s"), strbuf_text(&cases));
    trial_replace(&trial->plan.problem, trial_text(problem));
    free(problem);
    strbuf_release(&cases);
}

static void a_reference_that_fails_is_no_verdict(void **state)
{
    struct trial *trial = *state;
    struct bytes *reference = &trial->plan.reference;

    trial_must_open(trial, "");
    trial_replace(reference, trial_text("nothing packed"));
    trial_fails(trial, trial_kernel("fk_scale"), "cuda_object");
    trial_replace(reference, gpu_object("//@ launch fk_ref_scale grid=(1) block=(64)"
                                        " args=(x, y, y_scale, n, a) smem=300000\n",
                                        "fk_ref_scale 8 8 8 4 8"));
    trial_fails(trial, trial_kernel("fk_scale"),
                "the problem's reference: fk_ref_scale asks for 300000");
    trial_replace(reference, gpu_object(TRIAL_REFERENCE, "fk_ref_scale 8 8 8 4 8"));
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_replace(reference, gpu_object("//@ launch fk_ref_scale grid=(1) block=(64)"
                                        " args=(x, y, y_scale, 100000 * n, a)\n",
                                        "fk_ref_scale 8 8 8 4 8"));
    trial_fails(trial, trial_kernel("fk_scale"),
                "the problem's reference fails: CUDA_ERROR_ILLEGAL_ADDRESS");
}

// More problems than the oracle keeps loaded take turns in one process, with the same seed: each is
// measured against its own reference, and a reference that cannot be used leaves the others alone.
static void problems_take_turns(void **state)
{
    struct trial *trial = *state;
    struct measure_plan *plan = &trial->plan;

    trial_must_open(trial, "");
    for (unsigned i = 0; i < 30; i++) {
        bool scales = i % 2 == 0;
        char *problem = xasprintf("%s%*s", TRIAL_PROBLEM(TRIAL_CHECK), (int)(i % 10), "");

        trial_replace(&plan->problem, trial_text(problem));
        trial_replace(&plan->baseline, trial_kernel(scales ? "fk_scale" : "fk_copy"));
        trial_replace(&plan->reference,
                      scales ? gpu_object(TRIAL_REFERENCE, "fk_ref_scale 8 8 8 4 8")
                             : gpu_object("//@ launch fk_ref_copy grid=(1) block=(64)"
                                          " args=(x, y, y_scale, n)\n",
                                          "fk_ref_copy 8 8 8 4"));
        trial_becomes(trial, trial_kernel(scales ? "fk_scale" : "fk_copy"), VERDICT_EQUIVALENT, "",
                      false);
        trial_becomes(trial, trial_kernel(scales ? "fk_copy" : "fk_scale"), VERDICT_WRONG, "y[",
                      false);
        trial_replace(&plan->reference, trial_text("nothing packed"));
        trial_fails(trial, trial_kernel("fk_scale"), "cuda_object");
        free(problem);
    }
}

// The oracle keeps what it expects of one case: however many there are, and with whatever memory.
static void cases_need_not_fit_the_oracle(void **state)
{
    static const struct {
        const char *settings;
        unsigned count, n;
    } problems[] = {{"noise=0", 30, 300}, {"noise=0;memory=128M", 8, 100000}};
    struct trial *trial = *state;

    for (size_t i = 0; i < ARRAY_LEN(problems); i++) {
        int64_t n[CASES_MAX] = {300};

        for (unsigned k = 1; k < problems[i].count; k++) {
            n[k] = problems[i].n + k;
        }
        trial_must_open(trial, problems[i].settings);
        set_cases(trial, n, problems[i].count);
        trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
        trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG, "y[", false);
    }
}

// Expects the last element to be what _wrongN makes of that which is expected.
static void is_expected_of_its_content(struct trial *trial, const char *candidate)
{
    const struct result *result = trial_result(trial, trial_kernel(candidate));
    double got = 0, expected = 0;

    assert_int_equal(result->verdict, VERDICT_WRONG);
    const char *is = strstr(result->reason, "] is "), *should = strstr(result->reason, "expected ");
    if (!is || !should) {
        fail_msg("%s", result->reason);
    }
    assert_int_equal(sscanf(is, "] is %lf", &got), 1);
    assert_int_equal(sscanf(should, "expected %lf", &expected), 1);
    assert_true(fabs(got - (1.5 * expected + 1)) < 1e-5);
}

// The outputs of two contents are compared at once. Where what is expected of one leaves no room
// for what is expected of the other, both are compared all the same, each with its own.
static void an_oracle_may_have_room_for_one_content(void **state)
{
    const size_t memory = (size_t)256 << 20;
    const int64_t n =
        (int64_t)(memory / 3 / (2 * sizeof(double))); // a third of it for each content
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0;memory=256M");
    assert_int_equal(trial->gpu.memory_bytes, memory);
    set_cases(trial, &n, 1);
    is_expected_of_its_content(trial, "fk_scale_wrong1");
    is_expected_of_its_content(trial, "fk_scale_wrong2");
    is_expected_of_its_content(trial, "fk_scale_wrong3");
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

#define COPIES (PROBLEM_TENSOR_MAX - 1)

// Copies x to each of the other tensors, to the last of them by a kernel of its own.
static struct bytes copies(const char *last)
{
    struct strbuf source = STRBUF_INIT;

    for (int i = 0; i < COPIES; i++) {
        strbuf_addf(&source, "//@ launch %s grid=(1) block=(64) args=(x, y%d, n)\n",
                    i == COPIES - 1 ? last : "fk_copy", i);
    }
    char *kernels = xasprintf("fk_copy 8 8 4;%s 8 8 4", last);
    struct bytes object = gpu_object(strbuf_text(&source), kernels);

    strbuf_release(&source);
    free(kernels);
    return object;
}

static struct bytes reference_of_copies(void)
{
    struct strbuf source = STRBUF_INIT;

    for (int i = 0; i < COPIES; i++) {
        strbuf_addf(&source,
                    "//@ launch fk_ref_copy grid=(1) block=(64) args=(x, y%d, y%d_scale, n)\n", i,
                    i);
    }
    struct bytes object = gpu_object(strbuf_text(&source), "fk_ref_copy 8 8 8 4");

    strbuf_release(&source);
    return object;
}

// Both contents of as many outputs as a problem can have are compared at once.
static void all_tensors_but_one_may_be_outputs(void **state)
{
    struct trial *trial = *state;
    struct strbuf problem = STRBUF_INIT;

    strbuf_adds(
        &problem,
        "{\"name\": \"p\", \"title\": \"copies\", \"license\": \"MIT\", \"language\": \"cuda\","
        "\"params\": [{\"name\": \"n\", \"type\": \"int\"}], \"tensors\": [{\"name\": \"x\","
        "\"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"n\"], \"values\":"
        "{\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}}");
    for (int i = 0; i < COPIES; i++) {
        strbuf_addf(&problem,
                    ", {\"name\": \"y%d\", \"direction\": \"out\", \"dtype\": \"f32\","
                    " \"shape\": [\"n\"], \"tolerance\": 4}",
                    i);
    }
    strbuf_adds(&problem,
                "], \"cases\": {\"check\": [{\"n\": 1}], \"bench\": [{\"params\": {\"n\": 1},"
                " \"weight\": 1}]}, \"cache\": \"cold\","
                " \"work\": {\"flops\": \"n\", \"bytes\": \"4*n\"}}");
    trial_must_open(trial, "noise=0");
    trial_replace(&trial->plan.problem, trial_text(strbuf_text(&problem)));
    trial_replace(&trial->plan.baseline, copies("fk_copy_slow1"));
    trial_replace(&trial->plan.reference, reference_of_copies());
    for (int launch = 1; launch <= 6; launch++) {
        char *last = xasprintf("fk_copy_wrong%d", launch);

        trial_becomes(trial, copies(last), VERDICT_WRONG, "y14[0] is", false);
        free(last);
    }
    trial_becomes(trial, copies("fk_copy_slow1"), VERDICT_EQUIVALENT, "", false);
    strbuf_release(&problem);
}

// ---- cases that a candidate does not reach ----

// Returns a candidate that is right in the first of `count` cases, all of which differ in n, and
// changes its input in the others, which is found without the oracle.
static struct bytes meddler(const int64_t *n, size_t count)
{
    struct cuda_object object;

    gpu_object_init(&object, "//@ specialize n\n" TRIAL_LAUNCH("fk_scale"));
    for (size_t i = 0; i < count; i++) {
        gpu_object_add(&object, NULL,
                       i == 0 ? "fk_scale" TRIAL_SIZES : "fk_scale_input" TRIAL_SIZES, &n[i], 1);
        struct cuda_kernel *kernel = &object.variants[i].kernels[0];
        free(kernel->name);
        kernel->name = xstrdup("fk_scale");
    }
    return gpu_object_pack(&object);
}

// The next measurement on the GPU may be that of another process, and must have it alone.
static void nothing_is_computed_after_a_measurement(void **state)
{
    struct trial *trial = *state;
    int64_t n[CASES_MAX] = {300};
    size_t count = 1;
    int unread = -1;

    for (; count < CASES_MAX - 1; count++) {
        n[count] = (int64_t)(200000 + count);
    }
    trial_must_open(trial, "noise=0;memory=8G");
    set_cases(trial, n, count);
    n[count++] = 2000;
    trial_becomes(trial, meddler(n, count), VERDICT_WRONG, "it changed its input x, for n=200001",
                  false);
    assert_int_equal(ioctl(trial->oracle.socket, SIOCOUTQ, &unread), 0);
    assert_int_equal(unread, 0); // each request is read and served before the next
}

// The reference cannot be launched for a case that only the last candidate here reaches.
static void a_reference_may_fail_where_nobody_comes(void **state)
{
    static const int64_t n[] = {300, 301, 302, 2000};
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0");
    set_cases(trial, n, 3);
    trial_replace(&trial->plan.reference,
                  gpu_object("//@ launch fk_ref_scale grid=(1)"
                             " block=(64 + 2000 * (1 - ceildiv(n % 302, 302)))"
                             " args=(x, y, y_scale, n, a)\n",
                             "fk_ref_scale 8 8 8 4 8"));
    trial_becomes(trial, meddler(n, ARRAY_LEN(n)), VERDICT_WRONG, "it changed its input x", false);
    trial->plan.seed++;
    trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG, "y[", false);
    trial->plan.seed++;
    trial_fails(trial, trial_kernel("fk_scale"), "the problem's reference: fk_ref_scale: block");
}

// The reference breaks its context for a case that only the second candidate reaches.
static void a_reference_may_fault_where_nobody_comes(void **state)
{
    static const int64_t n[] = {300, 301, 302, 2000};
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0");
    set_cases(trial, n, 3);
    trial_replace(&trial->plan.reference,
                  gpu_object("//@ launch fk_ref_scale grid=(1) block=(64)"
                             " args=(x, y, y_scale, n + 100000 * n * (1 - ceildiv(n % 302, 302)),"
                             " a)\n",
                             "fk_ref_scale 8 8 8 4 8"));
    trial_becomes(trial, meddler(n, ARRAY_LEN(n)), VERDICT_WRONG, "it changed its input x", false);
    trial->plan.seed++;
    trial_fails(trial, trial_kernel("fk_scale"),
                "the problem's reference fails: CUDA_ERROR_ILLEGAL_ADDRESS");
}

// Memory under a kernel that does not end cannot be given back. The tensors need more than what a
// process has from the start.
static void a_large_baseline_that_hangs_is_told(void **state)
{
    static const char small[] = "\"n\": 2000,";
    struct trial *trial = *state;
    const char *all = TRIAL_PROBLEM(TRIAL_CHECK), *at = strstr(all, small);
    char *problem = xasprintf("%.*s\"n\": 12000000,%s", (int)(at - all), all, at + strlen(small));

    trial_must_open(trial, "memory=2G");
    trial->plan.launch_seconds = 0.3;
    trial_replace(&trial->plan.problem, trial_text(problem));
    trial_replace(&trial->plan.baseline, trial_kernel("fk_scale_hang"));
    trial_fails(trial, trial_kernel("fk_scale"), "alone it does not end");
    free(trial->gpu.host_words); // gpu_close leaves everything to the end of the process
    free(problem);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_set_up, trial_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_reference_that_fails_is_no_verdict),
        TEST(problems_take_turns),
        TEST(cases_need_not_fit_the_oracle),
        TEST(an_oracle_may_have_room_for_one_content),
        TEST(all_tensors_but_one_may_be_outputs),
        TEST(nothing_is_computed_after_a_measurement),
        TEST(a_reference_may_fail_where_nobody_comes),
        TEST(a_reference_may_fault_where_nobody_comes),
        TEST(a_large_baseline_that_hangs_is_told),
    };
#undef TEST

    return cmocka_run_group_tests(tests, trial_find_compiler, NULL);
}

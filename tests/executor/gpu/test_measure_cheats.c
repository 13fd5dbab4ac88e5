// Candidates that use what is not theirs, forge in timing, or make the baseline fail, on the fake
// GPU. Skipped without a compiler.
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// What is written where no tensor lies, and what is wrong only once in timing has begun.
static void nothing_beside_the_tensors_can_be_used(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale_slack"), VERDICT_WRONG,
                  "it wrote outside its tensors", true);
    // There outputs of timed launches are kept, in memory that a launch can read and write.
    trial_becomes(trial, trial_kernel("fk_scale_behind"), VERDICT_WRONG,
                  "it wrote outside its tensors, for n=2000 a=2.5", false);
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_becomes(trial, trial_kernel("fk_scale_peek"), VERDICT_CRASH, "CUDA_ERROR_ILLEGAL_ADDRESS",
                  true);
}

// While a launch of verification runs, the outputs of the one before may wait for the oracle where
// it can write. What it changes there is found, and so is what it writes where none wait: before
// the second content, and where the first one's outputs were known to be right.
static void outputs_that_wait_cannot_be_changed(void **state)
{
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"fk_scale_mend2", "it wrote outside its tensors, for n=300 a=2"},
        {"fk_scale_behind1", "it wrote outside its tensors, for n=300 a=2"},
        {"fk_scale_behind2", "y[0] is -12345, expected"},
        {"fk_scale_behind3", "it wrote outside its tensors, for n=300 a=2"},
        {"fk_scale_behind4", "it wrote outside its tensors, for n=2000 a=2.5"},
        {"fk_scale_behind5", "it wrote outside its tensors, for n=2000 a=2.5"},
        {"fk_scale_behind6", "it wrote outside its tensors, for n=2000 a=2.5"},
    };
    struct trial *trial = *state;

    trial_must_open(trial, "");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        trial_becomes(trial, trial_kernel(cases[i].name), VERDICT_WRONG, cases[i].words, false);
    }
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

// They lie in memory that a launch can read and write.
static void result_words_neither_keep_nor_take_anything(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale_words"), VERDICT_EQUIVALENT, "", false);
}

static void what_is_forged_in_timing_is_found(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, trial_kernel("fk_scale_forge"), VERDICT_WRONG,
                  "2000 of 2000 elements are outside", false);
    trial_becomes(trial, trial_kernel("fk_scale_shift"), VERDICT_WRONG,
                  "1 of 2000 elements are outside", false);
    // A candidate whose last bits differ from the baseline's is right, and judged now and then.
    trial_becomes(trial, trial_kernel("fk_scale_nondet"), VERDICT_EQUIVALENT, "", false);
    assert_true(trial->outcome.result->checks > 6); // more than those of verification
}

// Timed launches of the baseline are not followed by a look at the inputs.
static void inputs_that_are_changed_in_timing_are_found(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, trial_kernel("fk_scale_meddle"), VERDICT_WRONG,
                  "it changed its input x, for n=2000", false);
}

// The candidate has changed something in the process that the baseline needs. Where the candidate
// has never run, the baseline is right.
static void a_baseline_that_fails_only_beside_the_candidate_is_its_failure(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    // The baseline's outputs are not judged, but they differ, and then the candidate's are.
    trial_becomes(
        trial, trial_kernel("fk_scale_killer"), VERDICT_CRASH,
        "the baseline failed beside it and not alone: it ended with CUDA_ERROR_ILLEGAL_ADDRESS",
        true);
    trial_must_open(trial, "noise=0.2");
    trial_replace(&trial->plan.problem,
                  trial_text(TRIAL_PROBLEM(
                      TRIAL_CHECK))); // the candidate runs before the baseline is verified
    trial_becomes(trial, trial_kernel("fk_scale_breaker"), VERDICT_WRONG,
                  "the baseline failed beside it and not alone: it disagrees with the reference",
                  true);
    // It changes what it has computed before, though so little that it stays right.
    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, trial_kernel("fk_scale_haunter"), VERDICT_WRONG,
                  "the baseline failed beside it and not alone: it wrote outside its tensors, for"
                  " n=2000 a=2.5",
                  true);
    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, trial_kernel("fk_scale_haunter2"), VERDICT_WRONG,
                  "the baseline failed beside it and not alone: it wrote outside its tensors, for"
                  " n=2000 a=2.5",
                  true);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_set_up, trial_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nothing_beside_the_tensors_can_be_used),
        TEST(outputs_that_wait_cannot_be_changed),
        TEST(result_words_neither_keep_nor_take_anything),
        TEST(what_is_forged_in_timing_is_found),
        TEST(inputs_that_are_changed_in_timing_are_found),
        TEST(a_baseline_that_fails_only_beside_the_candidate_is_its_failure),
    };
#undef TEST

    return cmocka_run_group_tests(tests, trial_find_compiler, NULL);
}

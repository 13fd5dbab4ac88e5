// Whole measurements of recordings on the fake GPU: as candidates and as baselines. Skipped without
// a compiler.
#include "executor/gpu/arena.h"
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include "tests/support/gpu_recording.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CANDIDATE 1
#define BASELINE 0

static struct problem *parse_problem(void)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;

    if (problem_parse(&problem, TRIAL_PROBLEM(TRIAL_CHECK), strlen(TRIAL_PROBLEM(TRIAL_CHECK)), "p",
                      &err) != 0) {
        fail_msg("%s", err.text);
    }
    return problem;
}

static void make(struct cuda_recording *recording, const char *kernel, unsigned number)
{
    struct problem *problem = parse_problem();

    gpu_recording_make(recording, problem, kernel, number);
    problem_free(problem);
}

static struct bytes recorded(const char *kernel, unsigned number)
{
    struct cuda_recording recording;

    make(&recording, kernel, number);
    return gpu_recording_pack(&recording);
}

// Has each case's kernel read or write something else: parameter 0 is x, 1 is y.
static void point(struct recorded_case *of, size_t parameter, uint64_t at)
{
    memcpy(of->nodes[0].parameters.data + 8 * parameter, &at, sizeof(at));
}

static void a_recording_is_measured_like_a_sealed_candidate(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, recorded("fk_scale", CANDIDATE), VERDICT_EQUIVALENT, "", false);
    trial_becomes(trial, recorded("fk_scale_fast30", CANDIDATE), VERDICT_FASTER, "", false);
    trial_becomes(trial, recorded("fk_scale_slow30", CANDIDATE), VERDICT_SLOWER, "", false);
    trial_becomes(trial, recorded("fk_scale_wrong", CANDIDATE), VERDICT_WRONG,
                  "1 of 300 elements are outside", false);
    trial_becomes(trial, recorded("fk_scale_memo", CANDIDATE), VERDICT_WRONG,
                  "elements are outside", false);
    trial_becomes(trial, recorded("fk_scale_oob", CANDIDATE), VERDICT_WRONG, "it wrote outside y",
                  false);
    trial_becomes(trial, recorded("fk_scale_slack", CANDIDATE), VERDICT_WRONG,
                  "it wrote outside its tensors", true);
    trial_becomes(trial, recorded("fk_scale_input", CANDIDATE), VERDICT_WRONG,
                  "it changed its input x", false);
}

// The kernel writes into a block, from which a copy brings the result to y, which takes time.
static struct bytes with_a_block(const char *kernel, unsigned arm)
{
    struct cuda_recording recording;

    make(&recording, kernel, arm);
    for (size_t i = 0; i < recording.cases_count; i++) {
        struct recorded_case *of = &recording.cases[i];
        size_t bytes = 4 * of->values[0];
        uint64_t at = gpu_recording_block(&recording, of, bytes)->at;
        struct recorded_node *copy = gpu_recording_node(of, RECORDED_COPY);

        copy->from = at;
        copy->to = of->tensors[1];
        copy->bytes = bytes;
        point(of, 1, at);
    }
    return gpu_recording_pack(&recording);
}

static void memory_of_its_own_is_there_and_guarded(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, with_a_block("fk_scale", CANDIDATE), VERDICT_SLOWER, "", false);
    trial_becomes(trial, with_a_block("fk_scale_oob", CANDIDATE), VERDICT_WRONG,
                  "it wrote outside its scratch memory", false);
    trial_becomes(trial, with_a_block("fk_scale_slack", CANDIDATE), VERDICT_WRONG,
                  "it wrote outside its tensors", true);
    // A baseline that does so does it alone, too.
    trial_replace(&trial->plan.baseline, with_a_block("fk_scale_slack", BASELINE));
    trial_fails(trial, trial_kernel("fk_scale"), "alone it wrote outside its tensors");
}

// What it handed back lies in a block, and is compared there.
static void a_result_may_lie_in_a_block(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    for (int small = 0; small < 2; small++) {
        make(&recording, "fk_scale", CANDIDATE);
        for (size_t i = 0; i < recording.cases_count; i++) {
            struct recorded_case *of = &recording.cases[i];
            uint64_t at = gpu_recording_block(&recording, of, small ? 16 : 4 * of->values[0])->at;

            of->outputs = xcalloc(2, sizeof(*of->outputs));
            of->outputs_count = 2;
            of->outputs[1] = at;
            point(of, 1, at);
        }
        trial_becomes(trial, gpu_recording_pack(&recording),
                      small ? VERDICT_CRASH : VERDICT_EQUIVALENT,
                      small ? "what it gave as y is smaller than that" : "", false);
    }
}

// Before each launch a kept block holds what it held when it was recorded: here a content that the
// candidate scales instead of x, and then itself overwrites.
static void what_is_kept_is_there_before_each_launch_and_answers_nothing(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    make(&recording, "fk_scale", CANDIDATE);
    recording.contents = xcalloc(1, sizeof(*recording.contents));
    recording.contents_count = 1;
    recording.contents[0].data = bytes_copy("\0\0\200\77", 4); // 1
    for (size_t i = 0; i < recording.cases_count; i++) {
        struct recorded_case *of = &recording.cases[i];
        struct recorded_block *block = gpu_recording_block(&recording, of, 4 * of->values[0]);

        block->kept = true;
        block->pieces = xcalloc(1, sizeof(*block->pieces));
        block->pieces_count = 1;
        point(of, 0, block->at);
    }
    const struct result *result = trial_result(trial, gpu_recording_pack(&recording));
    // y[0] is a times the content of the case that is verified first, whatever x is.
    assert_int_equal(result->verdict, VERDICT_WRONG);
    assert_non_null(strstr(result->reason, "y[0] is 2"));
    assert_non_null(strstr(result->reason, "for n=300 a=2"));
}

static void copies_and_fills_stay_in_its_own_memory(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    for (int what = 0; what < 3; what++) {
        make(&recording, "fk_scale", CANDIDATE);
        for (size_t i = 0; i < recording.cases_count; i++) {
            struct recorded_case *of = &recording.cases[i];
            struct recorded_node *node =
                gpu_recording_node(of, what == 0 ? RECORDED_FILL : RECORDED_COPY);

            node->width = 1;
            node->bytes = 64;
            node->to = what == 2 ? of->tensors[1] : ARENA_JUDGE;
            node->from = ARENA_JUDGE;
        }
        trial_becomes(trial, gpu_recording_pack(&recording), VERDICT_CRASH,
                      "it copies or fills memory that is not its own", false);
    }
}

// Of the fake's kernels those of another name take no parameters.
static void a_kernel_may_have_no_parameters(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    make(&recording, "idle", CANDIDATE);
    for (size_t i = 0; i < recording.cases_count; i++) {
        bytes_clear(&recording.cases[i].nodes[0].parameters);
    }
    trial_becomes(trial, gpu_recording_pack(&recording), VERDICT_WRONG, "elements are outside",
                  false);
}

// Such a recording has no code at all, and is measured like any other.
static void copies_alone_are_measured(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    make(&recording, "idle", CANDIDATE);
    message_clear(&recorded_image_message, &recording.images[0]);
    recording.images_count = 0;
    for (size_t i = 0; i < recording.cases_count; i++) {
        struct recorded_case *of = &recording.cases[i];

        of->nodes[0].kind = RECORDED_COPY;
        of->nodes[0].from = of->tensors[0];
        of->nodes[0].to = of->tensors[1];
        of->nodes[0].bytes = 4 * of->values[0];
    }
    trial_becomes(trial, gpu_recording_pack(&recording), VERDICT_WRONG, "elements are outside",
                  false);
}

// Splits each case's launch into two halves, of which the second comes after the first or not.
static void halve(struct cuda_recording *recording, bool after)
{
    for (size_t i = 0; i < recording->cases_count; i++) {
        struct recorded_case *of = &recording->cases[i];
        struct recorded_node *second = gpu_recording_node(of, RECORDED_KERNEL);
        struct recorded_node *first = &of->nodes[0];
        int32_t n = (int32_t)(of->values[0] / 2);

        memcpy(first->parameters.data + 16, &n, sizeof(n));
        second->symbol = xstrdup(first->symbol);
        second->shape = xcalloc(RECORDED_SHAPE, sizeof(*second->shape));
        memcpy(second->shape, first->shape, RECORDED_SHAPE * sizeof(*second->shape));
        second->shape_count = RECORDED_SHAPE;
        second->parameters = bytes_copy(first->parameters.data, first->parameters.len);
        for (size_t p = 0; p < 2; p++) {
            uint64_t at = of->tensors[p] + 4 * (uint64_t)n;

            memcpy(second->parameters.data + 8 * p, &at, sizeof(at));
        }
        second->after = xcalloc(1, sizeof(*second->after));
        second->after_count = after;
    }
}

// Two halves of 21 us each against one launch of 22 us.
static void launches_that_nothing_orders_overlap(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    make(&recording, "fk_scale", CANDIDATE);
    halve(&recording, true);
    const struct result *result = trial_result(trial, gpu_recording_pack(&recording));
    assert_int_equal(result->verdict, VERDICT_SLOWER);
    assert_true(result->speedup->log2 > -1.1 && result->speedup->log2 < -0.8);
    make(&recording, "fk_scale", CANDIDATE);
    halve(&recording, false);
    result = trial_result(trial, gpu_recording_pack(&recording));
    assert_true(result->speedup->log2 > -0.3 && result->speedup->log2 < 0.1);
    // What is on another stream is part of the time, and is waited for.
    make(&recording, "fk_scale_slow100", CANDIDATE);
    halve(&recording, false);
    trial_becomes(trial, gpu_recording_pack(&recording), VERDICT_SLOWER, "", false);
}

static void places_that_are_not_here_are_no_verdict(void **state)
{
    struct trial *trial = *state;
    struct cuda_recording recording;

    trial_must_open(trial, "noise=0.2");
    make(&recording, "fk_scale", CANDIDATE);
    recording.cases[1].tensors[1] += 256;
    trial_fails(trial, gpu_recording_pack(&recording), "y is at another address here");
    make(&recording, "fk_scale", CANDIDATE);
    recording.cases[1].values[0] = 301;
    trial_fails(trial, gpu_recording_pack(&recording), "it was not recorded for this case");
}

static void a_baseline_may_be_a_recording(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_replace(&trial->plan.baseline, recorded("fk_scale", BASELINE));
    trial_becomes(trial, recorded("fk_scale", CANDIDATE), VERDICT_EQUIVALENT, "", false);
    trial_becomes(trial, trial_kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
    // Alone it is right, so it is the candidate that has broken it.
    trial_becomes(trial, recorded("fk_scale_killer", CANDIDATE), VERDICT_CRASH,
                  "the baseline failed beside it and not alone", true);
    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, recorded("fk_scale_breaker", CANDIDATE), VERDICT_WRONG,
                  "the baseline failed beside it and not alone", true);
    trial_must_open(trial, "noise=0.2");
    trial_replace(&trial->plan.baseline, recorded("fk_scale_wrong", BASELINE));
    trial_fails(trial, recorded("fk_scale_breaker", CANDIDATE), "the baseline");
}

static struct bytes reference(void (*damage)(struct cuda_recording *recording))
{
    struct problem *problem = parse_problem();
    struct cuda_recording recording;

    gpu_recording_reference(&recording, problem);
    problem_free(problem);
    if (damage) {
        damage(&recording);
    }
    return gpu_recording_pack(&recording);
}

// Its inputs are where a candidate's are, and its results are what candidates are held against.
static void a_reference_may_be_a_recording(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_replace(&trial->plan.reference, reference(NULL));
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_becomes(trial, trial_kernel("fk_scale_fast30"), VERDICT_FASTER, "", false);
    trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG,
                  "1 of 300 elements are outside", false);
    trial_becomes(trial, trial_kernel("fk_scale_memo"), VERDICT_WRONG, "elements are outside",
                  false);
    trial_becomes(trial, recorded("fk_scale", CANDIDATE), VERDICT_EQUIVALENT, "", false);
    trial_replace(&trial->plan.baseline, recorded("fk_scale", BASELINE));
    trial_becomes(trial, recorded("fk_scale_fast30", CANDIDATE), VERDICT_FASTER, "", false);
    // The baseline is run alone beside it, in the oracle's process.
    trial_becomes(trial, recorded("fk_scale_killer", CANDIDATE), VERDICT_CRASH,
                  "the baseline failed beside it and not alone", true);
}

// What is judged follows from the reference that the plan has, also in an oracle that had another.
static void another_reference_takes_the_place_of_a_recorded_one(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_replace(&trial->plan.reference, reference(NULL));
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
    trial_replace(&trial->plan.reference, gpu_object("//@ launch fk_ref_copy grid=(1) block=(256) "
                                                     "args=(x, y, y_scale, n)\n",
                                                     "fk_ref_copy 8 8 8 4"));
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_WRONG, "elements are outside", false);
    trial_replace(&trial->plan.reference, reference(NULL));
    trial_becomes(trial, trial_kernel("fk_scale"), VERDICT_EQUIVALENT, "", false);
}

static void scales_of_zero(struct cuda_recording *recording)
{
    for (size_t i = 0; i < recording->cases_count; i++) {
        struct recorded_case *of = &recording->cases[i];
        struct recorded_node *fill = gpu_recording_node(of, RECORDED_FILL);

        fill->to = of->scales[1];
        fill->width = 4;
        fill->bytes = of->values[0] * sizeof(double);
        gpu_recording_after(fill, of->nodes_count - 2);
    }
}

static void of_another_case(struct cuda_recording *recording)
{
    recording->cases[1].values[0]++;
}

static void too_small(struct cuda_recording *recording)
{
    recording->cases[0].scales[1] += 8;
    recording->cases[1].scales[1] += 8;
}

static void a_fault(struct cuda_recording *recording)
{
    uint64_t nowhere = 8;

    memcpy(recording->cases[1].nodes[1].parameters.data, &nowhere, sizeof(nowhere));
}

// Where the error scale is 0 nothing but the exact value will do, which the baseline does not have.
static void what_a_recorded_reference_does_wrong_blames_no_candidate(void **state)
{
    struct trial *trial = *state;
    static const struct {
        void (*damage)(struct cuda_recording *);
        const char *words;
    } row[] = {
        {of_another_case, "the problem's reference: it was not recorded for this case"},
        {too_small, "the problem's reference: what it gave as y is smaller than that"},
        {a_fault, "the problem's reference fails: CUDA_ERROR_ILLEGAL_ADDRESS"},
    };

    trial_must_open(trial, "noise=0.2");
    trial_replace(&trial->plan.reference, reference(scales_of_zero));
    trial_fails(trial, trial_kernel("fk_scale"), "the baseline disagrees with the reference");
    trial_replace(&trial->plan.reference, recorded("fk_scale", CANDIDATE));
    trial_fails(trial, trial_kernel("fk_scale"), "a case is not one of the problem");
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        trial_replace(&trial->plan.reference, reference(row[i].damage));
        trial_fails(trial, trial_kernel("fk_scale"), row[i].words);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_set_up, trial_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_recording_is_measured_like_a_sealed_candidate),
        TEST(memory_of_its_own_is_there_and_guarded),
        TEST(a_result_may_lie_in_a_block),
        TEST(what_is_kept_is_there_before_each_launch_and_answers_nothing),
        TEST(copies_and_fills_stay_in_its_own_memory),
        TEST(a_kernel_may_have_no_parameters),
        TEST(copies_alone_are_measured),
        TEST(launches_that_nothing_orders_overlap),
        TEST(places_that_are_not_here_are_no_verdict),
        TEST(a_baseline_may_be_a_recording),
        TEST(a_reference_may_be_a_recording),
        TEST(another_reference_takes_the_place_of_a_recorded_one),
        TEST(what_a_recorded_reference_does_wrong_blames_no_candidate),
    };

    return cmocka_run_group_tests(tests, trial_find_compiler, NULL);
}

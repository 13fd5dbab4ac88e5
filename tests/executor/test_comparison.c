// The comparison of two arms: what it asks of the machine, and who counts as hiding time.
#include "executor/comparison.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fake {
    size_t launched; // in the superblock, as if it had begun with a whole block
    size_t begun, ended, superblocks, closed;
    enum arm_index arm[4];
    uint64_t content[4], next;
    enum arm_index second;
    unsigned judged; // launches that were to be judged
    size_t failing;  // the launch that does not succeed, counted from 1; 0: none
    size_t total;    // launches
    double longer;   // nanoseconds of the candidate's launches; 0: 1000
    double hidden; // wall time of the candidate that its clock does not show; < 0: of the baseline
    size_t hidden_every;      // only in one of so many blocks; 0: in all
    enum arm_index hidden_in; // the arm that hides it where hidden > 0; 0: the candidate
};

static int superblock(void *machine, void *data, enum arm_index second, bool last, struct err *err)
{
    struct fake *fake = machine;

    (void)err;
    assert_string_equal(data, "data of the case");
    fake->superblocks += !last;
    fake->closed += last;
    fake->second = second;
    fake->launched = 2;
    return 0;
}

static int launch(void *machine, void *data, enum arm_index arm, uint64_t content,
                  struct launch_time *ret, struct err *err)
{
    struct fake *fake = machine;
    double ns = arm == ARM_BASELINE ? 4000 : fake->longer > 0 ? fake->longer : 1000;
    size_t at = fake->launched % 4, block = fake->launched / 4;

    assert_string_equal(data, "data of the case");
    assert_true(content >= MEASURE_CONTENTS);
    if (++fake->total == fake->failing) {
        return err_set(err, ERR_SYSTEM, "launch %zu fails", fake->total);
    }
    if (block > 0 && (block > 1 || at >= 2)) { // all blocks of a superblock have the same order
        assert_int_equal(fake->arm[at], arm);
    }
    fake->begun += at == 0;
    fake->arm[at] = arm;
    fake->content[at] = content;
    fake->launched++;
    *ret = (struct launch_time){.cpu = ns, .wall = ns};
    if (fake->hidden_every == 0 || block % fake->hidden_every == 1) {
        enum arm_index in = fake->hidden_in == 0 ? ARM_CANDIDATE : fake->hidden_in;
        ret->wall += arm == in ? fmax(fake->hidden, 0) : fmax(-4 * fake->hidden, 0);
    }
    return 0;
}

// Both arms have just had this content, one after the other; and each block has two.
static int end_pair(void *machine, void *data, enum arm_index second, uint64_t content, bool judge,
                    struct err *err)
{
    struct fake *fake = machine;
    size_t pair = (fake->launched - 1) % 4 / 2;

    (void)data;
    (void)err;
    assert_int_equal(second, fake->second);
    assert_int_equal(fake->launched % 2, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(fake->content[2 * pair + i], content);
    }
    assert_int_not_equal(fake->arm[2 * pair], fake->arm[2 * pair + 1]);
    if (pair == 1 && fake->launched > 4) {
        assert_int_equal(fake->content[0], content - 1);
        fake->ended++;
    }
    fake->judged += judge;
    return 0;
}

static enum block_state block_state(void *machine, const struct timing_block *block)
{
    const struct fake *fake = machine;

    assert_true(block->cpu[0][0] == 4000 && (fake->longer > 0 || block->cpu[1][1] == 1000));
    return timing_block_state(block, 10);
}

static double systematic(void *machine, double launch_ns)
{
    const struct fake *fake = machine;

    // The geometric mean of the arms; not a number when no block counts.
    assert_true(isnan(launch_ns) || fake->longer > 0 || fabs(launch_ns - 2000) < 1e-9 ||
                fake->hidden > 0);
    return 0;
}

static const struct measure_ops ops = {.short_ns = 17,
                                       .quantum_ns = 3,
                                       .superblock = superblock,
                                       .launch = launch,
                                       .end_pair = end_pair,
                                       .block_state = block_state,
                                       .systematic = systematic};

struct fixture {
    struct fake fake;
    struct measure_plan plan;
    struct measurement measurement;
    struct shape_case shape[2];
    struct measure_case cases[2];
    struct comparison comparison;
};

static int set_up(void **state)
{
    static char data[] = "data of the case", name[] = "N=8";
    struct fixture *f = xcalloc(1, sizeof(*f));

    message_init(&measure_plan_message, &f->plan);
    f->plan.max_seconds = 1e9;
    f->measurement.plan = &f->plan;
    stats_rng_init(&f->measurement.rng, 1, 1);
    for (size_t i = 0; i < 2; i++) {
        f->shape[i].weight = 0.5;
        f->cases[i] = (struct measure_case){.shape = &f->shape[i], .name = name, .data = data};
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    free(f->measurement.reason);
    free(f);
    return 0;
}

static struct paired_timing *init(struct fixture *f, enum arm_index second)
{
    comparison_init(&f->comparison, &ops, &f->fake, &f->measurement, f->cases, 2, second);
    return &f->comparison.timing;
}

static void the_plan_says_how_long_and_how_precisely(void **state)
{
    struct fixture *f = *state;
    struct paired_timing *timing = init(f, ARM_CANDIDATE);

    assert_int_equal(timing->looks, TIMING_LOOKS);
    assert_true(timing->rule.precision_log2 == TIMING_PRECISION_LOG2);
    assert_true(timing->short_ns == 17 && timing->quantum_ns == 3 && timing->max_seconds == 1e9);
    assert_int_equal(timing->cases[1].content, MEASURE_CONTENTS);
    assert_ptr_equal(timing->aside_s, &f->measurement.seconds.inputs);
    assert_int_equal(timing->case_count, 2);
    assert_true(timing->cases[1].weight == 0.5 && timing->cases[1].of == &f->cases[1]);
    f->plan.precision_log2 = 0.01;
    f->plan.anchor_log2 = 0.5;
    f->plan.max_launches = 32;
    timing = init(f, ARM_CANDIDATE);
    assert_true(timing->rule.precision_log2 == 0.01 && timing->rule.anchor_log2 == 0.5);
    assert_int_equal(timing->looks, 2);
    f->plan.precision_log2 = -1; // none that could be kept
    assert_true(init(f, ARM_CANDIDATE)->rule.precision_log2 == TIMING_PRECISION_LOG2);
}

static void both_arms_are_launched_on_each_content(void **state)
{
    static const enum arm_index second[] = {ARM_CANDIDATE, ARM_CONTROL};
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        memset(&f->fake, 0, sizeof(f->fake));
        struct paired_timing *timing = init(f, second[i]);
        assert_int_equal(comparison_run(&f->comparison, &err), 0);
        assert_true(fabs(timing->combined.log2 - 2) < 1e-9);
        assert_int_equal(f->fake.begun, f->fake.ended);
        assert_int_equal(f->fake.total, 4 * f->fake.begun + 2 * f->fake.superblocks);
        assert_int_equal(f->fake.superblocks, f->fake.closed); // one superblock of each case
        assert_true(second[i] == ARM_CANDIDATE ? f->fake.judged >= 2 : f->fake.judged == 0);
        size_t baseline = 0, other = 0;
        for (size_t j = 0; j < 4; j++) {
            baseline += f->fake.arm[j] == ARM_BASELINE;
            other += f->fake.arm[j] == second[i];
        }
        assert_int_equal(baseline, 2);
        assert_int_equal(other, 2);
        assert_int_equal(f->fake.arm[0], f->fake.arm[3]); // ABBA or BAAB
        assert_int_equal(f->fake.arm[1], f->fake.arm[2]);
    }
}

// Launches that are drawn to be judged are not, where the candidate is much slower.
static void what_wins_nothing_is_not_judged(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.longer = 4000 * 1.04;
    (void)init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_run(&f->comparison, &err), 0);
    assert_true(f->fake.judged >= 2);
    memset(&f->fake, 0, sizeof(f->fake));
    f->fake.longer = 4000 * 1.06;
    (void)init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_run(&f->comparison, &err), 0);
    assert_true(f->fake.ended >= 4);
    assert_int_equal(f->fake.judged, 0);
}

static void a_launch_that_fails_ends_it(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.failing = 9; // of the second block
    (void)init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_run(&f->comparison, &err), ERR_SYSTEM);
    assert_string_equal(err.text, "launch 9 fails");
    assert_int_equal(f->fake.total, 9);
    assert_int_equal(f->fake.ended, 1);
}

static void a_candidate_that_hides_time_is_quarantined(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.hidden = 300;
    (void)init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_run(&f->comparison, &err), MEASURE_STOP);
    assert_int_equal(f->measurement.verdict, VERDICT_QUARANTINED);
    assert_string_equal(f->measurement.reason,
                        "the candidate took time that its clock does not show in 8 of 8 blocks, "
                        "for N=8");
}

// Its blocks in which it sleeps count, and are slower than the others.
static void a_candidate_that_hides_time_in_some_blocks_is_slower_in_them(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.hidden = 9000;
    f->fake.hidden_every = 3;
    struct paired_timing *timing = init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_run(&f->comparison, &err), 0);
    assert_int_equal(f->measurement.verdict, VERDICT_NONE);
    assert_true(timing->cases[0].escaped > 0);
    assert_true(timing->combined.log2 < 2 && timing->cases[0].estimate.standard_error > 0);
}

static void time_that_the_baseline_s_copy_hides_is_a_disturbance(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.hidden = 9000;
    f->fake.hidden_every = 3;
    f->fake.hidden_in = ARM_CONTROL;
    struct paired_timing *timing = init(f, ARM_CONTROL);
    assert_int_equal(comparison_run(&f->comparison, &err), 0);
    assert_true(timing->cases[0].voids > 0 && timing->cases[0].escaped == 0);
    assert_true(fabs(timing->combined.log2 - 2) < 1e-9);
}

static void time_that_the_baseline_hides_is_a_disturbance(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.hidden = -300; // the baseline takes more
    struct paired_timing *timing = init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_run(&f->comparison, &err), 0);
    assert_non_null(paired_timing_disturbed(timing));
    assert_int_equal(f->measurement.verdict, VERDICT_NONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_plan_says_how_long_and_how_precisely),
        TEST(both_arms_are_launched_on_each_content),
        TEST(what_wins_nothing_is_not_judged),
        TEST(a_launch_that_fails_ends_it),
        TEST(a_candidate_that_hides_time_is_quarantined),
        TEST(a_candidate_that_hides_time_in_some_blocks_is_slower_in_them),
        TEST(time_that_the_baseline_s_copy_hides_is_a_disturbance),
        TEST(time_that_the_baseline_hides_is_a_disturbance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

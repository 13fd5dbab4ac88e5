// The comparison of two arms: what it asks of the machine, and who counts as remembering answers.
#include "executor/comparison.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A machine that completes the times of a block's launches when the block ends.
struct fake {
    struct launch_time *open[4];
    size_t launched, begun, ended, probed;
    enum arm_index arm[4];
    enum arm_index second;
    size_t failing; // the launch that does not succeed, counted from 1; 0: none
    size_t total;   // launches
    struct measure_fresh fresh[2];
    int probe_rc;
};

static int begin_block(void *machine, void *data, enum arm_index second, struct err *err)
{
    struct fake *fake = machine;

    (void)data;
    (void)err;
    fake->begun++;
    fake->launched = 0;
    fake->second = second;
    return 0;
}

static int launch(void *machine, void *data, enum arm_index arm, size_t content,
                  struct launch_time *ret, struct err *err)
{
    struct fake *fake = machine;

    assert_string_equal(data, "data of the case");
    assert_true(content < MEASURE_CONTENTS);
    if (++fake->total == fake->failing) {
        return err_set(err, ERR_SYSTEM, "launch %zu fails", fake->total);
    }
    *ret = (struct launch_time){.cpu = NAN, .wall = NAN};
    fake->arm[fake->launched] = arm;
    fake->open[fake->launched++] = ret;
    return 0;
}

static void end_block(void *machine, enum arm_index second)
{
    struct fake *fake = machine;

    assert_int_equal(second, fake->second);
    fake->ended++;
    for (size_t i = 0; i < fake->launched; i++) {
        double ns = fake->arm[i] == ARM_BASELINE ? 4000 : 1000;

        *fake->open[i] = (struct launch_time){.cpu = ns, .wall = ns};
    }
}

static bool is_void(void *machine, const struct timing_block *block)
{
    (void)machine;
    assert_true(block->wall[0][0] == 4000 && block->wall[1][1] == 1000);
    return false;
}

static double systematic(void *machine, double launch_ns)
{
    (void)machine;
    assert_true(fabs(launch_ns - 2000) < 1e-9); // geometric mean of the arms
    return 0;
}

static int probe_fresh(void *machine, struct paired_timing *paired_timing, struct timed_case *timed,
                       struct measure_fresh *ret, struct err *err)
{
    struct fake *fake = machine;

    assert_ptr_equal(timed, &paired_timing->cases[fake->probed]);
    *ret = fake->fresh[fake->probed++];
    return fake->probe_rc == 0 ? 0 : err_set(err, (enum err_code)fake->probe_rc, "no probe");
}

static const struct measure_ops ops = {.short_ns = 17,
                                       .quantum_ns = 3,
                                       .begin_block = begin_block,
                                       .launch = launch,
                                       .end_block = end_block,
                                       .is_void = is_void,
                                       .systematic = systematic,
                                       .probe_fresh = probe_fresh};

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
        f->fake.fresh[i] = (struct measure_fresh){.least_ns = 1000, .usual_ns = 1000};
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
    assert_int_equal(timing->slots, MEASURE_CONTENTS);
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

static void times_are_read_when_the_block_has_ended(void **state)
{
    static const enum arm_index second[] = {ARM_CANDIDATE, ARM_CONTROL};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(second); i++) {
        f->fake.begun = f->fake.ended = f->fake.total = 0;
        struct paired_timing *timing = init(f, second[i]);
        assert_int_equal(paired_timing_run(timing, NULL), 0);
        assert_true(fabs(timing->combined.log2 - 2) < 1e-9);
        assert_int_equal(f->fake.begun, f->fake.ended);
        assert_int_equal(f->fake.total, 4 * f->fake.begun);
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

static void a_launch_that_fails_ends_its_block_too(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->fake.failing = 7;
    assert_int_equal(paired_timing_run(init(f, ARM_CANDIDATE), &err), ERR_SYSTEM);
    assert_string_equal(err.text, "launch 7 fails");
    assert_int_equal(f->fake.total, 7);
    assert_int_equal(f->fake.begun, 2);
    assert_int_equal(f->fake.ended, 2);
}

static void who_is_much_slower_on_new_contents_remembers(void **state)
{
    static const struct {
        double least_ns, usual_ns;
        bool remembers;
    } row[] =
        {
            {1000, 1000, false},   {20000, 10000, true},
            {15000, 10000, false},                      // half as much again is not more than that
            {15001, 10000, true},  {4000, 1000, false}, // a cache explains three microseconds
            {4001, 1000, true},    {3000, 0, false},
            {3001, 0, true},       {1e9, 0.9e9, false},
            {10000, 20000, false}, {NAN, 1000, false},
            {1000, NAN, false},    {INFINITY, 1000, true},
        };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct measure_fresh fresh = {.least_ns = row[i].least_ns, .usual_ns = row[i].usual_ns};

        if (comparison_remembers(&fresh) != row[i].remembers) {
            fail_msg("%g after %g", row[i].least_ns, row[i].usual_ns);
        }
    }
}

static void each_case_is_probed_until_one_convicts(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    (void)init(f, ARM_CANDIDATE);
    assert_int_equal(comparison_probe_fresh(&f->comparison, &err), 0);
    assert_int_equal(f->fake.probed, 2);
    assert_int_equal(f->measurement.verdict, VERDICT_NONE);
    f->fake.probed = 0;
    f->fake.fresh[0] = (struct measure_fresh){.least_ns = 25000, .usual_ns = 10000};
    assert_int_equal(comparison_probe_fresh(&f->comparison, &err), MEASURE_STOP);
    assert_int_equal(f->fake.probed, 1);
    assert_int_equal(f->measurement.verdict, VERDICT_QUARANTINED);
    assert_non_null(strstr(f->measurement.reason, "2.50 times slower on contents"));
    assert_non_null(strstr(f->measurement.reason, "for N=8"));
    // A probe that cannot be made is nobody's fault.
    f->fake.probed = 0;
    f->fake.probe_rc = ERR_SYSTEM;
    assert_int_equal(comparison_probe_fresh(&f->comparison, &err), ERR_SYSTEM);
    assert_string_equal(err.text, "no probe");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_plan_says_how_long_and_how_precisely),
        TEST(times_are_read_when_the_block_has_ended),
        TEST(a_launch_that_fails_ends_its_block_too),
        TEST(who_is_much_slower_on_new_contents_remembers),
        TEST(each_case_is_probed_until_one_convicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

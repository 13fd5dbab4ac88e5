// The order of a measurement's steps, on a fake machine that launches nothing: which step follows
// which, what ends it, and what the outcome says.
#include "common/mem.h"
#include "common/strbuf.h"
#include "executor/measure.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PROBLEM                                                                                    \
    "{\"name\": \"p\", \"title\": \"y = x\", \"license\": \"MIT\", \"language\": \"c\","           \
    "\"entry\": \"p\", \"params\": [{\"name\": \"N\", \"type\": \"int\"}],"                        \
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"        \
    "[\"N\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"            \
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"],"            \
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"N\": 100}, {\"N\": 1}, {\"N\": 7}], "          \
    "\"bench\": ["                                                                                 \
    "{\"params\": {\"N\": 1000}, \"weight\": 0.5}, {\"params\": {\"N\": 2000}, \"weight\": 0.5}]," \
    "\"hidden\": {\"N\": {\"min\": 7, \"max\": 7}}},"                                              \
    "\"cache\": \"warm\", \"work\": {\"flops\": \"N\", \"bytes\": \"8*N\"}}"

// The machine.
struct fake {
    const char *failing; // the function that does not succeed; NULL: all do
    int with;            // what that function returns
    double ns[ARM_COUNT];
    double alone_ns;        // of the baseline
    double noise;           // blocks take turns in taking up to twice this share more
    double inputs_s;        // seconds of inputs that each launch adds
    enum block_state state; // of every block
    struct measure_peaks peaks;
    // What the machine has seen:
    struct measurement *measurement;
    struct strbuf log;  // its steps; of consecutive blocks of one case only the first
    const void *timing; // the case whose blocks run
    enum arm_index against;
    char order[5];
    size_t launched, blocks_ended; // launched: in the block
    int cases_open;                // cases whose data has been made and not freed
    bool closed;
};

static int step(struct fake *fake, const char *name, struct err *err)
{
    if (fake->failing && strcmp(fake->failing, name) == 0) {
        return fake->with == MEASURE_STOP
                   ? measurement_stop(fake->measurement, VERDICT_CRASH, "%s it is", name)
                   : err_set(err, ERR_SYSTEM, "%s has failed", name);
    }
    return 0;
}

static uint64_t hidden_seed(const struct measure_plan *plan)
{
    return plan->seed;
}

static int open_fake(void *machine, struct measurement *measurement, struct err *err)
{
    struct fake *fake = machine;

    fake->measurement = measurement;
    measurement->seconds.inputs = 0;
    strbuf_adds(&fake->log, "open");
    return step(fake, "open", err);
}

static int start(void *machine, const struct shape_case *hidden, size_t hidden_count,
                 struct err *err)
{
    struct fake *fake = machine;

    (void)hidden;
    strbuf_addf(&fake->log, " start(%zu)", hidden_count);
    return step(fake, "start", err);
}

static void close_fake(void *machine)
{
    struct fake *fake = machine;

    assert_int_equal(fake->cases_open, 0);
    fake->closed = true;
}

static int data_create(void *machine, const struct measure_case *of, void **ret, struct err *err)
{
    struct fake *fake = machine;
    int rc = step(fake, "data", err);

    if (rc == 0) {
        fake->cases_open++;
        *ret = (void *)(uintptr_t)of;
    }
    return rc;
}

static void data_free(void *machine, void *data)
{
    struct fake *fake = machine;

    (void)data;
    fake->cases_open--;
}

static int verify(void *machine, void *data, bool timed, struct err *err)
{
    const struct measure_case *of = data;
    struct fake *fake = machine;

    strbuf_addf(&fake->log, " %s %llu", timed ? "bench" : "check", (unsigned long long)of->index);
    return step(fake, timed ? "bench" : "check", err);
}

static int prepare_control(void *machine, void *data, struct err *err)
{
    const struct measure_case *of = data;
    struct fake *fake = machine;

    strbuf_addf(&fake->log, " control %llu", (unsigned long long)of->index);
    return step(fake, "control", err);
}

static int superblock(void *machine, void *data, enum arm_index second, bool last, struct err *err)
{
    const struct measure_case *of = data;
    struct fake *fake = machine;

    if (fake->timing != data || fake->against != second) {
        strbuf_addf(&fake->log, " time %llu", (unsigned long long)of->index);
        fake->timing = data;
        fake->against = second;
    }
    fake->launched = 0;
    return last ? step(fake, "last", err) : step(fake, "superblock", err);
}

static int launch(void *machine, void *data, enum arm_index arm, uint64_t content,
                  struct launch_time *ret, struct err *err)
{
    struct fake *fake = machine;
    double more = fake->noise * (double)(fake->blocks_ended % 3);

    (void)data;
    assert_true(content >= MEASURE_CONTENTS);
    assert_true((content >= (uint64_t)1 << 32) == (fake->against == ARM_CONTROL));
    fake->order[fake->launched++] = arm == ARM_BASELINE ? 'A' : 'B';
    fake->measurement->seconds.inputs += fake->inputs_s;
    *ret = (struct launch_time){.cpu = fake->ns[arm] * (arm == ARM_BASELINE ? 1 : 1 + more),
                                .wall = 1};
    return step(fake, "launch", err);
}

static int end_block(void *machine, void *data, enum arm_index second, uint64_t content,
                     unsigned judge, struct err *err)
{
    struct fake *fake = machine;

    (void)data;
    (void)content;
    assert_int_equal(second, fake->against);
    assert_true(judge == 0 || second == ARM_CANDIDATE);
    fake->blocks_ended++;
    assert_int_equal(fake->launched, 4);
    assert_true(strcmp(fake->order, "ABBA") == 0 || strcmp(fake->order, "BAAB") == 0);
    fake->launched = 0;
    return step(fake, "block", err);
}

static enum block_state block_state(void *machine, const struct timing_block *block)
{
    const struct fake *fake = machine;

    (void)block;
    return fake->state;
}

static double systematic(void *machine, double launch_ns)
{
    (void)machine;
    (void)launch_ns;
    return 0;
}

static struct measure_peaks peaks(void *machine, const void *data)
{
    const struct fake *fake = machine;

    (void)data;
    return fake->peaks;
}

static void outcome(void *machine, struct measure_outcome *ret)
{
    struct fake *fake = machine;

    ret->result->trust = xstrdup("none");
    ret->result->clock = xstrdup("a fake's");
    ret->retire = true;
    strbuf_adds(&fake->log, " outcome");
}

static int alone(void *machine, void *data, double *ret_ns, struct err *err)
{
    struct fake *fake = machine;
    (void)data;
    strbuf_adds(&fake->log, " alone");
    *ret_ns = fake->alone_ns;
    return step(fake, "alone", err);
}

static const struct measure_ops ops = {
    .noun = "fake",
    .disturbance = "the fake is disturbed",
    .rng_stream = 1,
    .hidden_seed = hidden_seed,
    .open = open_fake,
    .start = start,
    .close = close_fake,
    .data_create = data_create,
    .data_free = data_free,
    .verify = verify,
    .prepare_control = prepare_control,
    .superblock = superblock,
    .launch = launch,
    .end_block = end_block,
    .alone = alone,
    .block_state = block_state,
    .systematic = systematic,
    .peaks = peaks,
    .outcome = outcome,
};

// A machine on which the candidate is twice as fast and nothing is wrong.
static struct fake good(void)
{
    return (struct fake){
        .ns = {[ARM_BASELINE] = 20000, [ARM_CANDIDATE] = 10000, [ARM_CONTROL] = 20000},
        .alone_ns = NAN,
        .peaks = {.flops = NAN, .bytes = NAN},
        .log = STRBUF_INIT,
    };
}

static struct measure_plan plan_of(bool control)
{
    struct measure_plan plan;

    message_init(&measure_plan_message, &plan);
    plan.problem =
        (struct bytes){.data = (unsigned char *)(uintptr_t)PROBLEM, .len = strlen(PROBLEM)};
    plan.seed = 5;
    plan.max_seconds = 1e6; // so that the speed of this machine decides nothing
    plan.control = control;
    return plan;
}

// Runs a measurement that must have an outcome. The caller clears it.
static struct measure_outcome run(const struct measure_ops *with, struct fake *fake,
                                  const struct measure_plan *plan)
{
    struct measure_outcome ret;
    struct err err = ERR_INIT;

    if (measure_run(with, fake, plan, &ret, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(fake->closed);
    return ret;
}

// Of the check cases, 0 has 100 elements, 1 has 1 and 2 has 7, as many as each hidden case.
static void the_steps_follow_each_other(void **state)
{
    struct measure_plan plan = plan_of(true);
    struct fake fake = good();
    struct measure_outcome ret = run(&ops, &fake, &plan);

    (void)state;
    assert_string_equal(fake.log.data,
                        "open start(4) check 1 check 2 check 1000 check 1001 check 1002 check 1003 "
                        "check 0 bench 2000 bench 2001 time 2000 time 2001 "
                        "alone alone control 2000 time 2000 outcome");
    assert_int_equal(ret.result->verdict, VERDICT_FASTER);
    assert_null(ret.result->reason);
    assert_int_equal(ret.result->cases_count, 2);
    assert_string_equal(ret.result->cases[1].params, "N=2000");
    assert_true(isnan(ret.result->cases[1].floor_ns));
    assert_true(fabs(ret.result->speedup->log2 - 1) < 1e-9);
    assert_non_null(ret.result->control);
    assert_true(fabs(ret.result->control->log2) < 1e-9);
    assert_true(isnan(ret.result->overhead_ns));
    assert_true(isnan(ret.result->seconds->queue) && ret.result->seconds->held >= 0);
    assert_int_equal(ret.result->seed, 5);
    assert_string_equal(ret.result->trust, "none");
    assert_true(ret.retire);
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static void without_control_there_is_none(void **state)
{
    struct measure_plan plan = plan_of(false);
    struct fake fake = good();
    struct measure_outcome ret = run(&ops, &fake, &plan);

    (void)state;
    assert_null(strstr(fake.log.data, "control"));
    assert_null(ret.result->control);
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static const char *const steps[] = {"open",       "start",  "data",  "check", "bench",
                                    "superblock", "launch", "block", "last",  "control"};

static void the_candidate_s_failure_ends_it_with_a_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct measure_plan plan = plan_of(true);
        struct fake fake = good();
        char *reason = xasprintf("%s it is", steps[i]);

        fake.failing = steps[i];
        fake.with = MEASURE_STOP;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, VERDICT_CRASH);
        assert_string_equal(ret.result->reason, reason);
        // What was timed before is reported.
        assert_int_equal(ret.result->cases_count, i < 9 ? 0 : 2);
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
        free(reason);
    }
}

static void an_error_gives_no_outcome(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct measure_plan plan = plan_of(true);
        struct fake fake = good();
        char *text = xasprintf("%s has failed", steps[i]);

        fake.failing = steps[i];
        fake.with = ERR_SYSTEM;
        struct measure_outcome ret;
        struct err err = ERR_INIT;
        assert_int_equal(measure_run(&ops, &fake, &plan, &ret, &err), ERR_SYSTEM);
        assert_string_equal(err.text, text);
        assert_null(strstr(fake.log.data, "outcome"));
        assert_true(fake.closed);
        strbuf_release(&fake.log);
        free(text);
    }
}

// What a case is named by stays its own, so the least work is first without any other difference.
static void a_wrong_candidate_ends_at_the_case_that_is_least_work(void **state)
{
    struct measure_plan plan = plan_of(true);
    struct fake fake = good();

    (void)state;
    fake.failing = "check";
    fake.with = MEASURE_STOP;
    struct measure_outcome ret = run(&ops, &fake, &plan);
    assert_string_equal(fake.log.data, "open start(4) check 1 outcome");
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static void a_problem_that_cannot_be_read_is_an_error(void **state)
{
    struct measure_plan plan = plan_of(false);
    struct fake fake = good();

    (void)state;
    plan.problem = (struct bytes){.data = (unsigned char *)(uintptr_t) "{}", .len = 2};
    struct measure_outcome ret;
    struct err err = ERR_INIT;
    assert_true(measure_run(&ops, &fake, &plan, &ret, &err) < 0);
    assert_int_equal(fake.log.len, 0);
    assert_true(fake.closed);
    strbuf_release(&fake.log);
}

static void times_below_the_floor_are_quarantined(void **state)
{
    struct measure_plan plan = plan_of(true);
    struct fake fake = good();

    (void)state;
    fake.peaks = (struct measure_peaks){.flops = NAN, .bytes = 8e8, .cached_bytes = 4000};
    struct measure_outcome ret = run(&ops, &fake, &plan); // (8 * 2000 - 4000) / 8e8 s
    assert_int_equal(ret.result->verdict, VERDICT_QUARANTINED);
    assert_string_equal(ret.result->reason, "the candidate took 10000 ns for N=2000, less than the "
                                            "15000 ns that this fake needs at least");
    assert_true(fabs(ret.result->cases[0].floor_ns - 5000) < 1e-6);
    assert_null(strstr(fake.log.data, "control"));
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static void who_hides_time_is_quarantined_and_who_is_disturbed_is_not(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    for (int escaped = 0; escaped < 2; escaped++) {
        struct fake fake = good();

        fake.state = escaped ? BLOCK_ESCAPED : BLOCK_DISTURBED;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, escaped ? VERDICT_QUARANTINED : VERDICT_INCONCLUSIVE);
        assert_string_equal(ret.result->reason,
                            escaped ? "the candidate took time that its clock does not show in 8 "
                                      "of 9 blocks, for N=1000"
                                    : "18 of 19 blocks were disturbed, for N=1000; the fake is "
                                      "disturbed");
        assert_int_equal(ret.result->cases_count, escaped ? 2 : 0); // disturbed blocks do not count
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

// That is said in the result, since the times are not all as they were read.
static void arms_that_differ_in_their_clocks_have_a_verdict(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    for (int unlike = 0; unlike < 2; unlike++) {
        struct fake fake = good();

        fake.state = unlike ? BLOCK_UNLIKE : BLOCK_COUNTS;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, VERDICT_FASTER);
        assert_string_equal(ret.result->clock,
                            unlike ? "a fake's, 16 blocks at unlike frequencies" : "a fake's");
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

static void too_little_time_says_so(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    plan.max_seconds = 0;
    struct fake fake = good();
    fake.ns[ARM_CANDIDATE] = 14000;
    fake.noise = 0.9;
    struct measure_outcome ret = run(&ops, &fake, &plan);
    assert_int_equal(ret.result->verdict, VERDICT_INCONCLUSIVE);
    assert_string_equal(ret.result->reason, "no decision within 0 seconds of timing");
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

// Seconds that inputs take are not counted as timing, unless the machine says that they are.
static void inputs_are_accounted_for_once(void **state)
{
    struct measure_plan plan = plan_of(false);
    struct measure_ops both = ops;

    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        struct fake fake = good();
        fake.inputs_s = 1e6; // more than the whole test can take
        both.inputs_are_timing = timing;
        struct measure_outcome ret = run(&both, &fake, &plan);
        assert_int_equal(ret.result->seconds->time >= 0, timing);
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

// Only a candidate that seems to be faster can have gained by it.
static void who_hinders_the_baseline_is_quarantined(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    for (int hindered = 0; hindered < 2; hindered++) {
        struct fake fake = good();
        fake.ns[ARM_BASELINE] = 2e6;
        fake.alone_ns = hindered ? 1.5e6 : 1.6e6;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, hindered ? VERDICT_QUARANTINED : VERDICT_FASTER);
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_steps_follow_each_other),
        cmocka_unit_test(without_control_there_is_none),
        cmocka_unit_test(the_candidate_s_failure_ends_it_with_a_verdict),
        cmocka_unit_test(an_error_gives_no_outcome),
        cmocka_unit_test(a_wrong_candidate_ends_at_the_case_that_is_least_work),
        cmocka_unit_test(a_problem_that_cannot_be_read_is_an_error),
        cmocka_unit_test(times_below_the_floor_are_quarantined),
        cmocka_unit_test(who_hides_time_is_quarantined_and_who_is_disturbed_is_not),
        cmocka_unit_test(who_hinders_the_baseline_is_quarantined),
        cmocka_unit_test(arms_that_differ_in_their_clocks_have_a_verdict),
        cmocka_unit_test(too_little_time_says_so),
        cmocka_unit_test(inputs_are_accounted_for_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

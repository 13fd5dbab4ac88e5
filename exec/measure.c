#include "exec/measure.h"
#include "common/clock.h"
#include "exec/machine.h"
#include "exec/race.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Candidates' files in the runners' tmpfs: three objects and the control's.
#define SCRATCH_EXTRA ((uint64_t)1 << 20)
#define FLOOR_SHARE 0.97
#define CONTROL_LOOKS 3
#define CONTROL_SHARE 0.25

struct measurement {
    struct judge judge;
    struct shape_case hidden[PROBLEM_HIDDEN_CASES];
    size_t hidden_count;
    struct trial bench[PROBLEM_CASE_MAX];
    size_t bench_count;
    struct race race;
    struct race control;
    bool raced, controlled;
};

static double since(uint64_t start_ns)
{
    return clock_seconds(clock_now_ns(&clock_system) - start_ns);
}

// ---- phases ----

static int start(struct measurement *m, struct err *err)
{
    const struct shape_case *shape[2 * PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES];
    struct problem *problem = m->judge.problem;
    const struct measure_plan *plan = m->judge.plan;
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .off = plan->sandbox_off};
    uint64_t begin = clock_now_ns(&clock_system);
    size_t count = 0;
    int status;

    sandbox.scratch =
        plan->reference.len + 2 * plan->baseline.len + plan->candidate.len + SCRATCH_EXTRA;
    status = arm_prepare_judge(plan->core, m->judge.nursery, err);
    if (status == 0) {
        status = nursery_enter(m->judge.nursery, &sandbox, err);
    }
    m->hidden_count = problem->has_hidden
                          ? problem_hidden_cases(
                                problem, stats_philox(plan->seed, 0x68696464656eULL, 0), m->hidden)
                          : 0;
    for (size_t i = 0; i < problem->check_count; i++) {
        shape[count++] = &problem->check[i];
    }
    for (size_t i = 0; i < m->hidden_count; i++) {
        shape[count++] = &m->hidden[i];
    }
    for (size_t i = 0; i < problem->bench_count; i++) {
        shape[count++] = &problem->bench[i];
    }
    if (status == 0) {
        status = judge_start(&m->judge, shape, count, err);
    }
    if (status == 0) {
        status = judge_ready(&m->judge, err);
    }
    m->judge.seconds.start = since(begin);
    return status;
}

// Both contents, one after the other at the same addresses; then the first again: what answers from
// memory is wrong once.
static int verify_trial(struct judge *judge, struct trial *trial, struct err *err)
{
    int status = 0;

    for (uint64_t number = 0; number < TRIAL_CONTENTS && status == 0; number++) {
        status = judge_content_make(judge, trial, number, number, err);
    }
    uint64_t begin = clock_now_ns(&clock_system);
    for (size_t slot = 0; slot < TRIAL_CONTENTS && status == 0; slot++) {
        status = judge_launch(judge, ARM_CANDIDATE, trial, slot, NULL, err);
    }
    judge->seconds.verify += since(begin);
    return status;
}

static int verify_shapes(struct measurement *m, const struct shape_case *shape, size_t count,
                         uint64_t first_index, struct err *err)
{
    int status = 0;

    for (size_t i = 0; i < count && status == 0; i++) {
        struct trial trial;
        status = judge_trial_init(&m->judge, &trial, &shape[i], first_index + i, err);
        if (status == 0) {
            status = verify_trial(&m->judge, &trial, err);
        }
        m->judge.placed = NULL;
        judge_trial_release(&trial);
    }
    return status;
}

// Keeps the benchmark cases' contents for the timing.
static int verify_bench(struct measurement *m, struct err *err)
{
    struct problem *problem = m->judge.problem;
    int status = 0;

    for (size_t i = 0; i < problem->bench_count && status == 0; i++) {
        m->bench_count = i + 1;
        status = judge_trial_init(&m->judge, &m->bench[i], &problem->bench[i], 2000 + i, err);
        if (status == 0) {
            status = verify_trial(&m->judge, &m->bench[i], err);
        }
        for (size_t slot = 0; slot < TRIAL_CONTENTS && status == 0; slot++) {
            status = judge_launch(&m->judge, ARM_BASELINE, &m->bench[i], slot, NULL, err);
        }
    }
    return status;
}

static void race_init(struct measurement *m, struct race *race, enum arm_index first,
                      enum arm_index second)
{
    const struct measure_plan *plan = m->judge.plan;

    struct contest *contest = &race->contest;

    *race = (struct race){.judge = &m->judge, .first = first, .second = second};
    contest->max_seconds = plan->max_seconds;
    contest->looks = timing_looks(plan->max_launches);
    contest->lane_count = m->bench_count;
    contest->rule.precision_log2 =
        plan->precision_log2 > 0 ? plan->precision_log2 : TIMING_PRECISION_LOG2;
    contest->rule.anchor_log2 = plan->anchor_log2;
    for (size_t i = 0; i < m->bench_count; i++) {
        contest->lane[i].trial = &m->bench[i];
        contest->lane[i].weight = m->bench[i].shape->weight;
    }
}

static int run_race(struct measurement *m, struct err *err)
{
    uint64_t begin = clock_now_ns(&clock_system);
    double made = m->judge.seconds.inputs;
    int status;

    race_init(m, &m->race, ARM_BASELINE, ARM_CANDIDATE);
    m->raced = true;
    status = race_run(&m->race, err);
    if (status == 0) {
        status = race_probe_fresh(&m->race, err);
    }
    m->judge.seconds.time = since(begin) - (m->judge.seconds.inputs - made);
    return status;
}

// The baseline against a copy of itself, on the first benchmark case.
static int run_control(struct measurement *m, struct err *err)
{
    struct judge *judge = &m->judge;
    int status = 0;

    for (size_t slot = 0; slot < TRIAL_CONTENTS && status == 0; slot++) {
        status = judge_launch(judge, ARM_CONTROL, &m->bench[0], slot, NULL, err);
    }
    race_init(m, &m->control, ARM_BASELINE, ARM_CONTROL);
    m->control.contest.lane_count = 1;
    m->control.contest.lane[0].weight = 1;
    m->control.contest.looks = CONTROL_LOOKS;
    m->control.contest.max_seconds *= CONTROL_SHARE;
    if (status == 0) {
        status = race_run(&m->control, err);
    }
    m->controlled = status == 0 && m->control.contest.lane[0].series.count >= 2;
    return status;
}

// ---- physical floor ----

// The peak is that of f32; narrower integers fit more into a vector.
static double flops_factor(const struct problem *problem)
{
    double factor = 1;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        enum dtype dtype = problem->tensor[t].dtype;
        factor = fmax(factor, dtype == DTYPE_U8                          ? 8
                              : dtype == DTYPE_I32 || dtype == DTYPE_I64 ? 2
                                                                         : 1);
    }
    return factor;
}

// NaN when the peaks are not known.
static double floor_ns(const struct measurement *m, const struct trial *trial)
{
    const struct measure_plan *plan = m->judge.plan;
    struct err ignored = ERR_INIT;
    double flops, bytes, seconds = 0;

    if (problem_work(m->judge.problem, trial->shape, &flops, &bytes, &ignored) != 0) {
        return NAN;
    }
    if (plan->peak_flops > 0) {
        seconds = fmax(seconds, flops / (plan->peak_flops * flops_factor(m->judge.problem)));
    }
    if (plan->peak_bytes > 0) {
        seconds = fmax(seconds, bytes / plan->peak_bytes);
    }
    return seconds > 0 ? seconds * 1e9 : NAN;
}

static int check_floor(struct measurement *m)
{
    for (size_t i = 0; i < m->race.contest.lane_count; i++) {
        const struct lane *lane = &m->race.contest.lane[i];
        double floor = floor_ns(m, lane->trial), median = contest_second_median(lane);

        if (!isnan(floor) && median < FLOOR_SHARE * floor) {
            return judge_stop(&m->judge, VERDICT_QUARANTINED,
                              "the candidate took %.0f ns for %s, less than the %.0f ns that this "
                              "processor needs at least",
                              median, ((const struct trial *)lane->trial)->name, floor);
        }
    }
    return 0;
}

static int run_all(struct measurement *m, struct err *err)
{
    struct problem *problem = m->judge.problem;
    int status = start(m, err);

    if (status == 0) {
        status = verify_shapes(m, problem->check, problem->check_count, 0, err);
    }
    if (status == 0) {
        status = verify_shapes(m, m->hidden, m->hidden_count, 1000, err);
    }
    if (status == 0) {
        status = verify_bench(m, err);
    }
    if (status == 0) {
        status = run_race(m, err);
    }
    if (status == 0) {
        status = check_floor(m);
    }
    if (status == 0 && m->judge.plan->control) {
        status = run_control(m, err);
    }
    return status;
}

// ---- report ----

static void report_cases(const struct measurement *m, struct result *result)
{
    contest_report(&m->race.contest, result);
    for (size_t i = 0; i < result->cases_count; i++) {
        const struct trial *trial = m->race.contest.lane[i].trial;

        result->cases[i].params = xstrdup(trial->name);
        result->cases[i].floor_ns = floor_ns(m, trial);
    }
}

static void report(struct measurement *m, uint64_t begin, struct measure_report *ret)
{
    struct result *result = xcalloc(1, sizeof(*result));
    struct judge *judge = &m->judge;
    bool timed = m->raced && m->race.contest.combined.blocks > 0;

    result->verdict = judge->verdict != VERDICT_NONE
                          ? judge->verdict
                          : timing_verdict(&m->race.contest.rule, &m->race.contest.combined);
    if (judge->reason != NULL) {
        result->reason = judge->reason;
        judge->reason = NULL;
    } else if (m->race.contest.capped && result->verdict == VERDICT_INCONCLUSIVE) {
        result->reason =
            xasprintf("no decision within %g seconds of timing%s", judge->plan->max_seconds,
                      contest_disturbed(&m->race.contest) ? "; something else runs on this core" : "");
    }
    if (timed) {
        report_cases(m, result);
    }
    if (m->controlled) {
        result->control = contest_estimate(&m->control.contest.combined);
    }
    result->max_error = judge->max_error;
    result->error_bound = judge->error_bound;
    result->checks = judge->checks;
    result->seconds = xmalloc(sizeof(*result->seconds));
    judge->seconds.held = since(begin);
    *result->seconds = judge->seconds;
    result->seconds->queue = result->seconds->compile = NAN;
    result->trust = xstrdup("c, unsealed");
    result->sandbox = xstrdup(judge->plan->sandbox_off ? "off" : "on");
    result->seed = judge->plan->seed;
    result->problem = judge->problem->digest;
    result->measured_at = (double)clock_wall_ns(&clock_system) * 1e-9;
    result->clock = xstrdup(MEASURE_CLOCK);
    result->overhead_ns = judge->overhead_ns > 0 ? judge->overhead_ns : NAN;
    result->output_tail =
        judge->arm[ARM_CANDIDATE].control != NULL ? arm_output(&judge->arm[ARM_CANDIDATE]) : NULL;
    message_init(&measure_report_message, ret);
    ret->result = result;
}

int measure_run(const struct measure_plan *plan, struct nursery *nursery,
                struct measure_report *ret, struct err *err)
{
    struct measurement *m = xcalloc(1, sizeof(*m));
    uint64_t begin = clock_now_ns(&clock_system);
    int status;

    m->judge.plan = plan;
    m->judge.nursery = nursery;
    status = problem_parse(&m->judge.problem, (const char *)plan->problem.data, plan->problem.len,
                           "problem.json", err);
    if (status == 0) {
        status = run_all(m, err);
    }
    if (status >= 0) {
        report(m, begin, ret);
        status = 0;
    }
    for (size_t i = 0; i < m->bench_count; i++) {
        judge_trial_release(&m->bench[i]);
    }
    judge_release(&m->judge);
    free(m);
    return status;
}

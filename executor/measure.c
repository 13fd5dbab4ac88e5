// The order of the steps:
//   1. load everything;
//   2. verify the candidate on the check and the hidden cases, from the one that is least work to
//      the one that is most, since a wrong candidate ends at its first failure, and then on the
//      benchmark cases; contents are named by a case's index, so nothing else depends on the order;
//   3. time it against the baseline on the benchmark cases, each launch on contents that its arm
//      has never seen;
//   4. compare its times with the floor, the least time that the machine's peak rates allow;
//   5. where the candidate could do something beside the baseline, and seems to be faster, time the
//      baseline alone and compare;
//   6. if the plan asks for it, time the baseline against a copy of itself (the A/A control);
//   7. describe the outcome.
// The first failure of the candidate skips to step 7 with a verdict. An error ends the measurement
// without an outcome.
#include "executor/measure.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "executor/comparison.h"
#include <math.h>
#include <stdlib.h>

#define HIDDEN_INDEX 1000 // index of the first hidden case; check cases begin at 0
#define BENCH_INDEX 2000  // index of the first benchmark case
#define FLOOR_SHARE 0.97  // a time below this share of the floor is not believed
// A baseline that takes longer than this beside the candidate has been hindered.
#define ALONE_SHARE 1.25
#define ALONE_SLACK_NS 50000.0 // that the machine may need longer for a launch after another's
#define CONTROL_LOOKS 3
#define CONTROL_SHARE 0.25                  // of the plan's seconds, for the A/A control
#define CONTROL_CONTENT ((uint64_t)1 << 32) // first content of the A/A control

struct sequence {
    const struct measure_ops *ops;
    void *machine;
    struct measurement measurement;
    struct shape_case hidden[PROBLEM_HIDDEN_CASES];
    size_t hidden_count;
    struct measure_case bench[PROBLEM_CASE_MAX]; // kept from their verification to the outcome
    size_t bench_count;
    struct comparison comparison;
    struct comparison control;
    bool is_timed, has_control;
};

// ---- cases ----

static int case_init(struct sequence *s, struct measure_case *of, const struct shape_case *shape,
                     uint64_t index, struct err *err)
{
    struct strbuf name = STRBUF_INIT;

    problem_case_name(s->measurement.problem, shape, &name);
    *of = (struct measure_case){.shape = shape, .index = index, .name = strbuf_detach(&name)};
    return s->ops->data_create(s->machine, of, &of->data, err);
}

static void case_release(struct sequence *s, struct measure_case *of)
{
    if (of->data) {
        s->ops->data_free(s->machine, of->data);
    }
    free(of->name);
    *of = (struct measure_case){.shape = NULL};
}

// ---- phases ----

static int start(struct sequence *s, struct err *err)
{
    struct measurement *m = &s->measurement;
    uint64_t begin = clock_now_ns(&clock_system);

    if (m->problem->has_hidden) {
        s->hidden_count = problem_hidden_cases(m->problem, s->ops->hidden_seed(m->plan), s->hidden);
    }
    int rc = s->ops->start(s->machine, s->hidden, s->hidden_count, err);
    m->seconds.start = seconds_since(begin);
    return rc;
}

// A case that is verified and not timed.
struct untimed_case {
    const struct shape_case *shape;
    uint64_t index;
    double work; // operations and bytes; infinite when they are not known
};

static int compare_work(const void *a, const void *b)
{
    const struct untimed_case *x = a, *y = b;

    return x->work != y->work ? (x->work < y->work ? -1 : 1)
                              : (x->index > y->index) - (x->index < y->index);
}

static void add_untimed(const struct problem *problem, const struct shape_case *shape, size_t count,
                        uint64_t first_index, struct untimed_case *list, size_t *ret_count)
{
    for (size_t i = 0; i < count; i++) {
        double flops, bytes;
        struct err ignored = ERR_INIT;
        bool known = problem_work(problem, &shape[i], &flops, &bytes, &ignored) == 0;

        list[(*ret_count)++] = (struct untimed_case){
            .shape = &shape[i], .index = first_index + i, .work = known ? flops + bytes : INFINITY};
    }
}

// Verifies the check and the hidden cases.
static int verify_untimed(struct sequence *s, struct err *err)
{
    const struct problem *problem = s->measurement.problem;
    struct untimed_case list[PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES];
    size_t count = 0;
    int rc = 0;

    add_untimed(problem, problem->check, problem->check_count, 0, list, &count);
    add_untimed(problem, s->hidden, s->hidden_count, HIDDEN_INDEX, list, &count);
    qsort(list, count, sizeof(*list), compare_work);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct measure_case of;

        rc = case_init(s, &of, list[i].shape, list[i].index, err);
        if (rc == 0) {
            rc = s->ops->verify(s->machine, of.data, false, err);
        }
        case_release(s, &of);
    }
    return rc;
}

// Verifies the benchmark cases and keeps them for the timing.
static int verify_bench(struct sequence *s, struct err *err)
{
    const struct problem *problem = s->measurement.problem;
    int rc = 0;

    for (size_t i = 0; i < problem->bench_count && rc == 0; i++) {
        s->bench_count = i + 1;
        rc = case_init(s, &s->bench[i], &problem->bench[i], BENCH_INDEX + i, err);
        if (rc == 0) {
            rc = s->ops->verify(s->machine, s->bench[i].data, true, err);
        }
    }
    return rc;
}

static int run_comparison(struct sequence *s, struct err *err)
{
    struct accounts *seconds = &s->measurement.seconds;
    uint64_t begin = clock_now_ns(&clock_system);
    double made = seconds->inputs;

    comparison_init(&s->comparison, s->ops, s->machine, &s->measurement, s->bench, s->bench_count,
                    ARM_CANDIDATE);
    s->is_timed = true;
    int rc = comparison_run(&s->comparison, err);
    seconds->time = seconds_since(begin);
    if (!s->ops->inputs_are_timing) {
        seconds->time -= seconds->inputs - made;
    }
    return rc;
}

// Times the baseline against a copy of itself, on the first benchmark case.
static int run_control(struct sequence *s, struct err *err)
{
    struct paired_timing *paired_timing = &s->control.timing;
    int rc = s->ops->prepare_control(s->machine, s->bench[0].data, err);

    if (rc != 0) {
        return rc;
    }
    comparison_init(&s->control, s->ops, s->machine, &s->measurement, s->bench, 1, ARM_CONTROL);
    paired_timing->cases[0].weight = 1;
    paired_timing->looks = CONTROL_LOOKS;
    paired_timing->max_seconds *= CONTROL_SHARE;
    for (size_t i = 0; i < s->bench_count; i++) {
        paired_timing->cases[i].content = CONTROL_CONTENT;
    }
    rc = comparison_run(&s->control, err);
    s->has_control = rc == 0 && paired_timing->cases[0].series.count >= 2;
    return rc;
}

// ---- floor ----

// Returns the least time of the case in nanoseconds, NaN when the peaks are not known.
static double floor_ns(const struct sequence *s, const struct measure_case *of)
{
    struct measure_peaks peaks = s->ops->peaks(s->machine, of->data);
    struct err ignored = ERR_INIT;
    double flops, bytes, seconds = 0;

    if (problem_work(s->measurement.problem, of->shape, &flops, &bytes, &ignored) != 0) {
        return NAN;
    }
    if (peaks.flops > 0) {
        seconds = fmax(seconds, flops / peaks.flops);
    }
    if (peaks.bytes > 0) {
        seconds = fmax(seconds, (bytes - peaks.cached_bytes) / peaks.bytes);
    }
    return seconds > 0 ? seconds * 1e9 : NAN;
}

static int check_floor(struct sequence *s)
{
    for (size_t i = 0; i < s->comparison.timing.case_count; i++) {
        const struct timed_case *timed = &s->comparison.timing.cases[i];
        const struct measure_case *of = timed->of;
        double floor = floor_ns(s, of), median = paired_timing_second_median(timed);

        if (!isnan(floor) && median < FLOOR_SHARE * floor) {
            return measurement_stop(&s->measurement, VERDICT_QUARANTINED,
                                    "the candidate took %.0f ns for %s, less than the %.0f ns that "
                                    "this %s needs at least",
                                    median, of->name, floor, s->ops->noun);
        }
    }
    return 0;
}

// ---- the baseline alone ----

// A candidate that seems to be faster may have made the baseline slower.
static int check_alone(struct sequence *s, struct err *err)
{
    const struct paired_timing *timing = &s->comparison.timing;

    if (!s->ops->alone || !(timing->combined.log2 > 0)) {
        return 0;
    }
    for (size_t i = 0; i < timing->case_count; i++) {
        const struct timed_case *timed = &timing->cases[i];
        double alone = NAN, beside = paired_timing_first_median(timed);
        int rc = s->ops->alone(s->machine, timed->of->data, &alone, err);

        if (rc != 0) {
            return rc;
        }
        if (beside > ALONE_SHARE * alone + ALONE_SLACK_NS) { // false for NaN
            return measurement_stop(&s->measurement, VERDICT_QUARANTINED,
                                    "the baseline took %.0f ns for %s beside the candidate, and "
                                    "%.0f ns when that had ended",
                                    beside, timed->of->name, alone);
        }
    }
    return 0;
}

static int run_all(struct sequence *s, struct err *err)
{
    int rc = s->ops->open(s->machine, &s->measurement, err);

    if (rc != 0) {
        return rc;
    }
    rc = start(s, err);
    if (rc != 0) {
        return rc;
    }
    rc = verify_untimed(s, err);
    if (rc != 0) {
        return rc;
    }
    rc = verify_bench(s, err);
    if (rc != 0) {
        return rc;
    }
    rc = run_comparison(s, err);
    if (rc != 0) {
        return rc;
    }
    rc = check_floor(s);
    if (rc != 0) {
        return rc;
    }
    rc = check_alone(s, err);
    if (rc != 0 || !s->measurement.plan->control) {
        return rc;
    }
    return run_control(s, err);
}

// ---- outcome ----

static void outcome_cases(const struct sequence *s, struct result *result)
{
    paired_timing_describe(&s->comparison.timing, result);
    for (size_t i = 0; i < result->cases_count; i++) {
        const struct measure_case *of = s->comparison.timing.cases[i].of;

        result->cases[i].params = xstrdup(of->name);
        result->cases[i].floor_ns = floor_ns(s, of);
    }
}

// Sets the verdict and its sentence, which moves from the measurement to the result.
static void outcome_verdict(struct sequence *s, struct result *result)
{
    const struct paired_timing *paired_timing = &s->comparison.timing;
    struct measurement *m = &s->measurement;

    result->verdict = m->verdict != VERDICT_NONE
                          ? m->verdict
                          : timing_verdict(&paired_timing->rule, &paired_timing->combined);
    if (m->reason) {
        result->reason = m->reason;
        m->reason = NULL;
        return;
    }
    if (result->verdict != VERDICT_INCONCLUSIVE) {
        return;
    }
    const struct timed_case *disturbed = paired_timing_disturbed(paired_timing);
    if (disturbed) {
        result->reason = xasprintf("%zu of %zu blocks were disturbed, for %s; %s", disturbed->voids,
                                   disturbed->attempts, disturbed->of->name, s->ops->disturbance);
    } else if (paired_timing->capped) {
        result->reason = xasprintf("no decision within %g seconds of timing", m->plan->max_seconds);
    }
}

// Whether at least one block of each case counts and the cases have been combined, so that there is
// an estimate. One that is stopped before the first look has none.
static bool has_estimate(const struct sequence *s)
{
    const struct paired_timing *paired_timing = &s->comparison.timing;

    bool all = paired_timing->combined.blocks > 0;

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        all = all && paired_timing->cases[i].estimate.blocks > 0;
    }
    return all;
}

// Adds to the source of the times that arms had different clocks.
static void note_unlike(const struct sequence *s, struct result *result)
{
    size_t count = 0;

    for (size_t i = 0; s->is_timed && i < s->comparison.timing.case_count; i++) {
        count += s->comparison.timing.cases[i].unlike_counted;
    }
    if (count > 0 && result->clock) {
        char *clock = result->clock;

        result->clock = xasprintf("%s, %zu blocks at unlike frequencies", clock, count);
        free(clock);
    }
}

static void outcome(struct sequence *s, uint64_t begin, struct measure_outcome *ret)
{
    struct result *result = xmalloc(sizeof(*result));
    struct measurement *m = &s->measurement;

    message_init(&result_message, result);
    outcome_verdict(s, result);
    if (has_estimate(s)) {
        outcome_cases(s, result);
    }
    if (s->has_control) {
        result->control = paired_timing_estimate(&s->control.timing.combined);
    }
    result->max_error = m->max_error;
    result->error_bound = m->error_bound;
    result->checks = m->checks;
    result->seed = m->plan->seed;
    result->problem = m->problem->digest;
    result->measured_at = (double)clock_wall_ns(&clock_system) * 1e-9;
    result->overhead_ns = m->overhead_ns > 0 ? m->overhead_ns : NAN;
    m->seconds.held = seconds_since(begin);
    result->seconds = xmalloc(sizeof(*result->seconds));
    *result->seconds = m->seconds;
    message_init(&measure_outcome_message, ret);
    ret->result = result;
    s->ops->outcome(s->machine, ret);
    note_unlike(s, result);
}

int measure_run(const struct measure_ops *ops, void *machine, const struct measure_plan *plan,
                struct measure_outcome *ret, struct err *err)
{
    struct sequence *s = xcalloc(1, sizeof(*s));
    uint64_t begin = clock_now_ns(&clock_system);

    s->ops = ops;
    s->machine = machine;
    int rc = measurement_init(&s->measurement, plan, ops->rng_stream, err);
    if (rc == 0) {
        rc = run_all(s, err);
    }
    if (rc >= 0) {
        outcome(s, begin, ret);
        rc = 0;
    }
    for (size_t i = 0; i < s->bench_count; i++) {
        case_release(s, &s->bench[i]);
    }
    ops->close(machine);
    measurement_release(&s->measurement);
    free(s);
    return rc;
}

// What the outputs of a launch are worth: compared with the reference, and with the baseline.
#include "common/clock.h"
#include "executor/cpu/harness.h"
#include "executor/cpu/verify.h"
#include "executor/input_values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Outputs of two arms are alike when the distance between them is at most this many times that of
// outputs which the reference has accepted. Distances are squared.
#define ALIKE_FACTOR 64.0

// ---- the reference ----

// Keeps the candidate's largest error as a share of its bound.
static void note_error(struct harness *harness, enum arm_index arm, double max_error,
                       double tolerance)
{
    struct measurement *m = harness->measurement;
    double share = max_error / fmax(tolerance, 1e-300);
    double before = m->max_error / fmax(m->error_bound, 1e-300);

    if (arm == ARM_CANDIDATE && (isnan(m->error_bound) || share > before)) {
        m->max_error = max_error;
        m->error_bound = tolerance;
    }
}

// Runs the reference on the content. NaN comes first, so that an element which the reference does
// not write never passes.
static int run_reference(struct harness *harness, struct case_data *data, uint64_t number,
                         struct err *err)
{
    harness_content_make(harness, data, number);
    harness_content_write(harness, ARM_REFERENCE, data);
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            buffer_fill_nan(buffer_tensor(&harness->expected[t]), data->count[t] * sizeof(double),
                            0);
            buffer_fill_nan(buffer_tensor(&harness->scale[t]), data->count[t] * sizeof(double), 0);
        }
    }
    enum launch_outcome outcome =
        runner_process_launch(&harness->runner[ARM_REFERENCE], CONTROL_CALL, data->of->shape->i,
                              data->of->shape->f, harness->reference_limit_ns, NULL);
    if (outcome != LAUNCH_DONE) {
        char *where = input_values_where(harness->problem, data->of, harness->plan->seed, number);
        int rc = harness_runner_failed(harness, ARM_REFERENCE, outcome, where,
                                       harness->reference_limit_ns, err);
        free(where);
        return rc;
    }
    return harness_check_turn(harness);
}

static int verify_output(struct harness *harness, enum arm_index arm, const struct case_data *data,
                         uint64_t number, size_t t, struct err *err)
{
    const struct tensor *tensor = &harness->problem->tensor[t];
    struct verify_outcome outcome;

    verify_tensor(tensor->dtype, tensor->tolerance, harness_kept(harness, arm, number)->tensor[t],
                  (const double *)(const void *)buffer_tensor(&harness->expected[t]),
                  (const double *)(const void *)buffer_tensor(&harness->scale[t]), data->count[t],
                  &outcome);
    note_error(harness, arm, outcome.max_error, tensor->tolerance);
    if (outcome.wrong == 0) {
        return 0;
    }
    char *where = input_values_where(harness->problem, data->of, harness->plan->seed, number);
    char *text =
        xasprintf("%s[%zu] is %.9g, expected %.9g, for %s; %zu of %zu elements are outside "
                  "the error bound",
                  tensor->name, outcome.first, outcome.got, outcome.expected, where, outcome.wrong,
                  data->count[t]);
    int rc =
        arm == ARM_CANDIDATE
            ? measurement_stop(harness->measurement, VERDICT_WRONG, "%s", text)
            : err_set(err, ERR_INVALID, "the %s is wrong: %s", harness->runner[arm].name, text);
    free(text);
    free(where);
    return rc;
}

static void keep_stale(struct harness *harness, struct case_data *data, enum arm_index arm,
                       uint64_t number)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            data->stale[t] = xrealloc(data->stale[t], data->bytes[t], 1);
            memcpy(data->stale[t], harness_kept(harness, arm, number)->tensor[t], data->bytes[t]);
        }
    }
}

// Verifies the kept outputs of an arm by what the reference has just computed.
static int verify(struct harness *harness, enum arm_index arm, struct case_data *data,
                  uint64_t number, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            rc = verify_output(harness, arm, data, number, t, err);
        }
    }
    if (rc == 0) {
        harness->measurement->checks += arm == ARM_CANDIDATE;
        keep_stale(harness, data, arm, number);
    }
    return rc;
}

int harness_judge(struct harness *harness, enum arm_index arm, struct case_data *data,
                  uint64_t number, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    double made = harness->measurement->seconds.inputs;
    int rc = run_reference(harness, data, number, err);

    rc = rc == 0 ? verify(harness, arm, data, number, err) : rc;
    harness->measurement->seconds.inputs = made + seconds_since(start);
    return rc != 0 && arm == ARM_BASELINE ? harness_baseline_failed(harness, data, number, rc, err)
                                          : rc;
}

// ---- the baseline ----

static double distance_f32(const float *a, const float *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sum;
}

static double distance_f64(const double *a, const double *b, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        double d = a[i] - b[i];
        sum += d * d;
    }
    return sum;
}

// Returns the squared distance between two outputs that differ, summed over their elements;
// infinite when one of them has a value that is not finite, or when they are integers.
static double distance(enum dtype dtype, const void *a, const void *b, size_t count)
{
    double sum = dtype == DTYPE_F32   ? distance_f32(a, b, count)
                 : dtype == DTYPE_F64 ? distance_f64(a, b, count)
                                      : INFINITY;

    return isnan(sum) ? INFINITY : sum;
}

// Returns the distance of output t between the two arms' launches on a content.
static double distance_of(struct harness *harness, enum arm_index second,
                          const struct case_data *data, uint64_t number, size_t t)
{
    const unsigned char *a = harness_kept(harness, ARM_BASELINE, number)->tensor[t];
    const unsigned char *b = harness_kept(harness, second, number)->tensor[t];

    return memcmp(a, b, data->bytes[t]) == 0
               ? 0
               : distance(harness->problem->tensor[t].dtype, a, b, data->count[t]);
}

// Judges the second arm's launch, and when it passes the baseline's too.
static int judge_both(struct harness *harness, enum arm_index second, struct case_data *data,
                      uint64_t number, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    double made = harness->measurement->seconds.inputs;
    int rc = run_reference(harness, data, number, err);

    rc = rc == 0 ? verify(harness, second, data, number, err) : rc;
    if (rc == 0) {
        rc = verify(harness, ARM_BASELINE, data, number, err);
        rc = rc == 0 ? 0 : harness_baseline_failed(harness, data, number, rc, err);
    }
    harness->measurement->seconds.inputs = made + seconds_since(start);
    return rc;
}

int harness_compare(struct harness *harness, enum arm_index second, struct case_data *data,
                    uint64_t number, bool judge, struct err *err)
{
    double apart[PROBLEM_TENSOR_MAX] = {0};

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            apart[t] = distance_of(harness, second, data, number, t);
            judge = judge || apart[t] > ALIKE_FACTOR * fmax(data->distance[t], 0);
        }
    }
    if (!judge) {
        return 0;
    }
    int rc = judge_both(harness, second, data, number, err);
    if (rc == 0 && input_values_are_further(harness->problem, number)) {
        return 0; // these outputs may be far larger than any of a timed launch
    }
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        if (isfinite(apart[t])) {
            data->distance[t] = fmax(data->distance[t], apart[t]);
        }
    }
    return rc;
}

// ---- blame ----

int harness_baseline_failed(struct harness *harness, struct case_data *data, uint64_t number,
                            int rc, struct err *err)
{
    struct runner_process *candidate = &harness->runner[ARM_CANDIDATE];

    if (rc == MEASURE_STOP || candidate->child == 0) {
        return rc;
    }
    struct err alone = ERR_INIT;
    runner_process_kill(candidate);
    int again = harness_renew(harness, data, 1u << ARM_BASELINE, &alone);
    if (again == 0) {
        again = harness_launch(harness, ARM_BASELINE, data, number, NULL, &alone);
    }
    if (again == 0) {
        again = harness_judge(harness, ARM_BASELINE, data, number, &alone);
    }
    if (again != 0) {
        *err = alone;
        return again;
    }
    rc = measurement_stop(harness->measurement, VERDICT_QUARANTINED,
                          "beside this candidate the baseline failed, and not without it: %s",
                          err->text);
    *err = (struct err)ERR_INIT;
    return rc;
}

// Checks after a launch: outputs, guards, inputs, and that the candidate has not run out of turn.
#include "common/clock.h"
#include "executor/cpu/harness.h"
#include "executor/cpu/verify.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// A candidate that has reported "done" may reach its wait only while another arm is launched. This
// takes far less than what is tolerated here: so many nanoseconds, and so much of the others' time.
#define OUT_OF_TURN_NS (2 * NS_PER_MS)
#define OUT_OF_TURN_SHARE 0.05

// A wrong result of the candidate is its verdict, of another arm an error.
static int wrong(struct harness *harness, enum arm_index arm, struct err *err, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
static int wrong(struct harness *harness, enum arm_index arm, struct err *err, const char *format,
                 ...)
{
    va_list args;

    va_start(args, format);
    char text[1024];
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (arm == ARM_CANDIDATE) {
        return measurement_stop(harness->measurement, VERDICT_WRONG, "%s", text);
    }
    return err_set(err, ERR_INVALID, "the %s is wrong: %s", harness->runner[arm].name, text);
}

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

// Verifies the copy of one output.
static int check_output(struct harness *harness, enum arm_index arm, struct case_data *data,
                        size_t slot, size_t t, struct err *err)
{
    const struct tensor *tensor = &harness->problem->tensor[t];
    struct content *content = &data->content[slot];
    unsigned char **verified = &content->verified[arm][t];

    if (*verified && memcmp(*verified, harness->copy[t], data->bytes[t]) == 0) {
        return 0;
    }
    struct verify_outcome outcome;
    verify_tensor(tensor->dtype, tensor->tolerance, harness->copy[t], content->y[t],
                  content->scale[t], data->count[t], &outcome);
    note_error(harness, arm, outcome.max_error, tensor->tolerance);
    if (outcome.wrong != 0) {
        return wrong(harness, arm, err,
                     "%s[%zu] is %.9g, expected %.9g, for %s; %zu of %zu elements are outside the "
                     "error bound",
                     tensor->name, outcome.first, outcome.got, outcome.expected, data->of->name,
                     outcome.wrong, data->count[t]);
    }
    if (!*verified) {
        *verified = xmalloc(data->bytes[t]);
    }
    memcpy(*verified, harness->copy[t], data->bytes[t]);
    return 0;
}

int harness_check(struct harness *harness, enum arm_index arm, struct case_data *data, size_t slot,
                  struct err *err)
{
    const struct problem *problem = harness->problem;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (tensor_is_output(&problem->tensor[t])) {
            memcpy(harness->copy[t], buffer_tensor(&harness->tensor[t]), data->bytes[t]);
        }
    }
    int rc = 0;
    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        struct buffer *buffer = &harness->tensor[t];
        // A sealed input cannot have been written. Any other input is compared as a whole.
        if (tensor->direction == DIRECTION_IN && !buffer->sealed &&
            memcmp(buffer_tensor(buffer), data->content[slot].in[t], data->bytes[t]) != 0) {
            rc = wrong(harness, arm, err, "it changed its input %s, for %s", tensor->name,
                       data->of->name);
        } else if (!buffer->sealed && !buffer_guard_intact(buffer, harness->guard_key)) {
            rc = wrong(harness, arm, err, "it wrote outside %s, for %s", tensor->name,
                       data->of->name);
        } else if (tensor_is_output(tensor)) {
            rc = check_output(harness, arm, data, slot, t, err);
        }
    }
    harness->measurement->checks += rc == 0 && arm == ARM_CANDIDATE;
    return rc;
}

int harness_check_turn(struct harness *harness, enum arm_index arm, uint64_t before_ns,
                       double wall_ns)
{
    uint64_t now = runner_process_clock_ns(&harness->runner[ARM_CANDIDATE]);

    if (arm == ARM_CANDIDATE || now <= before_ns) {
        return 0;
    }
    harness->out_of_turn_ns += now - before_ns;
    harness->others_ns += (uint64_t)wall_ns;
    if ((double)harness->out_of_turn_ns >
        OUT_OF_TURN_NS + OUT_OF_TURN_SHARE * (double)harness->others_ns) {
        return measurement_stop(harness->measurement, VERDICT_QUARANTINED,
                                "the candidate ran for %.3f ms while it was not its turn",
                                (double)harness->out_of_turn_ns / 1e6);
    }
    return 0;
}

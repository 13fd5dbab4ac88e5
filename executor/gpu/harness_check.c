// Design note. Checking what one launch has done, from the result words that look
// (executor/gpu/harness_launch.c) has brought to the host: how many guard bytes differ, how many
// places of the inputs, and the digest of every output.
//
// Launches of verification are on two contents of each case, and the oracle compares every output,
// except one whose 128-bit hash is that of an output which it has accepted for the same content.
// Timed launches are on contents of their own, and computing what is expected for each would take
// longer than all the rest. So their digests are compared with the baseline's for the same content:
// an honest candidate differs by what rounding explains, and how much that is has been seen where
// the oracle has accepted the output. What differs by more than SUSPECT times that goes to the
// oracle. The sum in a digest has secret signs, so a candidate cannot choose errors that it does
// not show; but errors below what was seen it does not show, and therefore the caller has launches
// judged by the oracle that it picks at random.
//
// A failure of the candidate is its verdict. A failure of the baseline is an error, because then
// nothing can be measured; unless the baseline fails only beside the candidate.
#include "common/clock.h"
#include "common/mem.h"
#include "executor/gpu/harness_words.h"
#include "executor/input_values.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUSPECT 8.0  // differences of sums up to this many times the largest accepted one are usual
#define ALONE_RUNS 3 // contents on which a baseline that has failed is run alone

_Static_assert(MEASURE_CONTENTS *PROBLEM_TENSOR_MAX <= ORACLE_OUTPUTS, "all that may wait");

// ---- whose failure it is ----

int gpu_harness_stop(struct gpu_harness *harness, const struct gpu_case *data, uint64_t content,
                     enum verdict verdict, const char *subject, const char *what)
{
    char *where = input_values_where(harness->problem, data->of, harness->plan->seed, content);
    int rc = measurement_stop(harness->measurement, verdict, "%s %s, for %s", subject, what, where);

    free(where);
    return rc;
}

// Returns 0 when the baseline is right where no candidate has ever run.
static int run_alone(struct gpu_harness *harness, const struct gpu_case *data, uint64_t content,
                     enum err_code code, const char *what, struct err *err)
{
    for (uint64_t i = 0; i < ALONE_RUNS; i++) {
        struct input_set set = gpu_harness_input_set(harness, data, content + i);
        char why[ERR_TEXT_MAX];
        bool failed = false;
        int rc = oracle_run_alone(harness->oracle, &harness->plan->baseline, &set,
                                  harness->launch_limit_ns, &failed, why, err);

        if (rc != 0) {
            return rc;
        }
        if (failed) {
            char *where =
                input_values_where(harness->problem, data->of, harness->plan->seed, content);
            rc = err_set(err, code, "the baseline %s, for %s; alone %s", what, where, why);
            free(where);
            return rc;
        }
    }
    return 0;
}

int gpu_harness_baseline_failed(struct gpu_harness *harness, const struct gpu_case *data,
                                uint64_t content, enum verdict verdict, enum err_code code,
                                const char *what, struct err *err)
{
    char *where = input_values_where(harness->problem, data->of, harness->plan->seed, content);
    int rc = 0;

    if (!harness->candidate_ran) {
        rc = err_set(err, code, "the baseline %s, for %s", what, where);
        goto out;
    }
    harness->retire = true;
    rc = run_alone(harness, data, content, code, what, err);
    if (rc == 0) {
        rc = measurement_stop(harness->measurement, verdict,
                              "the baseline failed beside it and not alone: it %s, for %s", what,
                              where);
    }
out:
    free(where);
    return rc;
}

// ---- guards and inputs ----

int gpu_harness_wrote_outside(struct gpu_harness *harness, const struct gpu_case *data,
                              enum arm_index arm, uint64_t content, struct err *err)
{
    return arm == ARM_CANDIDATE
               ? measurement_stop(harness->measurement, VERDICT_WRONG,
                                  "it wrote outside its tensors, for %s", data->of->name)
               : gpu_harness_baseline_failed(harness, data, content, VERDICT_WRONG, ERR_INVALID,
                                             "wrote outside its tensors", err);
}

int gpu_harness_check_memory(struct gpu_harness *harness, const struct gpu_case *data,
                             enum arm_index arm, uint64_t content, const struct gpu_zones *zones,
                             struct err *err)
{
    const uint64_t *words = harness->gpu->host_words;
    const struct problem *problem = harness->problem;
    struct gpu_zones own = {.count = 0}; // round the memory of the arm's program
    char what[200] = "";

    (void)program_zones(harness->arm[arm], true, &own); // there was room for more

    if (words[WORD_GUARD] > 0) {
        size_t zone = (size_t)(zones->count - words[WORD_GUARD + 1]);

        (void)snprintf(what, sizeof(what), "wrote outside %s",
                       zone < 2 * problem->tensor_count ? problem->tensor[zone / 2].name
                       : zone < 2 * problem->tensor_count + own.count ? "its scratch memory"
                                                                      : "its tensors");
    }
    for (size_t t = 0; t < problem->tensor_count && what[0] == '\0'; t++) {
        if (words[WORD_INPUT + t] > 0) {
            (void)snprintf(what, sizeof(what), "changed its input %s", problem->tensor[t].name);
        }
    }
    if (what[0] == '\0') {
        return 0;
    }
    return arm == ARM_CANDIDATE
               ? gpu_harness_stop(harness, data, content, VERDICT_WRONG, "it", what)
               : gpu_harness_baseline_failed(harness, data, content, VERDICT_WRONG, ERR_INVALID,
                                             what, err);
}

// ---- outputs ----

static int refuse_output(struct gpu_harness *harness, const struct gpu_case *data,
                         enum arm_index arm, uint64_t content, size_t tensor,
                         const struct oracle_answer *answer, struct err *err)
{
    const struct tensor *t = &harness->problem->tensor[tensor];
    char values[160] = "is wrong";

    if (!isnan(answer->got) || dtype_roundoff(t->dtype) < 1e-6) {
        (void)snprintf(values, sizeof(values), "is %.9g, expected %.9g", answer->got,
                       answer->expected);
    }
    char *where = input_values_where(harness->problem, data->of, harness->plan->seed, content);
    char *text =
        xasprintf("%s%s[%llu] %s%s%s; %llu of %zu elements are outside the bound of %g, "
                  "the largest error is %.3g",
                  arm == ARM_CANDIDATE ? "" : "disagrees with the reference: ", t->name,
                  (unsigned long long)answer->first, values, arm == ARM_CANDIDATE ? ", for " : "",
                  arm == ARM_CANDIDATE ? where : "", (unsigned long long)answer->wrong,
                  data->sizes.count[tensor], t->tolerance, answer->max_error);
    int rc = arm == ARM_CANDIDATE
                 ? measurement_stop(harness->measurement, VERDICT_WRONG, "%s", text)
                 : gpu_harness_baseline_failed(harness, data, content, VERDICT_WRONG, ERR_INVALID,
                                               text, err);

    free(text);
    free(where);
    return rc;
}

static void note_error(struct gpu_harness *harness, enum arm_index arm, size_t tensor, double error)
{
    struct measurement *measurement = harness->measurement;

    if (arm == ARM_CANDIDATE) {
        measurement->max_error = fmax(measurement->max_error, error);
        measurement->error_bound =
            fmax(measurement->error_bound, harness->problem->tensor[tensor].tolerance);
    }
}

static void take_digest(const struct gpu_harness *harness, uint64_t content,
                        struct launch_digest *ret)
{
    *ret = (struct launch_digest){.known = true, .content = content};
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const uint64_t *words = harness->gpu->host_words + WORD_DIGEST + 4 * t;
        struct output_digest *output = &ret->output[t];

        memcpy(output->hash, words, sizeof(output->hash));
        memcpy(&output->sum, words + 2, sizeof(output->sum));
        output->not_finite = words[3];
    }
}

static bool same_hash(const struct output_digest *a, const struct output_digest *b)
{
    return memcmp(a->hash, b->hash, sizeof(a->hash)) == 0;
}

// Remembers by how much the sums of an accepted output differ from the baseline's. One that is much
// larger than those before may be the baseline's failure: it counts as SUSPECT times the largest.
static void accept(struct gpu_case *data, enum arm_index arm, uint64_t content, size_t tensor)
{
    const struct launch_digest *baseline = &data->last[ARM_BASELINE][content % 2];
    const struct launch_digest *digest = &data->last[arm][content % 2];
    double *most = &data->accepted[arm][tensor];

    if (arm == ARM_BASELINE || !baseline->known || baseline->content != content) {
        return;
    }
    double differ = fabs(digest->output[tensor].sum - baseline->output[tensor].sum);
    if (isfinite(differ)) {
        *most = fmax(*most, *most > 0 ? fmin(differ, SUSPECT * *most) : differ);
    }
}

// Whether the oracle has accepted this very output for the content, computed by the arm or by the
// baseline. The hash is keyed, so that nobody can make two outputs with the same.
static bool is_accepted(struct gpu_harness *harness, const struct gpu_case *data,
                        enum arm_index arm, uint64_t content, size_t tensor,
                        struct output_digest *output)
{
    const enum arm_index by[] = {arm, ARM_BASELINE};

    for (size_t i = 0; i < ARRAY_LEN(by); i++) {
        const struct launch_digest *last = &data->last[by[i]][content % 2];

        if (last->accepted && last->content == content &&
            same_hash(output, &last->output[tensor])) {
            output->max_error = last->output[tensor].max_error;
            note_error(harness, arm, tensor, output->max_error);
            return true;
        }
    }
    return false;
}

// The outputs of a launch have been found right.
static void accept_launch(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                          uint64_t content)
{
    // Values from a further distribution may be far larger than those of timed launches, and with
    // them the differences. Without theirs, what timed launches are held against comes from one
    // content instead of two: a difference of random sums is more than SUSPECT times another one
    // once in twelve, and more than the larger of two once in a hundred. That costs a comparison by
    // the oracle, which widens what is usual, and no more.
    bool further = input_values_are_further(harness->problem, content);

    for (size_t t = 0; t < harness->problem->tensor_count && !further; t++) {
        accept(data, arm, content, t);
    }
    harness->measurement->checks += arm == ARM_CANDIDATE;
}

void gpu_harness_note_outputs(struct gpu_harness *harness, struct gpu_case *data,
                              enum arm_index arm, uint64_t content)
{
    struct launch_digest digest;

    take_digest(harness, content, &digest);
    digest.accepted = content < MEASURE_CONTENTS;
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        digest.accepted =
            digest.accepted && (!tensor_is_output(&harness->problem->tensor[t]) ||
                                is_accepted(harness, data, arm, content, t, &digest.output[t]));
    }
    data->last[arm][content % 2] = digest;
    if (digest.accepted) {
        accept_launch(harness, data, arm, content);
    }
    harness->live_waits = content < MEASURE_CONTENTS && !digest.accepted;
}

// Appends the outputs of a launch on this content, which lie in `from`.
static void list_outputs(const struct gpu_harness *harness, const struct gpu_case *data,
                         uint64_t content, const struct guarded_buffer *from,
                         struct oracle_output list[static ORACLE_OUTPUTS], size_t *count)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            list[(*count)++] =
                (struct oracle_output){.set = gpu_harness_input_set(harness, data, content),
                                       .tensor = t,
                                       .offset = from[t].tensor - harness->gpu->open.base};
        }
    }
}

// Has the oracle compare outputs of the arm's last launches. What differs from its digest has been
// written since.
static int ask_oracle(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                      const struct oracle_output *list, size_t count, struct err *err)
{
    struct oracle_answer answer[ORACLE_OUTPUTS];
    int rc =
        oracle_check(harness->oracle, harness->gpu, list, count, harness->hash_key, answer, err);

    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t t = list[i].tensor;
        uint64_t content = list[i].set.number;
        struct output_digest *digest = &data->last[arm][content % 2].output[t];

        digest->max_error = answer[i].max_error;
        note_error(harness, arm, t, answer[i].max_error);
        rc = answer[i].wrong > 0 ? refuse_output(harness, data, arm, content, t, &answer[i], err)
             : memcmp(digest->hash, answer[i].hash, sizeof(digest->hash)) != 0
                 ? gpu_harness_wrote_outside(harness, data, arm, content, err)
                 : 0;
    }
    return rc;
}

int gpu_harness_judge(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                      struct err *err)
{
    struct oracle_output list[ORACLE_OUTPUTS] = {{.tensor = 0}};
    bool waits[MEASURE_CONTENTS], kept = harness->kept_waits;
    uint64_t start = clock_now_ns(&clock_system);
    size_t count = 0;

    for (uint64_t i = 0; i < MEASURE_CONTENTS; i++) {
        const struct launch_digest *last = &data->last[arm][i % 2];

        waits[i] = last->known && last->content == i && !last->accepted;
        if (waits[i]) { // the first of them is the one that is kept
            list_outputs(harness, data, i, kept ? harness->kept : harness->live, list, &count);
            kept = false;
        }
    }
    int rc = count > 0 ? ask_oracle(harness, data, arm, list, count, err) : 0;
    measurement_spend(&harness->measurement->seconds.verify, start);
    if (rc != 0) {
        return rc;
    }
    for (uint64_t i = 0; i < MEASURE_CONTENTS; i++) {
        if (waits[i]) {
            data->last[arm][i % 2].accepted = true;
            accept_launch(harness, data, arm, i);
        }
    }
    rc = harness->kept_waits ? gpu_harness_forget_kept(harness, err) : 0;
    harness->live_waits = harness->kept_waits = false;
    return rc;
}

// ---- timed launches ----

static bool is_suspect(const struct gpu_harness *harness, const struct gpu_case *data,
                       enum arm_index arm, uint64_t content, size_t tensor)
{
    const struct tensor *t = &harness->problem->tensor[tensor];
    const struct output_digest *baseline = &data->last[ARM_BASELINE][content % 2].output[tensor];
    const struct output_digest *output = &data->last[arm][content % 2].output[tensor];

    if (same_hash(baseline, output)) {
        return false;
    }
    if (dtype_roundoff(t->dtype) >= 1 && t->tolerance <= 0) { // integers that must be equal
        return true;
    }
    // A difference that is NaN, because a sum has overflowed, is suspect too.
    return baseline->not_finite != output->not_finite ||
           !(fabs(output->sum - baseline->sum) <= SUSPECT * data->accepted[arm][tensor]);
}

int gpu_harness_verify(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                       uint64_t content, bool judge, struct err *err)
{
    const struct problem *problem = harness->problem;

    for (enum arm_index each = 0; each < ARM_COUNT; each++) {
        const struct launch_digest *last = &data->last[each][content % 2];

        if ((each == arm || each == ARM_BASELINE) && (!last->known || last->content != content)) {
            return err_set(err, ERR_INTERNAL, "content %llu was not launched",
                           (unsigned long long)content);
        }
    }
    for (size_t t = 0; t < problem->tensor_count; t++) {
        judge = judge || (tensor_is_output(&problem->tensor[t]) &&
                          is_suspect(harness, data, arm, content, t));
    }
    if (!judge) {
        return 0;
    }
    struct oracle_output list[ORACLE_OUTPUTS] = {{.tensor = 0}};
    size_t count = 0;
    list_outputs(harness, data, content, harness->kept, list, &count);
    int rc = ask_oracle(harness, data, arm, list, count, err);
    if (rc == 0) {
        accept_launch(harness, data, arm, content);
    }
    return rc;
}

// Design note. Checking what one launch has done, from the result words that take_results
// (executor/gpu/harness_launch.c) has brought to the host: how many guard words differ, and the
// hash of every tensor. An output whose hash is not known goes to the oracle. A failure of the
// candidate is its verdict; a failure of the baseline is an error, because then nothing can be
// measured.
#include "executor/gpu/harness_words.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int gpu_harness_check_memory(struct gpu_harness *harness, const struct gpu_case *data,
                             bool candidate, struct err *err)
{
    const uint64_t *words = harness->gpu->host_words;
    const char *who = candidate ? "it" : "the baseline";
    char what[200] = "";

    if (words[WORD_GUARD] > 0) {
        size_t t = (size_t)words[WORD_GUARD + 1] / 2;

        (void)snprintf(what, sizeof(what), "%s wrote outside %s", who,
                       t < harness->problem->tensor_count ? harness->problem->tensor[t].name
                                                          : "its scratch memory");
    }
    for (size_t t = 0; t < harness->problem->tensor_count && what[0] == '\0'; t++) {
        if (harness->problem->tensor[t].direction == DIRECTION_IN &&
            memcmp(words + WORD_HASH + 2 * t, harness->input_hash[harness->slot][t], 16) != 0) {
            (void)snprintf(what, sizeof(what), "%s changed its input %s", who,
                           harness->problem->tensor[t].name);
        }
    }
    if (what[0] == '\0') {
        return 0;
    }
    return candidate ? measurement_stop(harness->measurement, VERDICT_WRONG, "%s, for %s", what,
                                        data->of->name)
                     : err_set(err, ERR_INVALID, "%s, for %s", what, data->of->name);
}

static int refuse_output(struct gpu_harness *harness, const struct gpu_case *data,
                         enum arm_index arm, size_t tensor, const struct oracle_answer *answer,
                         struct err *err)
{
    const struct tensor *t = &harness->problem->tensor[tensor];
    char values[160] = "is wrong";

    if (!isnan(answer->got) || dtype_roundoff(t->dtype) < 1e-6) {
        (void)snprintf(values, sizeof(values), "is %.9g, expected %.9g", answer->got,
                       answer->expected);
    }
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "%s[%llu] %s, for %s; %llu of %zu elements are outside the bound of %g, the "
                   "largest error is %.3g",
                   t->name, (unsigned long long)answer->first, values, data->of->name,
                   (unsigned long long)answer->wrong, data->sizes.count[tensor], t->tolerance,
                   answer->max_error);
    if (arm == ARM_CANDIDATE) {
        return measurement_stop(harness->measurement, VERDICT_WRONG, "%s", text);
    }
    return err_set(err, ERR_INVALID, "the baseline disagrees with the reference: %s", text);
}

// Has the oracle compare one output with what is expected.
static int ask_oracle(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                      size_t slot, size_t tensor, struct err *err)
{
    struct input_set set = gpu_harness_input_set(harness, data, slot);
    const struct guarded_buffer *from = &harness->live[tensor];
    struct oracle_answer answer;
    int rc = oracle_check(harness->oracle, harness->gpu, &set, tensor, from->tensor, from->bytes,
                          &answer, err);

    if (rc != 0) {
        return rc;
    }
    if (arm == ARM_CANDIDATE) {
        harness->measurement->max_error = fmax(harness->measurement->max_error, answer.max_error);
        harness->measurement->error_bound =
            fmax(harness->measurement->error_bound, harness->problem->tensor[tensor].tolerance);
    }
    return answer.wrong > 0 ? refuse_output(harness, data, arm, tensor, &answer, err) : 0;
}

int gpu_harness_check_outputs(struct gpu_harness *harness, struct gpu_case *data,
                              enum arm_index arm, size_t slot, struct err *err)
{
    struct verified_outputs *verified = &data->verified[arm][slot];
    uint64_t hash[PROBLEM_TENSOR_MAX][2];
    bool known = verified->known;

    memcpy(hash, harness->gpu->host_words + WORD_HASH, sizeof(hash));
    int rc = 0;
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        if (tensor_is_output(&harness->problem->tensor[t]) &&
            !(known && memcmp(hash[t], verified->hash[t], sizeof(hash[t])) == 0)) {
            rc = ask_oracle(harness, data, arm, slot, t, err);
        }
    }
    if (rc != 0) {
        return rc;
    }
    if (!known) {
        memcpy(verified->hash, hash, sizeof(hash));
        verified->known = true;
    }
    harness->measurement->checks += arm == ARM_CANDIDATE;
    return 0;
}

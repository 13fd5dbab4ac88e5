// What a launch left behind: guards, inputs and outputs.
#include "executor/gpu/bench_words.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int bench_check_damage(struct bench *bench, const struct bench_trial *trial, bool candidate,
                       struct err *err)
{
    const uint64_t *words = bench->gpu->host_words;
    const char *who = candidate ? "it" : "the baseline";
    char what[200] = "";

    if (words[WORD_GUARD] > 0) {
        size_t t = (size_t)words[WORD_GUARD + 1] / 2;

        (void)snprintf(what, sizeof(what), "%s wrote outside %s", who,
                       t < bench->problem->tensor_count ? bench->problem->tensor[t].name
                                                        : "its scratch memory");
    }
    for (size_t t = 0; t < bench->problem->tensor_count && what[0] == '\0'; t++) {
        if (bench->problem->tensor[t].direction == DIRECTION_IN &&
            memcmp(words + WORD_HASH + 2 * t, bench->input_hash[bench->slot][t], 16) != 0) {
            (void)snprintf(what, sizeof(what), "%s changed its input %s", who,
                           bench->problem->tensor[t].name);
        }
    }
    if (what[0] == '\0') {
        return 0;
    }
    return candidate ? measurement_stop(bench->measurement, VERDICT_WRONG, "%s, for %s", what,
                                        trial->of->name)
                     : err_set(err, ERR_INVALID, "%s, for %s", what, trial->of->name);
}

static int refuse_output(struct bench *bench, const struct bench_trial *trial, enum arm_index arm,
                         size_t tensor, const struct oracle_answer *answer, struct err *err)
{
    const struct tensor *t = &bench->problem->tensor[tensor];
    char values[160] = "is wrong";

    if (!isnan(answer->got) || dtype_roundoff(t->dtype) < 1e-6) {
        (void)snprintf(values, sizeof(values), "is %.9g, expected %.9g", answer->got,
                       answer->expected);
    }
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "%s[%llu] %s, for %s; %llu of %zu elements are outside the bound of %g, the "
                   "largest error is %.3g",
                   t->name, (unsigned long long)answer->first, values, trial->of->name,
                   (unsigned long long)answer->wrong, trial->sizes.count[tensor], t->tolerance,
                   answer->max_error);
    if (arm == ARM_CANDIDATE) {
        return measurement_stop(bench->measurement, VERDICT_WRONG, "%s", text);
    }
    return err_set(err, ERR_INVALID, "the baseline disagrees with the reference: %s", text);
}

// Has the oracle look at one output.
static int consult(struct bench *bench, const struct bench_trial *trial, enum arm_index arm,
                   size_t slot, size_t tensor, struct err *err)
{
    struct oracle_content content = bench_content(bench, trial, slot);
    const struct area *from = &bench->live[tensor];
    struct oracle_answer answer;
    int rc = oracle_check(bench->oracle, bench->gpu, &content, tensor, from->tensor, from->bytes,
                          &answer, err);

    if (rc != 0) {
        return rc;
    }
    if (arm == ARM_CANDIDATE) {
        bench->measurement->max_error = fmax(bench->measurement->max_error, answer.max_error);
        bench->measurement->error_bound =
            fmax(bench->measurement->error_bound, bench->problem->tensor[tensor].tolerance);
    }
    return answer.wrong > 0 ? refuse_output(bench, trial, arm, tensor, &answer, err) : 0;
}

int bench_check_outputs(struct bench *bench, struct bench_trial *trial, enum arm_index arm,
                        size_t slot, struct err *err)
{
    struct bench_verified *verified = &trial->verified[arm][slot];
    uint64_t hash[PROBLEM_TENSOR_MAX][2];
    bool known = verified->known;

    memcpy(hash, bench->gpu->host_words + WORD_HASH, sizeof(hash));
    int rc = 0;
    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        if (tensor_is_output(&bench->problem->tensor[t]) &&
            !(known && memcmp(hash[t], verified->hash[t], sizeof(hash[t])) == 0)) {
            rc = consult(bench, trial, arm, slot, t, err);
        }
    }
    if (rc == 0) {
        if (!known) {
            memcpy(verified->hash, hash, sizeof(hash));
            verified->known = true;
        }
        bench->measurement->checks += arm == ARM_CANDIDATE;
    }
    return rc;
}

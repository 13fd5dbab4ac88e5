#include "worker/llm/model_choice.h"

#include "common/bandit.h"
#include "common/log.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 1024 // gains whose keys are remembered

_Static_assert(ENDPOINTS_MAX <= BANDIT_OPTIONS_MAX, "an arm for each endpoint");

struct model_choice {
    struct bandit bandit;
    char *model[ENDPOINTS_MAX]; // of each arm
    uint64_t answers[ENDPOINTS_MAX];
    struct digest told[TOLD_MAX]; // keys of outcomes with a gain; the oldest are overwritten
    uint64_t told_count;
};

// The model's arm; the count of arms when it has none.
static size_t find(const struct model_choice *writers, const char *model)
{
    size_t option = 0;

    while (option < writers->bandit.count && strcmp(writers->model[option], model) != 0) {
        option++;
    }
    return option;
}

struct model_choice *model_choice_create(const struct endpoint_config *config, size_t count)
{
    struct model_choice *writers = xcalloc(1, sizeof(*writers));
    double weight[ENDPOINTS_MAX] = {0}, sum = 0;

    for (size_t i = 0; i < count; i++) {
        size_t option = find(writers, config[i].model);

        if (option == writers->bandit.count) {
            writers->model[option] = xstrdup(config[i].model);
            writers->bandit.count++;
        }
        weight[option] += config[i].weight;
        sum += config[i].weight;
    }
    bandit_init(&writers->bandit, writers->bandit.count, BANDIT_KEEP);
    for (size_t i = 0; i < writers->bandit.count; i++) {
        writers->bandit.option[i].weight = weight[i] * (double)writers->bandit.count / sum;
    }
    return writers;
}

void model_choice_free(struct model_choice *writers)
{
    if (writers) {
        for (size_t i = 0; i < writers->bandit.count; i++) {
            free(writers->model[i]);
        }
        free(writers);
    }
}

const char *model_choice_choose(struct model_choice *writers, const struct digest *question)
{
    uint64_t random;

    memcpy(&random, question->byte, sizeof(random));
    size_t option = bandit_choose(&writers->bandit, (double)(random >> 11) * 0x1p-53);
    writers->bandit.option[option].pending++;
    return writers->model[option];
}

static double mean_cost(const struct bandit *bandit)
{
    double cost = 0, count = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        cost += bandit->option[i].cost;
        count += bandit->option[i].count;
    }
    return count > 0 && cost > 0 ? cost / count : 1000 * MODEL_CHOICE_TOKEN_PRICE;
}

void model_choice_record(struct model_choice *writers, const char *chosen, const char *model, bool answered,
                   double cost, uint64_t tokens)
{
    size_t option = model ? find(writers, model) : writers->bandit.count;
    double paid = cost > 0 ? cost : (double)tokens * MODEL_CHOICE_TOKEN_PRICE;

    writers->bandit.option[find(writers, chosen)].pending--;
    if (option == writers->bandit.count) {
        return;
    }
    writers->answers[option] += answered;
    bandit_add(&writers->bandit, option, 0,
               answered ? paid : fmax(paid, mean_cost(&writers->bandit)));
    log_event(LOG_INFO, "proposed model=%s answered=%d paid=%.4g share=%.2f", model, (int)answered,
              paid, bandit_share(&writers->bandit, option));
}

// Whether it is new; it is not the next time.
static bool remember(struct model_choice *writers, const char *key)
{
    struct digest digest = digest_of(key, strlen(key));
    uint64_t known = writers->told_count < TOLD_MAX ? writers->told_count : TOLD_MAX;

    for (uint64_t i = 0; i < known; i++) {
        if (digest_equal(&writers->told[i], &digest)) {
            return false;
        }
    }
    writers->told[writers->told_count++ % TOLD_MAX] = digest;
    return true;
}

void model_choice_observe(struct model_choice *writers, const struct observe *observe)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        const struct outcome *outcome = &observe->outcomes[i];
        size_t option = outcome->model ? find(writers, outcome->model) : writers->bandit.count;

        if (option < writers->bandit.count && outcome->gain_log2 > 0 &&
            isfinite(outcome->gain_log2) && outcome->key && remember(writers, outcome->key)) {
            bandit_credit(&writers->bandit, option, outcome->gain_log2, 0);
            log_event(LOG_INFO, "improved model=%s gain_log2=%.4f key=%s", writers->model[option],
                      outcome->gain_log2, outcome->key);
        }
    }
}

void model_choice_status(const struct model_choice *writers, const char *model, struct endpoint_info *info)
{
    size_t option = find(writers, model);

    if (option < writers->bandit.count) {
        info->proposals = writers->answers[option];
        info->share = bandit_share(&writers->bandit, option);
        info->gain_log2 = writers->bandit.option[option].all_reward;
    }
}

#include "worker/llm/model_choice.h"

#include "common/bandit.h"
#include "common/log.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_MAX 1024 // outcomes with an improvement whose keys are remembered

_Static_assert(ENDPOINTS_MAX <= BANDIT_OPTIONS_MAX, "an option for each endpoint");

struct model_choice {
    struct bandit bandit;
    char *model[ENDPOINTS_MAX];      // of each option
    uint64_t answers[ENDPOINTS_MAX]; // of each option
    // Keys of outcomes with an improvement. The oldest are overwritten.
    struct digest seen[SEEN_MAX];
    uint64_t seen_count;
};

// The model's option; the number of options when it has none.
static size_t find(const struct model_choice *choice, const char *model)
{
    size_t option = 0;

    while (option < choice->bandit.count && strcmp(choice->model[option], model) != 0) {
        option++;
    }
    return option;
}

struct model_choice *model_choice_create(const struct endpoint_config *config, size_t count)
{
    struct model_choice *choice = xcalloc(1, sizeof(*choice));
    double weight[ENDPOINTS_MAX] = {0}, sum = 0;

    for (size_t i = 0; i < count; i++) {
        size_t option = find(choice, config[i].model);

        if (option == choice->bandit.count) {
            choice->model[option] = xstrdup(config[i].model);
            choice->bandit.count++;
        }
        weight[option] += config[i].weight;
        sum += config[i].weight;
    }
    bandit_init(&choice->bandit, choice->bandit.count, BANDIT_KEEP);
    for (size_t i = 0; i < choice->bandit.count; i++) {
        choice->bandit.option[i].weight = weight[i] * (double)choice->bandit.count / sum;
    }
    return choice;
}

void model_choice_free(struct model_choice *choice)
{
    if (choice) {
        for (size_t i = 0; i < choice->bandit.count; i++) {
            free(choice->model[i]);
        }
        free(choice);
    }
}

const char *model_choice_next(struct model_choice *choice, const struct digest *question)
{
    uint64_t random;

    memcpy(&random, question->byte, sizeof(random));
    size_t option = bandit_choose(&choice->bandit, (double)(random >> 11) * 0x1p-53);
    choice->bandit.option[option].pending++;
    return choice->model[option];
}

// The mean cost of a question; a guess while nothing has been paid.
static double mean_cost(const struct bandit *bandit)
{
    double cost = 0, count = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        cost += bandit->option[i].cost;
        count += bandit->option[i].count;
    }
    return count > 0 && cost > 0 ? cost / count : 1000 * MODEL_CHOICE_TOKEN_PRICE;
}

void model_choice_add(struct model_choice *choice, const char *chosen, const char *model,
                      bool answered, double cost, uint64_t tokens)
{
    size_t option = model ? find(choice, model) : choice->bandit.count;
    double paid = cost > 0 ? cost : (double)tokens * MODEL_CHOICE_TOKEN_PRICE;

    choice->bandit.option[find(choice, chosen)].pending--;
    if (option == choice->bandit.count) {
        return;
    }
    choice->answers[option] += answered;
    bandit_add(&choice->bandit, option, 0,
               answered ? paid : fmax(paid, mean_cost(&choice->bandit)));
    log_event(LOG_INFO, "proposed model=%s answered=%d paid=%.4g share=%.2f", model, (int)answered,
              paid, bandit_share(&choice->bandit, option));
}

// Whether the key is new. Remembers it.
static bool remember(struct model_choice *choice, const char *key)
{
    struct digest digest = digest_of(key, strlen(key));
    uint64_t known = choice->seen_count < SEEN_MAX ? choice->seen_count : SEEN_MAX;

    for (uint64_t i = 0; i < known; i++) {
        if (digest_equal(&choice->seen[i], &digest)) {
            return false;
        }
    }
    choice->seen[choice->seen_count++ % SEEN_MAX] = digest;
    return true;
}

void model_choice_observe(struct model_choice *choice, const struct observe *observe)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        const struct outcome *outcome = &observe->outcomes[i];
        size_t option = outcome->model ? find(choice, outcome->model) : choice->bandit.count;

        if (option < choice->bandit.count && outcome->gain_log2 > 0 &&
            isfinite(outcome->gain_log2) && outcome->key && remember(choice, outcome->key)) {
            bandit_credit(&choice->bandit, option, outcome->gain_log2, 0);
            log_event(LOG_INFO, "improved model=%s gain_log2=%.4f key=%s", choice->model[option],
                      outcome->gain_log2, outcome->key);
        }
    }
}

void model_choice_status(const struct model_choice *choice, const char *model,
                         struct endpoint_info *info)
{
    size_t option = find(choice, model);

    if (option < choice->bandit.count) {
        info->proposals = choice->answers[option];
        info->share = bandit_share(&choice->bandit, option);
        info->gain_log2 = choice->bandit.option[option].all_reward;
    }
}

#include "replay/variants.h"

#include "client/policy/policy.h"
#include "client/propose/strategy.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the next word of a list, malloc'd. Advances *list.
static char *next_word(const char **list)
{
    const char *end = strchrnul(*list, ',');
    char *word = xstrndup(*list, (size_t)(end - *list));

    *list = *end != '\0' ? end + 1 : end;
    return word;
}

static int add_variant(struct variant *variant, size_t *count, const struct variant *new,
                       struct err *err)
{
    if (*count == TASKS_VARIANTS_MAX) {
        return err_set(err, ERR_USAGE, "more than %d variants", TASKS_VARIANTS_MAX);
    }
    variant[(*count)++] = *new;
    return 0;
}

// ERR_USAGE when no forecaster that makes forecasts has this name.
static int find_forecaster(enum sim_forecaster *ret, const char *word, struct err *err)
{
    static const enum sim_forecaster all[] = {SIM_FORECASTER_STATIC, SIM_FORECASTER_PERFECT};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(sim_forecaster_name(all[i]), word) == 0) {
            *ret = all[i];
            return 0;
        }
    }
    return err_set(err, ERR_USAGE,
                   "--forecaster: there is no forecaster \"%.60s\", only static and perfect", word);
}

// The static model is what a variant has unless its name says otherwise.
static int add_forecaster(struct variant *variant, size_t *count, const struct variant *base,
                          const char *word, struct err *err)
{
    struct variant new = *base;
    int rc = find_forecaster(&new.forecaster, word, err);

    if (rc != 0) {
        return rc;
    }
    bool usual = new.forecaster == SIM_FORECASTER_STATIC;
    (void)snprintf(new.name, sizeof(new.name), "%s/%s%s%s", base->policy, base->strategy,
                   usual ? "" : "/", usual ? "" : word);
    return add_variant(variant, count, &new, err);
}

static int add_pipeline(struct variant *variant, size_t *count, const struct policy *policy,
                        const char *word, const char *forecasters, struct err *err)
{
    const struct strategy *strategy = strategy_find(word);
    struct variant new = {.policy = policy->name, .forecaster = SIM_FORECASTER_NONE};
    int rc = 0;

    if (!strategy) {
        return err_set(err, ERR_USAGE, "--strategy: there is no strategy \"%.60s\"", word);
    }
    new.strategy = strategy->name;
    if (policy->blind) {
        (void)snprintf(new.name, sizeof(new.name), "%s/%s", policy->name, strategy->name);
        return add_variant(variant, count, &new, err);
    }
    for (const char *list = forecasters ? forecasters : "static"; *list != '\0' && rc == 0;) {
        char *forecaster = next_word(&list);

        rc = add_forecaster(variant, count, &new, forecaster, err);
        free(forecaster);
    }
    return rc;
}

static int add_policies(const struct variants_wanted *wanted, struct variant *variant,
                        size_t *count, struct err *err)
{
    const char *policies = wanted->policies;
    int rc = 0;

    while (*policies != '\0' && rc == 0) {
        char *word = next_word(&policies);
        const struct policy *policy = policy_find(word);
        const char *strategies = wanted->strategies;

        if (!policy) {
            rc = err_set(err, ERR_USAGE, "--policy: there is no policy \"%.60s\"", word);
        }
        while (*strategies != '\0' && rc == 0) {
            char *strategy = next_word(&strategies);

            rc = add_pipeline(variant, count, policy, strategy, wanted->forecasters, err);
            free(strategy);
        }
        free(word);
    }
    return rc;
}

static int add_methods(const struct variants_wanted *wanted, struct variant *variant, size_t *count,
                       struct err *err)
{
    const char *methods = wanted->methods ? wanted->methods : "", *name;
    int rc = 0;

    while (*methods != '\0' && rc == 0) {
        char *word = next_word(&methods);
        const struct search_method *method = search_method_find(word);

        if (!method) {
            rc = err_set(err, ERR_USAGE, "--peers: there is no peer \"%.60s\"", word);
        } else {
            struct variant new = {.policy = method->name, .strategy = "", .method = method};

            (void)snprintf(new.name, sizeof(new.name), "%s", method->name);
            rc = add_variant(variant, count, &new, err);
        }
        free(word);
    }
    for (size_t i = 0;
         wanted->sequences && rc == 0 && (name = sequences_variant(wanted->sequences, i)); i++) {
        struct variant new = {.policy = name, .strategy = "", .method = &method_sequence};

        (void)snprintf(new.name, sizeof(new.name), "%s", name);
        rc = add_variant(variant, count, &new, err);
    }
    return rc;
}

int variants_make(const struct variants_wanted *wanted, struct variant *variant, size_t *ret,
                  struct err *err)
{
    size_t count = 0;
    int rc = add_policies(wanted, variant, &count, err);

    if (rc == 0) {
        rc = add_methods(wanted, variant, &count, err);
    }
    if (rc == 0 && count == 0) {
        rc = err_set(err, ERR_USAGE,
                     "--policy and --strategy, --peers and --orders name no variant");
    }
    *ret = count;
    return rc;
}

int against_find(struct against *ret, const char *names, const struct variant *variant,
                 size_t variants, struct err *err)
{
    ret->count = 0;
    int rc = 0;
    for (names = names ? names : ""; *names != '\0' && rc == 0;) {
        char *word = next_word(&names);
        size_t i = 0;

        while (i < variants && strcmp(variant[i].name, word) != 0) {
            i++;
        }
        if (i == variants) {
            rc = err_set(err, ERR_USAGE, "--against: there is no variant \"%.60s\"", word);
        } else if (ret->count < TASKS_VARIANTS_MAX) {
            ret->variant[ret->count++] = i;
        }
        free(word);
    }
    if (rc == 0 && ret->count == 0) {
        ret->variant[ret->count++] = 0;
    }
    return rc;
}

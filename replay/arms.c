#include "replay/arms.h"
#include "client/policy.h"
#include "client/strategy.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The next word of a list, malloc'd; advances *list.
static char *next_word(const char **list)
{
    const char *end = strchrnul(*list, ',');
    char *word = xstrndup(*list, (size_t)(end - *list));

    *list = *end != '\0' ? end + 1 : end;
    return word;
}

static int add_arm(struct arm *arm, size_t *count, const struct arm *new, struct err *err)
{
    if (*count == TASKS_ARMS_MAX) {
        return err_set(err, ERR_USAGE, "more than %d arms", TASKS_ARMS_MAX);
    }
    arm[(*count)++] = *new;
    return 0;
}

static int add_pipeline(struct arm *arm, size_t *count, const struct policy *policy,
                        const char *word, struct err *err)
{
    const struct strategy *strategy = strategy_find(word);
    struct arm new = {.policy = policy->name, .surrogate = !policy->blind};

    if (strategy == NULL) {
        return err_set(err, ERR_USAGE, "--strategy: there is no strategy \"%.60s\"", word);
    }
    new.strategy = strategy->name;
    (void)snprintf(new.name, sizeof(new.name), "%s/%s", policy->name, strategy->name);
    return add_arm(arm, count, &new, err);
}

static int add_policies(const struct arms_wanted *wanted, struct arm *arm, size_t *count,
                        struct err *err)
{
    const char *policies = wanted->policies;
    int status = 0;

    while (*policies != '\0' && status == 0) {
        char *word = next_word(&policies);
        const struct policy *policy = policy_find(word);
        const char *strategies = wanted->strategies;

        if (policy == NULL) {
            status = err_set(err, ERR_USAGE, "--policy: there is no policy \"%.60s\"", word);
        }
        while (*strategies != '\0' && status == 0) {
            char *strategy = next_word(&strategies);

            status = add_pipeline(arm, count, policy, strategy, err);
            free(strategy);
        }
        free(word);
    }
    return status;
}

static int add_peers(const struct arms_wanted *wanted, struct arm *arm, size_t *count,
                     struct err *err)
{
    const char *peers = wanted->peers != NULL ? wanted->peers : "", *name;
    int status = 0;

    while (*peers != '\0' && status == 0) {
        char *word = next_word(&peers);
        const struct peer *peer = peer_find(word);

        if (peer == NULL) {
            status = err_set(err, ERR_USAGE, "--peers: there is no peer \"%.60s\"", word);
        } else {
            struct arm new = {.policy = peer->name, .strategy = "", .peer = peer};

            (void)snprintf(new.name, sizeof(new.name), "%s", peer->name);
            status = add_arm(arm, count, &new, err);
        }
        free(word);
    }
    for (size_t i = 0; wanted->orders != NULL && status == 0 &&
                       (name = orders_arm(wanted->orders, i)) != NULL; i++) {
        struct arm new = {.policy = name, .strategy = "", .peer = &peer_ordered};

        (void)snprintf(new.name, sizeof(new.name), "%s", name);
        status = add_arm(arm, count, &new, err);
    }
    return status;
}

int arms_make(const struct arms_wanted *wanted, struct arm *arm, size_t *ret, struct err *err)
{
    size_t count = 0;
    int status = add_policies(wanted, arm, &count, err);

    if (status == 0) {
        status = add_peers(wanted, arm, &count, err);
    }
    if (status == 0 && count == 0) {
        status = err_set(err, ERR_USAGE,
                         "--policy and --strategy, --peers and --orders name no arm");
    }
    *ret = count;
    return status;
}

int against_find(struct against *ret, const char *names, const struct arm *arm, size_t arms,
                 struct err *err)
{
    int status = 0;

    ret->count = 0;
    for (names = names != NULL ? names : ""; *names != '\0' && status == 0;) {
        char *word = next_word(&names);
        size_t i = 0;

        while (i < arms && strcmp(arm[i].name, word) != 0) {
            i++;
        }
        if (i == arms) {
            status = err_set(err, ERR_USAGE, "--against: there is no arm \"%.60s\"", word);
        } else if (ret->count < TASKS_ARMS_MAX) {
            ret->arm[ret->count++] = i;
        }
        free(word);
    }
    if (status == 0 && ret->count == 0) {
        ret->arm[ret->count++] = 0;
    }
    return status;
}

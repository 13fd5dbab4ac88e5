#include "common/bandit.h"

#include <math.h>

#define EXPLORE 0.5       // times the width of a bound
#define LIFETIME_PART 0.1 // of the best arm's reward per cost over all time
#define LEAST_PULLS 1e-9

void bandit_init(struct bandit *bandit, size_t count, double keep)
{
    *bandit = (struct bandit){.count = count, .keep = keep};
    for (size_t i = 0; i < count; i++) {
        bandit->arm[i].weight = 1;
    }
}

void bandit_credit(struct bandit *bandit, size_t number, double reward, double cost)
{
    struct bandit_arm *arm = &bandit->arm[number];

    arm->reward += reward;
    arm->all_reward += reward;
    arm->cost += cost > 0 ? cost : 0;
    arm->all_cost += cost > 0 ? cost : 0;
}

void bandit_add(struct bandit *bandit, size_t number, double reward, double cost)
{
    for (size_t i = 0; i < bandit->count; i++) {
        struct bandit_arm *arm = &bandit->arm[i];

        arm->count *= bandit->keep;
        arm->reward *= bandit->keep;
        arm->cost *= bandit->keep;
    }
    bandit->arm[number].count++;
    bandit->arm[number].pulls++;
    bandit_credit(bandit, number, reward, cost);
}

// The heaviest of those that were never pulled; SIZE_MAX: all were.
static size_t find_untried(const struct bandit *bandit)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < bandit->count; i++) {
        const struct bandit_arm *arm = &bandit->arm[i];

        if (!arm->gone && arm->pulls == 0 && arm->pending == 0 &&
            (found == SIZE_MAX || arm->weight > bandit->arm[found].weight)) {
            found = i;
        }
    }
    return found;
}

static double rate(double reward, double cost)
{
    return cost > 0 ? reward / cost : 0;
}

// What rewards per cost are relative to.
static double best_rate(const struct bandit *bandit)
{
    double best = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        const struct bandit_arm *arm = &bandit->arm[i];

        best = fmax(best, rate(arm->reward, arm->cost));
        best = fmax(best, LIFETIME_PART * rate(arm->all_reward, arm->all_cost));
    }
    return best;
}

// How much was spent on the arm, in pulls of mean cost (unit).
static double spent(const struct bandit_arm *arm, double unit)
{
    double mean = arm->count > 0 ? arm->cost / arm->count / unit : 1;

    return arm->cost / unit + (double)arm->pending * mean;
}

static size_t highest_bound(const struct bandit *bandit)
{
    double cost = 0, count = 0, unit, best = best_rate(bandit), all = 0, highest = -INFINITY;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < bandit->count; i++) {
        cost += bandit->arm[i].cost;
        count += bandit->arm[i].count;
    }
    unit = cost > 0 && count > 0 ? cost / count : 1;
    for (size_t i = 0; i < bandit->count; i++) {
        all += spent(&bandit->arm[i], unit);
    }
    for (size_t i = 0; i < bandit->count; i++) {
        const struct bandit_arm *arm = &bandit->arm[i];
        double mine = fmax(spent(arm, unit), LEAST_PULLS);
        double bound = EXPLORE * sqrt(arm->weight * log1p(all) / mine);

        bound += best > 0 ? rate(arm->reward, arm->cost) / best : 0;
        if (!arm->gone && bound > highest) {
            highest = bound;
            found = i;
        }
    }
    return found;
}

size_t bandit_choose(const struct bandit *bandit, double coin)
{
    size_t untried = find_untried(bandit), drawn;

    if (untried != SIZE_MAX) {
        return untried;
    }
    drawn = coin < BANDIT_FLOOR ? (size_t)(coin / BANDIT_FLOOR * (double)bandit->count) : 0;
    for (size_t i = 0; i < bandit->count && coin < BANDIT_FLOOR; i++) {
        size_t arm = (drawn + i) % bandit->count;

        if (!bandit->arm[arm].gone) {
            return arm;
        }
    }
    return highest_bound(bandit);
}

double bandit_share(const struct bandit *bandit, size_t arm)
{
    double cost = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        cost += bandit->arm[i].cost;
    }
    return cost > 0 ? bandit->arm[arm].cost / cost : 0;
}

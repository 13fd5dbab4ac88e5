#include "common/bandit.h"

#include <math.h>

#define EXPLORE 0.5       // factor of a bound's width
#define LIFETIME_PART 0.1 // factor of the best reward per cost over all time
#define LEAST_PULLS 1e-9  // keeps the width of a bound finite

void bandit_init(struct bandit *bandit, size_t count, double keep)
{
    *bandit = (struct bandit){.count = count, .keep = keep};
    for (size_t i = 0; i < count; i++) {
        bandit->option[i].weight = 1;
    }
}

void bandit_credit(struct bandit *bandit, size_t number, double reward, double cost)
{
    struct bandit_option *option = &bandit->option[number];

    option->reward += reward;
    option->all_reward += reward;
    option->cost += cost > 0 ? cost : 0;
    option->all_cost += cost > 0 ? cost : 0;
}

void bandit_add(struct bandit *bandit, size_t number, double reward, double cost)
{
    for (size_t i = 0; i < bandit->count; i++) {
        struct bandit_option *option = &bandit->option[i];

        option->count *= bandit->keep;
        option->reward *= bandit->keep;
        option->cost *= bandit->keep;
    }
    bandit->option[number].count++;
    bandit->option[number].pulls++;
    bandit_credit(bandit, number, reward, cost);
}

// The heaviest option that was never pulled, SIZE_MAX when all were.
static size_t find_untried(const struct bandit *bandit)
{
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < bandit->count; i++) {
        const struct bandit_option *option = &bandit->option[i];

        if (!option->gone && option->pulls == 0 && option->pending == 0 &&
            (found == SIZE_MAX || option->weight > bandit->option[found].weight)) {
            found = i;
        }
    }
    return found;
}

static double rate(double reward, double cost)
{
    return cost > 0 ? reward / cost : 0;
}

// The reward per cost to which those of all options are relative.
static double best_rate(const struct bandit *bandit)
{
    double best = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        const struct bandit_option *option = &bandit->option[i];

        best = fmax(best, rate(option->reward, option->cost));
        best = fmax(best, LIFETIME_PART * rate(option->all_reward, option->all_cost));
    }
    return best;
}

// What was spent on the option, counted in pulls of cost `unit`, the mean over all options. Pending
// pulls count with the option's own mean cost.
static double spent(const struct bandit_option *option, double unit)
{
    double mean = option->count > 0 ? option->cost / option->count / unit : 1;

    return option->cost / unit + (double)option->pending * mean;
}

// The option with the highest upper confidence bound, SIZE_MAX when all are gone.
static size_t highest_bound(const struct bandit *bandit)
{
    double cost = 0, count = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        cost += bandit->option[i].cost;
        count += bandit->option[i].count;
    }
    double unit = cost > 0 && count > 0 ? cost / count : 1, all = 0;
    for (size_t i = 0; i < bandit->count; i++) {
        all += spent(&bandit->option[i], unit);
    }
    double best = best_rate(bandit), highest = -INFINITY;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < bandit->count; i++) {
        const struct bandit_option *option = &bandit->option[i];
        double mine = fmax(spent(option, unit), LEAST_PULLS);
        double bound = EXPLORE * sqrt(option->weight * log1p(all) / mine);

        bound += best > 0 ? rate(option->reward, option->cost) / best : 0;
        if (!option->gone && bound > highest) {
            highest = bound;
            found = i;
        }
    }
    return found;
}

size_t bandit_choose(const struct bandit *bandit, double coin)
{
    size_t untried = find_untried(bandit);

    if (untried != SIZE_MAX) {
        return untried;
    }
    size_t drawn = coin < BANDIT_FLOOR ? (size_t)(coin / BANDIT_FLOOR * (double)bandit->count) : 0;
    for (size_t i = 0; i < bandit->count && coin < BANDIT_FLOOR; i++) {
        size_t option = (drawn + i) % bandit->count;

        if (!bandit->option[option].gone) {
            return option;
        }
    }
    return highest_bound(bandit);
}

double bandit_share(const struct bandit *bandit, size_t option)
{
    double cost = 0;

    for (size_t i = 0; i < bandit->count; i++) {
        cost += bandit->option[i].cost;
    }
    return cost > 0 ? bandit->option[option].cost / cost : 0;
}

// Chooses which of a few options to spend on next, when they bring rewards now and then, have
// different costs, and change with time: a multi-armed bandit with upper confidence bounds on the
// discounted reward per cost. The client's mix of generators uses it. It knows nothing of what the
// options are. It has no randomness of its own: the choice follows from what was added and from the
// number that the caller drew.
//
// Discounted UCB is from Garivier and Moulines 2011, "On upper-confidence bound policies for
// switching bandit problems". Every pull makes all earlier ones count a little less. An option
// whose best time is over is therefore left, and one that was poor is tried again. Reward per cost
// instead of reward per pull is from Tran-Thanh and others 2012, "Knapsack based optimal policies
// for budget-limited multi-armed bandits". This implementation adds three things:
//   - A pull that costs twice the mean counts as two pulls.
//   - A fixed part of all choices is drawn uniformly, whatever was learnt.
//   - Rewards per cost are relative to the best recent one, or to a tenth of the best one over all
//     time when that is more. When no option brings anything any more, all get equal shares.
#ifndef COMMON_BANDIT_H
#define COMMON_BANDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BANDIT_OPTIONS_MAX 16
#define BANDIT_KEEP 0.992 // the usual factor per later pull: about 125 pulls are remembered
#define BANDIT_FLOOR 0.1  // the part of all choices that is drawn uniformly

struct bandit_option {
    bool gone;                   // never chosen any more
    double weight;               // > 0; without any rewards, shares are proportional to it
    uint64_t pending;            // pulls that were made and whose outcome was not added yet
    uint64_t pulls;              // pulls whose outcome was added
    double count, reward, cost;  // discounted sums: of pulls, rewards, costs
    double all_reward, all_cost; // the same sums without discount
};

struct bandit {
    struct bandit_option option[BANDIT_OPTIONS_MAX];
    size_t count; // of options
    double keep;  // factor by which each pull discounts all earlier ones; 1 forgets nothing
};

// Starts with `count` options (at most BANDIT_OPTIONS_MAX) of weight 1. The caller may change gone,
// weight and pending afterwards.
void bandit_init(struct bandit *bandit, size_t count, double keep);
// Adds one pull of an option with its reward and its cost. Costs are in any unit, the same for all
// options. A cost that is not above 0 counts as nothing spent.
void bandit_add(struct bandit *bandit, size_t option, double reward, double cost);
// Adds a reward and a cost that came later from a pull that was added before.
void bandit_credit(struct bandit *bandit, size_t option, double reward, double cost);
// The option to pull next. Options that were never pulled come first, the heaviest of them before
// the others; then the bounds decide. coin is uniform in [0, 1) and decides about the uniform part:
// when it selects an option that is gone, the next one is taken. SIZE_MAX when all are gone.
size_t bandit_choose(const struct bandit *bandit, double coin);
// The option's part of the discounted cost of all options, 0 when nothing was spent.
double bandit_share(const struct bandit *bandit, size_t option);

#endif

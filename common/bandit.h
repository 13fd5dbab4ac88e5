// Which of a few arms to spend on next, when they bring rewards now and then, cost differently, and
// change as time goes on: upper confidence bounds on discounted reward per cost. Pure: the choice
// follows from what was added and the coin.
//
// Discounted UCB is Garivier and Moulines 2011, "On upper-confidence bound policies for switching
// bandit problems": every pull makes all earlier ones count a little less, so that an arm whose
// best time is over is left and one that was poor is looked at again. Reward per cost instead of
// per pull is as in Tran-Thanh and others 2012, "Knapsack based optimal policies for budget-limited
// multi-armed bandits". Of its own: a pull that costs twice as much as the mean one counts as two;
// a share of all choices is drawn uniformly, whatever was learnt; and rewards per cost are taken
// relative to the best arm's lately, or to a tenth of the best one's over all time when that is
// more: when nothing brings anything any more, all are given equally much.
#ifndef COMMON_BANDIT_H
#define COMMON_BANDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BANDIT_OPTIONS_MAX 16
#define BANDIT_KEEP 0.992 // of a pull's weight, after one more: 125 pulls are remembered
#define BANDIT_FLOOR 0.1  // of the choices, uniformly drawn

struct bandit_option {
    bool gone;                   // never chosen
    double weight;               // > 0; without rewards, arms are given in proportion to it
    uint64_t pending;            // pulls that were made and not added yet
    uint64_t pulls;              // added
    double count, reward, cost;  // discounted
    double all_reward, all_cost; // not discounted
};

struct bandit {
    struct bandit_option option[BANDIT_OPTIONS_MAX];
    size_t count;
    double keep; // 1: nothing is forgotten
};

// All weights 1. count is at most BANDIT_OPTIONS_MAX.
void bandit_init(struct bandit *bandit, size_t count, double keep);
// One pull with its outcome. Costs are in any unit; one that is not above 0 counts as nothing
// spent.
void bandit_add(struct bandit *bandit, size_t option, double reward, double cost);
// What comes of an earlier pull later.
void bandit_credit(struct bandit *bandit, size_t option, double reward, double cost);
// The arm to pull: first each that never was (the heaviest first), then by the bounds. coin is from
// 0 to 1 (exclusive) and decides the uniform share; where it falls on one that is gone, the next
// one is taken. SIZE_MAX when all are gone.
size_t bandit_choose(const struct bandit *bandit, double coin);
// The arm's part of what was spent lately; 0 when nothing was.
double bandit_share(const struct bandit *bandit, size_t option);

#endif

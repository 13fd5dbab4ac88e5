// An inductive Venn-Abers predictor: the probability of an event from a score, by isotonic
// regression (Vovk & Petej 2014, UAI; Vovk, Petej & Fedorova 2015, NeurIPS). To predict for a
// score, two fits are made that include it, once as an event and once as none, giving p1 and p0.
// One of these two probabilities is calibrated if the outcomes are exchangeable, however bad the
// score is. Called by the recalibration. Pure numbers.
#ifndef WORKER_CALIBRATION_VENN_ABERS_H
#define WORKER_CALIBRATION_VENN_ABERS_H

#include <stdbool.h>
#include <stddef.h>

struct venn_abers_block;

// Embedded by value; zeroed memory is a predictor without points. A group is the points with equal
// scores; a block is neighbouring groups to which the isotonic fit gives one value.
struct venn_abers {
    double *score;                   // of each group, ascending
    struct venn_abers_block *group;  // weight and events of each group
    struct venn_abers_block *before; // [k]: last block of the fit to groups 0 ... k - 1
    struct venn_abers_block *after;  // [k]: first block of the fit to groups k ...
    size_t group_count;
    double weight;        // sum over all points
    double weight_square; // sum of the squared weights
};

// Replaces the predictor by points i = 0 ... count - 1: finite scores in ascending order, weights >
// 0, and whether the event happened.
void venn_abers_fit(struct venn_abers *predictor, const double *score, const double *weight,
                    const bool *event, size_t count);
void venn_abers_release(struct venn_abers *predictor);

struct venn_abers_answer {
    double p0, p1; // p0 <= p1
    double p;      // p1 / (1 - p0 + p1), the minimax choice for log loss
    double width;  // p1 - p0: how much the one unknown outcome matters
};

// Predicts for a score. The score has the weight of one effective observation, sum w^2 / sum w.
// Without points p0 = 0 and p1 = 1. O(log n) plus the number of blocks that are merged.
struct venn_abers_answer venn_abers_ask(const struct venn_abers *predictor, double score);

#endif

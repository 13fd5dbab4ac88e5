// The probability of an event from a score, by isotonic regression: an inductive Venn-Abers
// predictor (Vovk & Petej 2014, UAI; Vovk, Petej & Fedorova 2015, NeurIPS). Two fits hold the asked
// score once as an event and once as none; one of the two values p0 <= p1 is calibrated under
// exchangeability, whatever the score is worth. Pure numbers.
#ifndef WORKER_CALIBRATION_VENN_ABERS_H
#define WORKER_CALIBRATION_VENN_ABERS_H

#include <stdbool.h>
#include <stddef.h>

struct venn_abers_block;

// Embedded by value; zeroed memory is a predictor without points.
struct venn_abers {
    double *score;                   // of each group of equal scores, ascending
    struct venn_abers_block *group;  // its own weight and events
    struct venn_abers_block *before; // [k]: last block of the fit to groups 0 … k - 1
    struct venn_abers_block *after;  // [k]: first block of the fit to groups k …
    size_t group_count;
    double weight;        // sum over all points
    double weight_square; // sum of squares
};

// Points i = 0 … count - 1: finite scores in ascending order, weights > 0, whether the event
// happened. Replaces what was there.
void venn_abers_fit(struct venn_abers *predictor, const double *score, const double *weight,
                    const bool *event, size_t count);
void venn_abers_release(struct venn_abers *predictor);

struct venn_abers_answer {
    double p0, p1;
    double p;     // p1 / (1 - p0 + p1), the minimax choice for log loss
    double width; // p1 - p0: how much the one unknown outcome matters
};

// O(log n) and the blocks that are merged. Without points p0 = 0, p1 = 1. The asked point has the
// weight of one effective observation, sum w² / sum w.
struct venn_abers_answer venn_abers_ask(const struct venn_abers *predictor, double score);

#endif

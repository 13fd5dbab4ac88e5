// Design note. Isotonic regression by pooling adjacent violators gives the same fit in whatever
// order violators are pooled. The fits to all points before a position and to all points after it
// can therefore be made once for every position: a walk that fits the whole list from the left has,
// after k groups, the fit to those k, and the blocks below its last one are the fit to the groups
// before that block. One array holds them all, entry k being the last block; a second array holds
// the same from the right. A prediction puts its point between the two fits and pools outwards
// until the values are in order.
#include "worker/calibration/venn_abers.h"

#include "common/mem.h"
#include <stdlib.h>

struct venn_abers_block {
    double weight, events; // sums
    // In `before` the group where the block begins, in `after` the group behind its end. This is
    // also the index of the neighbouring block.
    size_t far;
};

// The value that the fit gives to the block.
static double mean(const struct venn_abers_block *block)
{
    return block->events / block->weight;
}

static void absorb(struct venn_abers_block *block, const struct venn_abers_block *other)
{
    block->weight += other->weight;
    block->events += other->events;
}

// Joins points with equal scores to groups, and adds up the weights.
static void group_points(struct venn_abers *to, const double *score, const double *weight,
                         const bool *event, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (to->group_count == 0 || score[i] > to->score[to->group_count - 1]) {
            to->score[to->group_count++] = score[i];
        }
        struct venn_abers_block *group = &to->group[to->group_count - 1];
        group->weight += weight[i];
        group->events += event[i] ? weight[i] : 0;
        to->weight += weight[i];
        to->weight_square += weight[i] * weight[i];
    }
}

void venn_abers_fit(struct venn_abers *predictor, const double *score, const double *weight,
                    const bool *event, size_t count)
{
    venn_abers_release(predictor);
    if (count == 0) {
        return;
    }
    predictor->score = xcalloc(count, sizeof *predictor->score);
    predictor->group = xcalloc(count, sizeof *predictor->group);
    group_points(predictor, score, weight, event, count);
    size_t groups = predictor->group_count;
    predictor->before = xcalloc(groups + 1, sizeof *predictor->before);
    predictor->after = xcalloc(groups + 1, sizeof *predictor->after);
    for (size_t k = 1; k <= groups; k++) {
        struct venn_abers_block block = predictor->group[k - 1];
        block.far = k - 1;
        while (block.far > 0 && mean(&predictor->before[block.far]) >= mean(&block)) {
            const struct venn_abers_block *last = &predictor->before[block.far];
            absorb(&block, last);
            block.far = last->far;
        }
        predictor->before[k] = block;
    }
    for (size_t k = groups; k-- > 0;) {
        struct venn_abers_block block = predictor->group[k];
        block.far = k + 1;
        while (block.far < groups && mean(&predictor->after[block.far]) <= mean(&block)) {
            const struct venn_abers_block *first = &predictor->after[block.far];
            absorb(&block, first);
            block.far = first->far;
        }
        predictor->after[k] = block;
    }
}

void venn_abers_release(struct venn_abers *predictor)
{
    free(predictor->score);
    free(predictor->group);
    free(predictor->before);
    free(predictor->after);
    *predictor = (struct venn_abers){0};
}

// The first group with at least this score; group_count when there is none.
static size_t group_at(const struct venn_abers *predictor, double score)
{
    size_t low = 0, high = predictor->group_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (predictor->score[middle] < score) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// The value that the fit gives to a point with the score of group `at` (equal) or just below it, if
// the point is an event or is none.
static double fit_with(const struct venn_abers *predictor, size_t at, bool equal, bool event)
{
    double own = predictor->weight_square / predictor->weight;
    struct venn_abers_block block = {own, event ? own : 0, 0};
    size_t left = at, right = at;
    if (equal) {
        absorb(&block, &predictor->group[right++]);
    }
    for (;;) {
        if (left > 0 && mean(&predictor->before[left]) >= mean(&block)) {
            absorb(&block, &predictor->before[left]);
            left = predictor->before[left].far;
        } else if (right < predictor->group_count &&
                   mean(&predictor->after[right]) <= mean(&block)) {
            absorb(&block, &predictor->after[right]);
            right = predictor->after[right].far;
        } else {
            return mean(&block);
        }
    }
}

struct venn_abers_answer venn_abers_ask(const struct venn_abers *predictor, double score)
{
    struct venn_abers_answer answer = {.p0 = 0, .p1 = 1};
    if (predictor->group_count > 0) {
        size_t at = group_at(predictor, score);
        bool equal = at < predictor->group_count && !(predictor->score[at] > score);
        answer.p0 = fit_with(predictor, at, equal, false);
        answer.p1 = fit_with(predictor, at, equal, true);
    }
    answer.width = answer.p1 > answer.p0 ? answer.p1 - answer.p0 : 0;
    answer.p = answer.p1 / (1 - answer.p0 + answer.p1);
    return answer;
}

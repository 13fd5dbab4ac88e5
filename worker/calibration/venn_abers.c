// Design. Pooling adjacent violators gives the same fit in whatever order violators are pooled.
// So the fits to all points before a place and to all points after it can be made once, for every
// place: the walk that fits the whole list from the left has, after k groups, the fit to those k,
// and what lies below its last block is the fit to the groups before that block. One array holds
// them all, [k] being the last block; the same from the right. A question sets its point between
// the two and pools outwards until it is in order.
#include "worker/calibration/venn_abers.h"

#include "common/mem.h"
#include <stdlib.h>

struct venn_abers_block {
    double weight, events; // sums
    size_t far;            // group where it begins (before) or ends (after); the next block's index
};

static double mean(const struct venn_abers_block *block)
{
    return block->events / block->weight;
}

static void absorb(struct venn_abers_block *block, const struct venn_abers_block *other)
{
    block->weight += other->weight;
    block->events += other->events;
}

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

// The first group with at least this score.
static size_t place_of(const struct venn_abers *predictor, double score)
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

static double fit_with(const struct venn_abers *predictor, size_t place, bool equal, bool event)
{
    double own = predictor->weight_square / predictor->weight;
    struct venn_abers_block block = {own, event ? own : 0, 0};
    size_t left = place, right = place;
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
        size_t place = place_of(predictor, score);
        bool equal = place < predictor->group_count && !(predictor->score[place] > score);
        answer.p0 = fit_with(predictor, place, equal, false);
        answer.p1 = fit_with(predictor, place, equal, true);
    }
    answer.width = answer.p1 > answer.p0 ? answer.p1 - answer.p0 : 0;
    answer.p = answer.p1 / (1 - answer.p0 + answer.p1);
    return answer;
}

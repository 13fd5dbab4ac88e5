// A tree search: which measured candidate deserves more children.
//
// The tree is that of the proposals' parents; its roots are random points (of a language model:
// what was made from the baseline). A candidate that was measured and correct scores
//     Q + C * scale * P * sqrt(1 + T) / (1 + n)
// with Q the best measured log2 speedup among it and its descendants (the best, not the mean: a
// search wants one good kernel, not a good family), P its share by rank of its own speedup, n the
// number of its descendants, T that of all candidates that have a parent, and scale the range of
// the speedups measured. Forecasts do not count as speedups; candidates that failed or were not
// measured count as visits of those that they came from, and so do those that are still on their
// way.
//
// A batch takes the candidates in order of their scores, each for CHILDREN slots, but none whose
// ancestor or descendant it took already (lineage blocking): otherwise one family, whose members
// share the same best, would fill it. Slots that this leaves free, the first START and those where
// a coin says so (EXPLORE) get random points, so every point comes in the end.
//
// Max-reward PUCT as published with GPU Forecasters, with linear rank prior, C = 1 and lineage
// blocking. There Q looks at children only and visits are counted by expansion; here the whole
// subtree counts, and there are no steps that wait for each other.
#include "client/propose/strategy.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define START 16
#define EXPLORE 0.1
#define CHILDREN 4
#define C 1.0
#define STREAM_COIN 0x70756374ULL
#define STREAM_CHILD 0x70756368ULL

struct node {
    uint64_t candidate, parent; // parent 0: a root
    uint64_t visits;
    double own, best, score;
    bool known;    // measured and correct, and not the same code as an earlier one
    bool has_best; // there is something known among it and its descendants
    bool below;    // it or an ancestor of it was taken for this batch
    bool above;    // it or a descendant of it was taken for this batch
};

struct tree {
    struct node *node;   // of candidate i at i - 1
    struct node **order; // those that are known, best score first
    size_t order_count;
    size_t at;           // how far in the order the batch has come
    struct node *parent; // the one that the batch is expanding; NULL: none
    size_t left;         // children that it may still have
    struct stats_rng rng;
};

static int by_own(const void *a, const void *b)
{
    const struct node *left = *(struct node *const *)a, *right = *(struct node *const *)b;
    if (left->own != right->own) {
        return left->own > right->own ? -1 : 1;
    }
    return left->candidate < right->candidate ? -1 : 1;
}

static int by_score(const void *a, const void *b)
{
    const struct node *left = *(struct node *const *)a, *right = *(struct node *const *)b;
    if (left->score != right->score) {
        return left->score > right->score ? -1 : 1;
    }
    return left->candidate < right->candidate ? -1 : 1;
}

// Visits and bests from the leaves up: a parent always has the smaller number. Returns T.
static uint64_t count_up(struct tree *tree, size_t count)
{
    uint64_t made = 0;
    for (size_t i = count; i > 0; i--) {
        const struct node *node = &tree->node[i - 1];
        if (node->parent == 0) {
            continue;
        }
        struct node *parent = &tree->node[node->parent - 1];
        made++;
        parent->visits += node->visits + 1;
        if (node->has_best) {
            parent->best = parent->has_best ? fmax(parent->best, node->best) : node->best;
            parent->has_best = true;
        }
    }
    return made;
}

static struct tree tree_of(const struct strategy_view *view)
{
    size_t count = view->run_state->candidate_count, known = 0;
    struct tree tree = {.node = xcalloc(count + 1, sizeof(*tree.node)),
                        .order = xcalloc(count + 1, sizeof(*tree.order))};
    for (size_t i = 0; i < count; i++) {
        const struct run_state_candidate *candidate = &view->run_state->candidate[i];
        struct node *node = &tree.node[i];
        *node = (struct node){.candidate = i + 1, .parent = candidate->proposed.parent};
        bool again = candidate->proposed.duplicate_of != 0 || candidate->object_duplicate_of != 0;
        node->known = !again && i < view->visible && strategy_score(view, i + 1, &node->own);
        node->has_best = node->known;
        node->best = node->own;
        if (node->known) {
            tree.order[known++] = node;
        }
    }
    uint64_t made = count_up(&tree, count);
    qsort(tree.order, known, sizeof(*tree.order), by_own);
    double scale = known > 0 ? tree.order[0]->own - tree.order[known - 1]->own : 0;
    double all = (double)known * (double)(known + 1) / 2;
    for (size_t rank = 0; rank < known; rank++) {
        struct node *node = tree.order[rank];
        node->score = node->best + C * fmax(scale, 1e-6) * ((double)(known - rank) / all) *
                                       sqrt(1 + (double)made) / (1 + (double)node->visits);
    }
    qsort(tree.order, known, sizeof(*tree.order), by_score);
    tree.order_count = known;
    stats_rng_init(&tree.rng, view->seed ^ STREAM_CHILD, count);
    return tree;
}

static void tree_release(struct tree *tree)
{
    free(tree->node);
    free(tree->order);
}

static bool blocked(const struct tree *tree, const struct node *node)
{
    bool ret = node->above;
    for (;;) {
        ret = ret || node->below;
        if (ret || node->parent == 0) {
            return ret;
        }
        node = &tree->node[node->parent - 1];
    }
}

// The next one of the batch, whose lineage is blocked from then on; NULL: there is none any more.
static struct node *take(struct tree *tree)
{
    while (tree->at < tree->order_count) {
        struct node *node = tree->order[tree->at++];
        if (!blocked(tree, node)) {
            return node;
        }
    }
    return NULL;
}

static void block(struct tree *tree, struct node *node)
{
    node->below = true;
    node->above = true;
    while (node->parent != 0) {
        node = &tree->node[node->parent - 1];
        node->above = true;
    }
}

// A free neighbour of the node that is being expanded, or of the next one in the order that has
// any.
static bool expand(const struct strategy_view *view, struct tree *tree, bool *taken,
                   struct strategy_choice *ret)
{
    for (;;) {
        if (tree->left == 0) {
            tree->parent = take(tree);
            tree->left = CHILDREN;
        }
        if (!tree->parent) {
            tree->left = 0;
            return false;
        }
        size_t point;
        if (strategy_point(view, tree->parent->candidate, &point) &&
            strategy_neighbour(view, taken, point, &tree->rng, &ret->point)) {
            block(tree, tree->parent);
            taken[ret->point] = true;
            ret->parent = tree->parent->candidate;
            tree->left--;
            return true;
        }
        tree->left = 0;
    }
}

static size_t choose(const struct strategy_view *view, size_t want, struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    struct tree tree = tree_of(view);
    uint64_t made = strategy_proposed(view);
    size_t count = 0;
    for (; count < want; count++) {
        uint64_t slot = view->run_state->candidate_count + count + 1;
        if (made + count >= START && strategy_uniform(view, STREAM_COIN, slot) >= EXPLORE &&
            expand(view, &tree, taken, &out[count])) {
            continue;
        }
        out[count].parent = 0;
        if (!strategy_random(view, taken, slot, &out[count].point)) {
            break;
        }
    }
    tree_release(&tree);
    free(taken);
    return count;
}

// A model is asked for CHILDREN at a time: the first request of a batch is for the first in the
// order, the second for the next one of another lineage, and so on.
static uint64_t parent(const struct strategy_view *view, uint64_t slot)
{
    uint64_t made = view->run_state->candidate_count, ret = 0;
    uint64_t requests = slot > made ? (slot - made - 1) / CHILDREN : 0;
    if (strategy_uniform(view, STREAM_COIN, slot) < EXPLORE) {
        return 0;
    }
    struct tree tree = tree_of(view);
    struct node *node = take(&tree);
    for (uint64_t i = 0; i < requests && node; i++) {
        block(&tree, node);
        node = take(&tree);
    }
    ret = node ? node->candidate : 0;
    tree_release(&tree);
    return ret;
}

const struct strategy strategy_puct = {
    .name = "puct",
    .help = "a tree search over parents, by the best that came of each",
    .choose = choose,
    .parent = parent,
};

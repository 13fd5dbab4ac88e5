// The strategy `puct`: a tree search that decides which measured candidate gets more children.
//
// The tree has an edge from each candidate to the candidates that were proposed as its children.
// Its roots are random points; of a language model, the candidates made from the baseline. A
// candidate that was measured and correct has the score
//     Q + C * scale * P * sqrt(1 + T) / (1 + n)
// where
//     Q      is the best measured log2 speedup among it and its descendants. It is the best and not
//            the mean, because a search wants one fast kernel and not a fast family;
//     P      is its share of a prior that falls linearly with the rank of its own speedup;
//     n      is the number of its descendants;
//     T      is the number of all candidates that have a parent;
//     scale  is the range of the measured speedups.
// Forecasts do not count as speedups. Candidates that failed, were not measured or have no outcome
// yet count as visits of their ancestors.
//
// A batch takes the candidates in order of their scores, each for CHILDREN slots, but none with an
// ancestor or descendant that the batch has taken (lineage blocking). Otherwise one family, whose
// members share the same best, would fill the batch. Random points go to the slots that this leaves
// free, to the first START slots, and to others with probability EXPLORE, so that every point is
// proposed in the end.
//
// This is max-reward PUCT as published with GPU Forecasters, with linear rank prior, C = 1 and
// lineage blocking. There Q looks at children only and visits are counted by expansion. Here the
// whole subtree counts, and no step waits for another.
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
    uint64_t visits;            // n above
    double own;                 // its own log2 speedup, when known
    double best;                // Q above, when has_best
    double score;               // when known
    bool known;                 // measured and correct, and not a duplicate of an earlier candidate
    bool has_best;              // it or a descendant is known
    bool taken;                 // it was taken for this batch
    bool is_ancestor;           // it or a descendant was taken for this batch
};

struct tree {
    struct node *node;   // candidate i is at i - 1; owned
    struct node **order; // the known nodes, highest score first; owned
    size_t order_count;
    size_t at;            // index in order of the next node that the batch may take
    struct node *parent;  // the node that the batch is expanding; NULL: none
    size_t left;          // children that this node may still have in this batch
    struct stats_rng rng; // draws neighbours
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

// Computes visits and best of every node, from the last candidate to the first: a parent always has
// a smaller number than its children. Returns T.
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
    bool ret = node->is_ancestor;
    for (;;) {
        ret = ret || node->taken;
        if (ret || node->parent == 0) {
            return ret;
        }
        node = &tree->node[node->parent - 1];
    }
}

// The next node of the order whose lineage is not blocked. NULL when there is none. The caller
// blocks its lineage.
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
    node->taken = true;
    node->is_ancestor = true;
    while (node->parent != 0) {
        node = &tree->node[node->parent - 1];
        node->is_ancestor = true;
    }
}

// Chooses a free neighbour of the node that is being expanded, or of the next node in the order
// that has one, and marks it as taken. False when there is none.
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

// A language model is asked for CHILDREN candidates at a time. The first request of a batch is for
// the first node of the order, the second for the next node of another lineage, and so on. Before
// there is a node, each is for one that the user has given.
static uint64_t parent(const struct strategy_view *view, uint64_t slot)
{
    uint64_t made = view->run_state->candidate_count, ret = 0;
    uint64_t requests = slot > made ? (slot - made - 1) / CHILDREN : 0;
    if (strategy_uniform(view, STREAM_COIN, slot) < EXPLORE) {
        return 0;
    }
    struct tree tree = tree_of(view);
    struct node *node = take(&tree);
    ret = node ? 0 : strategy_given(view, slot);
    for (uint64_t i = 0; i < requests && node; i++) {
        block(&tree, node);
        node = take(&tree);
    }
    ret = node ? node->candidate : ret;
    tree_release(&tree);
    return ret;
}

const struct strategy strategy_puct = {
    .name = "puct",
    .help = "a tree search over parents, by the best that came of each",
    .choose = choose,
    .parent = parent,
};

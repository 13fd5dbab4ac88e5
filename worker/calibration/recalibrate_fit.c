// The refit of all maps. The hypotheses about shift and temperature come first at every node, since
// u = F(y) of an outcome depends on them. The maps come second.
#include "common/mem.h"
#include "worker/calibration/recalibrate_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Whether the row counts for this node and fold.
static bool belongs(const struct row *row, const struct node *node, enum recal_fold fold)
{
    return (fold == RECAL_FOLD_ALL || row->half == fold) && row->number >= node->since;
}

// ---- Hypotheses ----

static void clear_evidence(struct recalibration *in)
{
    struct node *node, *next;
    HASH_ITER (hh, in->nodes, node, next) {
        for (size_t fold = 0; fold < RECAL_FOLDS; fold++) {
            struct fit *fit = &node->fit[fold];
            memset(fit->evidence, 0, sizeof fit->evidence);
            fit->weight = fit->weight_square = 0;
        }
    }
}

// Adds the log scores of every row to its node and those above.
static void add_evidence(struct recalibration *in)
{
    for (size_t i = 0; i < in->row_count; i++) {
        const struct row *row = &in->row[i];
        for (struct node *node = row->node; node && row->binned; node = node->parent) {
            for (enum recal_fold fold = 0; fold < RECAL_FOLDS; fold++) {
                struct fit *fit = &node->fit[fold];
                if (!belongs(row, node, fold)) {
                    continue;
                }
                for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT; h++) {
                    fit->evidence[h] += row->weight * row->score[h];
                }
                fit->weight += row->weight;
                fit->weight_square += row->weight * row->weight;
            }
        }
    }
}

// Weighs the hypotheses by the node's own evidence and, at each level above, by that of at most
// kappa_temperature of the others.
static void weigh_hypotheses(const struct recalibration *in, struct node *node,
                             enum recal_fold fold)
{
    static const struct fit none;
    const struct fit *below = &none;
    double evidence[TEMPERATURE_SCALING_COUNT] = {0};
    for (const struct node *at = node; at; at = at->parent) {
        const struct fit *own = &at->fit[fold];
        double n =
            recal_effective(own->weight, own->weight_square, below->weight, below->weight_square);
        double trust = at == node ? n : fmin(n, in->config.kappa_temperature);
        for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT && n > 0; h++) {
            evidence[h] +=
                trust * (own->evidence[h] - below->evidence[h]) / (own->weight - below->weight);
        }
        below = own;
    }
    temperature_scaling_weights(node->fit[fold].hypothesis, evidence);
}

// ---- Maps ----

enum quantity { QUANTITY_BINS, QUANTITY_CORRECT, QUANTITY_IMPROVES, QUANTITIES };

struct sorted {
    double value;
    const struct row *row;
};

static int by_value(const void *a, const void *b)
{
    const struct sorted *left = a, *right = b;
    if (left->value < right->value || left->value > right->value) {
        return left->value < right->value ? -1 : 1;
    }
    return (left->row->number > right->row->number) - (left->row->number < right->row->number);
}

// The value by which rows are sorted and maps are made; NaN: the row has none.
static double value_of(const struct row *row, enum quantity quantity, enum recal_fold fold)
{
    if (quantity != QUANTITY_BINS) {
        return quantity == QUANTITY_CORRECT ? row->p_correct : row->p_improves;
    }
    if (!row->binned) {
        return NAN;
    }
    double p[BIN_COUNT];
    temperature_scaling_mix(p, &row->tempered, row->node->fit[fold].hypothesis);
    return bins_cdf(p, row->log2);
}

// Writes the rows of the fold that have a value, in its order. Returns how many.
static size_t sort_rows(struct sorted *to, const struct recalibration *in, enum quantity quantity,
                        enum recal_fold fold)
{
    size_t count = 0;
    for (size_t i = 0; i < in->row_count; i++) {
        const struct row *row = &in->row[i];
        if (fold != RECAL_FOLD_ALL && row->half != fold) {
            continue;
        }
        double value = value_of(row, quantity, fold);
        if (!isnan(value)) {
            to[count++] = (struct sorted){value, row};
        }
    }
    if (count > 0) {
        qsort(to, count, sizeof *to, by_value);
    }
    return count;
}

// Scratch memory for the fits of one quantity: all rows sorted, the same by node, and the points of
// one node as arrays.
struct workspace {
    struct sorted *all, *by_node;
    double *value, *weight;
    bool *event;
};

// The prior of a node's beta map: the map of the node above as far as that one is made of other
// outcomes, and its prior as far as it is made of the node's own.
static struct beta_map prior_of(const struct fit *above, const struct fit *own, bool correct)
{
    const struct beta_map *map = correct ? &above->beta_correct : &above->beta_improves;
    const struct beta_map *prior = correct ? &above->prior_correct : &above->prior_improves;
    const struct venn_abers *all = correct ? &above->correct : &above->improves;
    const struct venn_abers *mine = correct ? &own->correct : &own->improves;
    double share = all->weight > 0 ? fmax(1 - mine->weight / all->weight, 0) : 0;
    return (struct beta_map){.a = prior->a + share * (map->a - prior->a),
                             .b = prior->b + share * (map->b - prior->b),
                             .c = prior->c + share * (map->c - prior->c)};
}

// Fits the Venn-Abers predictor and the beta map of one probability. The node above must have been
// fitted before.
static void fit_event(struct node *node, enum recal_fold fold, enum quantity quantity,
                      const struct workspace *workspace, size_t count)
{
    struct fit *fit = &node->fit[fold];
    bool correct = quantity == QUANTITY_CORRECT;
    struct beta_map *prior = correct ? &fit->prior_correct : &fit->prior_improves;
    venn_abers_fit(correct ? &fit->correct : &fit->improves, workspace->value, workspace->weight,
                   workspace->event, count);
    *prior = !node->parent ? beta_map_identity : prior_of(&node->parent->fit[fold], fit, correct);
    beta_map_fit(correct ? &fit->beta_correct : &fit->beta_improves, prior, workspace->value,
                 workspace->weight, workspace->event, count);
}

// Fits one node to its sorted rows.
static void fit_node(struct node *node, enum recal_fold fold, enum quantity quantity,
                     const struct sorted *mine, size_t rows, struct workspace *workspace)
{
    struct fit *fit = &node->fit[fold];
    size_t count = 0;
    for (size_t i = 0; i < rows; i++) {
        const struct row *row = mine[i].row;
        if (!belongs(row, node, fold)) {
            continue;
        }
        workspace->value[count] = mine[i].value;
        workspace->weight[count] = row->weight;
        workspace->event[count++] = quantity == QUANTITY_CORRECT ? row->correct : row->improved;
    }
    if (quantity == QUANTITY_BINS) {
        pit_map_fit(&fit->bins, workspace->value, workspace->weight, count);
    } else {
        fit_event(node, fold, quantity, workspace, count);
    }
}

// Fits one quantity at every node. Sorts once and hands every row, in that order, to its node and
// those above. A parent is before its children in the hash table's order of insertion.
static void fit_quantity(struct recalibration *in, enum quantity quantity, enum recal_fold fold,
                         struct workspace *workspace)
{
    size_t count = sort_rows(workspace->all, in, quantity, fold), begin = 0;
    struct node *node, *next;
    HASH_ITER (hh, in->nodes, node, next) {
        node->rows = 0;
    }
    for (size_t i = 0; i < count; i++) {
        for (node = workspace->all[i].row->node; node; node = node->parent) {
            node->rows++;
        }
    }
    HASH_ITER (hh, in->nodes, node, next) {
        size_t rows = node->rows;
        node->rows = begin; // now the index of its next row
        begin += rows;
    }
    for (size_t i = 0; i < count; i++) {
        for (node = workspace->all[i].row->node; node; node = node->parent) {
            workspace->by_node[node->rows++] = workspace->all[i];
        }
    }
    begin = 0;
    HASH_ITER (hh, in->nodes, node, next) {
        fit_node(node, fold, quantity, workspace->by_node + begin, node->rows - begin, workspace);
        begin = node->rows;
    }
}

void recal_refit(struct recalibration *recalibration)
{
    size_t count = recalibration->row_count + 1;
    struct workspace workspace = {
        .all = xcalloc(count, sizeof(struct sorted)),
        .by_node = xcalloc(RECAL_LEVELS * count, sizeof(struct sorted)),
        .value = xcalloc(count, sizeof(double)),
        .weight = xcalloc(count, sizeof(double)),
        .event = xcalloc(count, sizeof(bool)),
    };
    struct node *node, *next;
    clear_evidence(recalibration);
    add_evidence(recalibration);
    for (enum recal_fold fold = 0; fold < RECAL_FOLDS; fold++) {
        HASH_ITER (hh, recalibration->nodes, node, next) {
            weigh_hypotheses(recalibration, node, fold);
        }
        for (enum quantity quantity = 0; quantity < QUANTITIES; quantity++) {
            fit_quantity(recalibration, quantity, fold, &workspace);
        }
    }
    free(workspace.all);
    free(workspace.by_node);
    free(workspace.value);
    free(workspace.weight);
    free(workspace.event);
    recalibration->version++;
}

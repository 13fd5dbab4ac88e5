// The refit: first the hypotheses about shift and temperature at every node, since where an outcome
// lay depends on them, then the maps.
#include "common/mem.h"
#include "worker/calibration/recalibrate_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool belongs(const struct row *row, const struct node *node, enum recal_fold fold)
{
    return (fold == RECAL_FOLD_ALL || row->half == fold) && row->number >= node->since;
}

// Hypotheses
// -------------------------------------------------------------------------------------------------

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

// The node's own evidence, and of the others at each level above as much as kappa_temperature outcomes have.
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

// Maps
// -------------------------------------------------------------------------------------------------

enum list { LIST_BINS, LIST_CORRECT, LIST_IMPROVES, LISTS };

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

static double value_of(const struct row *row, enum list list, enum recal_fold fold)
{
    if (list != LIST_BINS) {
        return list == LIST_CORRECT ? row->p_correct : row->p_improves;
    }
    if (!row->binned) {
        return NAN;
    }
    double p[BIN_COUNT];
    temperature_scaling_mix(p, &row->tempered, row->node->fit[fold].hypothesis);
    return bins_cdf(p, row->log2);
}

static size_t sort_rows(struct sorted *to, const struct recalibration *in, enum list list,
                        enum recal_fold fold)
{
    size_t count = 0;
    for (size_t i = 0; i < in->row_count; i++) {
        const struct row *row = &in->row[i];
        if (fold != RECAL_FOLD_ALL && row->half != fold) {
            continue;
        }
        double value = value_of(row, list, fold);
        if (!isnan(value)) {
            to[count++] = (struct sorted){value, row};
        }
    }
    if (count > 0) {
        qsort(to, count, sizeof *to, by_value);
    }
    return count;
}

// Room for one list: everything, everything by node, and the points of one node as columns.
struct room {
    struct sorted *all, *by_node;
    double *value, *weight;
    bool *event;
};

// What a node's beta map is pulled towards: the map of the node above, as far as that is made of
// others' outcomes; as far as it is made of the node's own, what that one was pulled towards.
static struct beta_map pull_of(const struct fit *above, const struct fit *own, bool correct)
{
    const struct beta_map *map = correct ? &above->beta_correct : &above->beta_improves;
    const struct beta_map *pull = correct ? &above->pull_correct : &above->pull_improves;
    const struct venn_abers *all = correct ? &above->correct : &above->improves;
    const struct venn_abers *mine = correct ? &own->correct : &own->improves;
    double share = all->weight > 0 ? fmax(1 - mine->weight / all->weight, 0) : 0;
    return (struct beta_map){.a = pull->a + share * (map->a - pull->a),
                             .b = pull->b + share * (map->b - pull->b),
                             .c = pull->c + share * (map->c - pull->c)};
}

// The node above was fitted before.
static void fit_event(struct node *node, enum recal_fold fold, enum list list,
                      const struct room *room, size_t count)
{
    struct fit *fit = &node->fit[fold];
    bool correct = list == LIST_CORRECT;
    struct beta_map *pull = correct ? &fit->pull_correct : &fit->pull_improves;
    venn_abers_fit(correct ? &fit->correct : &fit->improves, room->value, room->weight, room->event,
                   count);
    *pull = !node->parent ? beta_map_identity : pull_of(&node->parent->fit[fold], fit, correct);
    beta_map_fit(correct ? &fit->beta_correct : &fit->beta_improves, pull, room->value,
                 room->weight, room->event, count);
}

static void fit_node(struct node *node, enum recal_fold fold, enum list list,
                     const struct sorted *mine, size_t rows, struct room *room)
{
    struct fit *fit = &node->fit[fold];
    size_t count = 0;
    for (size_t i = 0; i < rows; i++) {
        const struct row *row = mine[i].row;
        if (!belongs(row, node, fold)) {
            continue;
        }
        room->value[count] = mine[i].value;
        room->weight[count] = row->weight;
        room->event[count++] = list == LIST_CORRECT ? row->correct : row->improved;
    }
    if (list == LIST_BINS) {
        pit_map_fit(&fit->bins, room->value, room->weight, count);
    } else {
        fit_event(node, fold, list, room, count);
    }
}

// Sorts once and hands every row, in that order, to its node and those above.
static void fit_list(struct recalibration *in, enum list list, enum recal_fold fold,
                     struct room *room)
{
    size_t count = sort_rows(room->all, in, list, fold), begin = 0;
    struct node *node, *next;
    HASH_ITER (hh, in->nodes, node, next) {
        node->rows = 0;
    }
    for (size_t i = 0; i < count; i++) {
        for (node = room->all[i].row->node; node; node = node->parent) {
            node->rows++;
        }
    }
    HASH_ITER (hh, in->nodes, node, next) {
        size_t rows = node->rows;
        node->rows = begin; // now the place of its next row
        begin += rows;
    }
    for (size_t i = 0; i < count; i++) {
        for (node = room->all[i].row->node; node; node = node->parent) {
            room->by_node[node->rows++] = room->all[i];
        }
    }
    begin = 0;
    HASH_ITER (hh, in->nodes, node, next) {
        fit_node(node, fold, list, room->by_node + begin, node->rows - begin, room);
        begin = node->rows;
    }
}

void recal_refit(struct recalibration *recalibration)
{
    size_t count = recalibration->row_count + 1;
    struct room room = {.all = xcalloc(count, sizeof *room.all),
                        .by_node = xcalloc(RECAL_LEVELS * count, sizeof *room.by_node),
                        .value = xcalloc(count, sizeof *room.value),
                        .weight = xcalloc(count, sizeof *room.weight),
                        .event = xcalloc(count, sizeof *room.event)};
    struct node *node, *next;
    clear_evidence(recalibration);
    add_evidence(recalibration);
    for (enum recal_fold fold = 0; fold < RECAL_FOLDS; fold++) {
        HASH_ITER (hh, recalibration->nodes, node, next) {
            weigh_hypotheses(recalibration, node, fold);
        }
        for (enum list list = 0; list < LISTS; list++) {
            fit_list(recalibration, list, fold, &room);
        }
    }
    free(room.all);
    free(room.by_node);
    free(room.value);
    free(room.weight);
    free(room.event);
    recalibration->version++;
}

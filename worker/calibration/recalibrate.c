// Design note. Rows are kept in the order in which they came. Each has what a refit needs: the
// forecast at every temperature, the two probabilities, the outcome, the weight and the deepest
// node of the tree that it belongs to. A refit (recalibrate_fit.c) sorts them by u = F(y) and by
// each probability and hands them in that order to their node and those above it, so that every fit
// is linear. It does so three times: with all rows and with either half.
//
// The cost of a map for a calibrated forecaster: with n outcomes Rhat(u) - u has mean 0 and
// variance u (1 - u) / n, so that R(u) - u has variance n u (1 - u) / (n + kappa)^2. If F is the
// truth, the CRPS of R(F) exceeds that of F by the integral of (R(F) - F)^2. The mean of that is n
// / (n + kappa)^2 times the integral of F (1 - F), which is the expected CRPS of F itself. The
// factor is largest, 1 / (4 kappa), at n = kappa. With the independent noise v of the levels above
// it becomes (n + kappa^2 v) / (n + kappa)^2, which is at most 1 / (3 kappa) for two levels and 3 /
// (8 kappa) for three of equal kappa.
#include "worker/calibration/recalibrate.h"

#include "common/mem.h"
#include "common/stats.h"
#include "worker/calibration/recalibrate_state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_NONE 1e-9 // sums of weights below this are rounding errors

const struct recal_config recal_defaults = {
    .kappa = {60, 60, 60}, .kappa_event = {300, 300, 300}, .kappa_temperature = 20};

// Makes a node. Until the next refit it uses the maps of its parent.
static struct node *node_new(struct recalibration *in, char *name_take, struct node *parent)
{
    struct node *node = xcalloc(1, sizeof *node);
    node->name = name_take;
    node->parent = parent;
    node->level = !parent ? RECAL_ALL : parent->level + 1;
    drift_init(&node->drift, in->next);
    for (size_t fold = 0; fold < RECAL_FOLDS; fold++) {
        const struct fit *above = parent ? &parent->fit[fold] : NULL;
        double *own = node->fit[fold].hypothesis;
        if (above) {
            memcpy(own, above->hypothesis, sizeof above->hypothesis);
        } else {
            // There is no evidence yet, which gives the prior.
            temperature_scaling_weights(own, node->fit[fold].evidence);
        }
        node->fit[fold].beta_correct = above ? above->beta_correct : beta_map_identity;
        node->fit[fold].beta_improves = above ? above->beta_improves : beta_map_identity;
    }
    HASH_ADD_KEYPTR(hh, in->nodes, node->name, strlen(node->name), node);
    return node;
}

struct recalibration *recal_create(const struct recal_config *config)
{
    struct recalibration *new = xcalloc(1, sizeof *new);
    new->config = config ? *config : recal_defaults;
    new->row = xcalloc(RECAL_ROWS_MAX, sizeof *new->row);
    new->root = node_new(new, xstrdup(""), NULL);
    return new;
}

void recal_free(struct recalibration *recalibration)
{
    struct node *node, *next;
    if (!recalibration) {
        return;
    }
    HASH_ITER (hh, recalibration->nodes, node, next) {
        HASH_DEL(recalibration->nodes, node);
        for (size_t i = 0; i < RECAL_FOLDS; i++) {
            pit_map_release(&node->fit[i].bins);
            venn_abers_release(&node->fit[i].correct);
            venn_abers_release(&node->fit[i].improves);
        }
        free(node->name);
        free(node);
    }
    free(recalibration->row);
    free(recalibration);
}

// ---- The tree ----

static struct node *find(const struct recalibration *in, const char *name)
{
    struct node *node;
    HASH_FIND_STR(in->nodes, name, node);
    return node;
}

// The name of a scope's node at this level. Lengths in front make the joined name unambiguous.
static char *name_of(const struct recal_scope *scope, enum recal_level level)
{
    return level == RECAL_MODEL
               ? xasprintf("%zu:%s %s", strlen(scope->model), scope->model, scope->device_class)
               : xasprintf("%zu:%s %zu:%s %s", strlen(scope->model), scope->model,
                           strlen(scope->device_class), scope->device_class, scope->problem);
}

// Finds the nodes of a scope, from the root down; NULL where there is none.
static void find_chain(const struct recalibration *in, const struct recal_scope *scope,
                       struct node *chain[static RECAL_LEVELS])
{
    chain[RECAL_ALL] = in->root;
    for (enum recal_level level = RECAL_MODEL; level < RECAL_LEVELS; level++) {
        char *name = name_of(scope, level);
        chain[level] = find(in, name);
        free(name);
    }
}

// The same, and makes those that are missing, up to RECAL_NODES_MAX.
static void make_chain(struct recalibration *in, const struct recal_scope *scope,
                       struct node *chain[static RECAL_LEVELS])
{
    find_chain(in, scope, chain);
    for (enum recal_level level = RECAL_MODEL; level < RECAL_LEVELS; level++) {
        if (!chain[level] && chain[level - 1] && HASH_COUNT(in->nodes) < RECAL_NODES_MAX) {
            chain[level] = node_new(in, name_of(scope, level), chain[level - 1]);
        }
    }
}

// The root is always there.
static struct node *deepest_of(struct node *const chain[static RECAL_LEVELS])
{
    size_t level = RECAL_PROBLEM;
    while (!chain[level]) {
        level--;
    }
    return chain[level];
}

// ---- Adding ----

enum recal_fold recal_fold_without(uint64_t key)
{
    return stats_philox(key, 0, 0) & 1 ? RECAL_FOLD_EVEN : RECAL_FOLD_ODD;
}

static void forget_oldest(struct recalibration *in)
{
    size_t gone = RECAL_ROWS_MAX / 4;
    in->row_count -= gone;
    memmove(in->row, in->row + gone, in->row_count * sizeof *in->row);
}

// Adds the outcome to the problem's drift detector, with the forecast as the present maps
// recalibrate it. Returns whether the alarm went off; the problem then drops the outcomes before
// the change.
static bool detect_drift(struct recalibration *in, const struct recal_scope *scope,
                         struct node *problem, const struct recal_forecast *forecast,
                         const struct recal_outcome *outcome)
{
    const struct pit_map *own = &problem->fit[RECAL_FOLD_ALL].bins;
    if (own->weight * own->weight < RECAL_DRIFT_AFTER * own->weight_square || own->count == 0) {
        return false;
    }
    struct recal_answer answer;
    recal_apply(in, scope, forecast, RECAL_FOLD_ALL, &answer);
    double u = outcome->correct && answer.bins[0] > 0 ? bins_cdf(answer.bins, outcome->log2) : NAN;
    uint64_t since;
    if (!drift_add(&problem->drift, in->next, answer.p_correct, outcome->correct, u, &since)) {
        return false;
    }
    problem->since = since;
    in->alarms++;
    return true;
}

bool recal_add(struct recalibration *recalibration, const struct recal_scope *scope,
               const struct recal_forecast *forecast, const struct recal_outcome *outcome)
{
    struct node *chain[RECAL_LEVELS];
    make_chain(recalibration, scope, chain);
    struct node *deepest = deepest_of(chain);
    bool alarm = chain[RECAL_PROBLEM] &&
                 detect_drift(recalibration, scope, chain[RECAL_PROBLEM], forecast, outcome);
    if (recalibration->row_count == RECAL_ROWS_MAX) {
        forget_oldest(recalibration);
    }
    struct row *row = &recalibration->row[recalibration->row_count++];
    double propensity = outcome->propensity;
    bool usable = propensity > 0 && propensity <= 1;
    *row = (struct row){
        .number = recalibration->next++,
        .node = deepest,
        .log2 = outcome->log2,
        .p_correct = forecast->p_correct,
        .p_improves = forecast->p_improves,
        .weight = usable ? fmin(1 / propensity, RECAL_WEIGHT_MAX) : 1,
        .half = RECAL_FOLD_EVEN + RECAL_FOLD_ODD - recal_fold_without(outcome->key),
        .correct = outcome->correct,
        .improved = outcome->improved,
    };
    row->binned = outcome->correct && temperature_scaling_prepare(&row->tempered, forecast->bins);
    if (row->binned) {
        row->bin = bin_of(outcome->log2);
        temperature_scaling_evidence(row->score, &row->tempered, row->bin);
    }
    return alarm;
}

// ---- Applying ----

double recal_effective(double weight, double square, double weight_below, double square_below)
{
    double others = weight - weight_below, others_square = square - square_below;
    return others > WEIGHT_NONE && others_square > WEIGHT_NONE ? others * others / others_square
                                                               : 0;
}

// The fit of a level; an empty one where there is no node or no such level.
static const struct fit *fit_of(struct node *const chain[static RECAL_LEVELS], size_t level,
                                enum recal_fold fold)
{
    static const struct fit none;
    return level < RECAL_LEVELS && chain[level] ? &chain[level]->fit[fold] : &none;
}

// Writes the bins of the answer. stated: after shift and temperature.
static void apply_bins(const struct recalibration *in,
                       struct node *const chain[static RECAL_LEVELS], enum recal_fold fold,
                       const double stated[static BIN_COUNT], struct recal_answer *ret)
{
    double at = 0, before = 0;
    for (size_t level = 0; level < RECAL_LEVELS; level++) {
        const struct pit_map *own = &fit_of(chain, level, fold)->bins;
        const struct pit_map *below = &fit_of(chain, level + 1, fold)->bins;
        ret->effective[level] =
            recal_effective(own->weight, own->weight_square, below->weight, below->weight_square);
    }
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        at += stated[bin];
        double u = bin + 1 < BIN_COUNT ? fmin(at, 1) : 1, mapped = u;
        for (size_t level = 0; level < RECAL_LEVELS; level++) {
            double n = ret->effective[level], kappa = in->config.kappa[level];
            const struct pit_map *own = &fit_of(chain, level, fold)->bins;
            const struct pit_map *below = &fit_of(chain, level + 1, fold)->bins;
            if (!(n > 0)) {
                continue;
            }
            double share =
                (pit_map_below(own, u) - pit_map_below(below, u)) / (own->weight - below->weight);
            mapped = (n * share + kappa * mapped) / (n + kappa);
        }
        ret->bins[bin] = fmax(mapped - before, 0);
        before = mapped;
    }
}

// The stated probability after the beta map of the deepest node.
static double beta_of(struct node *const chain[static RECAL_LEVELS], enum recal_fold fold,
                      bool improves, double stated)
{
    const struct fit *fit = &deepest_of(chain)->fit[fold];
    const struct beta_map *map = improves ? &fit->beta_improves : &fit->beta_correct;
    // The identity leaves 0 and 1 alone, which beta_map_apply would clamp.
    bool identity = map->a == 1 && map->b == 1 && map->c == 0;
    return identity ? stated : beta_map_apply(map, stated);
}

// Recalibrates one probability. What the deepest node's beta map makes of it is what the top level
// is shrunk to, with width 1.
static void apply_event(const struct recalibration *in,
                        struct node *const chain[static RECAL_LEVELS], enum recal_fold fold,
                        bool improves, double stated, double *ret_p, double *ret_width)
{
    double p = isnan(stated) ? stated : beta_of(chain, fold, improves, stated), width = 1;
    for (size_t level = 0; level < RECAL_LEVELS && !isnan(stated); level++) {
        const struct fit *own_fit = fit_of(chain, level, fold);
        const struct fit *below_fit = fit_of(chain, level + 1, fold);
        const struct venn_abers *own = improves ? &own_fit->improves : &own_fit->correct;
        const struct venn_abers *below = improves ? &below_fit->improves : &below_fit->correct;
        double n =
            recal_effective(own->weight, own->weight_square, below->weight, below->weight_square);
        double kappa = in->config.kappa[level], slow = in->config.kappa_event[level];
        if (!(n > 0)) {
            continue;
        }
        struct venn_abers_answer answer = venn_abers_ask(own, stated);
        p = (n * answer.p + slow * p) / (n + slow);
        width = (n * answer.width + kappa * width) / (n + kappa);
    }
    *ret_p = p;
    *ret_width = width;
}

void recal_apply(const struct recalibration *recalibration, const struct recal_scope *scope,
                 const struct recal_forecast *forecast, enum recal_fold fold,
                 struct recal_answer *ret)
{
    *ret = (struct recal_answer){.version = recalibration->version};
    struct node *chain[RECAL_LEVELS];
    find_chain(recalibration, scope, chain);
    struct tempered tempered;
    double mixed[BIN_COUNT];
    if (temperature_scaling_prepare(&tempered, forecast->bins)) {
        const struct node *deepest = deepest_of(chain);
        temperature_scaling_mix(mixed, &tempered, deepest->fit[fold].hypothesis);
        apply_bins(recalibration, chain, fold, mixed, ret);
    }
    apply_event(recalibration, chain, fold, false, forecast->p_correct, &ret->p_correct,
                &ret->p_correct_width);
    apply_event(recalibration, chain, fold, true, forecast->p_improves, &ret->p_improves,
                &ret->p_improves_width);
    if (ret->p_improves > ret->p_correct) { // false when either one was not forecast
        ret->p_improves = ret->p_correct;
    }
}

uint64_t recal_version(const struct recalibration *recalibration)
{
    return recalibration->version;
}

size_t recal_rows(const struct recalibration *recalibration)
{
    return recalibration->row_count;
}

uint64_t recal_alarms(const struct recalibration *recalibration)
{
    return recalibration->alarms;
}

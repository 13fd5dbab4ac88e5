// The search methods "tvm" and "tvm-knobs": AutoTVM's XGBTuner (Chen et al., "Learning to Optimize
// Tensor Programs", NeurIPS 2018), reimplemented with the constants of TVM's sources.
//
// xgboost_tuner.py and model_based_tuner.py in python/tvm/autotvm/tuner: Candidates are measured in
// plans of 64. Whenever 64 further outcomes are there, the model is trained anew from all of them.
// The last int(0.05 * 64) = 3 places of a plan are filled at random, and so is everything before
// the first plan. Nothing is measured twice.
//
// xgboost_cost_model.py: The model ranks pairs (TVM's default until 2022) of speeds divided by the
// best one, where a failure counts as 0. Depth 3, learning rate 0.3, gamma 1e-4, lambda 1. Trees
// are added until the mean recall of the first 64 of the training rows has not risen for 20 trees,
// at most 8000.
//
// sa_model_optimizer.py: A plan is the best 64 candidates, not measured yet, that 128 walks of
// simulated annealing have seen. A walk changes one parameter at a time and accepts with the
// probability exp(min(gain / (t + 1e-5), 1)), where t falls from 1 to 0 over at most 500 steps. The
// walks stop after 50 steps that have found nothing better, and the next plan continues them where
// they ended.
//
// There are two differences. TVM's features describe loops before compilation; ours describe the
// compiled candidate and its parameters ("tvm"), or the parameters alone like TVM's "knob" features
// ("tvm-knobs"). And a space may be a sample of its grid: a walk that finds no candidate after
// TRIES changes per parameter jumps to a random one.
#include "client/run/run_state.h"
#include "common/mem.h"
#include "common/stats.h"
#include "replay/budget.h"
#include "replay/search_methods.h"
#include "worker/model/boost.h"
#include "worker/model/feature.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define PLAN 64
#define PLAN_BY_CHANCE 3 // random places at the end of a plan
#define TREES_MAX 8000
#define TREES_PATIENCE 20 // trees without a better recall
#define WALKS 128
#define STEPS_MAX 500
#define STEPS_PATIENCE 50 // steps without a better candidate
#define TRIES 4           // changes per parameter before a jump
#define STREAM_TVM 0x74766dULL
#define AXES_MAX 64

struct cell {
    unsigned short place[AXES_MAX]; // key: for each parameter, the index of its value
    size_t candidate;
    UT_hash_handle hh;
};

struct tvm {
    const struct space *space;
    size_t count, axes;
    struct budget budget;
    struct stats_rng rng;
    // The grid of the parameters.
    struct cell *cell, *by_place;
    size_t values[AXES_MAX]; // number of values of each parameter
    // The features and the scores that the model predicts.
    float *x; // [count x columns]
    size_t columns;
    float *score; // [count]
    // The outcomes.
    size_t *trial;  // [count] candidates in the order of their measurement
    float *speed;   // [count] speedups in that order; 0: failed
    size_t trials;  // outcomes so far
    size_t trained; // how often the model was trained
    // The plan, the best candidate first, and the walks.
    size_t plan[PLAN], planned, next;
    size_t walk[WALKS], walks; // the candidate of each walk; no walks before the first plan
};

// --- features and grid

// Fills the features of all candidates; `program` adds those of the compiled candidate.
static void make_rows(struct tvm *tvm, bool program)
{
    struct feature_columns *columns = feature_columns_create();
    struct feature_row *row = xcalloc(tvm->count, sizeof(*row));

    for (size_t i = 0; i < tvm->count; i++) {
        const struct space_candidate *c = &tvm->space->candidate[i];
        struct candidate_facts own = {.params = c->params, .params_count = c->params_count};
        struct feature_facts facts = {.candidate = &own};

        if (program && c->compiled) {
            own.features = c->compiled->features;
            own.features_count = c->compiled->features_count;
        }
        row[i] = feature_row_learn(columns, &facts);
    }
    tvm->columns = feature_columns_count(columns);
    tvm->x = xcalloc(tvm->count * tvm->columns + 1, sizeof(*tvm->x));
    for (size_t i = 0; i < tvm->count; i++) {
        for (size_t k = 0; k < tvm->columns; k++) {
            tvm->x[i * tvm->columns + k] = feature_row_value(&row[i], k);
        }
        feature_row_clear(&row[i]);
    }
    free(row);
    feature_columns_free(columns);
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static void place_axis(struct tvm *tvm, size_t axis)
{
    double *value = xcalloc(tvm->count, sizeof(*value));

    for (size_t i = 0; i < tvm->count; i++) {
        value[i] = tvm->space->candidate[i].params[axis].value;
    }
    qsort(value, tvm->count, sizeof(*value), by_value);
    size_t different = 0;
    for (size_t i = 0; i < tvm->count; i++) {
        if (different == 0 || value[i] != value[different - 1]) {
            value[different++] = value[i];
        }
    }
    for (size_t i = 0; i < tvm->count; i++) {
        const double *at = bsearch(&tvm->space->candidate[i].params[axis].value, value, different,
                                   sizeof(*value), by_value);

        tvm->cell[i].place[axis] = (unsigned short)(at - value);
    }
    tvm->values[axis] = different;
    free(value);
}

static void make_grid(struct tvm *tvm)
{
    tvm->cell = xcalloc(tvm->count, sizeof(*tvm->cell));
    for (size_t axis = 0; axis < tvm->axes; axis++) {
        place_axis(tvm, axis);
    }
    for (size_t i = 0; i < tvm->count; i++) {
        tvm->cell[i].candidate = i;
        struct cell *same = NULL;
        HASH_FIND(hh, tvm->by_place, tvm->cell[i].place, sizeof(tvm->cell[i].place), same);
        if (!same) {
            HASH_ADD(hh, tvm->by_place, place, sizeof(tvm->cell[i].place), &tvm->cell[i]);
        }
    }
}

// --- the model

// When to stop adding trees.
struct patience {
    const float *label; // [rows]
    size_t rows;
    double best;
    unsigned best_round;
    struct ranked {
        float by;
        size_t row;
    } * ranked;   // [rows]
    size_t *rank; // [rows] by label, the best 0
};

static int downwards(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;

    if (left->by != right->by) {
        return left->by > right->by ? -1 : 1;
    }
    return left->row < right->row ? -1 : left->row > right->row;
}

static void sort_rows(struct patience *p, const float *by)
{
    for (size_t i = 0; i < p->rows; i++) {
        p->ranked[i] = (struct ranked){.by = by[i], .row = i};
    }
    qsort(p->ranked, p->rows, sizeof(*p->ranked), downwards);
}

// Returns the mean, over i below PLAN, of the share of the i + 1 best rows that are among the first
// i rows by prediction.
static double mean_recall(struct patience *p, const float *prediction)
{
    size_t most = p->rows < PLAN ? p->rows : PLAN;

    sort_rows(p, prediction);
    double sum = 0;
    for (size_t i = 0; i < most; i++) {
        size_t held = 0;

        for (size_t k = 0; k < i; k++) {
            held += p->rank[p->ranked[k].row] <= i;
        }
        sum += (double)held / (double)(i + 1);
    }
    return sum / PLAN;
}

static bool out_of_patience(void *owner, unsigned round, const float *prediction)
{
    struct patience *p = owner;
    double recall = mean_recall(p, prediction);

    if (round == 0 || recall > p->best) {
        p->best = recall;
        p->best_round = round;
    }
    return round - p->best_round >= TREES_PATIENCE;
}

static int train(struct tvm *tvm, struct boost **ret, struct err *err)
{
    struct boost_config config = {.rank = true,
                                  .rounds = TREES_MAX,
                                  .depth = 3,
                                  .rate = 0.3,
                                  .min_child_weight = 1,
                                  .row_share = 1,
                                  .column_share = 1,
                                  .penalty = 1,
                                  .gain_least = 1e-4,
                                  .bins = 256,
                                  .seed = (uint32_t)stats_rng_below(&tvm->rng, 1000000)};
    size_t rows = tvm->trials, row = tvm->columns * sizeof(*tvm->x);
    float *x = xcalloc(rows * tvm->columns + 1, sizeof(*x)), *label = xcalloc(rows, sizeof(*label));
    struct patience p = {.label = label,
                         .rows = rows,
                         .ranked = xcalloc(rows, sizeof(*p.ranked)),
                         .rank = xcalloc(rows, sizeof(*p.rank))};
    float best = 0;

    for (size_t i = 0; i < rows; i++) {
        best = tvm->speed[i] > best ? tvm->speed[i] : best;
    }
    for (size_t i = 0; i < rows; i++) {
        memcpy(x + i * tvm->columns, tvm->x + tvm->trial[i] * tvm->columns, row);
        label[i] = tvm->speed[i] / best;
    }
    sort_rows(&p, label);
    for (size_t i = 0; i < rows; i++) {
        p.rank[p.ranked[i].row] = i;
    }
    int rc =
        boost_train_until(ret, &config, x, rows, tvm->columns, label, out_of_patience, &p, err);
    free(p.rank);
    free(p.ranked);
    free(label);
    free(x);
    return rc;
}

// --- a plan

// Returns the candidate to which a walk may go from this one.
static size_t random_step(struct tvm *tvm, size_t from)
{
    struct cell at = tvm->cell[from], *found = NULL;

    for (size_t i = 0; i < TRIES * tvm->axes && (!found || found->candidate == from); i++) {
        size_t axis = (size_t)stats_rng_below(&tvm->rng, tvm->axes);

        at.place[axis] = (unsigned short)stats_rng_below(&tvm->rng, tvm->values[axis]);
        HASH_FIND(hh, tvm->by_place, at.place, sizeof(at.place), found);
    }
    return found && found->candidate != from ? found->candidate
                                             : (size_t)stats_rng_below(&tvm->rng, tvm->count);
}

// Puts the candidate into the plan, in its place by score, if it is good enough. Returns whether it
// is new there.
static bool keep(struct tvm *tvm, size_t candidate)
{
    float score = tvm->score[candidate];
    size_t at = tvm->planned;

    if (tvm->budget.seen[candidate] || (at == PLAN && score <= tvm->score[tvm->plan[PLAN - 1]])) {
        return false;
    }
    for (size_t i = 0; i < tvm->planned; i++) {
        if (tvm->plan[i] == candidate) {
            return false;
        }
    }
    at = at == PLAN ? PLAN - 1 : at;
    for (; at > 0 && tvm->score[tvm->plan[at - 1]] < score; at--) {
        tvm->plan[at] = tvm->plan[at - 1];
    }
    tvm->plan[at] = candidate;
    tvm->planned += tvm->planned < PLAN;
    return true;
}

static void begin_walks(struct tvm *tvm)
{
    size_t *all = xcalloc(tvm->count, sizeof(*all));

    tvm->walks = tvm->count < WALKS ? tvm->count : WALKS;
    for (size_t i = 0; i < tvm->count; i++) {
        all[i] = i;
    }
    for (size_t i = 0; i < tvm->walks; i++) { // draws without replacement
        size_t other = i + (size_t)stats_rng_below(&tvm->rng, tvm->count - i), chosen = all[other];

        all[other] = all[i];
        tvm->walk[i] = chosen;
    }
    free(all);
}

static void anneal(struct tvm *tvm)
{
    tvm->planned = tvm->next = 0;
    if (tvm->walks == 0) {
        begin_walks(tvm);
    }
    for (size_t i = 0; i < tvm->walks; i++) {
        (void)keep(tvm, tvm->walk[i]);
    }
    double t = 1;
    unsigned last = 0;
    for (unsigned step = 0; step < STEPS_MAX && step < last + STEPS_PATIENCE; step++) {
        for (size_t i = 0; i < tvm->walks; i++) {
            size_t to = random_step(tvm, tvm->walk[i]);
            double gain = (double)tvm->score[to] - (double)tvm->score[tvm->walk[i]];

            last = keep(tvm, to) ? step : last;
            if (stats_rng_unit(&tvm->rng) < exp(fmin(gain / (t + 1e-5), 1))) {
                tvm->walk[i] = to;
            }
        }
        t -= 1.0 / (STEPS_MAX + 1);
    }
}

static int make_plan(struct tvm *tvm, struct err *err)
{
    struct boost *model = NULL;
    int rc = train(tvm, &model, err);

    if (rc == 0) {
        rc = boost_predict(model, tvm->x, tvm->count, tvm->columns, tvm->score, err);
    }
    boost_free(model);
    if (rc == 0) {
        tvm->trained++;
        anneal(tvm);
    }
    return rc;
}

// --- a search

static size_t by_chance(struct tvm *tvm)
{
    size_t candidate;

    do {
        candidate = (size_t)stats_rng_below(&tvm->rng, tvm->count);
    } while (tvm->budget.seen[candidate]);
    return candidate;
}

static size_t choose(struct tvm *tvm)
{
    while (tvm->next < tvm->planned && tvm->budget.seen[tvm->plan[tvm->next]]) {
        tvm->next++;
    }
    return tvm->next + PLAN_BY_CHANCE >= tvm->planned ? by_chance(tvm) : tvm->plan[tvm->next];
}

static int search_on(struct tvm *tvm, struct err *err)
{
    bool works = false;
    int rc = 0;

    while (!budget_empty(&tvm->budget) && rc == 0) {
        size_t candidate = choose(tvm);
        double log2 = budget_measure(&tvm->budget, candidate);

        tvm->trial[tvm->trials] = candidate;
        tvm->speed[tvm->trials++] = isfinite(log2) ? (float)exp2(log2) : 0;
        works |= isfinite(log2);
        if (works && tvm->trials >= PLAN * (tvm->trained + 1)) {
            rc = make_plan(tvm, err);
        }
    }
    return rc;
}

static int run(const struct method_search *search, bool program, struct search_outcome *ret,
               struct err *err)
{
    struct tvm *tvm = xcalloc(1, sizeof(*tvm));

    tvm->space = recorded_space_data(search->recorded);
    tvm->count = (size_t)tvm->space->head.candidates;
    tvm->axes = tvm->space->candidate[0].params_count;
    if (tvm->axes == 0) {
        free(tvm);
        return err_set(err, ERR_INVALID, "TVM's rule needs parameters, and this space has none");
    }
    budget_init(&tvm->budget, search->recorded, search->budget_seconds);
    stats_rng_init(&tvm->rng, search->seed, STREAM_TVM);
    tvm->score = xcalloc(tvm->count, sizeof(*tvm->score));
    tvm->trial = xcalloc(tvm->count, sizeof(*tvm->trial));
    tvm->speed = xcalloc(tvm->count, sizeof(*tvm->speed));
    make_rows(tvm, program);
    make_grid(tvm);
    int rc = search_on(tvm, err);
    if (rc == 0) {
        *ret = tvm->budget.outcome;
    }
    HASH_CLEAR(hh, tvm->by_place);
    free(tvm->cell);
    free(tvm->x);
    free(tvm->score);
    free(tvm->trial);
    free(tvm->speed);
    budget_release(&tvm->budget);
    free(tvm);
    return rc;
}

static int run_program(const struct method_search *search, struct search_outcome *ret,
                       struct err *err)
{
    return run(search, true, ret, err);
}

static int run_knobs(const struct method_search *search, struct search_outcome *ret,
                     struct err *err)
{
    return run(search, false, ret, err);
}

const struct search_method method_tvm = {
    .name = "tvm", .help = "AutoTVM's rule, by features of what was compiled", .run = run_program};
const struct search_method method_tvm_knobs = {
    .name = "tvm-knobs", .help = "AutoTVM's rule, by parameters alone", .run = run_knobs};

// Design. Rows are sorted once (score_data.c). A bootstrap draw picks as many clusters as there
// are, with replacement, and multiplies every row's weight by how often its cluster was picked; the
// measures are then computed again from the same sorted lists (score_measure.c). Draw d of seed s
// is a stream of its own, so that the intervals do not depend on the order of anything.
#include "client/eval/score.h"
#include "client/eval/score_data.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>

#define TAIL 0.025 // probability on either side of an interval

static const struct {
    const char *name, *unit, *meaning;
    bool higher;
} table[] = {
#define X(id, name, unit, higher, text) {name, unit, text, higher},
    SCORE_METRICS(X)
#undef X
};

const char *score_name(enum score_metric metric)
{
    return table[metric].name;
}

const char *score_unit(enum score_metric metric)
{
    return table[metric].unit;
}

const char *score_meaning(enum score_metric metric)
{
    return table[metric].meaning;
}

bool score_higher_is_better(enum score_metric metric)
{
    return table[metric].higher;
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Collects the different cluster ids, sorted, and returns how many there are. The caller frees
// *ret.
static size_t cluster_ids(uint64_t **ret, const struct score_row *row, size_t count)
{
    uint64_t *id = xcalloc(count + 1, sizeof *id);
    for (size_t i = 0; i < count; i++) {
        id[i] = row[i].cluster;
    }
    if (count > 0) {
        qsort(id, count, sizeof *id, by_id);
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || id[kept - 1] != id[i]) {
            id[kept++] = id[i];
        }
    }
    *ret = id;
    return kept;
}

size_t score_clusters(const struct score_row *row, size_t count)
{
    uint64_t *id;
    size_t clusters = cluster_ids(&id, row, count);
    free(id);
    return clusters;
}

double score_effective(const struct score_row *row, size_t count)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < count; i++) {
        sum += row[i].weight;
        square += row[i].weight * row[i].weight;
    }
    return square > 0 ? sum * sum / square : 0;
}

// Sets how many rows each measure was computed from.
static void count_rows(struct score_value ret[static SCORE_COUNT], const struct score_data *data)
{
    for (size_t i = 0; i < SCORE_MEANS; i++) {
        ret[i].rows = data->loss_count[i];
    }
    for (size_t i = 0; i < SCORE_ECES; i++) {
        ret[SCORE_ECE_BIN + i].rows = data->stated[i].count;
    }
    ret[SCORE_AURC].rows = ret[SCORE_AUGRC].rows = ret[SCORE_COVERAGE].rows = data->call.count;
    ret[SCORE_TAU].rows = data->rank.count;
    ret[SCORE_AUC].rows = ret[SCORE_ECE_IMPROVES].rows;
    ret[SCORE_RECALL].rows = data->forecast.count;
}

struct resampler {
    const struct score_row *row;
    size_t count;
    size_t clusters;
    size_t *cluster_of; // cluster of each row
    double *picked;     // per cluster: how often the draw has it
    double *weight;     // per row: its weight in the draw
};

static void resampler_init(struct resampler *to, const struct score_row *row, size_t count)
{
    *to = (struct resampler){.row = row, .count = count};
    uint64_t *id;
    to->clusters = cluster_ids(&id, row, count);
    to->cluster_of = xcalloc(count + 1, sizeof *to->cluster_of);
    to->picked = xcalloc(to->clusters + 1, sizeof *to->picked);
    to->weight = xcalloc(count + 1, sizeof *to->weight);
    for (size_t i = 0; i < count; i++) {
        const uint64_t *found = bsearch(&row[i].cluster, id, to->clusters, sizeof *id, by_id);
        to->cluster_of[i] = (size_t)(found - id);
        to->weight[i] = row[i].weight;
    }
    free(id);
}

static void resampler_release(struct resampler *resampler)
{
    free(resampler->cluster_of);
    free(resampler->picked);
    free(resampler->weight);
}

static void resampler_draw(struct resampler *to, uint64_t seed, uint64_t number)
{
    struct stats_rng rng;
    stats_rng_init(&rng, seed, number);
    for (size_t c = 0; c < to->clusters; c++) {
        to->picked[c] = 0;
    }
    for (size_t c = 0; c < to->clusters; c++) {
        to->picked[stats_rng_below(&rng, to->clusters)]++;
    }
    for (size_t i = 0; i < to->count; i++) {
        to->weight[i] = to->row[i].weight * to->picked[to->cluster_of[i]];
    }
}

static void set_intervals(struct score_value ret[static SCORE_COUNT], double *const *drawn,
                          size_t draws)
{
    for (size_t m = 0; m < SCORE_COUNT; m++) {
        // Draws in which the measure is not defined are NaN and come last.
        stats_sort(drawn[m], draws);
        size_t defined = 0;
        while (defined < draws && !isnan(drawn[m][defined])) {
            defined++;
        }
        if (isnan(ret[m].value) || 2 * defined < draws || defined < 2) {
            continue;
        }
        ret[m].lo = stats_quantile(drawn[m], defined, TAIL);
        ret[m].hi = stats_quantile(drawn[m], defined, 1 - TAIL);
    }
}

static void bootstrap(struct score_value ret[static SCORE_COUNT], const struct score_data *data,
                      struct resampler *resampler, const struct score_options *options)
{
    double *drawn[SCORE_COUNT], value[SCORE_COUNT];
    for (size_t m = 0; m < SCORE_COUNT; m++) {
        drawn[m] = xcalloc(options->draws, sizeof *drawn[m]);
    }
    size_t draw = 0;
    for (; draw < options->draws; draw++) {
        if (options->stop && options->stop(options->owner)) {
            break;
        }
        resampler_draw(resampler, options->seed, draw);
        score_measure(value, data, resampler->weight, options->risk);
        for (size_t m = 0; m < SCORE_COUNT; m++) {
            drawn[m][draw] = value[m];
        }
    }
    if (draw == options->draws) {
        set_intervals(ret, drawn, draw);
    }
    for (size_t m = 0; m < SCORE_COUNT; m++) {
        free(drawn[m]);
    }
}

void score_compute(struct score_value ret[static SCORE_COUNT], const struct score_row *row,
                   size_t count, const struct score_options *options)
{
    struct score_data data;
    score_data_init(&data, row, count);
    struct resampler resampler;
    resampler_init(&resampler, row, count);
    double value[SCORE_COUNT];
    score_measure(value, &data, resampler.weight, options->risk);
    for (size_t m = 0; m < SCORE_COUNT; m++) {
        ret[m] = (struct score_value){.value = value[m], .lo = NAN, .hi = NAN};
    }
    count_rows(ret, &data);
    if (resampler.clusters >= 2 && options->draws > 0) {
        bootstrap(ret, &data, &resampler, options);
    }
    resampler_release(&resampler);
    score_data_release(&data);
}

size_t score_bands(struct score_band ret[static SCORE_BAND_COUNT], enum score_metric metric,
                   const struct score_row *row, size_t count)
{
    struct score_data data;
    score_data_init(&data, row, count);
    struct resampler resampler;
    resampler_init(&resampler, row, count);
    const struct score_list *list = &data.stated[metric - SCORE_ECE_BIN];
    size_t rows = list->count;
    score_list_bands(ret, list, resampler.weight);
    resampler_release(&resampler);
    score_data_release(&data);
    return rows;
}

size_t score_steps(struct score_step **ret, const struct score_row *row, size_t count)
{
    struct score_data data;
    double total = 0, covered = 0, lost = 0;
    score_data_init(&data, row, count);
    const struct score_list *list = &data.call;
    struct score_step *step = list->count > 0 ? xcalloc(list->count, sizeof *step) : NULL;
    for (size_t i = 0; i < list->count; i++) {
        total += row[list->item[i].row].weight;
    }
    size_t steps = 0;
    for (size_t end = list->count; end > 0; steps++) {
        double key = list->item[end - 1].key;
        for (; end > 0 && !(list->item[end - 1].key < key); end--) {
            double weight = row[list->item[end - 1].row].weight;
            covered += weight;
            lost += weight * list->item[end - 1].value;
        }
        step[steps] = (struct score_step){key, fmin(covered / total, 1), lost / covered};
    }
    score_data_release(&data);
    *ret = step;
    return steps;
}

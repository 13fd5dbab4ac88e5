// Design. Every function here is one pass over a list that is already sorted, with weights that
// differ from draw to draw. Rows of weight 0 change nothing.
#include "client/eval/score_data.h"
#include "common/stats.h"
#include <math.h>
#include <string.h>

static double mean_loss(const double *loss, const double *weight, size_t count)
{
    double sum = 0, total = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(loss[i])) {
            continue;
        }
        sum += weight[i] * loss[i];
        total += weight[i];
    }
    return total > 0 ? sum / total : NAN;
}

static double total_weight(const struct score_list *list, const double *weight)
{
    double total = 0;
    for (size_t i = 0; i < list->count; i++) {
        total += weight[list->item[i].row];
    }
    return total;
}

static double step_weight(const struct score_list *list, size_t at, size_t end,
                          const double *weight)
{
    double total = 0;
    for (; at < end; at++) {
        total += weight[list->item[at].row];
    }
    return total;
}

void score_list_bands(struct score_band ret[static SCORE_BAND_COUNT], const struct score_list *list,
                      const double *weight)
{
    double total = total_weight(list, weight), before = 0;
    memset(ret, 0, SCORE_BAND_COUNT * sizeof *ret);
    double square[SCORE_BAND_COUNT] = {0};
    for (size_t at = 0; at < list->count && total > 0;) {
        size_t end = score_list_step(list, at);
        double step = step_weight(list, at, end, weight);
        // A step lies as a whole in the band of its middle, so that equal probabilities are never
        // split.
        size_t i = (size_t)(SCORE_BAND_COUNT * fmin((before + step / 2) / total, 1));
        i = i < SCORE_BAND_COUNT ? i : SCORE_BAND_COUNT - 1;
        for (; at < end; at++) {
            double w = weight[list->item[at].row];
            ret[i].weight += w;
            ret[i].stated += w * list->item[at].key;
            ret[i].observed += w * list->item[at].value;
            square[i] += w * w;
        }
        before += step;
    }
    for (size_t i = 0; i < SCORE_BAND_COUNT; i++) {
        if (!(ret[i].weight > 0)) {
            continue;
        }
        ret[i].stated /= ret[i].weight;
        ret[i].observed = fmin(ret[i].observed / ret[i].weight, 1);
        ret[i].effective = ret[i].weight * ret[i].weight / square[i];
    }
}

// The mean of |X| for a normal X with this mean and standard deviation.
static double folded_normal(double mean, double deviation)
{
    if (!(deviation > 0)) {
        return fabs(mean);
    }
    double z = mean / deviation;
    return deviation * sqrt(M_2_PI) * exp(-z * z / 2) + mean * (1 - 2 * stats_normal_cdf(-z));
}

static double calibration_error(const struct score_list *list, const double *weight)
{
    struct score_band band[SCORE_BAND_COUNT];
    double total = 0, plain = 0, noisy = 0;
    score_list_bands(band, list, weight);
    for (size_t i = 0; i < SCORE_BAND_COUNT; i++) {
        double o = band[i].observed, gap = o - band[i].stated;
        double deviation = sqrt(fmax(o * (1 - o), 0) / fmax(band[i].effective - 1, 1));
        total += band[i].weight;
        plain += band[i].weight * fabs(gap);
        noisy += band[i].weight * folded_normal(gap, deviation);
    }
    return total > 0 ? fmax(2 * plain - noisy, 0) / total : NAN;
}

// AURC, AUGRC and COVERAGE go from the most confident call to the least. Inside a step the loss is
// linear, L(c) = L0 + m (c - c0), so the integral of L(c) / c is m (c1 - c0) + (L0 - m c0) log(c1 /
// c0).
static void measure_calls(double ret[static SCORE_COUNT], const struct score_list *list,
                          const double *weight, double risk)
{
    double total = total_weight(list, weight), covered = 0, lost = 0;
    double area = 0, generalised = 0, coverage = 0;
    ret[SCORE_AURC] = ret[SCORE_AUGRC] = ret[SCORE_COVERAGE] = NAN;
    if (!(total > 0)) {
        return;
    }
    for (size_t end = list->count; end > 0;) {
        double c0 = covered, l0 = lost, key = list->item[end - 1].key;
        for (; end > 0 && !(list->item[end - 1].key < key); end--) {
            double w = weight[list->item[end - 1].row] / total;
            covered += w;
            lost += w * list->item[end - 1].value;
        }
        if (!(covered > c0)) {
            continue;
        }
        double slope = (lost - l0) / (covered - c0);
        area += slope * (covered - c0) + (c0 > 0 ? (l0 - slope * c0) * log(covered / c0) : 0);
        generalised += (covered - c0) * (l0 + lost) / 2;
        if (lost <= risk * covered + 1e-12) {
            coverage = fmin(covered, 1);
        }
    }
    ret[SCORE_AURC] = area;
    ret[SCORE_AUGRC] = generalised;
    ret[SCORE_COVERAGE] = coverage;
}

static double area_under_roc(const struct score_list *list, const double *weight)
{
    double yes = 0, no = 0, won = 0;
    for (size_t at = 0; at < list->count;) {
        size_t end = score_list_step(list, at);
        double step_yes = 0, step_no = 0;
        for (; at < end; at++) {
            double w = weight[list->item[at].row], event = list->item[at].value;
            step_yes += w * event;
            step_no += w * (1 - event);
        }
        won += step_yes * (no + step_no / 2);
        yes += step_yes;
        no += step_no;
    }
    return yes > 0 && no > 0 ? won / (yes * no) : NAN;
}

// A Fenwick tree: sums by rank, each prefix in O(log n) (Fenwick 1994). Ranks begin at 1.
static void tree_add(double *tree, size_t size, size_t rank, double weight)
{
    for (; rank <= size; rank += rank & (0 - rank)) {
        tree[rank] += weight;
    }
}

static double tree_sum(const double *tree, size_t rank)
{
    double sum = 0;
    for (; rank > 0; rank -= rank & (0 - rank)) {
        sum += tree[rank];
    }
    return sum;
}

// Kendall's tau-b. A row that is drawn twice makes a pair that is tied in both lists. Such a pair
// leaves all four sums as they are, so squares of weights need not be taken out of them.
static double kendall(const struct score_data *data, const double *weight)
{
    const struct score_list *list = &data->rank;
    double *tree = data->scratch;
    double seen = 0, concordant = 0, tied = 0, tied_outcome = 0;
    memset(tree, 0, (data->rank_count + 1) * sizeof *tree);
    for (size_t at = 0; at < list->count;) {
        size_t begin = at, end = score_list_step(list, at);
        double step = 0;
        for (; at < end; at++) {
            size_t rank = (size_t)list->item[at].value;
            double w = weight[list->item[at].row];
            concordant += w * (tree_sum(tree, rank - 1) - (seen - tree_sum(tree, rank)));
            step += w;
        }
        for (at = begin; at < end; at++) {
            tree_add(tree, data->rank_count, (size_t)list->item[at].value,
                     weight[list->item[at].row]);
        }
        seen += step;
        tied += step * step / 2;
    }
    for (size_t rank = 1; rank <= data->rank_count; rank++) {
        double own = tree_sum(tree, rank) - tree_sum(tree, rank - 1);
        tied_outcome += own * own / 2;
    }
    double pairs = seen * seen / 2, x = pairs - tied, y = pairs - tied_outcome;
    return x > 1e-9 * pairs && y > 1e-9 * pairs ? concordant / sqrt(x * y) : NAN;
}

// Writes into share[row] which part of the row lies in the best SCORE_BEST_SHARE of the list's
// weight.
static void best_share(double *share, const struct score_list *list, const double *weight)
{
    double left = SCORE_BEST_SHARE * total_weight(list, weight);
    for (size_t end = list->count; end > 0;) {
        size_t begin = end;
        double step = 0, key = list->item[end - 1].key;
        for (; begin > 0 && !(list->item[begin - 1].key < key); begin--) {
            step += weight[list->item[begin - 1].row];
        }
        double part = step > 0 ? fmin(left / step, 1) : 0;
        for (; end > begin; end--) {
            share[list->item[end - 1].row] = part;
        }
        left = fmax(left - step, 0);
    }
}

static double recall_best(const struct score_data *data, const double *weight)
{
    double *said = data->scratch, *was = data->scratch + data->count;
    double found = 0, best = 0;
    best_share(said, &data->forecast, weight);
    best_share(was, &data->outcome, weight);
    for (size_t i = 0; i < data->outcome.count; i++) {
        const struct score_item *item = &data->outcome.item[i];
        if (!isfinite(item->key)) {
            // A candidate that is not correct is not among the best, however few are better.
            continue;
        }
        best += weight[item->row] * was[item->row];
        found += weight[item->row] * was[item->row] * said[item->row];
    }
    return best > 0 ? found / best : NAN;
}

void score_measure(double ret[static SCORE_COUNT], const struct score_data *data,
                   const double *weight, double risk)
{
    for (size_t i = 0; i < SCORE_MEANS; i++) {
        ret[i] = mean_loss(data->loss[i], weight, data->count);
    }
    for (size_t i = 0; i < SCORE_ECES; i++) {
        ret[SCORE_ECE_BIN + i] = calibration_error(&data->stated[i], weight);
    }
    measure_calls(ret, &data->call, weight, risk);
    ret[SCORE_TAU] = kendall(data, weight);
    ret[SCORE_AUC] = area_under_roc(&data->stated[SCORE_ECE_IMPROVES - SCORE_ECE_BIN], weight);
    ret[SCORE_RECALL] = recall_best(data, weight);
}

// Design. The rows become lists, one for each family of measures. A list is sorted once; a
// bootstrap draw only changes the weights of the rows. Rows that lack a list's key are not in it.
#include "client/eval/score_data.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

static size_t likeliest(const double p[static BIN_COUNT])
{
    size_t best = 0;
    for (size_t bin = 1; bin < BIN_COUNT; bin++) {
        if (p[bin] > p[best]) {
            best = bin;
        }
    }
    return best;
}

// The integral of F² over a piece of width h on which the distribution function F runs linearly
// from a to b.
static double square_area(double a, double b, double h)
{
    return h * (a * a + a * b + b * b) / 3.0;
}

// The part of the score beyond one outer edge. p is the probability beyond that edge, whose density
// falls exponentially. `past` is how far the outcome lies beyond the edge; it is not positive when
// the outcome lies on the other side. Between the edge and the outcome (1 - F)² is integrated,
// beyond the outcome F².
static double tail_area(double p, double past)
{
    const double rate = BIN_TAIL_RATE;
    if (!(past > 0.0)) {
        return p * p / (2.0 * rate);
    }
    double f = p * exp(-rate * past); // probability that is left beyond the outcome
    return past - 2.0 * (p - f) / rate + (p * p - f * f) / (2.0 * rate) + f * f / (2.0 * rate);
}

double score_crps(const double p[static BIN_COUNT], double y)
{
    const size_t last = BIN_COUNT - 1;
    double area = tail_area(p[0], bin_edge[1] - y) + tail_area(p[last], y - bin_edge[last]);
    double below = p[0];
    for (size_t bin = 1; bin < last; bin++) {
        double low = bin_edge[bin], high = bin_edge[bin + 1], above = below + p[bin];
        double cut = fmin(fmax(y, low), high);
        double at = below + p[bin] * (cut - low) / (high - low);
        area += square_area(below, at, cut - low) + square_area(1.0 - at, 1.0 - above, high - cut);
        below = above;
    }
    return area;
}

static double mean_of(const struct score_row *row)
{
    return isnan(row->mean_log2) && row->has_bins ? bins_mean(row->bins) : row->mean_log2;
}

static void add_losses(struct score_data *data, const struct score_row *row, size_t index)
{
    double mean = mean_of(row);
    for (size_t i = 0; i < SCORE_MEANS; i++) {
        data->loss[i][index] = NAN;
    }
    if (!row->correct || isnan(mean)) {
        return;
    }
    size_t actual = bin_of(row->log2), said = row->has_bins ? likeliest(row->bins) : bin_of(mean);
    data->loss[SCORE_ACCURACY][index] = said == actual;
    data->loss[SCORE_WITHIN_ONE][index] = said <= actual + 1 && actual <= said + 1;
    data->loss[SCORE_CRPS][index] =
        row->has_bins ? score_crps(row->bins, row->log2) : fabs(mean - row->log2);
    if (!row->has_bins) {
        return;
    }
    double square = 0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        double miss = row->bins[bin] - (bin == actual);
        square += miss * miss;
    }
    data->loss[SCORE_HALF_BRIER][index] = square / 2;
    data->loss[SCORE_NLL][index] = -log(fmax(row->bins[actual], SCORE_P_MIN));
}

static void push(struct score_list *list, size_t row, double key, double value)
{
    if (!isnan(key)) {
        list->item[list->count++] = (struct score_item){row, key, value};
    }
}

static struct score_list *stated_list(struct score_data *data, enum score_metric ece)
{
    return &data->stated[ece - SCORE_ECE_BIN];
}

static void add_lists(struct score_data *data, const struct score_row *row, size_t index)
{
    double mean = mean_of(row), p = row->p_improves;
    if (row->correct && row->has_bins) {
        size_t said = likeliest(row->bins);
        push(stated_list(data, SCORE_ECE_BIN), index, row->bins[said], said == bin_of(row->log2));
    }
    push(stated_list(data, SCORE_ECE_CORRECT), index, row->p_correct, row->correct);
    push(stated_list(data, SCORE_ECE_IMPROVES), index, p, row->improved);
    if (!isnan(p)) {
        bool right = (p >= 0.5) == row->improved;
        double confidence = isnan(row->confidence) ? fmax(p, 1 - p) : row->confidence;
        if (confidence > 0) {
            push(stated_list(data, SCORE_ECE_CALL), index, confidence, right);
        }
        push(&data->call, index, confidence, !right);
    }
    if (row->correct) {
        push(&data->rank, index, mean, 0);
    }
    push(&data->forecast, index, mean, 0);
    if (!isnan(mean)) {
        push(&data->outcome, index, row->correct ? row->log2 : -INFINITY, 0);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct score_item *left = a, *right = b;
    if (left->key < right->key || left->key > right->key) {
        return left->key < right->key ? -1 : 1;
    }
    return (left->row > right->row) - (left->row < right->row);
}

static void list_sort(struct score_list *list)
{
    qsort(list->item, list->count, sizeof *list->item, by_key);
}

size_t score_list_step(const struct score_list *list, size_t at)
{
    size_t end = at + 1;
    while (end < list->count && !(list->item[end].key > list->item[at].key)) {
        end++;
    }
    return end;
}

// Gives every row the dense rank of its outcome, from 1. An outcome that is not correct has rank 0.
static void rank_outcomes(struct score_data *data)
{
    double *rank = data->scratch;
    size_t next = 0;
    for (size_t at = 0; at < data->outcome.count;) {
        size_t end = score_list_step(&data->outcome, at);
        next += isfinite(data->outcome.item[at].key);
        for (; at < end; at++) {
            rank[data->outcome.item[at].row] = (double)next;
        }
    }
    for (size_t i = 0; i < data->rank.count; i++) {
        data->rank.item[i].value = rank[data->rank.item[i].row];
    }
    data->rank_count = next;
}

static struct score_list *list_at(struct score_data *data, size_t i)
{
    struct score_list *other[] = {&data->call, &data->rank, &data->forecast, &data->outcome};
    return i < SCORE_ECES ? &data->stated[i] : other[i - SCORE_ECES];
}

void score_data_init(struct score_data *data, const struct score_row *row, size_t count)
{
    *data = (struct score_data){.count = count};
    data->scratch = xcalloc(2 * count + 1, sizeof *data->scratch);
    for (size_t i = 0; i < SCORE_MEANS; i++) {
        data->loss[i] = xcalloc(count + 1, sizeof *data->loss[i]);
    }
    for (size_t i = 0; i < SCORE_ECES + 4; i++) {
        list_at(data, i)->item = xcalloc(count + 1, sizeof(struct score_item));
    }
    for (size_t i = 0; i < count; i++) {
        add_losses(data, &row[i], i);
        add_lists(data, &row[i], i);
        for (size_t m = 0; m < SCORE_MEANS; m++) {
            data->loss_count[m] += !isnan(data->loss[m][i]);
        }
    }
    for (size_t i = 0; i < SCORE_ECES + 4; i++) {
        list_sort(list_at(data, i));
    }
    rank_outcomes(data);
}

void score_data_release(struct score_data *data)
{
    for (size_t i = 0; i < SCORE_MEANS; i++) {
        free(data->loss[i]);
    }
    for (size_t i = 0; i < SCORE_ECES + 4; i++) {
        free(list_at(data, i)->item);
    }
    free(data->scratch);
    *data = (struct score_data){0};
}

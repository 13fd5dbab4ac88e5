// Booster k leaves out the rows with number % folds == k. With n rows so far it is due at the last
// turn of the schedule by n with turn % folds == k, and sees the rows that were there at that turn.
// It sees at most rows_max less what may have come since, so that they are there at any fit.
#include "worker/model/forest.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct member {
    size_t references;            // atomic
    uint64_t due;                 // trained on rows before this number
    uint64_t from;                // and not before this one
    size_t *chosen, chosen_count; // names of columns
    float mean;                   // of the labels; what is added to a regression's predictions
    bool logistic;
    struct boost *boost; // NULL: nothing varies, and the mean is the prediction
};

struct forest {
    size_t folds, columns;
    struct member *member[FOREST_FOLDS_MAX];
    size_t *place[FOREST_FOLDS_MAX]; // of its chosen columns in this forest's matrix
};

// ---- columns ----

// Column c is column d times a constant, plus a constant, as a ratio is over its count: it says
// nothing new.
static bool repeats(const float *x, size_t rows, size_t columns, const bool *take, size_t c,
                    size_t d)
{
    double slope = 0, before_c = NAN, before_d = NAN;
    for (size_t i = 0; i < rows; i++) {
        double u = x[i * columns + c], v = x[i * columns + d];
        if (take && !take[i]) {
            continue;
        }
        if (isnan(u) != isnan(v)) {
            return false;
        }
        if (isnan(u)) {
            continue;
        }
        if (!isnan(before_c)) {
            double du = u - before_c, dv = v - before_d;
            if ((fabs(du) < 1e-6) != (fabs(dv) < 1e-6)) {
                return false;
            }
            if (fabs(du) >= 1e-6 && slope == 0) {
                slope = dv / du;
            }
            if (fabs(dv - slope * du) > 1e-4 * (1 + fabs(dv))) {
                return false;
            }
        }
        before_c = u;
        before_d = v;
    }
    return true;
}

static bool varies(const float *x, size_t rows, size_t columns, const bool *take, size_t c)
{
    const float *first = NULL;
    for (size_t i = 0; i < rows; i++) {
        const float *v = &x[i * columns + c];
        if (take && !take[i]) {
            continue;
        }
        if (!first) {
            first = v;
        }
        if (isnan(*v) != isnan(*first) || (!isnan(*v) && fabsf(*v - *first) > 1e-6f)) {
            return true;
        }
    }
    return false;
}

size_t *forest_columns(const float *x, size_t rows, size_t columns, const bool *param,
                       const bool *take, size_t *ret_count)
{
    size_t *chosen = xcalloc(columns + 1, sizeof(*chosen)), count = 0;
    for (int pass = 0; pass < 2; pass++) { // of two equal columns parameters are kept
        for (size_t c = 0; c < columns; c++) {
            bool fresh = param[c] == (pass == 0) && varies(x, rows, columns, take, c);
            for (size_t i = 0; fresh && i < count; i++) {
                fresh = !repeats(x, rows, columns, take, chosen[i], c);
            }
            if (fresh) {
                chosen[count++] = c;
            }
        }
    }
    *ret_count = count;
    return chosen;
}

size_t *forest_find(const size_t *name, size_t columns, const size_t *wanted, size_t count)
{
    size_t *place = xcalloc(count + 1, sizeof(*place));
    for (size_t i = 0; i < count; i++) {
        size_t c = 0;
        while (c < columns && (name ? name[c] : c) != wanted[i]) {
            c++;
        }
        if (c == columns) {
            free(place);
            return NULL;
        }
        place[i] = c;
    }
    return place;
}

// ---- members ----

static void drop(struct member *member)
{
    if (!member || __atomic_sub_fetch(&member->references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    boost_free(member->boost);
    free(member->chosen);
    free(member);
}

// Rows of data that keep(i), `places` of their columns; *ret_rows of them.
static float *gather(const size_t *place, size_t places, const float *x, size_t rows,
                     size_t columns, const bool *keep, size_t *ret_rows)
{
    float *to = xcalloc(rows * places + 1, sizeof(*to));
    size_t count = 0;
    for (size_t i = 0; i < rows; i++) {
        if (keep && !keep[i]) {
            continue;
        }
        for (size_t c = 0; c < places; c++) {
            to[count * places + c] = x[i * columns + place[c]];
        }
        count++;
    }
    *ret_rows = count;
    return to;
}

static int train(struct member *member, size_t k, size_t folds, struct boost_config config,
                 const struct forest_data *data, struct err *err)
{
    bool *keep = xcalloc(data->rows + 1, sizeof(*keep));
    float *label = xcalloc(data->rows + 1, sizeof(*label)), *x;
    size_t count = 0, rows;
    for (size_t i = 0; i < data->rows; i++) {
        uint64_t number = data->first + i;
        keep[i] = number >= member->from && number < member->due && number % folds != k &&
                  (!data->take || data->take[i]);
        if (keep[i]) {
            label[count++] = data->label[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        member->mean += label[i] / (float)count;
    }
    member->logistic = config.logistic;
    for (size_t i = 0; i < count && !config.logistic; i++) {
        label[i] -= member->mean;
    }
    member->chosen = forest_columns(data->x, data->rows, data->columns, data->param, keep,
                                    &member->chosen_count);
    x = gather(member->chosen, member->chosen_count, data->x, data->rows, data->columns, keep,
               &rows);
    for (size_t c = 0; c < member->chosen_count && data->name; c++) {
        member->chosen[c] = data->name[member->chosen[c]];
    }
    config.seed = (uint32_t)k + 1;
    int rc = 0;
    if (count > 0 && member->chosen_count > 0) {
        rc = boost_train(&member->boost, &config, x, count, member->chosen_count, label, err);
    }
    free(x);
    free(keep);
    free(label);
    return rc;
}

// The rows that booster k is to be trained on.
static void find_due(const struct forest_data *data, size_t k, size_t folds, struct member *ret)
{
    const struct schedule *schedule = &data->schedule;
    uint64_t end = data->first + data->rows, turn = schedule_turn(schedule, end);
    uint64_t back = (turn % folds + folds - k) % folds, least = data->first + FOREST_ROWS_LEAST;
    uint64_t window = schedule->rows_max - (folds + 1) * schedule_step_max(schedule);
    ret->due = turn >= back ? schedule_count(schedule, turn - back) : 0;
    if (ret->due < least) {
        ret->due = least < end ? least : end;
    }
    ret->from = ret->due > window ? ret->due - window : 0;
}

// Takes the old forest's booster, if it is the one that is due and its columns are still there.
static bool share(struct forest *forest, const struct forest *old, size_t k,
                  const struct member *due, const struct forest_data *data)
{
    struct member *had = old ? old->member[k] : NULL;
    if (!had || had->due != due->due || had->from != due->from) {
        return false;
    }
    forest->place[k] = forest_find(data->name, data->columns, had->chosen, had->chosen_count);
    if (!forest->place[k]) {
        return false;
    }
    __atomic_add_fetch(&had->references, 1, __ATOMIC_RELAXED);
    forest->member[k] = had;
    return true;
}

int forest_fit(struct forest **ret, const struct forest *old, const struct boost_config *config,
               size_t folds, const struct forest_data *data, struct err *err)
{
    struct forest *forest = xcalloc(1, sizeof(*forest));
    forest->folds = folds;
    forest->columns = data->columns;
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < folds; k++) {
        struct member due = {.references = 1};
        find_due(data, k, folds, &due);
        if (share(forest, old, k, &due, data)) {
            continue;
        }
        struct member *member = forest->member[k] = xmemdup(&due, sizeof(due));
        rc = train(member, k, folds, *config, data, err);
        forest->place[k] =
            forest_find(data->name, data->columns, member->chosen, member->chosen_count);
    }
    if (rc < 0) {
        forest_free(forest);
    } else {
        *ret = forest;
    }
    return rc;
}

void forest_free(struct forest *forest)
{
    if (!forest) {
        return;
    }
    for (size_t k = 0; k < forest->folds; k++) {
        drop(forest->member[k]);
        free(forest->place[k]);
    }
    free(forest);
}

// ---- predicting ----

static int predict(const struct forest *forest, size_t k, const float *x, size_t rows,
                   const bool *keep, float *out, struct err *err)
{
    const struct member *member = forest->member[k];
    size_t count;
    float *part =
        gather(forest->place[k], member->chosen_count, x, rows, forest->columns, keep, &count);
    for (size_t i = 0; i < count; i++) {
        out[i] = member->mean;
    }
    int rc = 0;
    if (member->boost && count > 0) {
        rc = boost_predict(member->boost, part, count, member->chosen_count, out, err);
    }
    for (size_t i = 0; rc == 0 && i < count && member->boost && !member->logistic; i++) {
        out[i] += member->mean;
    }
    free(part);
    return rc;
}

int forest_predict(const struct forest *forest, const float *x, size_t rows, float *out,
                   struct err *err)
{
    float *one = xcalloc(rows + 1, sizeof(*one));
    memset(out, 0, rows * sizeof(*out));
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < forest->folds; k++) {
        rc = predict(forest, k, x, rows, NULL, one, err);
        for (size_t i = 0; rc == 0 && i < rows; i++) {
            out[i] += one[i] / (float)forest->folds;
        }
    }
    free(one);
    return rc;
}

int forest_left_out(const struct forest *forest, const struct forest_data *data, float *out,
                    struct err *err)
{
    float *one = xcalloc(data->rows + 1, sizeof(*one));
    bool *keep = xcalloc(data->rows + 1, sizeof(*keep));
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < forest->folds; k++) {
        for (size_t i = 0; i < data->rows; i++) {
            keep[i] = (data->first + i) % forest->folds == k && (!data->take || data->take[i]);
        }
        rc = predict(forest, k, data->x, data->rows, keep, one, err);
        size_t j = 0;
        for (size_t i = 0; rc == 0 && i < data->rows; i++) {
            if (keep[i]) {
                out[i] = one[j++];
            }
        }
    }
    free(one);
    free(keep);
    return rc;
}

// Design note. Member k of an ensemble leaves out the rows whose number is k modulo the number of
// folds. With n rows so far it is due at the last turn of the training schedule whose number is k
// modulo the number of folds, and it is trained on the rows that were there at that turn. A member
// is trained on at most rows_max less the rows that may come until it is replaced, so that its rows
// are still there whenever it is fitted. Members are immutable and counted by reference: the next
// ensemble shares those that are still due.
#include "worker/model/ensemble.h"

#include "common/mem.h"
#include "worker/model/columns.h"
#include <stdlib.h>
#include <string.h>

struct member {
    size_t references;            // atomic
    uint64_t due;                 // trained on rows before this number ...
    uint64_t from;                // ... and from this one on
    size_t *chosen, chosen_count; // names of the columns that it uses
    float mean;                   // of the labels; a regression predicts the difference from it
    bool logistic;
    struct boost *boost; // NULL: nothing varied, and the mean is the prediction
};

struct ensemble {
    size_t folds, columns;
    struct member *member[ENSEMBLE_FOLDS_MAX];
    size_t *index[ENSEMBLE_FOLDS_MAX]; // where the member's columns are in this matrix
};

// ---- members ----

// Gives one reference back. NULL is fine.
static void drop(struct member *member)
{
    if (!member || __atomic_sub_fetch(&member->references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    boost_free(member->boost);
    free(member->chosen);
    free(member);
}

// Trains member k on the rows between from and due of the other folds.
static int train(struct member *member, size_t k, size_t folds, struct boost_config config,
                 const struct ensemble_data *data, struct err *err)
{
    bool *keep = xcalloc(data->rows + 1, sizeof(*keep));
    float *label = xcalloc(data->rows + 1, sizeof(*label));
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
    member->chosen = columns_informative(data->x, data->rows, data->columns, data->param, keep,
                                         &member->chosen_count);
    float *x = columns_gather(member->chosen, member->chosen_count, data->x, data->rows,
                              data->columns, keep, &rows);
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

// Writes from which row on and up to which one member k is to be trained.
static void find_due(const struct ensemble_data *data, size_t k, size_t folds, struct member *ret)
{
    const struct training_schedule *schedule = &data->schedule;
    uint64_t end = data->first + data->rows, turn = training_schedule_turn(schedule, end);
    uint64_t back = (turn % folds + folds - k) % folds, least = data->first + ENSEMBLE_ROWS_LEAST;
    uint64_t window = schedule->rows_max - (folds + 1) * training_schedule_step_max(schedule);
    ret->due = turn >= back ? training_schedule_rows(schedule, turn - back) : 0;
    if (ret->due < least) {
        ret->due = least < end ? least : end;
    }
    ret->from = ret->due > window ? ret->due - window : 0;
}

// Takes over member k of the old ensemble (NULL: none) when it was trained on the rows that are due
// and its columns are still there. Returns whether it did.
static bool share(struct ensemble *ensemble, const struct ensemble *old, size_t k,
                  const struct member *due, const struct ensemble_data *data)
{
    struct member *had = old ? old->member[k] : NULL;
    if (!had || had->due != due->due || had->from != due->from) {
        return false;
    }
    ensemble->index[k] = columns_find(data->name, data->columns, had->chosen, had->chosen_count);
    if (!ensemble->index[k]) {
        return false;
    }
    __atomic_add_fetch(&had->references, 1, __ATOMIC_RELAXED);
    ensemble->member[k] = had;
    return true;
}

int ensemble_fit(struct ensemble **ret, const struct ensemble *old,
                 const struct boost_config *config, size_t folds, const struct ensemble_data *data,
                 struct err *err)
{
    struct ensemble *ensemble = xcalloc(1, sizeof(*ensemble));
    ensemble->folds = folds;
    ensemble->columns = data->columns;
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < folds; k++) {
        struct member due = {.references = 1};
        find_due(data, k, folds, &due);
        if (share(ensemble, old, k, &due, data)) {
            continue;
        }
        struct member *member = ensemble->member[k] = xmemdup(&due, sizeof(due));
        rc = train(member, k, folds, *config, data, err);
        ensemble->index[k] =
            columns_find(data->name, data->columns, member->chosen, member->chosen_count);
    }
    if (rc < 0) {
        ensemble_free(ensemble);
    } else {
        *ret = ensemble;
    }
    return rc;
}

void ensemble_free(struct ensemble *ensemble)
{
    if (!ensemble) {
        return;
    }
    for (size_t k = 0; k < ensemble->folds; k++) {
        drop(ensemble->member[k]);
        free(ensemble->index[k]);
    }
    free(ensemble);
}

// ---- predicting ----

// Writes the predictions of member k for the rows with keep[row] (NULL: all), one after another.
static int predict(const struct ensemble *ensemble, size_t k, const float *x, size_t rows,
                   const bool *keep, float *out, struct err *err)
{
    const struct member *member = ensemble->member[k];
    size_t count;
    float *part = columns_gather(ensemble->index[k], member->chosen_count, x, rows,
                                 ensemble->columns, keep, &count);
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

int ensemble_predict(const struct ensemble *ensemble, const float *x, size_t rows, float *out,
                     struct err *err)
{
    float *one = xcalloc(rows + 1, sizeof(*one));
    memset(out, 0, rows * sizeof(*out));
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < ensemble->folds; k++) {
        rc = predict(ensemble, k, x, rows, NULL, one, err);
        for (size_t i = 0; rc == 0 && i < rows; i++) {
            out[i] += one[i] / (float)ensemble->folds;
        }
    }
    free(one);
    return rc;
}

int ensemble_out_of_fold(const struct ensemble *ensemble, const struct ensemble_data *data,
                         float *out, struct err *err)
{
    float *one = xcalloc(data->rows + 1, sizeof(*one));
    bool *keep = xcalloc(data->rows + 1, sizeof(*keep));
    int rc = 0;
    for (size_t k = 0; rc == 0 && k < ensemble->folds; k++) {
        for (size_t i = 0; i < data->rows; i++) {
            keep[i] = (data->first + i) % ensemble->folds == k && (!data->take || data->take[i]);
        }
        rc = predict(ensemble, k, data->x, data->rows, keep, one, err);
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

// Design note. XGBoost keeps the last error in a thread-local string, and prints warnings to stderr
// unless verbosity is 0. Its matrices are of the training alone and live as long as one call here.
// Predictions are made in place (XGBoosterPredictFromDense), which only reads the booster and
// leaves its result to the calling thread, so that threads need not wait for each other. nthread is
// 1 everywhere, since matrices of a few hundred rows are slower with more threads, and so that sums
// are always added in the same order.
#include "worker/model/boost.h"

#include "common/mem.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

// Values by all trees; the same as those of a matrix of XGBoost's.
static const char predict_config[] =
    "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, \"iteration_end\": 0,"
    " \"strict_shape\": false, \"cache_id\": 0, \"missing\": NaN}";

struct boost {
    BoosterHandle handle; // not changed after the training
};

static int xgboost_failed(struct err *err, const char *what)
{
    const char *text = XGBGetLastError();
    return err_set(err, ERR_INTERNAL, "XGBoost cannot %s: %.*s", what, (int)strcspn(text, "\n"),
                   text);
}

static int set_param(BoosterHandle handle, const char *name, const char *value, struct err *err)
{
    if (XGBoosterSetParam(handle, name, value) != 0) {
        return xgboost_failed(err, "set a parameter");
    }
    return 0;
}

static int set_number(BoosterHandle handle, const char *name, double value, struct err *err)
{
    char text[64];
    snprintf(text, sizeof(text), "%.9g", value);
    return set_param(handle, name, text, err);
}

static int configure(BoosterHandle handle, const struct boost_config *config, struct err *err)
{
    const struct {
        const char *name;
        double value;
    } number[] = {
        {"max_depth", config->depth},
        {"eta", config->rate},
        {"min_child_weight", config->min_child_weight},
        {"subsample", config->row_share},
        {"colsample_bytree", config->column_share},
        {"lambda", config->penalty},
        {"seed", config->seed},
        {"base_score", config->logistic ? 0.5 : 0.0},
        {"gamma", config->gain_least},
        {"max_bin", config->bins != 0 ? config->bins : 32},
        {"nthread", 1},
        {"verbosity", 0},
    };
    const char *objective = config->rank       ? "rank:pairwise"
                            : config->logistic ? "binary:logistic"
                                               : "reg:squarederror";
    int rc = set_param(handle, "tree_method", "hist", err);
    if (rc == 0) {
        rc = set_param(handle, "objective", objective, err);
    }
    // Pairs of rows drawn at random, as up to 1.7, where this has no name; since 2.0 the rows that
    // are ranked first are what matters unless it is said.
    int major;
    XGBoostVersion(&major, NULL, NULL);
    if (rc == 0 && config->rank && major >= 2) {
        rc = set_param(handle, "lambdarank_pair_method", "mean", err);
    }
    if (rc == 0 && config->rank && major >= 2) {
        rc = set_param(handle, "lambdarank_normalization", "false", err);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(number); i++) {
        rc = set_number(handle, number[i].name, number[i].value, err);
    }
    return rc;
}

static int check_size(size_t rows, size_t columns, struct err *err)
{
    if (rows == 0 || columns == 0) {
        return err_set(err, ERR_INVALID,
                       "a matrix of %zu rows and %zu columns has nothing to learn from", rows,
                       columns);
    }
    if (rows > BOOST_CELLS_MAX / columns) {
        return err_set(err, ERR_LIMIT, "a matrix of %zu rows and %zu columns is too large", rows,
                       columns);
    }
    return 0;
}

static int make_matrix(DMatrixHandle *ret, const float *x, size_t rows, size_t columns,
                       struct err *err)
{
    int rc = check_size(rows, columns, err);
    if (rc < 0) {
        return rc;
    }
    if (XGDMatrixCreateFromMat_omp(x, rows, columns, NAN, ret, 1) != 0) {
        return xgboost_failed(err, "make a matrix");
    }
    return 0;
}

int boost_train(struct boost **ret, const struct boost_config *config, const float *x, size_t rows,
                size_t columns, const float *label, struct err *err)
{
    return boost_train_until(ret, config, x, rows, columns, label, NULL, NULL, err);
}

// Adds trees until enough() says so or all rounds are done.
static int grow(struct boost *boost, const struct boost_config *config, DMatrixHandle matrix,
                boost_enough *enough, void *owner, struct err *err)
{
    bool more = true;
    for (unsigned round = 0; more && round < config->rounds; round++) {
        const float *value = NULL; // owned by XGBoost
        if (XGBoosterUpdateOneIter(boost->handle, (int)round, matrix) != 0) {
            return xgboost_failed(err, "train");
        }
        if (!enough) {
            continue;
        }
        bst_ulong count = 0;
        if (XGBoosterPredict(boost->handle, matrix, 0, 0, 0, &count, &value) != 0) {
            return xgboost_failed(err, "predict");
        }
        more = !enough(owner, round, value);
    }
    return 0;
}

int boost_train_until(struct boost **ret, const struct boost_config *config, const float *x,
                      size_t rows, size_t columns, const float *label, boost_enough *enough,
                      void *owner, struct err *err)
{
    struct boost *boost = xcalloc(1, sizeof(*boost));
    DMatrixHandle matrix = NULL;
    int rc = make_matrix(&matrix, x, rows, columns, err);
    if (rc < 0) {
        goto out;
    }
    if (XGDMatrixSetFloatInfo(matrix, "label", label, rows) != 0) {
        rc = xgboost_failed(err, "take the labels");
        goto out;
    }
    if (XGBoosterCreate(&matrix, 1, &boost->handle) != 0) {
        rc = xgboost_failed(err, "make a model");
        goto out;
    }
    rc = configure(boost->handle, config, err);
    if (rc == 0) {
        rc = grow(boost, config, matrix, enough, owner, err);
    }
    if (rc < 0) {
        goto out;
    }
    *ret = boost;
    boost = NULL;
out:
    if (matrix) {
        XGDMatrixFree(matrix);
    }
    boost_free(boost);
    return rc;
}

int boost_predict(const struct boost *boost, const float *x, size_t rows, size_t columns,
                  float *out, struct err *err)
{
    int rc = check_size(rows, columns, err);
    if (rc < 0) {
        return rc;
    }
    // The matrix as numpy describes arrays; the result is the calling thread's, owned by XGBoost.
    char matrix[160];
    snprintf(
        matrix, sizeof(matrix),
        "{\"data\": [%llu, true], \"shape\": [%zu, %zu], \"typestr\": \"<f4\", \"version\": 3}",
        (unsigned long long)(uintptr_t)x, rows, columns);
    const bst_ulong *shape = NULL;
    const float *value = NULL;
    bst_ulong dimensions = 0, count = 1;
    if (XGBoosterPredictFromDense(boost->handle, matrix, predict_config, NULL, &shape, &dimensions,
                                  &value) != 0) {
        return xgboost_failed(err, "predict");
    }
    for (bst_ulong i = 0; i < dimensions; i++) {
        count *= shape[i];
    }
    if (count != rows) {
        return err_set(err, ERR_INTERNAL, "XGBoost gave %lu predictions for %zu rows",
                       (unsigned long)count, rows);
    }
    memcpy(out, value, rows * sizeof(*out));
    return 0;
}

void boost_free(struct boost *boost)
{
    if (!boost) {
        return;
    }
    if (boost->handle) {
        XGBoosterFree(boost->handle);
    }
    free(boost);
}

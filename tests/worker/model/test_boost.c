// Boosted trees: they learn, training is deterministic, and errors have a sentence.
#include "worker/model/boost.h"

#include "common/stats.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 200
#define COLUMNS 3

static const struct boost_config regression = {.rounds = 60,
                                               .depth = 4,
                                               .rate = 0.15,
                                               .min_child_weight = 1,
                                               .row_share = 0.8,
                                               .column_share = 1,
                                               .penalty = 1,
                                               .seed = 3};

static void fill(float *x, float *y, uint64_t seed)
{
    struct stats_rng rng;
    stats_rng_init(&rng, seed, 0);
    for (int i = 0; i < ROWS; i++) {
        for (int c = 0; c < COLUMNS; c++) {
            x[i * COLUMNS + c] = (float)stats_rng_below(&rng, 10) / 10;
        }
        y[i] = x[i * COLUMNS] > 0.45F ? 1 + x[i * COLUMNS + 1] : -1;
    }
}

static void a_known_function_is_learnt(void **state)
{
    (void)state;
    float x[ROWS * COLUMNS], y[ROWS], p[ROWS];
    fill(x, y, 1);
    struct boost *boost = NULL;
    assert_int_equal(boost_train(&boost, &regression, x, ROWS, COLUMNS, y, NULL), 0);
    fill(x, y, 2);
    assert_int_equal(boost_predict(boost, x, ROWS, COLUMNS, p, NULL), 0);
    double square = 0;
    for (int i = 0; i < ROWS; i++) {
        square += (p[i] - y[i]) * (p[i] - y[i]) / ROWS;
    }
    assert_true(sqrt(square) < 0.25); // the standard deviation of the labels is above 1
    boost_free(boost);
}

static void equal_training_gives_equal_predictions(void **state)
{
    (void)state;
    float x[ROWS * COLUMNS], y[ROWS], p[2][ROWS];
    fill(x, y, 1);
    x[7] = NAN;
    for (int i = 0; i < 2; i++) {
        struct boost *boost = NULL;
        assert_int_equal(boost_train(&boost, &regression, x, ROWS, COLUMNS, y, NULL), 0);
        assert_int_equal(boost_predict(boost, x, ROWS, COLUMNS, p[i], NULL), 0);
        boost_free(boost);
    }
    assert_memory_equal(p[0], p[1], sizeof(p[0]));
}

static void logistic_predictions_are_probabilities(void **state)
{
    (void)state;
    float x[ROWS * COLUMNS], y[ROWS], p[ROWS];
    struct boost_config config = regression;
    config.logistic = true;
    config.min_child_weight = 0.1;
    fill(x, y, 1);
    for (int i = 0; i < ROWS; i++) {
        y[i] = y[i] > 0;
    }
    struct boost *boost = NULL;
    assert_int_equal(boost_train(&boost, &config, x, ROWS, COLUMNS, y, NULL), 0);
    assert_int_equal(boost_predict(boost, x, ROWS, COLUMNS, p, NULL), 0);
    for (int i = 0; i < ROWS; i++) {
        assert_true(p[i] > 0 && p[i] < 1);
        assert_int_equal(p[i] > 0.5F, y[i] > 0.5F);
    }
    boost_free(boost);
}

// Stops after the last tree wanted.
struct asked {
    unsigned rounds, last;
    float first[2]; // predictions of two rows after the second tree
};

static bool enough_trees(void *owner, unsigned round, const float *prediction)
{
    struct asked *asked = owner;
    assert_int_equal(round, asked->rounds++);
    if (round == 1) {
        memcpy(asked->first, prediction, sizeof(asked->first));
    }
    return round == asked->last;
}

static void ranking_puts_rows_in_order_until_it_is_enough(void **state)
{
    (void)state;
    float x[ROWS * COLUMNS], y[ROWS], p[ROWS], two[ROWS];
    struct boost_config config = regression;
    double right = 0, pairs = 0;
    config.rank = true;
    config.row_share = 1;
    fill(x, y, 1);
    for (int i = 0; i < ROWS; i++) {
        y[i] += 1; // labels are >= 0
    }
    struct boost *boost = NULL;
    struct asked asked = {.last = 39};
    assert_int_equal(
        boost_train_until(&boost, &config, x, ROWS, COLUMNS, y, enough_trees, &asked, NULL), 0);
    assert_int_equal(asked.rounds, 40); // of 60 rounds
    assert_int_equal(boost_predict(boost, x, ROWS, COLUMNS, p, NULL), 0);
    boost_free(boost);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < ROWS; k++) {
            pairs += y[i] > y[k];
            right += y[i] > y[k] && p[i] > p[k];
        }
    }
    assert_true(right > 0.95 * pairs);
    config.rounds = 2; // two rounds give the predictions that were reported after two
    assert_int_equal(boost_train(&boost, &config, x, ROWS, COLUMNS, y, NULL), 0);
    assert_int_equal(boost_predict(boost, x, ROWS, COLUMNS, two, NULL), 0);
    boost_free(boost);
    assert_true(fabsf(two[0] - asked.first[0]) < 1e-6F && fabsf(two[1] - asked.first[1]) < 1e-6F);
}

static void nothing_to_learn_from_is_refused(void **state)
{
    (void)state;
    float x[1] = {0};
    struct boost *boost = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(boost_train(&boost, &regression, x, 0, 1, x, &err), ERR_INVALID);
    err_clear(&err);
    assert_int_equal(boost_train(&boost, &regression, x, 1, 0, x, &err), ERR_INVALID);
    err_clear(&err);
    assert_int_equal(boost_train(&boost, &regression, x, 1 << 20, 1 << 20, x, &err), ERR_LIMIT);
    assert_null(boost);
}

static void a_bad_parameter_gives_xgboosts_sentence(void **state)
{
    (void)state;
    float x[ROWS * COLUMNS], y[ROWS];
    struct boost_config config = regression;
    fill(x, y, 1);
    config.row_share = 7;
    struct boost *boost = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(boost_train(&boost, &config, x, ROWS, COLUMNS, y, &err), ERR_INTERNAL);
    assert_null(boost);
    assert_non_null(strstr(err.text, "XGBoost cannot"));
    assert_null(strchr(err.text, '\n'));
}

#define READERS 4

struct reader {
    pthread_t thread;
    const struct boost *boost;
    const float *x;
    float p[ROWS];
};

// Predicts row by row.
static void *read_rows(void *opaque)
{
    struct reader *reader = opaque;
    for (int i = 0; i < ROWS; i++) {
        if (boost_predict(reader->boost, reader->x + i * COLUMNS, 1, COLUMNS, &reader->p[i],
                          NULL) != 0) {
            reader->p[i] = NAN;
        }
    }
    return NULL;
}

static void a_prediction_depends_on_its_row_alone_whoever_else_predicts(void **state)
{
    (void)state;
    static struct reader reader[READERS];
    float x[ROWS * COLUMNS], y[ROWS], together[ROWS];
    fill(x, y, 1);
    x[7] = NAN;
    struct boost *boost = NULL;
    assert_int_equal(boost_train(&boost, &regression, x, ROWS, COLUMNS, y, NULL), 0);
    for (int k = 0; k < READERS; k++) {
        reader[k].boost = boost;
        reader[k].x = x;
        assert_int_equal(pthread_create(&reader[k].thread, NULL, read_rows, &reader[k]), 0);
    }
    assert_int_equal(boost_predict(boost, x, ROWS, COLUMNS, together, NULL), 0);
    for (int k = 0; k < READERS; k++) {
        assert_int_equal(pthread_join(reader[k].thread, NULL), 0);
        assert_memory_equal(reader[k].p, together, sizeof(together));
    }
    boost_free(boost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_function_is_learnt),
        cmocka_unit_test(a_prediction_depends_on_its_row_alone_whoever_else_predicts),
        cmocka_unit_test(equal_training_gives_equal_predictions),
        cmocka_unit_test(logistic_predictions_are_probabilities),
        cmocka_unit_test(ranking_puts_rows_in_order_until_it_is_enough),
        cmocka_unit_test(nothing_to_learn_from_is_refused),
        cmocka_unit_test(a_bad_parameter_gives_xgboosts_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

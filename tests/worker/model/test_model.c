// The model of one group: calibrated with a dozen rows, sharp with a hundred, and able to learn
// which candidates are never correct.
#include "worker/model/model.h"

#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS_MAX 400
#define COLUMNS 4
#define SCHEDULE                                                                                   \
    {                                                                                              \
        .each = 128, .rows_max = 4000                                                              \
    }

struct data {
    float x[ROWS_MAX * COLUMNS];
    bool param[COLUMNS], correct[ROWS_MAX];
    double y[ROWS_MAX];
};

// Two parameters matter, one feature repeats one of them, and one is noise. Candidates with the
// first parameter at 3 and the second at 0 or 1 are wrong.
static void fill(struct data *data, size_t rows, uint64_t seed)
{
    struct stats_rng rng;
    stats_rng_init(&rng, seed, 0);
    memset(data, 0, sizeof(*data));
    data->param[0] = data->param[1] = true;
    for (size_t i = 0; i < rows; i++) {
        double a = (double)stats_rng_below(&rng, 4), b = (double)stats_rng_below(&rng, 5);
        float *x = data->x + i * COLUMNS;
        x[0] = (float)a;
        x[1] = (float)b;
        x[2] = (float)(10 + 2 * a);
        x[3] = (float)stats_rng_unit(&rng);
        data->y[i] = 2 - 0.5 * fabs(a - 2) - 0.4 * fabs(b - 3) + 0.05 * stats_rng_normal(&rng);
        data->correct[i] = !(a == 3 && b <= 1);
    }
}

static struct model *fit(const struct data *data, size_t rows)
{
    struct model_data input = {data->x,       rows,    COLUMNS, NULL, data->param, NULL,
                               data->correct, data->y, false,   0,    SCHEDULE};
    struct model *model = NULL;
    assert_int_equal(model_fit(&model, NULL, &input, NULL), 0);
    return model;
}

// Computes, over fresh correct rows, the root mean square error, the share of outcomes inside the
// central 80 % of their prediction, and the mean width of that interval.
static void judge(size_t rows, double *ret_error, double *ret_inside, double *ret_width)
{
    static struct data train, test;
    static struct prediction prediction[ROWS_MAX];
    double square = 0, inside = 0, width = 0, count = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        fill(&train, rows, seed);
        fill(&test, ROWS_MAX, seed + 100);
        struct model *model = fit(&train, rows);
        assert_int_equal(model_predict(model, test.x, ROWS_MAX, prediction, NULL), 0);
        for (size_t i = 0; i < ROWS_MAX; i++) {
            if (!test.correct[i]) {
                continue;
            }
            double u = prediction_cdf(&prediction[i], test.y[i]),
                   error = prediction_mean(&prediction[i]) - test.y[i];
            square += error * error;
            inside += u > 0.1 && u < 0.9;
            width += prediction[i].scale;
            count++;
        }
        model_free(model);
    }
    *ret_error = sqrt(square / count);
    *ret_inside = inside / count;
    *ret_width = width / count;
}

static void it_sharpens_with_rows_and_stays_honest(void **state)
{
    (void)state;
    double error[2], inside[2], width[2];
    judge(15, &error[0], &inside[0], &width[0]);
    judge(100, &error[1], &inside[1], &width[1]);
    assert_true(error[1] < error[0] && error[1] < 0.15);
    assert_true(width[1] < width[0]);
    assert_true(inside[0] > 0.65);
    assert_true(inside[1] > 0.7);
}

static void equal_data_give_equal_forecasts(void **state)
{
    (void)state;
    static struct data data;
    struct prediction a[10], b[10];
    fill(&data, 60, 1);
    struct model *one = fit(&data, 60), *two = fit(&data, 60);
    assert_int_equal(model_predict(one, data.x, 10, a, NULL), 0);
    assert_int_equal(model_predict(two, data.x, 10, b, NULL), 0);
    for (int i = 0; i < 10; i++) {
        assert_true(a[i].p_correct == b[i].p_correct && a[i].centre == b[i].centre &&
                    a[i].scale == b[i].scale);
        assert_true(prediction_cdf(&a[i], 1) == prediction_cdf(&b[i], 1));
    }
    model_free(one);
    model_free(two);
}

static void a_rule_of_correctness_is_learnt(void **state)
{
    (void)state;
    static struct data data;
    fill(&data, 100, 2);
    struct model *model = fit(&data, 100);
    struct prediction out[2];
    const float x[2 * COLUMNS] = {3, 0, 16, 0.5F, 2, 3, 14, 0.5F};
    assert_int_equal(model_predict(model, x, 2, out, NULL), 0);
    assert_true(out[0].p_correct < 0.5);
    assert_true(out[1].p_correct > 0.9);
    model_free(model);
}

static void few_wrong_rows_give_the_base_rate(void **state)
{
    (void)state;
    static struct data data;
    fill(&data, 20, 2);
    for (size_t i = 0; i < 20; i++) {
        data.correct[i] = i != 4;
    }
    struct model *model = fit(&data, 20);
    struct prediction out[2];
    const float x[2 * COLUMNS] = {3, 0, 16, 0.5F, 2, 3, 14, 0.5F};
    assert_int_equal(model_predict(model, x, 2, out, NULL), 0);
    assert_true(out[0].p_correct == out[1].p_correct);
    assert_float_equal(out[0].p_correct, (19 + 1.6) / 22, 1e-9);
    model_free(model);
}

static void too_few_correct_rows_are_refused(void **state)
{
    (void)state;
    static struct data data;
    fill(&data, 20, 2);
    for (size_t i = MODEL_CORRECT_MIN - 1; i < 20; i++) {
        data.correct[i] = false;
    }
    for (size_t i = 0; i < MODEL_CORRECT_MIN - 1; i++) {
        data.correct[i] = true;
    }
    struct model_data input = {data.x,       20,     COLUMNS, NULL, data.param, NULL,
                               data.correct, data.y, false,   0,    SCHEDULE};
    struct model *model = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(model_fit(&model, NULL, &input, &err), ERR_INVALID);
    assert_null(model);
}

static void rows_without_any_information_give_their_own_distribution(void **state)
{
    (void)state;
    static struct data data;
    fill(&data, 40, 3);
    for (size_t i = 0; i < 40 * COLUMNS; i++) {
        data.x[i] = i % 2 ? NAN : 5;
    }
    for (size_t i = 0; i < 40; i++) {
        data.correct[i] = true;
        data.y[i] = (double)(i % 2);
    }
    struct model *model = fit(&data, 40);
    struct prediction out;
    assert_int_equal(model_predict(model, data.x, 1, &out, NULL), 0);
    assert_float_equal(prediction_mean(&out), 0.5, 0.05);
    assert_true(out.scale > 0.3);
    struct model_data none = {data.x,       40,     0,     NULL, data.param, NULL,
                              data.correct, data.y, false, 0,    SCHEDULE};
    model_free(model);
    assert_int_equal(model_fit(&model, NULL, &none, NULL), 0); // no columns at all
    assert_int_equal(model_predict(model, data.x, 1, &out, NULL), 0);
    assert_float_equal(prediction_mean(&out), 0.5, 0.05);
    model_free(model);
}

static void the_distribution_is_one(void **state)
{
    (void)state;
    static struct data data;
    fill(&data, 50, 4);
    struct model *model = fit(&data, 50);
    struct prediction out;
    assert_int_equal(model_predict(model, data.x, 1, &out, NULL), 0);
    double before = 0, integral = 0;
    for (double y = -20; y <= 20; y += 0.01) {
        double cdf = prediction_cdf(&out, y);
        assert_true(cdf >= before);
        before = cdf;
        integral += y >= 1 ? (1 - cdf) * 0.01 : 0;
    }
    assert_true(prediction_cdf(&out, -40) < 1e-6 && prediction_cdf(&out, 40) > 1 - 1e-6);
    assert_float_equal(prediction_excess(&out, 1), integral,
                       0.01); // E max(Y - 1, 0) = integral of 1 - F from 1
    assert_float_equal(prediction_excess(&out, -30), prediction_mean(&out) + 30, 1e-6);
    model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_sharpens_with_rows_and_stays_honest),
        cmocka_unit_test(equal_data_give_equal_forecasts),
        cmocka_unit_test(a_rule_of_correctness_is_learnt),
        cmocka_unit_test(few_wrong_rows_give_the_base_rate),
        cmocka_unit_test(too_few_correct_rows_are_refused),
        cmocka_unit_test(rows_without_any_information_give_their_own_distribution),
        cmocka_unit_test(the_distribution_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

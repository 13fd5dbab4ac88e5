// Recalibration on recorded candidates. In each space the static model learns from 200 candidates
// and forecasts the others. These forecasts are miscalibrated on purpose: one bin too fast, and
// three times as sure in logarithms. Calibration maps are made from 100 outcomes and scored on the
// rest, all spaces together.
//  bench_recorded SPACE…        30 seeds: calibration errors and CRPS, as said and as corrected
#include "client/eval/score.h"
#include "common/mem.h"
#include "tests/bench/samples.h"
#include "tests/bench/trained_model.h"
#include "tests/worker/calibration/miscalibrated.h"
#include "worker/calibration/recalibrate.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 30
#define TRAINED 200
#define MAPPED 100
#define ROWS_MAX 20000
#define STREAM_RECORDED 0x7265636fULL

struct rows {
    struct score_row raw[ROWS_MAX], mapped[ROWS_MAX];
    size_t count;
};

// The model's forecast, made miscalibrated.
static struct recal_forecast miscalibrated_forecast(const struct trained_model *model,
                                                    const struct space_candidate *c)
{
    struct forecast_reply reply;

    trained_model_forecast(model, c, &reply);
    struct recal_forecast ret = (struct recal_forecast){.p_correct = reply.forecasts[0].p_correct};
    memcpy(ret.bins, reply.forecasts[0].bins, sizeof(ret.bins));
    message_clear(&forecast_reply_message, &reply);
    miscalibrate(&ret, model->target);
    return ret;
}

static void score_space(const struct space *space, uint64_t seed, struct recalibration *recal,
                        struct rows *rows)
{
    struct recal_scope scope = {"spoilt", space->head.device_class, space->head.problem};
    struct trained_model model;

    trained_model_init(&model, space, TRAINED, 2 * MAPPED, seed, STREAM_RECORDED);
    for (size_t i = 0; i < model.count - TRAINED && rows->count < ROWS_MAX; i++) {
        const struct space_candidate *c = trained_model_candidate(&model, i);
        struct recal_forecast said = miscalibrated_forecast(&model, c);
        double log2 = trained_model_outcome(c), target = model.target;
        struct recal_outcome known = {.correct = !isnan(log2),
                                      .improved = log2 > target,
                                      .log2 = isnan(log2) ? 0 : log2,
                                      .propensity = 1,
                                      .key = TRAINED + i};

        if (i < MAPPED) {
            (void)recal_add(recal, &scope, &said, &known);
        } else {
            struct recal_answer answer = as_said(&said);

            if (i == MAPPED) {
                recal_refit(recal);
            }
            rows->raw[rows->count] = score_row_of(&known, &answer);
            recal_apply(recal, &scope, &said, RECAL_FOLD_ALL, &answer);
            rows->mapped[rows->count++] = score_row_of(&known, &answer);
        }
    }
    trained_model_release(&model);
}

int main(int argc, char **argv)
{
    static const struct {
        enum score_metric metric;
        const char *name;
    } shown[] = {{SCORE_ECE_BIN, "calibration error of the likeliest bin"},
                 {SCORE_ECE_CORRECT, "calibration error of P(correct)"},
                 {SCORE_ECE_IMPROVES, "calibration error of P(improves)"},
                 {SCORE_CRPS, "CRPS"}};
    struct rows *rows = xcalloc(1, sizeof(*rows));
    struct space *space = xcalloc((size_t)argc, sizeof(*space));
    struct err err = ERR_INIT;

    for (int i = 1; i < argc; i++) {
        if (space_read(&space[i], argv[i], &err) != 0) {
            die(&err);
        }
    }
    const struct score_options options = {.risk = 0.1};
    double sum[ARRAY_LEN(shown)][2] = {{0}};
    size_t better[ARRAY_LEN(shown)] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct score_value raw[SCORE_COUNT], mapped[SCORE_COUNT];

        rows->count = 0;
        for (int i = 1; i < argc; i++) {
            // It knows only the 100 outcomes of this space.
            struct recalibration *recal = recal_create(NULL);

            score_space(&space[i], seed, recal, rows);
            recal_free(recal);
        }
        score_compute(raw, rows->raw, rows->count, &options);
        score_compute(mapped, rows->mapped, rows->count, &options);
        for (size_t m = 0; m < ARRAY_LEN(shown); m++) {
            sum[m][0] += raw[shown[m].metric].value / SEEDS;
            sum[m][1] += mapped[shown[m].metric].value / SEEDS;
            better[m] += mapped[shown[m].metric].value < raw[shown[m].metric].value;
        }
    }
    for (size_t m = 0; m < ARRAY_LEN(shown); m++) {
        printf("%-40s %.4f as said, %.4f corrected; better in %zu of %d seeds\n", shown[m].name,
               sum[m][0], sum[m][1], better[m], SEEDS);
    }
    for (int i = 1; i < argc; i++) {
        space_release(&space[i]);
    }
    free(space);
    free(rows);
    return 0;
}

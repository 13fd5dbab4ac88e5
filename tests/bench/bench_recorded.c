// Recalibration on recorded candidates. In each space the static model learns from 200 candidates and
// forecasts the others; these forecasts are spoilt, one bin too fast and three times as sure in
// logarithms; maps are made of 100 outcomes and judged by the rest, all spaces together.
//   bench_recorded SPACE…        30 seeds: calibration errors and CRPS, as said and as corrected
#include "client/space.h"
#include "common/mem.h"
#include "common/stats.h"
#include "contract/score.h"
#include "contract/verdict.h"
#include "tests/worker/spoilt.h"
#include "worker/group.h"
#include "worker/recalibrate.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 30
#define TRAINED 200
#define MAPPED 100
#define ROWS_MAX 20000

struct rows {
    struct score_row raw[ROWS_MAX], mapped[ROWS_MAX];
    size_t count;
};

static void fail(const struct err *err)
{
    fprintf(stderr, "bench_recorded: %s\n", err->text);
    exit(1);
}

static struct candidate_facts facts_of(const struct space_candidate *c, uint64_t id)
{
    return (struct candidate_facts){.id = id,
                                    .features = c->compiled->features,
                                    .features_count = c->compiled->features_count,
                                    .params = c->params,
                                    .params_count = c->params_count};
}

static bool is_usable(const struct space_candidate *c)
{
    return c->compiled != NULL && c->compiled->verdict == VERDICT_NONE && c->result != NULL;
}

// A random order of the candidates that have an outcome; returns how many.
static size_t shuffle(const struct space *space, uint64_t seed, size_t *order)
{
    struct stats_rng rng;
    size_t count = 0;

    stats_rng_init(&rng, seed, 0x7265636fULL);
    for (size_t i = 0; i < space->head.candidates; i++) {
        if (is_usable(&space->candidate[i])) {
            order[count++] = i;
        }
    }
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)stats_rng_below(&rng, i), swap = order[i - 1];

        order[i - 1] = order[j];
        order[j] = swap;
    }
    return count;
}

static double truth(const struct space_candidate *c)
{
    return verdict_is_ratio(c->result->verdict) ? space_log2(c) : NAN;
}

static void learn(struct group *group, const struct space *space, const size_t *order)
{
    struct observe context;

    message_init(&observe_message, &context);
    context.device_facts = space->head.device_facts;
    context.device_facts_count = space->head.device_facts_count;
    for (size_t i = 0; i < TRAINED; i++) {
        const struct space_candidate *c = &space->candidate[order[i]];
        struct candidate_facts facts = facts_of(c, i + 1);
        struct outcome outcome;

        message_init(&outcome_message, &outcome);
        outcome.candidate = &facts;
        outcome.verdict = c->result->verdict;
        outcome.log2 = truth(c);
        if (group_takes(&outcome)) {
            group_add(group, &context, &outcome);
        }
    }
}

static struct recal_forecast spoilt_forecast(struct group *group, const struct space *space,
                                             const struct space_candidate *c, double bar)
{
    struct candidate_facts facts = facts_of(c, 1);
    struct forecast_request request;
    struct forecast_reply reply;
    struct recal_forecast ret;
    struct err err = ERR_INIT;

    message_init(&forecast_request_message, &request);
    request.incumbent_log2 = bar;
    request.device_facts = space->head.device_facts;
    request.device_facts_count = space->head.device_facts_count;
    request.candidates = &facts;
    request.candidates_count = 1;
    if (group_forecast(group, &request, &reply, &err) != 0) {
        fail(&err);
    }
    ret = (struct recal_forecast){.p_correct = reply.forecasts[0].p_correct};
    memcpy(ret.bins, reply.forecasts[0].bins, sizeof(ret.bins));
    message_clear(&forecast_reply_message, &reply);
    spoil(&ret, bar);
    return ret;
}

// The upper quartile of what was learnt from: what an improvement has to beat.
static double bar_of(const struct space *space, const size_t *order)
{
    double y[TRAINED];
    size_t count = 0;

    for (size_t i = 0; i < TRAINED; i++) {
        double log2 = truth(&space->candidate[order[i]]);

        if (!isnan(log2)) {
            y[count++] = log2;
        }
    }
    stats_sort(y, count);
    return count > 0 ? stats_quantile(y, count, 0.75) : 0;
}

static void judge(const struct space *space, uint64_t seed, struct recalibration *recal,
                  struct rows *rows)
{
    size_t *order = xcalloc((size_t)space->head.candidates, sizeof(*order));
    size_t count = shuffle(space, seed, order);
    struct group *group = group_create(space->head.problem, space->head.device_class);
    struct recal_scope scope = {"spoilt", space->head.device_class, space->head.problem};
    struct err err = ERR_INIT;
    double bar;

    if (count < TRAINED + 2 * MAPPED) {
        (void)err_set(&err, ERR_INVALID, "%s has too few candidates", space->head.problem);
        fail(&err);
    }
    learn(group, space, order);
    bar = bar_of(space, order);
    if (group_fit(group, &err) != 0) {
        fail(&err);
    }
    for (size_t i = TRAINED; i < count && rows->count < ROWS_MAX; i++) {
        const struct space_candidate *c = &space->candidate[order[i]];
        struct recal_forecast said = spoilt_forecast(group, space, c, bar);
        double log2 = truth(c);
        struct recal_outcome known = {.correct = !isnan(log2),
                                      .improved = log2 > bar,
                                      .log2 = isnan(log2) ? 0 : log2,
                                      .propensity = 1,
                                      .key = i};

        if (i < TRAINED + MAPPED) {
            (void)recal_add(recal, &scope, &said, &known);
        } else {
            struct recal_answer answer = as_said(&said);

            if (i == TRAINED + MAPPED) {
                recal_refit(recal);
            }
            rows->raw[rows->count] = score_row_of(&known, &answer);
            recal_apply(recal, &scope, &said, RECAL_FOLD_ALL, &answer);
            rows->mapped[rows->count++] = score_row_of(&known, &answer);
        }
    }
    group_free(group);
    free(order);
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
    const struct score_options options = {.risk = 0.1};
    double sum[ARRAY_LEN(shown)][2] = {{0}};
    size_t better[ARRAY_LEN(shown)] = {0};
    struct rows *rows = xcalloc(1, sizeof(*rows));
    struct space *space = xcalloc((size_t)argc, sizeof(*space));
    struct err err = ERR_INIT;

    for (int i = 1; i < argc; i++) {
        if (space_read(&space[i], argv[i], &err) != 0) {
            fail(&err);
        }
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct score_value raw[SCORE_COUNT], mapped[SCORE_COUNT];

        rows->count = 0;
        for (int i = 1; i < argc; i++) {
            struct recalibration *recal = recal_create(NULL); // 100 outcomes, no others

            judge(&space[i], seed, recal, rows);
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

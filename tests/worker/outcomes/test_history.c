// The history of the language-model engine: which outcomes it takes, what it makes of a raw
// forecast before and after it has learnt, and that a restarted worker knows the same.
#include "worker/outcomes/history.h"

#include "common/file.h"
#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "worker/outcomes/outcome_store.h"
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    char *dir, *path;
    struct history *history;
    struct observed observed; // the last reply
};

static void reopen(struct fixture *f)
{
    struct err err = ERR_INIT;

    history_close(f->history);
    f->history = NULL;
    if (history_open(&f->history, f->path, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-history", NULL), 0);
    f->path = xasprintf("%s/llm.db", f->dir);
    reopen(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    history_close(f->history);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

// ---- telling outcomes ----

static struct candidate_facts candidate;

static struct outcome outcome_of(uint64_t verdict, double log2)
{
    struct outcome outcome;

    message_init(&outcome_message, &outcome);
    outcome.candidate = &candidate;
    outcome.verdict = verdict;
    outcome.log2 = log2;
    return outcome;
}

static int tell(struct fixture *f, const char *problem, const char *device,
                struct outcome *outcomes, size_t count, struct err *err)
{
    struct observe observe;

    message_init(&observe_message, &observe);
    observe.problem = (char *)(uintptr_t)problem;
    observe.device_class = (char *)(uintptr_t)device;
    observe.outcomes = outcomes;
    observe.outcomes_count = count;
    return history_add(f->history, &observe, &f->observed, err);
}

// Puts all of the probability into one bin.
static void point(double bins[static BIN_COUNT], size_t bin)
{
    memset(bins, 0, BIN_COUNT * sizeof(*bins));
    bins[bin] = 1;
}

// Tells outcome `number` of a candidate that was forecast in this bin with these probabilities.
static void tell_call(struct fixture *f, const char *model, int number, double p_correct,
                      double p_improves, uint64_t verdict, double log2)
{
    double bins[BIN_COUNT];
    char key[32];
    struct raw_forecast raw = {.model = (char *)(uintptr_t)model,
                               .p_correct = p_correct,
                               .p_improves = p_improves,
                               .bins = bins,
                               .bins_count = BIN_COUNT};
    struct outcome outcome = outcome_of(verdict, log2);

    point(bins, bin_of(1));
    (void)snprintf(key, sizeof(key), "s/%d", number);
    outcome.key = key;
    outcome.raw = &raw;
    outcome.p_improves = p_improves;
    outcome.propensity = 1;
    assert_int_equal(tell(f, "sgemm", "cpu x", &outcome, 1, NULL), 0);
}

// The same of a model whose name does not matter.
static void tell_forecast(struct fixture *f, int number, double p_correct, double p_improves,
                          uint64_t verdict, double log2)
{
    tell_call(f, "llm m", number, p_correct, p_improves, verdict, log2);
}

// ---- forecasts ----

static const struct forecast_request plain = {.problem = (char *)"sgemm",
                                              .device_class = (char *)"cpu x",
                                              .incumbent_log2 = NAN,
                                              .margin_log2 = NAN};

// The recalibrated form of a forecast that puts everything into the bin of y = 1. The caller clears
// it.
static struct forecast recalibrate_of(const struct fixture *f, const char *model,
                                      const struct forecast_request *request, double p_correct)
{
    struct forecast forecast;

    message_init(&forecast_message, &forecast);
    forecast.raw = xcalloc(1, sizeof(*forecast.raw));
    message_init(&raw_forecast_message, forecast.raw);
    forecast.raw->model = xstrdup(model);
    forecast.raw->p_correct = p_correct;
    forecast.raw->bins = xcalloc(BIN_COUNT, sizeof(double));
    forecast.raw->bins_count = BIN_COUNT;
    point(forecast.raw->bins, bin_of(1));
    history_recalibrate(f->history, request, &forecast);
    assert_int_equal(forecast.bins_count, BIN_COUNT);
    return forecast;
}

static struct forecast recalibrate(const struct fixture *f, const struct forecast_request *request,
                                   double p_correct)
{
    return recalibrate_of(f, "llm m", request, p_correct);
}

static void impossible_outcomes_are_refused_and_nothing_is_kept(void **state)
{
    static const struct {
        uint64_t verdict;
        double log2;
        bool candidate;
        const char *words;
    } row[] = {
        {VERDICT_FASTER, 1, false, "outcome 1 has no candidate or no known verdict"},
        {99, 1, true, "outcome 1 has no candidate or no known verdict"},
        {VERDICT_FASTER, NAN, true, "outcome 1 is faster with no usable log2"},
        {VERDICT_SLOWER, -41, true, "outcome 1 is slower with no usable log2"},
        {VERDICT_EQUIVALENT, INFINITY, true, "outcome 1 is equivalent with no usable log2"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct outcome outcomes[] = {outcome_of(VERDICT_FASTER, 1),
                                     outcome_of(row[i].verdict, row[i].log2)};
        struct err err = ERR_INIT;

        outcomes[1].candidate = row[i].candidate ? &candidate : NULL;
        assert_int_equal(tell(f, "sgemm", "cpu x", outcomes, 2, &err), ERR_INVALID);
        assert_string_equal(err.text, row[i].words);
        assert_int_equal(f->observed.added, 0);
    }
    reopen(f);
    struct worker_status status;
    message_init(&worker_status_message, &status);
    history_status(f->history, &status);
    assert_int_equal(status.outcomes, 0);
    assert_int_equal(status.models_count, 0);
    message_clear(&worker_status_message, &status);
}

static void what_teaches_nothing_is_taken_and_not_kept(void **state)
{
    struct fixture *f = *state;
    struct outcome outcomes[] = {
        outcome_of(VERDICT_COMPILE_ERROR, NAN), outcome_of(VERDICT_WRONG, NAN),
        outcome_of(VERDICT_QUARANTINED, NAN), outcome_of(VERDICT_NONE, NAN)};

    assert_int_equal(tell(f, "sgemm", "cpu x", outcomes, ARRAY_LEN(outcomes), NULL), 0);
    assert_int_equal(f->observed.added, 1);
    assert_int_equal(f->observed.rows, 1);
    assert_int_equal(tell(f, "sgemm", "cpu x", outcomes, 0, NULL), 0);
    assert_int_equal(f->observed.added, 0);
    assert_int_equal(f->observed.rows, 1);
}

static void an_outcome_counts_once_and_in_its_own_group(void **state)
{
    struct fixture *f = *state;
    struct outcome outcomes[] = {outcome_of(VERDICT_FASTER, 1), outcome_of(VERDICT_FASTER, 2),
                                 outcome_of(VERDICT_FASTER, 3)};

    outcomes[0].key = outcomes[2].key = (char *)(uintptr_t) "s/1";
    outcomes[1].key = (char *)(uintptr_t) "s/2";
    assert_int_equal(tell(f, "sgemm", "cpu x", outcomes, 3, NULL), 0);
    assert_int_equal(f->observed.added, 2); // the third one is the first one again
    uint64_t version = f->observed.model_version;
    assert_int_equal(tell(f, "sgemm", "cpu x", outcomes, 2, NULL), 0);
    assert_int_equal(f->observed.added, 0);
    assert_int_equal(f->observed.rows, 2);
    assert_true(f->observed.model_version >= version);
    assert_int_equal(tell(f, "sgemm", "cpu y", outcomes, 1, NULL), 0);
    assert_int_equal(f->observed.added, 1);
    assert_int_equal(f->observed.rows, 1);
    assert_int_equal(tell(f, "other", "cpu x", outcomes, 1, NULL), 0);
    for (int round = 0; round < 2; round++) {
        struct worker_status status;

        message_init(&worker_status_message, &status);
        history_status(f->history, &status);
        assert_int_equal(status.outcomes, 4);
        assert_int_equal(status.models_count, 3);
        assert_string_equal(status.models[0].problem, "sgemm");
        assert_string_equal(status.models[0].device_class, "cpu x");
        assert_int_equal(status.models[0].rows, 2);
        assert_string_equal(status.models[1].device_class, "cpu y");
        assert_string_equal(status.models[2].problem, "other");
        assert_int_equal(status.models[0].decisions, 0); // nothing was forecast
        assert_true(isnan(status.models[0].decision_accuracy));
        message_clear(&worker_status_message, &status);
        reopen(f);
    }
}

static void a_forecast_without_a_record_has_no_confidence_and_a_reason(void **state)
{
    struct fixture *f = *state;
    struct forecast forecast = recalibrate(f, &plain, NAN);

    assert_true(forecast.confidence == 0);
    assert_string_equal(forecast.reason,
                        "0 of this forecaster's calls here are known, 12 are needed");
    assert_int_equal(forecast.trained_rows, 0);
    // The map of nothing is the identity: what was stated, and 0.8 for what was not.
    assert_true(forecast.raw->p_correct == 0.8);
    assert_true(fabs(forecast.p_correct - 0.8) < 1e-6);
    double sum = 0;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        sum += forecast.bins[i];
    }
    assert_true(fabs(sum - 1) < 1e-9);
    assert_true(bin_of(forecast.mean_log2) == bin_of(1));
    message_clear(&forecast_message, &forecast);
}

static void an_improvement_is_over_the_incumbent_by_the_margin(void **state)
{
    static const struct {
        double incumbent, margin;
        bool improves; // whether the bin of y = 1 lies above
    } row[] = {{NAN, NAN, true}, {-3, NAN, true}, {0, 0.1, true},
               {4, NAN, false},  {0, 4, false},   {-1, 5, false}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct forecast_request request = plain;

        request.incumbent_log2 = row[i].incumbent;
        request.margin_log2 = row[i].margin;
        struct forecast forecast = recalibrate(f, &request, 0.9);
        assert_true(fabs(forecast.raw->p_improves - (row[i].improves ? 0.9 : 0)) < 1e-9);
        assert_true(forecast.p_improves <= forecast.p_correct);
        assert_true((forecast.p_improves > 0.5) == row[i].improves);
        // What is to be gained is over the incumbent; the margin does not count.
        double best = isnan(row[i].incumbent) ? 0 : row[i].incumbent;
        double gain = forecast.p_correct * bins_expected_excess(forecast.bins, best);
        assert_true(fabs(forecast.expected_improvement - gain) < 1e-12);
        message_clear(&forecast_message, &forecast);
    }
}

static void twelve_known_calls_give_confidence(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 11; i++) {
        tell_forecast(f, i, 0.9, 0.9, VERDICT_FASTER, 1);
    }
    // Neither of these is a call: one stated no probability, of the other nothing was forecast.
    tell_forecast(f, 11, 0.9, NAN, VERDICT_FASTER, 1);
    struct outcome outcome = outcome_of(VERDICT_FASTER, 1);
    outcome.p_improves = 0.9;
    assert_int_equal(tell(f, "sgemm", "cpu x", &outcome, 1, NULL), 0);
    struct forecast forecast = recalibrate(f, &plain, 0.9);
    assert_true(forecast.confidence == 0);
    assert_string_equal(forecast.reason,
                        "11 of this forecaster's calls here are known, 12 are needed");
    assert_int_equal(forecast.trained_rows, 13);
    message_clear(&forecast_message, &forecast);
    tell_forecast(f, 12, 0.9, 0.9, VERDICT_FASTER, 1);
    forecast = recalibrate(f, &plain, 0.9);
    assert_null(forecast.reason);
    assert_true(forecast.confidence > 0.5);
    message_clear(&forecast_message, &forecast);
    // A record here says nothing about another device class.
    struct forecast_request elsewhere = plain;
    elsewhere.device_class = (char *)(uintptr_t) "cpu y";
    forecast = recalibrate(f, &elsewhere, 0.9);
    assert_true(forecast.confidence == 0);
    assert_non_null(forecast.reason);
    message_clear(&forecast_message, &forecast);
}

// One model was right. Another one begins at none, and what it gets wrong costs the first nothing.
static void confidence_counts_the_calls_of_each_model(void **state)
{
    struct fixture *f = *state;
    double good = 0;
    for (int i = 0; i < 40; i++) {
        tell_call(f, "llm good", i, 0.9, 0.9, VERDICT_FASTER, 1);
    }
    struct forecast forecast = recalibrate_of(f, "llm other", &plain, 0.9);
    assert_true(forecast.confidence == 0);
    assert_non_null(strstr(forecast.reason, "0 of this forecaster's calls"));
    message_clear(&forecast_message, &forecast);
    for (int i = 0; i < 40; i++) {
        tell_call(f, "llm other", 100 + i, 0.9, 0.9, VERDICT_SLOWER, -1);
    }
    for (int round = 0; round < 2; round++) {
        struct worker_status status;
        forecast = recalibrate_of(f, "llm good", &plain, 0.9);
        assert_true(forecast.confidence > 0.85);
        assert_true(round == 0 || fabs(forecast.confidence - good) < 1e-9);
        good = forecast.confidence;
        message_clear(&forecast_message, &forecast);
        forecast = recalibrate_of(f, "llm other", &plain, 0.9);
        assert_true(forecast.confidence < good);
        message_clear(&forecast_message, &forecast);
        message_init(&worker_status_message, &status);
        history_status(f->history, &status);
        assert_string_equal(status.models[0].model, "llm other"); // which was heard last
        assert_int_equal(status.models[0].decisions, 40);
        assert_true(status.models[0].decision_accuracy == 0);
        message_clear(&worker_status_message, &status);
        reopen(f);
    }
}

static void a_boaster_is_believed_less_and_a_restart_knows_it(void **state)
{
    struct fixture *f = *state;
    struct forecast before, after;
    struct worker_status status[2];

    for (int i = 0; i < 80; i++) {
        bool wrong = i % 2 == 0; // stated 0.95 each time

        tell_forecast(f, i, 0.95, 0.95, wrong ? VERDICT_WRONG : VERDICT_SLOWER, wrong ? NAN : -1);
    }
    before = recalibrate(f, &plain, 0.95);
    assert_true(before.p_correct > 0.35 && before.p_correct < 0.75);
    assert_true(before.p_improves < 0.4);
    assert_true(before.mean_log2 < 0.5); // stated 1, and -1 came true
    assert_true(before.confidence >= 0 && before.confidence <= 1);
    message_init(&worker_status_message, &status[0]);
    history_status(f->history, &status[0]);
    assert_int_equal(status[0].models[0].decisions, 80);
    assert_true(status[0].models[0].decision_accuracy == 0);
    reopen(f);
    after = recalibrate(f, &plain, 0.95);
    assert_true(after.p_correct == before.p_correct && after.p_improves == before.p_improves);
    assert_true(after.confidence == before.confidence);
    assert_memory_equal(after.bins, before.bins, BIN_COUNT * sizeof(double));
    message_init(&worker_status_message, &status[1]);
    history_status(f->history, &status[1]);
    assert_int_equal(status[1].models[0].decisions, 80);
    assert_int_equal(status[1].outcomes, 80);
    message_clear(&forecast_message, &before);
    message_clear(&forecast_message, &after);
    message_clear(&worker_status_message, &status[0]);
    message_clear(&worker_status_message, &status[1]);
}

// Tells `count` outcomes of candidates forecast at y = 1, one in `wrong_every` of them wrong.
static void tell_many(struct fixture *f, const char *problem, int first, int count, int wrong_every)
{
    double bins[BIN_COUNT];
    char(*key)[32] = xcalloc((size_t)count, sizeof(*key));
    struct raw_forecast raw = {.model = (char *)(uintptr_t) "llm m",
                               .p_correct = 0.8,
                               .p_improves = 0.8,
                               .bins = bins,
                               .bins_count = BIN_COUNT};
    struct outcome *outcome = xcalloc((size_t)count, sizeof(*outcome));

    point(bins, bin_of(1));
    for (int i = 0; i < count; i++) {
        bool wrong = i % wrong_every == 0;

        outcome[i] = outcome_of(wrong ? VERDICT_WRONG : VERDICT_FASTER, wrong ? NAN : 1);
        (void)snprintf(key[i], sizeof(key[i]), "s/%d", first + i);
        outcome[i].key = key[i];
        outcome[i].raw = &raw;
        outcome[i].propensity = 1;
    }
    assert_int_equal(tell(f, problem, "cpu x", outcome, (size_t)count, NULL), 0);
    free(outcome);
    free(key);
}

// The recalibration keeps the newest outcomes of all problems. A problem that is old but was told
// of last must not lose its outcomes by a restart.
static void a_restart_forgets_what_is_oldest_and_no_more(void **state)
{
    struct fixture *f = *state;

    tell_many(f, "sgemm", 0, 1, 5);
    tell_many(f, "softmax", 0, 3500, 2);
    tell_many(f, "gemv", 0, 3500, 2);
    tell_many(f, "sgemm", 1, 2500, 5);
    struct forecast before = recalibrate(f, &plain, 0.8);
    reopen(f);
    struct forecast after = recalibrate(f, &plain, 0.8);
    assert_true(fabs(before.p_correct - 0.8) < 0.05);
    assert_true(fabs(after.p_correct - before.p_correct) < 1e-6);
    message_clear(&forecast_message, &before);
    message_clear(&forecast_message, &after);
}

static void there_is_a_largest_number_of_groups(void **state)
{
    struct fixture *f = *state;
    struct outcome outcome = outcome_of(VERDICT_FASTER, 1);
    sqlite3 *db = NULL;

    history_close(f->history);
    f->history = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                     "1024) INSERT INTO problem_group (identity, device_class, problem)"
                     " SELECT 'name:p' || i, 'd', 'p' || i FROM n",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    reopen(f);
    struct err err = ERR_INIT;
    assert_int_equal(tell(f, "p1024", "d", &outcome, 1, &err), 0);
    assert_int_equal(tell(f, "p1025", "d", &outcome, 1, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, "1024 problems on device classes"));
    assert_int_equal(f->observed.added, 0);
}

static void a_damaged_file_is_refused(void **state)
{
    struct fixture *f = *state;
    char junk[4096];
    struct history *history = NULL;
    struct err err = ERR_INIT;

    history_close(f->history);
    f->history = NULL;
    memset(junk, 'j', sizeof(junk));
    assert_int_equal(file_replace(f->path, junk, sizeof(junk), false, NULL), 0);
    assert_int_equal(history_open(&history, f->path, &err), ERR_CORRUPT);
    assert_null(history);
    assert_non_null(strstr(err.text, "llm.db"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(impossible_outcomes_are_refused_and_nothing_is_kept),
        TEST(what_teaches_nothing_is_taken_and_not_kept),
        TEST(an_outcome_counts_once_and_in_its_own_group),
        TEST(a_forecast_without_a_record_has_no_confidence_and_a_reason),
        TEST(an_improvement_is_over_the_incumbent_by_the_margin),
        TEST(twelve_known_calls_give_confidence),
        TEST(confidence_counts_the_calls_of_each_model),
        TEST(a_boaster_is_believed_less_and_a_restart_knows_it),
        TEST(a_restart_forgets_what_is_oldest_and_no_more),
        TEST(there_is_a_largest_number_of_groups),
        TEST(a_damaged_file_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The static engine: forecasts per second, of processor time and of the clock with four requests
// under way; how long a FORECAST of 64 candidates takes while nothing is learnt and while outcomes
// are; and how long it takes until a new outcome
// is known (OBSERVE to its reply), with and without forecasts at the same time. Measured after 50,
// 400 and 2,000 outcomes of one problem. Candidates have six parameters and sixty features, half of
// which follow from the parameters.
//  bench_static [OUTCOMES [THREADS]]     told one by one in each part, default 100; that make
//                                        forecasts, default 1
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "worker/model/engine_static.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PARAMS 6
#define FEATURES 60
#define BATCH 64
#define CALLS_MAX 100000
#define AT_ONCE 4

struct times {
    double *ms;
    size_t count;
};

struct bench {
    uv_loop_t loop;
    void *engine;
    size_t told;
    struct times observed, forecast;
    uint64_t observe_ns, forecast_ns;
    size_t left;  // outcomes that are still to be told, one by one
    size_t asked; // forecasts that have no answer yet
};

static void die(const struct err *err)
{
    fprintf(stderr, "bench_static: %s\n", err->text);
    exit(1);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void note(struct times *times, uint64_t since_ns)
{
    if (times->count < CALLS_MAX) {
        times->ms[times->count++] = (double)(uv_hrtime() - since_ns) / 1e6;
    }
}

static void add_fact(struct fact *fact, const char *prefix, size_t number, double value)
{
    *fact = (struct fact){.name = xasprintf("%s%zu", prefix, number), .value = value};
}

// Makes candidate `index` and returns its log2 speedup.
static double make_candidate(struct candidate_facts *ret, uint64_t index)
{
    struct stats_rng rng;
    double param[PARAMS], log2_speedup = 0;
    stats_rng_init(&rng, 7, index);
    message_init(&candidate_facts_message, ret);
    ret->id = index;
    ret->params = xcalloc(PARAMS, sizeof(*ret->params));
    ret->params_count = PARAMS;
    for (size_t i = 0; i < PARAMS; i++) {
        param[i] = (double)stats_rng_below(&rng, 5);
        add_fact(&ret->params[i], "P", i, exp2(param[i]));
        log2_speedup += (i % 2 ? -0.2 : 0.5) * param[i] - 0.05 * param[i] * param[i];
    }
    log2_speedup += 0.1 * param[0] * param[1] + 0.05 * stats_rng_normal(&rng);
    ret->features = xcalloc(FEATURES, sizeof(*ret->features));
    ret->features_count = FEATURES;
    for (size_t i = 0; i < FEATURES; i++) {
        double value = 20 + (double)stats_rng_below(&rng, 200);
        if (i % 2) {
            value = 40 * exp2(param[i % PARAMS]) + 3 * param[(i / 2) % PARAMS] + (double)i;
        }
        add_fact(&ret->features[i], "feature_", i, value);
    }
    return log2_speedup;
}

static void add_baseline(struct fact **ret, size_t *ret_count)
{
    *ret = xcalloc(FEATURES, sizeof(**ret));
    *ret_count = FEATURES;
    for (size_t i = 0; i < FEATURES; i++) {
        add_fact(&(*ret)[i], "feature_", i, 100);
    }
}

static void on_observed(void *owner, const struct err *error, const void *reply);

static void tell(struct bench *bench, size_t count)
{
    struct observe observe;
    message_init(&observe_message, &observe);
    observe.problem = xstrdup("bench");
    observe.device_class = xstrdup("cpu");
    observe.outcomes = xcalloc(count, sizeof(*observe.outcomes));
    observe.outcomes_count = count;
    add_baseline(&observe.baseline_features, &observe.baseline_features_count);
    for (size_t i = 0; i < count; i++) {
        struct outcome *outcome = &observe.outcomes[i];
        message_init(&outcome_message, outcome);
        outcome->candidate = xcalloc(1, sizeof(*outcome->candidate));
        outcome->log2 = make_candidate(outcome->candidate, bench->told);
        outcome->verdict = VERDICT_FASTER;
        if (bench->told % 9 == 0) {
            outcome->verdict = VERDICT_WRONG;
            outcome->log2 = NAN;
        }
        outcome->propensity = 1;
        outcome->p_improves = 0.3;
        outcome->incumbent_log2 = 1;
        outcome->key = xasprintf("bench/%zu", bench->told++);
    }
    bench->observe_ns = uv_hrtime();
    engine_static.observe(bench->engine, &observe, on_observed, bench);
}

static void on_observed(void *owner, const struct err *error, const void *reply)
{
    struct bench *bench = owner;
    (void)reply;
    if (error) {
        die(error);
    }
    note(&bench->observed, bench->observe_ns);
    if (bench->left > 0) {
        bench->left--;
        tell(bench, 1);
    }
}

static void on_forecast(void *owner, const struct err *error, const void *reply)
{
    struct bench *bench = owner;
    (void)reply;
    if (error) {
        die(error);
    }
    note(&bench->forecast, bench->forecast_ns);
    bench->asked--;
}

static void ask(struct bench *bench, uint64_t number)
{
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("bench");
    request.device_class = xstrdup("cpu");
    request.incumbent_log2 = 1;
    add_baseline(&request.baseline_features, &request.baseline_features_count);
    request.candidates = xcalloc(BATCH, sizeof(*request.candidates));
    request.candidates_count = BATCH;
    for (size_t i = 0; i < BATCH; i++) {
        (void)make_candidate(&request.candidates[i], 1000000 + number * BATCH + i);
    }
    bench->asked++;
    bench->forecast_ns = uv_hrtime();
    engine_static.forecast(bench->engine, &request, on_forecast, bench);
}

static void show(const char *what, struct times *times)
{
    stats_sort(times->ms, times->count);
    printf("  %s: p50 %.2f ms, p99 %.2f ms, most %.2f ms (%zu)\n", what,
           stats_quantile(times->ms, times->count, 0.5),
           stats_quantile(times->ms, times->count, 0.99),
           stats_quantile(times->ms, times->count, 1), times->count);
    times->count = 0;
}

// Keeps AT_ONCE requests under way for a second. Returns the number of the next request.
static uint64_t run_at_once(struct bench *bench, uint64_t number)
{
    uint64_t first = number, begun_ns = uv_hrtime();
    while (uv_hrtime() < begun_ns + 1000000000) {
        while (bench->asked < AT_ONCE) {
            ask(bench, number++);
        }
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    printf("  %.0f forecasts a second with %d requests under way\n",
           (double)(number - first) * BATCH / ((double)(uv_hrtime() - begun_ns) * 1e-9), AT_ONCE);
    return number;
}

static void run_part(struct bench *bench, size_t outcomes, uint64_t one_by_one)
{
    uint64_t number = 0, until_ns;
    while (bench->told < outcomes) {
        size_t rest = outcomes - bench->told;
        tell(bench, rest < BATCH ? rest : BATCH);
        uv_run(&bench->loop, UV_RUN_DEFAULT);
    }
    bench->observed.count = bench->forecast.count = 0;
    double before = processor_seconds();
    for (until_ns = uv_hrtime() + 1000000000; uv_hrtime() < until_ns;) {
        ask(bench, number++);
        uv_run(&bench->loop, UV_RUN_DEFAULT);
    }
    printf("%zu outcomes: %.0f forecasts a second of one core\n", outcomes,
           (double)number * BATCH / (processor_seconds() - before));
    show("FORECAST of 64 candidates, nothing to learn", &bench->forecast);
    number = run_at_once(bench, number);
    bench->forecast.count = 0;
    bench->left = one_by_one - 1;
    tell(bench, 1);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    show("OBSERVE of one outcome, until a model knows it, nothing asked", &bench->observed);
    bench->left = one_by_one - 1;
    tell(bench, 1);
    while (uv_loop_alive(&bench->loop)) {
        if (bench->asked == 0 && bench->left > 0) {
            ask(bench, number++);
        }
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
    show("FORECAST of 64 candidates, outcomes being learnt", &bench->forecast);
    show("OBSERVE of one outcome, until a model knows it, forecasts all the time",
         &bench->observed);
}

int main(int argc, char **argv)
{
    static const size_t part[] = {50, 400, 2000};

    setvbuf(stdout, NULL, _IOLBF, 0);
    struct err err = ERR_INIT;
    uint64_t one_by_one = 100;
    if (argc > 1 && parse_u64(&one_by_one, argv[1], 2, 10000, "OUTCOMES", &err) < 0) {
        die(&err);
    }
    uint64_t threads = 1;
    if (argc > 2 && parse_u64(&threads, argv[2], 1, 256, "THREADS", &err) < 0) {
        die(&err);
    }
    struct bench bench = {.told = 0};
    bench.observed.ms = xcalloc(CALLS_MAX, sizeof(double));
    bench.forecast.ms = xcalloc(CALLS_MAX, sizeof(double));
    uv_loop_init(&bench.loop);
    char *dir = NULL;
    if (file_make_temp_dir(&dir, "kcast-bench", &err) < 0) {
        die(&err);
    }
    struct engine_config config = {
        .loop = &bench.loop, .state_dir = dir, .threads = (unsigned)threads};
    if (engine_static.open(&bench.engine, &config, &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < ARRAY_LEN(part); i++) {
        run_part(&bench, part[i], one_by_one);
    }
    engine_static.close(bench.engine);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    uv_loop_close(&bench.loop);
    if (file_remove_tree(dir, &err) < 0) {
        die(&err);
    }
    free(dir);
    free(bench.observed.ms);
    free(bench.forecast.ms);
    return 0;
}

// A made-up search, written event by event as a real one would write it, for tests of report and
// export. Everything follows from the seed.
#ifndef TESTS_CLIENT_REPORT_REPORT_RUN_H
#define TESTS_CLIENT_REPORT_REPORT_RUN_H

#include "client/run/run.h"
#include "client/run/run_state.h"
#include "common/stats.h"
#include "proto/bins.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct made_search {
    size_t candidates;
    uint64_t seed;
    bool finished;
    bool forecasts; // a worker answered
    bool all_wrong; // no candidate is correct
    bool sandbox_off;
    bool times;         // it recorded when its jobs reached their states
    const char *suffix; // appended to every candidate's name
    const char *source; // of every candidate; NULL: a plain source
};

// Where the events go: to a run state, or to a run file.
struct made_sink {
    struct run_state *run_state;
    struct run *run; // used when it is not NULL
    uint64_t sequence;
    double at;
    bool failed;
};

static inline void made_emit(struct made_sink *sink, enum run_event_kind kind,
                             const struct message *message, void *body)
{
    sink->at += 0.05;
    int rc;
    struct err err = ERR_INIT;
    if (sink->run) {
        rc = run_append(sink->run, kind, body, NULL, &err);
    } else {
        struct run_event event = {++sink->sequence, sink->at, kind, message, body};
        rc = run_state_apply(sink->run_state, &event, &err);
    }
    if (rc != 0) {
        fprintf(stderr, "%s\n", err.text);
        sink->failed = true;
    }
    message_clear(message, body);
}

// The times of a job whose answer is the next event: 10 ms on the way, the next 20 ms compiled or,
// after another 5 ms, measured, then 10 ms or 5 ms on the way.
static inline struct job_times *made_times(const struct made_sink *sink,
                                           const struct made_search *search, bool measured)
{
    if (!search->times) {
        return NULL;
    }
    struct job_times *ret = xcalloc(1, sizeof *ret);
    *ret = (struct job_times){.submitted = sink->at,
                              .compiling = measured ? NAN : sink->at + 0.01,
                              .ready = measured ? sink->at + 0.01 : NAN,
                              .running = measured ? sink->at + 0.015 : NAN,
                              .ended = sink->at + (measured ? 0.035 : 0.03),
                              .answered = sink->at + 0.04};
    return ret;
}

static inline struct estimate *made_estimate(double log2_speedup, double half, uint64_t blocks)
{
    struct estimate *ret = xcalloc(1, sizeof *ret);
    *ret = (struct estimate){log2_speedup, log2_speedup - half, log2_speedup + half, blocks};
    return ret;
}

static inline struct quantiles *made_quantiles(double p50)
{
    struct quantiles *ret = xcalloc(1, sizeof *ret);
    *ret = (struct quantiles){p50 * 0.99, p50, p50 * 1.03};
    return ret;
}

static inline struct digest made_digest(uint64_t number)
{
    return digest_of(&number, sizeof number);
}

static inline struct compiled *made_compiled(uint64_t verdict, uint64_t number, bool sandbox_off)
{
    struct compiled *ret = xcalloc(1, sizeof *ret);
    ret->verdict = verdict;
    if (verdict == VERDICT_NONE) {
        ret->object = made_digest(number + 1000000);
    } else {
        ret->log = xstrdup("candidate.c:7:5: error: array size is negative <b>&amp;");
    }
    ret->features_count = 2;
    ret->features = xcalloc(2, sizeof *ret->features);
    ret->features[0] = (struct fact){xstrdup("instructions"), 812};
    ret->features[1] = (struct fact){xstrdup("vector_share"), 0.41};
    ret->seconds = 0.31;
    ret->toolchain = xstrdup("gcc 12.2.0 -O3 -march=x86-64-v4");
    ret->sandbox = xstrdup(sandbox_off ? "off" : "on");
    return ret;
}

static inline void made_start(struct made_sink *sink, const struct made_search *search)
{
    struct run_started started = {.problem = xstrdup("sgemm"),
                                  .generator = xstrdup("tunable"),
                                  .strategy = xstrdup("greedy"),
                                  .policy = xstrdup("threshold"),
                                  .confidence = 0.9,
                                  .audit = 0.1,
                                  .seed = search->seed,
                                  .budget_seconds = NAN,
                                  .wall_limit_seconds = NAN,
                                  .search = xstrdup("sgemm-5d1c"),
                                  .started_at = 1.79e9,
                                  .release = xstrdup("0.1.0"),
                                  .batch = 16,
                                  .command =
                                      xstrdup("kcast search problems/cpu/sgemm --run sgemm.run "
                                              "--confidence 0.9 --audit 0.1 --seed 7"),
                                  .problem_json = made_digest(1),
                                  .reference = made_digest(2),
                                  .baseline = made_digest(3)};
    made_emit(sink, RUN_STARTED, &run_started_message, &started);
    struct run_session session = {.pool = xstrdup("tcp://127.0.0.1:7410"),
                                  .worker = xstrdup("tcp://127.0.0.1:7411"),
                                  .device_class = xstrdup("cpu: AMD EPYC 9654, 1 core, gcc 12.2.0"),
                                  .device = xstrdup("cpu0"),
                                  .engine = xstrdup("static"),
                                  .at = 1.79e9,
                                  .host = xstrdup("lab3"),
                                  .sandbox = xstrdup(search->sandbox_off ? "off" : "on"),
                                  .toolchain = xstrdup("gcc 12.2.0"),
                                  .began_at = search->times ? sink->at - 2 : NAN};
    made_emit(sink, RUN_SESSION, &run_session_message, &session);
    struct run_baseline baseline = {made_compiled(VERDICT_NONE, 0, search->sandbox_off),
                                    made_times(sink, search, false)};
    made_emit(sink, RUN_BASELINE, &run_baseline_message, &baseline);
}

// The true log2 speedup of a point of the made-up space.
static inline double made_truth(double mb, double nb, double unroll, double noise)
{
    double y =
        1.55 - 0.22 * pow(mb - 2.2, 2) - 0.16 * pow(nb - 1.6, 2) - 0.35 * pow(unroll - 2.4, 2);
    return fmax(-3.2, y + 0.16 * noise);
}

static inline struct forecast *made_forecast(double mean, double p_correct, double incumbent,
                                             size_t rows)
{
    struct forecast *ret = xcalloc(1, sizeof *ret);
    double spread = 0.18 + 1.2 / (1 + 0.06 * (double)rows), sum = 0;
    ret->bins_count = BIN_COUNT;
    ret->bins = xcalloc(BIN_COUNT, sizeof(double));
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret->bins[i] = stats_normal_cdf((fmin(bin_edge[i + 1], 9) - mean) / spread) -
                       stats_normal_cdf((fmax(bin_edge[i], -9) - mean) / spread);
        sum += ret->bins[i];
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret->bins[i] /= sum;
    }
    ret->mean_log2 = mean;
    ret->p_correct = p_correct;
    ret->p_improves = p_correct * (1 - stats_normal_cdf((incumbent - mean) / spread));
    ret->confidence = rows < 20 ? 0 : fmax(ret->p_improves, 1 - ret->p_improves);
    ret->engine = xstrdup("static");
    ret->model_version = rows / 16;
    ret->trained_rows = rows;
    ret->expected_improvement = bins_expected_excess(ret->bins, incumbent);
    return ret;
}

static inline struct result *made_result(double truth, bool wrong, struct stats_rng *rng,
                                         bool sandbox_off)
{
    struct result *ret = xcalloc(1, sizeof *ret);
    double half = 0.004 + 0.05 * stats_rng_unit(rng);
    double y = truth + 0.4 * half * stats_rng_normal(rng);
    ret->verdict = wrong          ? (stats_rng_unit(rng) < 0.8 ? VERDICT_WRONG : VERDICT_CRASH)
                   : y - half > 0 ? VERDICT_FASTER
                   : y + half < 0 ? VERDICT_SLOWER
                                  : VERDICT_INCONCLUSIVE;
    if (wrong) {
        ret->reason = xstrdup("output C differs from the reference at element 31");
    } else {
        ret->speedup = made_estimate(y, half, 32);
        ret->baseline_ns = made_quantiles(812000);
        ret->candidate_ns = made_quantiles(812000 / exp2(y));
        ret->launches = 128;
        ret->control = made_estimate(0.002 * stats_rng_normal(rng), 0.004, 16);
    }
    ret->max_error = 2.31;
    ret->error_bound = 16;
    ret->seconds = xcalloc(1, sizeof *ret->seconds);
    *ret->seconds =
        (struct accounts){0.2, 0.3, 0.02, 0.04, 0.11, 0.3, 0.35 + 0.5 * stats_rng_unit(rng), NAN};
    ret->sandbox = xstrdup(sandbox_off ? "off" : "on");
    ret->trust = xstrdup("c, unsealed");
    ret->seed = stats_rng_u64(rng);
    ret->device = xstrdup("cpu0");
    ret->measured_at = 1.79e9;
    ret->clock = xstrdup("runner CPU time, checked against wall time");
    ret->overhead_ns = 412;
    ret->checks = 180;
    return ret;
}

struct made_state {
    struct made_sink *sink;
    const struct made_search *search;
    struct stats_rng rng;
    double incumbent;
    double seconds;
    size_t measured;
};

static inline void made_measure(struct made_state *state, uint64_t id, double truth, bool wrong,
                                bool audit)
{
    struct run_measured measured = {.candidate = id,
                                    .purpose = audit ? PURPOSE_AUDIT : PURPOSE_SEARCH,
                                    .times = made_times(state->sink, state->search, true)};
    measured.result = made_result(truth, wrong, &state->rng, state->search->sandbox_off);
    state->seconds += measured.result->seconds->held;
    state->measured++;
    bool better = measured.result->speedup && measured.result->speedup->lo > state->incumbent;
    made_emit(state->sink, RUN_MEASURED, &run_measured_message, &measured);
    if (!better) {
        return;
    }
    struct run_measured record = {.candidate = id,
                                  .purpose = PURPOSE_RECORD,
                                  .times = made_times(state->sink, state->search, true)};
    record.result = made_result(truth, false, &state->rng, state->search->sandbox_off);
    state->seconds += record.result->seconds->held;
    struct estimate *speedup = xcalloc(1, sizeof *speedup);
    *speedup = *record.result->speedup;
    made_emit(state->sink, RUN_MEASURED, &run_measured_message, &record);
    if (speedup->lo <= state->incumbent) {
        free(speedup);
        return;
    }
    state->incumbent = speedup->log2;
    struct run_incumbent incumbent = {id, speedup,        state->seconds, state->seconds * 1.7,
                                      id, state->measured};
    made_emit(state->sink, RUN_INCUMBENT, &run_incumbent_message, &incumbent);
}

static inline void made_decide(struct made_state *state, uint64_t id, double truth, bool wrong)
{
    uint64_t decision = DECISION_MEASURE;
    double propensity = 1, confidence = 0;
    if (state->search->forecasts) {
        double error = 0.12 + 0.9 / (1 + 0.08 * (double)state->measured);
        double belief = wrong ? 0.35 + 0.6 * stats_rng_unit(&state->rng)
                              : 0.75 + 0.25 * stats_rng_unit(&state->rng);
        struct run_forecast forecast = {.candidate = id,
                                        .incumbent_log2 = state->incumbent,
                                        .asked_at = state->search->times ? state->sink->at : NAN};
        forecast.forecast = made_forecast(truth + error * stats_rng_normal(&state->rng), belief,
                                          state->incumbent, state->measured);
        confidence = forecast.forecast->confidence;
        bool trust = confidence >= 0.9 && forecast.forecast->p_improves < 0.5;
        made_emit(state->sink, RUN_FORECAST, &run_forecast_message, &forecast);
        if (trust) {
            propensity = 0.1;
            decision = stats_rng_unit(&state->rng) < propensity ? DECISION_AUDIT : DECISION_TRUST;
        }
    }
    struct run_decided decided = {.candidate = id,
                                  .decision = decision,
                                  .propensity = propensity,
                                  .reason = xstrdup("confidence"),
                                  .confidence = confidence,
                                  .incumbent_log2 = state->incumbent,
                                  .threshold = NAN};
    made_emit(state->sink, RUN_DECIDED, &run_decided_message, &decided);
    if (decision != DECISION_TRUST) {
        made_measure(state, id, truth, wrong, decision == DECISION_AUDIT);
    }
}

static inline void made_candidate(struct made_state *state, uint64_t id)
{
    const struct made_search *search = state->search;
    struct stats_rng *rng = &state->rng;
    double mb = (double)stats_rng_below(rng, 5), nb = (double)stats_rng_below(rng, 5);
    double unroll = (double)stats_rng_below(rng, 4);
    bool broken = stats_rng_unit(rng) < 0.06, same = stats_rng_unit(rng) < 0.03,
         twin = stats_rng_unit(rng) < 0.04;
    bool wrong = search->all_wrong || stats_rng_unit(rng) < 0.08;
    char *source = search->source ? xstrdup(search->source)
                                  : xasprintf("// candidate %llu\n", (unsigned long long)id);
    struct run_proposed proposed = {.candidate = id, .source = made_digest(id + 10), .point = id};
    proposed.name = xasprintf("MB=%.0f NB=%.0f UNROLL=%.0f%s", exp2(mb + 3), exp2(nb + 3),
                              exp2(unroll), search->suffix ? search->suffix : "");
    proposed.params_count = 1;
    proposed.params = xcalloc(1, sizeof *proposed.params);
    proposed.params[0] = (struct fact){xstrdup("MB"), exp2(mb + 3)};
    if (state->sink->run) {
        struct err err = ERR_INIT;
        if (run_put_blob(state->sink->run, source, strlen(source), &proposed.source, &err) != 0) {
            state->sink->failed = true;
        }
    }
    free(source);
    if (same && id > 1) {
        proposed.duplicate_of = id - 1;
    }
    bool ends = proposed.duplicate_of != 0;
    made_emit(state->sink, RUN_PROPOSED, &run_proposed_message, &proposed);
    if (ends) {
        return;
    }
    struct run_compiled compiled = {.candidate = id,
                                    .duplicate_of = twin && id > 1 ? id - 1 : 0,
                                    .times = made_times(state->sink, search, false)};
    compiled.compiled =
        made_compiled(broken ? VERDICT_COMPILE_ERROR : VERDICT_NONE, id, search->sandbox_off);
    if (broken) {
        compiled.duplicate_of = 0;
    }
    twin = compiled.duplicate_of != 0;
    made_emit(state->sink, RUN_COMPILED, &run_compiled_message, &compiled);
    if (broken) {
        return;
    }
    if (twin) {
        struct run_decided decided = {.candidate = id,
                                      .decision = DECISION_REUSE,
                                      .propensity = NAN,
                                      .confidence = NAN,
                                      .incumbent_log2 = state->incumbent,
                                      .threshold = NAN};
        made_emit(state->sink, RUN_DECIDED, &run_decided_message, &decided);
        return;
    }
    made_decide(state, id, made_truth(mb, nb, unroll, stats_rng_normal(rng)), wrong);
}

static inline bool made_run(struct made_sink *sink, const struct made_search *search)
{
    struct made_state state = {.sink = sink, .search = search};
    stats_rng_init(&state.rng, search->seed, 1);
    sink->at = 1.79e9;
    made_start(sink, search);
    for (uint64_t id = 1; id <= search->candidates; id++) {
        made_candidate(&state, id);
    }
    if (search->finished) {
        struct run_finished finished = {xstrdup("the space is exhausted"), sink->at, 100};
        made_emit(sink, RUN_FINISHED, &run_finished_message, &finished);
    }
    return !sink->failed;
}

#endif

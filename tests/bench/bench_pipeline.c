// How busy one search keeps pools of 1, 2, 4 and 8 devices: in simulated time, of a space that is
// made up, with 16 compile slots for each device. Service times are drawn anew for each candidate
// and spread as those of an H200 (log-normal); a worker answers as replay/sim_worker.h says. Each
// pool is searched twice: with two batches under way, and with what client/search/pipeline_width.h
// settles for the pool. Decisions, and so the figures, depend on nothing else.
//  bench_pipeline [COMPILE [MEASURE [CANDIDATES]]]     seconds of a compilation and a measurement;
//                                                      default: 1 0.1 600
#include "client/run/run.h"
#include "client/search/pipeline_width.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "replay/sim_search.h"
#include "replay/sim_worker.h"
#include "tests/bench/samples.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 8       // values of each parameter of the space
#define PARAMETERS 4 // SIDE to the power of it are the points
#define POINTS ((uint64_t)SIDE * SIDE * SIDE * SIDE)
#define SLOTS 16    // compile slots for each device
#define SEEDS 4     // searches of each row
#define SPREAD 0.35 // standard deviation of the logarithm of service times
#define STREAM_COMPILE 0x636f6d70ULL
#define STREAM_MEASURE 0x6d656173ULL

// Means, in seconds.
struct service {
    double compile, measure;
};

// A log-normal time with this mean.
static double service_seconds(double mean, uint64_t stream, uint64_t point)
{
    struct stats_rng rng;

    stats_rng_init(&rng, point, stream);
    return mean * exp(SPREAD * stats_rng_normal(&rng) - SPREAD * SPREAD / 2);
}

// A hill with its top at 5 5 5 5, whose slope differs with the parameter.
static double speedup_log2(const int value[static PARAMETERS])
{
    double log2 = 1.5;

    for (int i = 0; i < PARAMETERS; i++) {
        log2 -= 0.03 * (i + 1) * (value[i] - 5) * (value[i] - 5);
    }
    return log2;
}

static struct result *make_result(double log2, double held)
{
    struct result *result = xmalloc(sizeof(*result));

    message_init(&result_message, result);
    result->verdict = log2 > 0 ? VERDICT_FASTER : VERDICT_SLOWER;
    result->speedup = xmalloc(sizeof(*result->speedup));
    message_init(&estimate_message, result->speedup);
    *result->speedup = (struct estimate){.log2 = log2, .lo = log2 - 0.01, .hi = log2 + 0.01};
    result->seconds = xmalloc(sizeof(*result->seconds));
    message_init(&accounts_message, result->seconds);
    result->seconds->held = held;
    return result;
}

static void make_candidate(struct space_candidate *ret, uint64_t point,
                           const struct service *service)
{
    static const char *const names[PARAMETERS] = {"A", "B", "C", "D"};
    int value[PARAMETERS];

    message_init(&space_candidate_message, ret);
    ret->name = xasprintf("point %llu", (unsigned long long)point);
    ret->params = xcalloc(PARAMETERS, sizeof(*ret->params));
    ret->params_count = PARAMETERS;
    uint64_t left = point;
    for (int i = 0; i < PARAMETERS; i++, left /= SIDE) {
        value[i] = (int)(left % SIDE);
        ret->params[i] = (struct fact){.name = xstrdup(names[i]), .value = value[i]};
    }
    ret->compiled = xmalloc(sizeof(*ret->compiled));
    message_init(&compiled_message, ret->compiled);
    ret->compiled->seconds = service_seconds(service->compile, STREAM_COMPILE, point);
    ret->result =
        make_result(speedup_log2(value), service_seconds(service->measure, STREAM_MEASURE, point));
}

static struct recorded_space *make_space(const struct service *service)
{
    struct space space = {.candidate = xcalloc(POINTS, sizeof(*space.candidate))};
    struct recorded_space *recorded;
    struct err err = ERR_INIT;

    message_init(&space_head_message, &space.head);
    space.head.format = SPACE_FORMAT;
    space.head.problem = xstrdup("hill");
    space.head.device_class = xstrdup("simulated");
    space.head.candidates = POINTS;
    for (uint64_t point = 0; point < POINTS; point++) {
        make_candidate(&space.candidate[point], point, service);
    }
    if (recorded_space_create(&recorded, &space, "hill", &err) != 0) {
        die(&err);
    }
    return recorded;
}

// Searches once and adds to the times.
static void search_once(const struct sim_search_config *config, unsigned devices, double *wall,
                        double *busy)
{
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon = sim_daemon_create(
        sim, &(struct sim_daemon_config){.devices = devices, .compile_slots = SLOTS * devices});
    struct sim_search *search;
    struct err err = ERR_INIT;
    int rc = sim_search_create(&search, sim, sim_daemon, config, &err);

    while (rc == 0 && !sim_search_done(search) && sim_step(sim)) {
        rc = sim_search_advance(search, &err);
    }
    if (rc != 0) {
        die(&err);
    }
    struct search_outcome outcome;
    sim_search_outcome(search, &outcome);
    *wall += outcome.seconds;
    *busy += outcome.device_seconds;
    sim_search_free(search);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
}

// Prints wall time and utilisation of searches with this width.
static void print_row(const struct recorded_space *recorded, const char *policy, unsigned devices,
                      uint64_t candidates, struct pipeline_width width)
{
    double wall = 0, busy = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_search_config config = {
            .recorded = recorded,
            .strategy = "greedy",
            .policy = policy,
            .forecaster = policy_find(policy)->blind ? SIM_FORECASTER_NONE : SIM_FORECASTER_STATIC,
            .confidence = 0.9,
            .audit = 0.05,
            .seed = seed,
            .budget_seconds = NAN,
            .candidates = candidates,
            .batch = width.batch,
            .wide = width.wide,
            .widest = width.widest,
            .lag = width.lag};
        search_once(&config, devices, &wall, &busy);
    }
    printf("%-10s %7u  batches of %2llu, %2llu under way  %8.1f s  %5.1f %% busy\n", policy,
           devices, (unsigned long long)width.wide, (unsigned long long)width.lag, wall / SEEDS,
           100 * busy / (wall * devices));
}

static void print_pool(const struct recorded_space *recorded, const char *name, unsigned devices,
                       uint64_t candidates)
{
    const struct policy *policy = policy_find(name);
    struct pipeline_width narrow = {.batch = 4, .lag = RUN_LAG_DEFAULT}, settled = {.batch = 4};

    pipeline_width_settle(&narrow, policy, &(struct pipeline_capacity){.devices = 1});
    pipeline_width_settle(
        &settled, policy,
        &(struct pipeline_capacity){.devices = devices,
                                    .compile_slots = (uint64_t)SLOTS * devices,
                                    .worker_seconds = policy->blind ? NAN : SIM_WORKER_FORECAST_S,
                                    .compares_points = !policy->blind});
    print_row(recorded, name, devices, candidates, narrow);
    print_row(recorded, name, devices, candidates, settled);
}

int main(int argc, char **argv)
{
    static const char *const policies[] = {"all", "rank", "threshold"};
    struct service service = {.compile = 1, .measure = 0.1};
    double candidates = 600;
    struct err err = ERR_INIT;
    int rc = argc > 1 ? parse_f64(&service.compile, argv[1], 1e-3, 1e3, "COMPILE", &err) : 0;

    if (rc == 0 && argc > 2) {
        rc = parse_f64(&service.measure, argv[2], 1e-3, 1e3, "MEASURE", &err);
    }
    if (rc == 0 && argc > 3) {
        rc = parse_f64(&candidates, argv[3], 1, (double)POINTS, "CANDIDATES", &err);
    }
    if (rc != 0) {
        die(&err);
    }
    printf("compiling %g s, measuring %g s, forecasts of a batch %g s, telling outcomes %g s; %g "
           "candidates\n",
           service.compile, service.measure, SIM_WORKER_FORECAST_S, SIM_WORKER_OBSERVE_S,
           candidates);
    struct recorded_space *recorded = make_space(&service);
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        for (unsigned devices = 1; devices <= 8; devices *= 2) {
            print_pool(recorded, policies[i], devices, (uint64_t)candidates);
        }
    }
    recorded_space_free(recorded);
    return 0;
}

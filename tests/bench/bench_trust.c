// What a search loses and saves by trusting forecasters whose skill is known: searches of recorded
// spaces in simulated time, with the forecasters of tests/bench/scripted_forecaster.h. A second
// search meets what the worker has learnt in a first one. Each scenario is run by two rules:
// `calls`, by which confidence in the forecaster's past calls was enough, and `skill`
// (client/policy/trust.h). Everything is compared with the policy `all` with the same seed. Printed
// for each scenario, over all spaces and seeds: the share of improvers that were not measured (a
// candidate that would have beaten the incumbent of its decision), the worst best speedup and the
// mean one as parts of policy all's, how many searches ended with no kernel, the parts of
// measurements and of device time, and, where the forecaster drifts, how many measured candidates
// later trust had gone (median, most).
//  bench_trust [SEEDS [CANDIDATES [POLICY]]] SPACE...     default: 10 150 threshold
// $BENCH_TRUST_ONLY is a list of scenarios by their number, each between spaces (" 0 15 "), and
// $BENCH_TRUST_RULE one of the rules. $BENCH_TRUST_FIRST is the first seed (1).
#include "client/policy/policy.h"
#include "client/policy/trust.h"
#include "client/search/pipeline_width.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "replay/sim_search.h"
#include "replay/sim_worker.h"
#include "tests/bench/samples.h"
#include "tests/bench/scripted_forecaster.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACES_MAX 32
#define LAG_MOST 24  // candidates that a decision may be ahead of the outcomes that it sees
#define NONE SCRIPTS // no first search

struct scenario {
    enum script first, second; // scripts of the two searches; first NONE: there is only one
    enum script_engine engine;
    const char *second_model; // NULL: the first one's name
};

static const struct scenario scenarios[] = {
    {NONE, SCRIPT_GOOD, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_EXACT, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_NOISY, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_FAST, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_SLOW, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_ADVERSARY, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_CONSTANT, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_NOISE, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_TO_ADVERSARY, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_TO_NOISE, SCRIPT_LLM, NULL},
    {NONE, SCRIPT_TO_CONSTANT, SCRIPT_LLM, NULL},
    {SCRIPT_GOOD, SCRIPT_GOOD, SCRIPT_LLM, NULL},
    {SCRIPT_EXACT, SCRIPT_EXACT, SCRIPT_LLM, NULL},
    {SCRIPT_NOISY, SCRIPT_NOISY, SCRIPT_LLM, NULL},
    {SCRIPT_FAST, SCRIPT_FAST, SCRIPT_LLM, NULL},
    {SCRIPT_SLOW, SCRIPT_SLOW, SCRIPT_LLM, NULL},
    {SCRIPT_CONSTANT, SCRIPT_CONSTANT, SCRIPT_LLM, NULL},
    {SCRIPT_NOISE, SCRIPT_NOISE, SCRIPT_LLM, NULL},
    {SCRIPT_ADVERSARY, SCRIPT_ADVERSARY, SCRIPT_LLM, NULL},
    {SCRIPT_GOOD, SCRIPT_ADVERSARY, SCRIPT_LLM, NULL},
    {SCRIPT_GOOD, SCRIPT_NOISE, SCRIPT_LLM, NULL},
    {SCRIPT_GOOD, SCRIPT_CONSTANT, SCRIPT_LLM, NULL},
    {SCRIPT_GOOD, SCRIPT_SLOW, SCRIPT_LLM, NULL},
    {SCRIPT_GOOD, SCRIPT_ADVERSARY, SCRIPT_LLM, "llm another"},
    {NONE, SCRIPT_GOOD, SCRIPT_STATIC, NULL},
    {SCRIPT_GOOD, SCRIPT_GOOD, SCRIPT_STATIC, NULL},
    {NONE, SCRIPT_CONSTANT, SCRIPT_BOTH, NULL},
    {SCRIPT_GOOD, SCRIPT_GOOD, SCRIPT_BOTH, NULL},
    {SCRIPT_CONSTANT, SCRIPT_CONSTANT, SCRIPT_BOTH, NULL},
    {SCRIPT_GOOD, SCRIPT_ADVERSARY, SCRIPT_BOTH, NULL},
};

static const char *const rule_name[] = {"calls", "skill"};

struct settings {
    uint64_t seeds, candidates, first; // first: the first seed
    const char *policy;
    struct recorded_space *space[SPACES_MAX];
    size_t spaces;
};

// Sums over searches.
struct total {
    size_t searches, empty, found; // searches; without a kernel; of these, where policy all had one
    uint64_t improvers, missed, considered, measured, trusted;
    double part, worst, device; // sum and least of the best's parts; sum of the device time's parts
    double *gone;               // measured candidates until trust had gone
    size_t gone_count, never;
};

static void check(int rc, const struct err *err)
{
    if (rc != 0) {
        die(err);
    }
}

static struct sim_search_config config_of(const struct settings *settings,
                                          const struct recorded_space *space, const char *policy,
                                          uint64_t seed)
{
    struct sim_search_config config = {.recorded = space,
                                       .strategy = "greedy",
                                       .policy = policy,
                                       .confidence = 0.9,
                                       .audit = 0.05,
                                       .share = 0.25,
                                       .alpha = 0.1,
                                       .delta = 0.1,
                                       .seed = seed,
                                       .budget_seconds = NAN,
                                       .candidates = settings->candidates,
                                       .batch = 4};
    struct pipeline_capacity capacity = {
        .devices = 1, .compile_slots = 14, .worker_seconds = SIM_WORKER_FORECAST_S};
    struct pipeline_width width = {.batch = config.batch};
    pipeline_width_settle(&width, policy_find(policy), &capacity);
    config.batch = width.batch;
    config.wide = width.wide;
    config.lag = width.lag;
    return config;
}

// Of a forecaster that drifts: how many candidates were measured from its change until its
// forecasts were acted on for the last time before trust had gone, or to the end. Outcomes reach
// decisions some batches later, so that a little is trusted after what ended the trust. False where
// nothing was trusted when it changed.
static bool measured_until_gone(const struct run_state *run_state, size_t *ret)
{
    uint64_t answers = 0, change = 0, gone = 0;
    for (uint64_t id = 1; id <= run_state->candidate_count && gone == 0; id++) {
        const struct forecast *forecast = run_state->candidate[id - 1].forecast;
        answers += forecast ? 1 : 0;
        if (answers < SCRIPT_DRIFT || !forecast) {
            continue;
        }
        char forecaster[TRUST_FORECASTER_MAX];
        trust_forecaster(forecast, forecaster);
        bool trusted = !isnan(trust_judge(run_state, id, forecaster).cut);
        if (change == 0 && !trusted) {
            return false;
        }
        change = change == 0 ? id : change;
        gone = trusted ? 0 : id;
    }
    size_t measured = 0;
    *ret = 0;
    uint64_t end = gone > 0 ? gone + LAG_MOST : run_state->candidate_count;
    for (uint64_t id = change + 1; id <= end && id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *c = &run_state->candidate[id - 1];
        measured += c->result ? 1 : 0;
        if (c->decided.decision == DECISION_TRUST || c->decided.decision == DECISION_AUDIT) {
            *ret = measured;
        }
    }
    return change > 0;
}

// Runs one search. forecaster may be NULL: nobody forecasts.
static void search(const struct sim_search_config *config, struct scripted_forecaster *forecaster,
                   enum script script, const char *model, struct search_outcome *ret,
                   size_t *ret_gone, bool *ret_was)
{
    struct err err = ERR_INIT;
    struct sim *sim = sim_create();
    const struct sim_daemon_config one = {.devices = 1, .compile_slots = 14};
    struct sim_daemon *daemon = sim_daemon_create(sim, &one);
    struct sim_search_config with = *config;
    if (forecaster) {
        scripted_forecaster_begin(forecaster, sim, script, model, config->seed);
        with.forecasts = scripted_forecaster_service(forecaster);
    }
    struct sim_search *run;
    check(sim_search_create(&run, sim, daemon, &with, &err), &err);
    while (!sim_search_done(run) && sim_step(sim)) {
        check(sim_search_advance(run, &err), &err);
    }
    sim_search_outcome(run, ret);
    *ret_was = measured_until_gone(sim_search_run_state(run), ret_gone);
    sim_search_free(run);
    sim_daemon_free(daemon);
    sim_free(sim);
}

static void add(struct total *total, const struct search_outcome *o,
                const struct search_outcome *all)
{
    double part = exp2(o->best_log2 - all->best_log2);
    total->searches++;
    total->found += all->best_log2 > 0;
    total->empty += all->best_log2 > 0 && o->best_log2 <= 0;
    total->improvers += o->improvers;
    total->missed += o->missed;
    total->considered += o->considered;
    total->measured += o->measured;
    total->trusted += o->trusted;
    total->part += part;
    total->worst = total->searches == 1 ? part : fmin(total->worst, part);
    total->device += o->device_seconds / all->device_seconds;
}

static void run_scenario(const struct settings *settings, const struct scenario *scenario,
                         bool by_skill, const struct search_outcome *all, struct total *total)
{
    bool drifts = scenario->second >= SCRIPT_TO_ADVERSARY;
    for (size_t i = 0; i < settings->spaces; i++) {
        for (uint64_t seed = settings->first; seed < settings->first + settings->seeds; seed++) {
            struct scripted_forecaster *f =
                scripted_forecaster_create(settings->space[i], scenario->engine);
            struct search_outcome outcome;
            size_t gone;
            bool was;
            if (scenario->first != NONE) {
                struct sim_search_config first =
                    config_of(settings, settings->space[i], settings->policy, seed + 1000);
                first.trust_by_skill = by_skill;
                search(&first, f, scenario->first, "llm scripted", &outcome, &gone, &was);
            }
            struct sim_search_config config =
                config_of(settings, settings->space[i], settings->policy, seed);
            config.trust_by_skill = by_skill;
            search(&config, f, scenario->second,
                   scenario->second_model ? scenario->second_model : "llm scripted", &outcome,
                   &gone, &was);
            add(total, &outcome, &all[i * settings->seeds + seed - settings->first]);
            if (drifts && was) {
                total->gone = xrealloc(total->gone, total->gone_count + 1, sizeof(*total->gone));
                total->gone[total->gone_count++] = (double)gone;
            }
            scripted_forecaster_free(f);
        }
    }
}

static void print(const struct scenario *scenario, bool by_skill, struct total *total)
{
    double n = (double)total->searches;
    char who[64];
    (void)snprintf(who, sizeof(who), "%s%s%s%s",
                   scenario->first == NONE ? "" : script_name[scenario->first],
                   scenario->first == NONE ? "" : " | ", script_name[scenario->second],
                   scenario->second_model ? ", renamed" : "");
    printf("%-6s %-32s %-5s lost %4llu of %4llu (%5.1f %%), best %.3f mean %.3f worst, %2zu empty, "
           "measured %5.1f %%, device %.3f",
           script_engine_name[scenario->engine],
           scenario->engine == SCRIPT_STATIC ? scenario->first == NONE ? "" : "second" : who,
           rule_name[by_skill], (unsigned long long)total->missed,
           (unsigned long long)total->improvers,
           100 * (double)total->missed / fmax((double)total->improvers, 1), total->part / n,
           total->worst, total->empty,
           100 * (double)total->measured / fmax((double)(total->measured + total->trusted), 1),
           total->device / n);
    if (total->gone_count > 0) {
        stats_sort(total->gone, total->gone_count);
        printf(", gone after %.0f median %.0f most of %zu",
               stats_quantile(total->gone, total->gone_count, 0.5),
               total->gone[total->gone_count - 1], total->gone_count);
    }
    printf("\n");
    free(total->gone);
}

static struct search_outcome *run_all(const struct settings *settings)
{
    struct search_outcome *all = xcalloc(settings->spaces * settings->seeds, sizeof(*all));
    for (size_t i = 0; i < settings->spaces; i++) {
        for (uint64_t seed = settings->first; seed < settings->first + settings->seeds; seed++) {
            // As wide as the policy that is compared with it, so that it considers as many at a
            // time.
            struct sim_search_config config =
                config_of(settings, settings->space[i], settings->policy, seed);
            size_t gone;
            bool was;
            config.policy = "all";
            search(&config, NULL, NONE, NULL, &all[i * settings->seeds + seed - settings->first],
                   &gone, &was);
        }
    }
    return all;
}

int main(int argc, char **argv)
{
    struct settings settings = {.seeds = 10, .candidates = 150, .first = 1, .policy = "threshold"};
    struct err err = ERR_INIT;
    int at = 1;
    if (at < argc && parse_u64(&settings.seeds, argv[at], 1, 1000, "SEEDS", NULL) == 0) {
        at++;
    }
    if (at < argc &&
        parse_u64(&settings.candidates, argv[at], 1, 100000, "CANDIDATES", NULL) == 0) {
        at++;
    }
    if (at < argc && policy_find(argv[at])) {
        settings.policy = argv[at++];
    }
    for (; at < argc && settings.spaces < SPACES_MAX; at++) {
        struct space space;
        check(space_read(&space, argv[at], &err), &err);
        check(recorded_space_create(&settings.space[settings.spaces++], &space, argv[at], &err),
              &err);
    }
    const char *first = getenv("BENCH_TRUST_FIRST");
    if (first) {
        check(parse_u64(&settings.first, first, 1, 100000, "BENCH_TRUST_FIRST", &err), &err);
    }
    if (settings.spaces == 0) {
        fprintf(stderr, "usage: bench_trust [SEEDS [CANDIDATES [POLICY]]] SPACE...\n");
        return 2;
    }
    const char *only = getenv("BENCH_TRUST_ONLY"), *rule = getenv("BENCH_TRUST_RULE");
    struct search_outcome *all = run_all(&settings);
    for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
        char number[16];
        (void)snprintf(number, sizeof(number), " %zu ", i);
        if (only && !strstr(only, number)) {
            continue;
        }
        for (int by_skill = 0; by_skill < 2; by_skill++) {
            if (rule && strcmp(rule, rule_name[by_skill]) != 0) {
                continue;
            }
            struct total total = {.searches = 0};
            run_scenario(&settings, &scenarios[i], by_skill, all, &total);
            print(&scenarios[i], by_skill, &total);
            fflush(stdout);
        }
    }
    free(all);
    for (size_t i = 0; i < settings.spaces; i++) {
        recorded_space_free(settings.space[i]);
    }
    return 0;
}

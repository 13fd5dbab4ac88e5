// kcast-replay, which `kcast replay` runs: it searches recorded spaces again in simulated time.
// This file has the options and turns them into the tasks of replay/tasks.h.
#include "client/output.h"
#include "client/policy/costs.h"
#include "client/policy/policy.h"
#include "client/policy/risk.h"
#include "client/propose/strategy.h"
#include "client/show.h"
#include "client/space/space.h"
#include "client/space/space_warm.h"
#include "client/status_line.h"
#include "common/clock.h"
#include "common/err.h"
#include "common/exit.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/options.h"
#include "common/parse.h"
#include "common/printable.h"
#include "common/version.h"
#include "common/wrap.h"
#include "replay/summary.h"
#include "replay/summary_markdown.h"
#include "replay/tasks.h"
#include "replay/variants.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPACES_MAX 256

struct settings {
    char *policy, *strategy, *forecasters, *methods, *sequences, *against, *budget, *weights, *warm;
    double confidence, audit, share;
    char *guarantee;
    double alpha, delta;
    uint64_t seeds, first_seed, candidates, measurements, batch, wide, lag, devices, compile_slots,
        searches, jobs;
    bool json, markdown, quiet, help, version;
};

#define ROW(field) offsetof(struct settings, field)
static const struct option_row option_table[] = {
    {"policy", 'p', OPTION_TEXT, ROW(policy), "LIST", "all,rank", 0, 0, NULL,
     "policies of `kcast search`, separated by commas; \"all\" does without a surrogate"},
    {"strategy", 0, OPTION_TEXT, ROW(strategy), "LIST", STRATEGY_DEFAULT, 0, 0, NULL,
     "strategies of `kcast search`; every policy with every strategy is a variant, the first one "
     "the "
     "control"},
    {"forecaster", 0, OPTION_TEXT, ROW(forecasters), "LIST", "static", 0, 0, NULL,
     "who forecasts, separated by commas, each a variant of every policy but \"all\": static, the "
     "model "
     "of `kcast-worker`; perfect, one that knows the space, as a limit of what forecasts can "
     "bring"},
    {"peers", 0, OPTION_TEXT, ROW(methods), "LIST", NULL, 0, 0, NULL,
     "others' searches, more variants: tvm, AutoTVM's rule by features of what was compiled; "
     "tvm-knobs, the "
     "same by parameters alone; tenth, a tenth of the candidates, half of it at random and half by "
     "forecast, whatever --budget"},
    {"orders", 0, OPTION_TEXT, ROW(sequences), "FILE", NULL, 0, 0, NULL,
     "more variants: in which order other programs measured, as scripts/kernel-tuner-orders.py "
     "writes "
     "it"},
    {"against", 0, OPTION_TEXT, ROW(against), "LIST", NULL, 0, 0, NULL,
     "variants that --markdown compares each variant with; default: the control"},
    {"confidence", 'c', OPTION_F64, ROW(confidence), "P", NULL, 0.001, 1, NULL,
     "as for `kcast search`"},
    {"weights", 0, OPTION_TEXT, ROW(weights), "LIST", NULL, 0, 0, NULL, "as for `kcast search`"},
    {"audit", 0, OPTION_F64, ROW(audit), "SHARE", "0.05", 0, 1, NULL, "as for `kcast search`"},
    {"share", 0, OPTION_F64, ROW(share), "SHARE", "0.15", 0.001, 1, NULL, "as for `kcast search`"},
    {"guarantee", 0, OPTION_CHOICE, ROW(guarantee), "KIND", RISK_GUARANTEE_DEFAULT, 0, 0,
     RISK_GUARANTEES, "as for `kcast search`, of policy risk"},
    {"alpha", 0, OPTION_F64, ROW(alpha), "SHARE", "0.1", 0.001, 0.5, NULL, "as for `kcast search`"},
    {"delta", 0, OPTION_F64, ROW(delta), "P", "0.1", 0.001, 0.5, NULL, "as for `kcast search`"},
    {"warm", 0, OPTION_TEXT, ROW(warm), "SPACE,…", NULL, 0, 0, NULL,
     "as for `kcast search`; the vendor is that of the first space's device"},
    {"budget", 'b', OPTION_TEXT, ROW(budget), "TIME|SHARE%", NULL, 0, 0, NULL,
     "device time of a search; \"10%\" is a tenth of what measuring the whole space takes; "
     "default: "
     "no limit"},
    {"candidates", 'n', OPTION_U64, ROW(candidates), "N", "0", 0, 1e9, NULL,
     "consider at most N candidates; 0: all there are"},
    {"measurements", 'm', OPTION_U64, ROW(measurements), "N", "0", 0, 1e9, NULL,
     "measure at most N candidates; 0: no limit"},
    {"batch", 0, OPTION_U64, ROW(batch), "N", "4", 1, 64, NULL, "as for `kcast search`"},
    {"wide", 0, OPTION_U64, ROW(wide), "N", "0", 0, 64, NULL,
     "as for `kcast search`; 0: its default"},
    {"lag", 0, OPTION_U64, ROW(lag), "N", "0", 0, RUN_LAG_MAX, NULL,
     "as for `kcast search`; 0: its default"},
    {"seeds", 0, OPTION_U64, ROW(seeds), "N", "30", 1, 100000, NULL,
     "searches of each variant on each space"},
    {"seed", 's', OPTION_U64, ROW(first_seed), "N", "1", 0, 1e15, NULL, "the first of them"},
    {"searches", 0, OPTION_U64, ROW(searches), "N", "1", 1, 64, NULL,
     "searches of the same space at the same time, which share the devices"},
    {"devices", 0, OPTION_U64, ROW(devices), "N", "1", 1, 1024, NULL, "simulated devices"},
    {"compile-slots", 0, OPTION_U64, ROW(compile_slots), "N", "14", 1, 1024, NULL,
     "simulated compilations at once"},
    {"jobs", 'j', OPTION_U64, ROW(jobs), "N", "0", 0, 1024, NULL,
     "processes; 0: one per processor; outcomes do not depend on it"},
    {"json", 0, OPTION_FLAG, ROW(json), NULL, NULL, 0, 0, NULL,
     "print one JSON object per search and line on stdout instead of the table"},
    {"markdown", 0, OPTION_FLAG, ROW(markdown), NULL, NULL, 0, 0, NULL,
     "print the tables as Markdown"},
    {"quiet", 'q', OPTION_FLAG, ROW(quiet), NULL, NULL, 0, 0, NULL, "no progress on stderr"},
    {"help", 'h', OPTION_FLAG, ROW(help), NULL, NULL, 0, 0, NULL, "print this help"},
    {"version", 'V', OPTION_FLAG, ROW(version), NULL, NULL, 0, 0, NULL, "print the version"},
    {.name = NULL},
};

static void print_help(void)
{
    wrap_print(
        stdout,
        "usage: kcast replay [OPTION…] SPACE…\n\n"
        "Search spaces again, in simulated time with recorded costs, many times.\n\noptions:\n");
    options_print(option_table, stdout);
}

// Reads a budget, either a share such as "10%" or a time such as "5m".
static int read_budget(const char *text, struct tasks *tasks, struct err *err)
{
    size_t len = text ? strlen(text) : 0;

    tasks->budget_share = tasks->common.budget_seconds = NAN;
    if (len == 0) {
        return 0;
    }
    int rc;
    if (text[len - 1] == '%') {
        char *number = xstrndup(text, len - 1);

        rc = parse_f64(&tasks->budget_share, number, 0.001, 1e6, "--budget", err);
        tasks->budget_share /= 100;
        free(number);
    } else {
        uint64_t ns;

        rc = parse_duration(&ns, text, "--budget", err);
        tasks->common.budget_seconds = rc == 0 ? (double)ns * 1e-9 : NAN;
    }
    if (rc != 0) {
        err->code = ERR_USAGE;
        return ERR_USAGE;
    }
    return 0;
}

static int read_spaces(char **path, size_t count, struct recorded_space **ret, struct err *err)
{
    if (count == 0 || count > SPACES_MAX) {
        return err_set(err, ERR_USAGE,
                       "1 to %d spaces are to be named; `kcast replay --help` says "
                       "more",
                       SPACES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const char *base = file_base_name(path[i]), *dot = strrchr(base, '.');
        char *name = xstrndup(base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
        struct space space;
        int rc = space_read(&space, path[i], err);

        if (rc == 0) {
            rc = recorded_space_create(&ret[i], &space, name, err);
        }
        free(name);
        if (rc != 0) {
            return rc;
        }
        if (!recorded_space_has_costs(ret[i])) {
            printable_printf(
                stderr, "kcast replay: %s has no costs; every measurement is taken to need %g s\n",
                path[i], RECORDED_SPACE_COST_S);
        }
    }
    return 0;
}

// Makes the variants and finds those that others are compared with. The caller frees
// *ret_sequences, also after a failure.
static int choose_variants(const struct settings *settings, struct variant *variant,
                           struct tasks *tasks, struct against *ret,
                           struct sequences **ret_sequences, struct err *err)
{
    struct variants_wanted wanted = {.policies = settings->policy,
                                     .strategies = settings->strategy,
                                     .forecasters = settings->forecasters,
                                     .methods = settings->methods};
    int rc = settings->sequences ? sequences_read(ret_sequences, settings->sequences, err) : 0;

    if (rc != 0) {
        return rc;
    }
    wanted.sequences = tasks->sequences = *ret_sequences;
    rc = variants_make(&wanted, variant, &tasks->variants, err);
    return rc != 0 ? rc : against_find(ret, settings->against, variant, tasks->variants, err);
}

// What is said on stderr while searches are replayed.
struct progress {
    struct status_line *line;
    uint64_t began_ns;
};

static void on_tick(void *owner, size_t done, size_t total)
{
    const struct progress *progress = owner;
    char passed[32], clauses[128];

    if (status_line_due(progress->line)) {
        show_seconds(clock_seconds(clock_now_ns(&clock_system) - progress->began_ns), passed,
                     sizeof(passed));
        (void)snprintf(clauses, sizeof(clauses), "replayed %zu of %zu searches\n%s", done, total,
                       passed);
        status_line_write(progress->line, clauses);
    }
}

static int run_tasks(struct tasks *tasks, bool quiet, struct search_outcome *outcome,
                     struct err *err)
{
    struct progress progress = {.line = status_line_create(stderr, quiet, &clock_system),
                                .began_ns = clock_now_ns(&clock_system)};

    tasks->on_tick = on_tick;
    tasks->owner = &progress;
    int rc = tasks_run(tasks, outcome, err);
    status_line_free(progress.line);
    return rc;
}

static int replay(const struct settings *settings, char **path, size_t count, struct err *err)
{
    struct recorded_space *space[SPACES_MAX] = {NULL};
    struct variant variant[TASKS_VARIANTS_MAX];
    struct search_outcome *outcome = NULL;
    struct tasks tasks = {
        .space = space,
        .spaces = count,
        .variant = variant,
        .seeds = settings->seeds,
        .first_seed = settings->first_seed,
        .searches = settings->searches,
        .sim_daemon = {.devices = (unsigned)settings->devices,
                       .compile_slots = (unsigned)settings->compile_slots},
        .common = {.confidence =
                       settings->confidence > 0 ? settings->confidence : POLICY_CONFIDENCE,
                   .end_confidence = settings->confidence > 0 ? settings->confidence : NAN,
                   .audit = settings->audit,
                   .share = settings->share,
                   .guarantee = settings->guarantee,
                   .alpha = settings->alpha,
                   .trust_by_skill = true,
                   .rules = RUN_RULES_NOW,
                   .delta = settings->delta,
                   .measurements = settings->measurements,
                   .candidates = settings->candidates,
                   .batch = settings->batch,
                   .wide = settings->wide,
                   .lag = settings->lag},
        .processes = settings->jobs > 0 ? settings->jobs : (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
    };
    struct sequences *sequences = NULL;
    struct bytes warm = {0};
    struct against against = {0};
    int rc = choose_variants(settings, variant, &tasks, &against, &sequences, err);

    if (rc != 0) {
        goto out;
    }
    for (size_t i = 0; i < tasks.variants; i++) {
        if (!variant[i].method && policy_find(variant[i].policy)->certifies) {
            rc = risk_check(settings->guarantee, settings->audit, err);
            if (rc != 0) {
                goto out;
            }
        }
    }
    rc = cost_weights_read(&tasks.common.weights, settings->weights, err);
    if (rc != 0) {
        goto out;
    }
    rc = read_budget(settings->budget, &tasks, err);
    if (rc != 0) {
        goto out;
    }
    rc = read_spaces(path, count, space, err);
    if (rc != 0) {
        goto out;
    }
    if (settings->warm) {
        rc = space_warm_text(&warm, settings->warm,
                             recorded_space_data(space[0])->head.device_class, NULL, err);
        if (rc != 0) {
            goto out;
        }
        tasks.common.warm = &warm;
    }
    outcome = xcalloc(tasks_count(&tasks), sizeof(*outcome));
    rc = run_tasks(&tasks, settings->quiet, outcome, err);
    if (rc != 0) {
        goto out;
    }
    if (settings->markdown) {
        summary_markdown(&tasks, outcome, &against, stdout);
    } else {
        (settings->json ? summary_json : summary_print)(&tasks, outcome, stdout);
    }
out:
    sequences_free(sequences);
    bytes_clear(&warm);
    free(outcome);
    for (size_t i = 0; i < count && i < SPACES_MAX; i++) {
        recorded_space_free(space[i]);
    }
    return rc;
}

int main(int argc, char **argv)
{
    file_open_standard();
    struct settings settings = {.policy = NULL};
    struct err err = ERR_INIT;
    char **argument = NULL;
    size_t count = 0;
    bool json = output_wants_json(argc, argv);
    int rc = options_defaults(option_table, &settings, &err);

    if (rc == 0) {
        rc = options_parse(option_table, &settings, argc, argv, &argument, &count, &err);
    }
    if (rc == 0 && settings.help) {
        print_help();
    } else if (rc == 0 && settings.version) {
        printable_printf(stdout, "kcast-replay %s\n", KCAST_VERSION);
    } else if (rc == 0) {
        rc = replay(&settings, argument, count, &err);
    }
    free(argument);
    options_release(option_table, &settings);
    return output_end("kcast replay", json, rc != 0 ? err_exit(rc) : EXIT_OK, &err);
}

// kcast search: begins a run and drives it to its end.
#include "client/command.h"
#include "client/generator.h"
#include "client/pipeline.h"
#include "client/policy.h"
#include "client/problem_dir.h"
#include "client/risk.h"
#include "client/run.h"
#include "client/search.h"
#include "client/session.h"
#include "client/strategy.h"
#include "client/summary.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "common/version.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMMAND_LINE_MAX ((size_t)16384) // of run_started

struct search_options {
    char *run;
    char *generator, *strategy, *policy;
    double confidence, audit, share;
    char *guarantee;
    double alpha, delta;
    uint64_t budget_ns, max_time_ns;
    uint64_t measurements, candidates, batch, wide;
    char *seed;
};

#define ROW(field) offsetof(struct search_options, field)

static const struct option_row rows[] = {
    {"run", 'r', OPTION_TEXT, ROW(run), "FILE", NULL, 0, 0, NULL,
     "run file to create; default: PROBLEM-DATE.run in the current folder"},
    {"generator", 'g', OPTION_TEXT, ROW(generator), "KIND", "tunable", 0, 0, NULL,
     "where candidates come from: tunable (the problem's template), llm (the worker's language "
     "model), pool:DIR, pool:FILE.jsonl"},
    {"strategy", 0, OPTION_CHOICE, ROW(strategy), "NAME", STRATEGY_DEFAULT, 0, 0,
     "best-of-n|greedy|islands|puct", "which candidate comes next"},
    {"policy", 0, OPTION_CHOICE, ROW(policy), "NAME", "threshold", 0, 0,
     "threshold|budget|risk|all",
     "which candidates are measured: those whose forecast cannot be trusted, the most promising share, "
     "those above a threshold that is certified for a risk, or all"},
    {"confidence", 'c', OPTION_F64, ROW(confidence), "P", "0.9", 0, 1, NULL,
     "trust a forecast of no improvement from this confidence on"},
    {"audit", 0, OPTION_F64, ROW(audit), "SHARE", "0.05", 0, 1, NULL,
     "measure trusted candidates anyway with this probability, down to half of it for the surest"},
    {"share", 0, OPTION_F64, ROW(share), "SHARE", "0.15", 0.001, 1, NULL,
     "of the candidates, so many are measured by --policy budget"},
    {"guarantee", 0, OPTION_CHOICE, ROW(guarantee), "KIND", RISK_GUARANTEE_DEFAULT, 0, 0,
     RISK_GUARANTEES,
     "what --policy risk bounds: the share of improvements that are discarded (recall), or the share of "
     "improvements in what is discarded (selective; online, which watches it all along)"},
    {"alpha", 0, OPTION_F64, ROW(alpha), "SHARE", "0.1", 0.001, 0.5, NULL,
     "by --policy risk, at most this share"},
    {"delta", 0, OPTION_F64, ROW(delta), "P", "0.1", 0.001, 0.5, NULL,
     "with which probability the share may be greater; not for --guarantee recall, which holds on "
     "average"},
    {"budget", 'b', OPTION_DURATION, ROW(budget_ns), "TIME", NULL, 0, 0, NULL,
     "stop when so much device time is used; \"90s\", \"5m\""},
    {"measurements", 'm', OPTION_U64, ROW(measurements), "N", NULL, 0, 0, NULL,
     "measure at most N candidates"},
    {"candidates", 'n', OPTION_U64, ROW(candidates), "N", "600", 0, 0, NULL,
     "consider at most N candidates; 0: all there are"},
    {"max-time", 0, OPTION_DURATION, ROW(max_time_ns), "TIME", NULL, 0, 0, NULL,
     "stop after so much time in all"},
    {"seed", 's', OPTION_TEXT, ROW(seed), "N", NULL, 0, 0, NULL,
     "of all random choices; default: drawn"},
    {"batch", 0, OPTION_U64, ROW(batch), "N", "8", 1, PIPELINE_BATCH_MAX, NULL,
     "candidates considered at a time"},
    {"wide", 0, OPTION_U64, ROW(wide), "N", NULL, 0, PIPELINE_BATCH_MAX, NULL,
     "the same after the first four batches; default: 64 for --policy budget, else as before"},
    {0},
};

// The command line as typed, cut; from the kernel, since the options are parsed by now.
static char *command_line(void)
{
    struct bytes line;
    if (file_read(&line, "/proc/self/cmdline", COMMAND_LINE_MAX * 64, NULL) != 0) {
        return NULL;
    }
    size_t len = line.len < COMMAND_LINE_MAX ? line.len : COMMAND_LINE_MAX;
    for (size_t i = 0; i < len; i++) {
        line.data[i] = line.data[i] == '\0' ? ' ' : line.data[i];
    }
    char *text = xstrndup((const char *)line.data, len > 0 ? len - 1 : 0);
    bytes_clear(&line);
    return text;
}

// Names the run to the daemon and, when no --run is given, its file.
static void fill_names(struct run_started *started, char **path)
{
    time_t now = time(NULL);
    struct tm tm;
    char stamp[32];
    localtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    started->started_at = (double)now;
    started->search =
        xasprintf("%s-%s-%016llx", started->problem, stamp, (unsigned long long)stats_entropy());
    if (*path == NULL) {
        *path = xasprintf("%s-%s.run", started->problem, stamp);
    }
}

static int fill_started(struct run_started *started, const struct search_options *options,
                        const struct problem_dir *dir, struct err *err)
{
    bool certifies = policy_find(options->policy)->certifies;
    *started = (struct run_started){
        .problem = xstrdup(dir->problem->name),
        .problem_json = dir->json_digest,
        .reference = dir->reference_digest,
        .baseline = dir->baseline_digest,
        .generator = xstrdup(options->generator),
        .strategy = xstrdup(options->strategy),
        .policy = xstrdup(options->policy),
        .confidence = options->confidence,
        .audit = options->audit,
        .share = options->share,
        .guarantee = certifies ? xstrdup(options->guarantee) : NULL,
        .alpha = certifies ? options->alpha : NAN,
        .delta = certifies ? options->delta : NAN,
        .seed = stats_entropy(),
        .budget_seconds = options->budget_ns > 0 ? clock_seconds(options->budget_ns) : NAN,
        .measurements_max = options->measurements,
        .candidates_max = options->candidates,
        .release = xstrdup(KCAST_VERSION),
        .wall_limit_seconds = options->max_time_ns > 0 ? clock_seconds(options->max_time_ns) : NAN,
        .command = command_line(),
        .batch = options->batch,
        .wide = options->wide,
    };
    policy_batches(policy_find(options->policy), &started->batch, &started->wide);
    int code = certifies ? risk_check(options->guarantee, options->audit, err) : 0;
    return code != 0 ? code
           : options->seed == NULL
               ? 0
               : parse_u64(&started->seed, options->seed, 0, UINT64_MAX, "--seed", err);
}

// The sources and the first event, in one transaction.
static int record_start(struct run *run, struct fold *fold, struct run_started *started,
                        const struct problem_dir *dir, const struct bytes *text, struct err *err)
{
    struct digest *text_digest =
        generator_is_pool(started->generator) ? &started->pool_source : &started->template_source;
    int code = run_begin(run, err);
    if (code == 0) {
        code = run_put_blob(run, dir->json.data, dir->json.len, NULL, err);
    }
    if (code == 0) {
        code = run_put_blob(run, dir->reference.data, dir->reference.len, NULL, err);
    }
    if (code == 0) {
        code = run_put_blob(run, dir->baseline.data, dir->baseline.len, NULL, err);
    }
    if (code == 0 && !generator_asks(started->generator)) {
        code = run_put_blob(run, text->data, text->len, text_digest, err);
    }
    if (code == 0 && dir->readme.len > 0) {
        code = run_put_blob(run, dir->readme.data, dir->readme.len, &started->readme, err);
    }
    if (code == 0) {
        code = pipeline_record(run, fold, RUN_STARTED, started, err);
    }
    if (code == 0) {
        return run_commit(run, err);
    }
    run_rollback(run);
    return code;
}

// Refuses what cannot work before anything is created: a broken generator, a daemon that is not
// there.
static int check_first(struct session *session, const struct search_options *options,
                       const struct problem_dir *dir, struct bytes *text, struct err *err)
{
    struct generator *generator = NULL;
    struct device_info device = {0};
    char *path = generator_is_pool(options->generator)
                     ? xstrdup(options->generator + 5)
                     : xasprintf("%s/template.%s", dir->path, problem_extension(dir->problem));
    int code = generator_read(text, options->generator, dir, err);
    if (code == 0) {
        code = generator_create(&generator, options->generator, text, path, err);
    }
    if (code == 0) {
        code = search_device(session, NULL, dir->problem, &device, NULL, err);
    }
    message_clear(&device_info_message, &device);
    generator_free(generator);
    free(path);
    return code;
}

static int run_search(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    const struct search_options *options = own;
    struct problem_dir dir = {0};
    struct bytes text = {0};
    struct run_started started = {0};
    struct fold fold;
    struct run *run = NULL;
    char *path = options->run != NULL ? xstrdup(options->run) : NULL;
    bool begun = false;
    int status = EXIT_OK;
    (void)count;
    fold_init(&fold);
    int code = problem_dir_load(&dir, argument[0], err);
    if (code == 0 && path != NULL && file_exists(path)) {
        code = err_set(err, ERR_CONFLICT,
                       "%s exists already; choose another --run, or go on with `kcast resume %s`",
                       path, path);
    }
    if (code == 0) {
        code = check_first(session, options, &dir, &text, err);
    }
    if (code == 0) {
        code = fill_started(&started, options, &dir, err);
    }
    if (code == 0) {
        fill_names(&started, &path);
        code = run_create(&run, path, err);
    }
    if (code == 0) {
        code = record_start(run, &fold, &started, &dir, &text, err);
        begun = code == 0;
        if (!begun) {
            (void)unlink(path); // holds nothing
        }
    }
    if (code == 0) {
        code = search_drive(session, run, &fold, err);
    }
    if (code == 0) {
        status = summary_print(session_options(session), &fold, path);
    } else {
        status = err_exit(code);
        if (begun) {
            summary_print_resume(session_options(session), path);
        }
    }
    run_close(run);
    fold_release(&fold);
    message_clear(&run_started_message, &started);
    bytes_clear(&text);
    problem_dir_release(&dir);
    free(path);
    return status;
}

const struct command cmd_search = {
    .name = "search",
    .arguments = "PROBLEM",
    .help = "Search for the fastest candidate and record every step in a run file",
    .option = rows,
    .options_size = sizeof(struct search_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_search,
};

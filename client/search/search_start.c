#include "client/search/search_start.h"

#include "client/forecast/worker_link.h"
#include "client/policy/costs.h"
#include "client/policy/policy.h"
#include "client/pool/pool_size.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "common/version.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define COMMAND_LINE_MAX ((size_t)16384) // bytes in run_started
#define TIMING_SHARE 0.125               // of a budget that the timing of one measurement may take
#define TIMING_USUAL 30.0                // seconds, the daemon's own limit
#define TIMING_LEAST 0.001               // seconds that a daemon accepts

// The command line as it was typed, cut at COMMAND_LINE_MAX, malloc'd. It is read from the kernel,
// since the options are parsed by now.
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

// Names the search, and its run file when that has no name yet.
static void fill_names(struct run_started *started, char **path)
{
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    char stamp[32];
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    started->started_at = (double)now;
    started->search =
        xasprintf("%s-%s-%016llx", started->problem, stamp, (unsigned long long)stats_entropy());
    if (!*path) {
        *path = xasprintf("%s-%s.run", started->problem, stamp);
    }
}

// The limit of the timing of one measurement; NaN: the daemon's. A candidate whose times do not
// settle, or that takes long, is not to use up a small budget alone.
static double timing_seconds(const struct search_options *options)
{
    double seconds = TIMING_SHARE * clock_seconds(options->budget_ns);
    return options->budget_ns > 0 && seconds < TIMING_USUAL ? fmax(seconds, TIMING_LEAST) : NAN;
}

static int fill_started(struct run_started *started, const struct generator_list *generators,
                        const struct search_options *options, const struct problem_dir *dir,
                        const struct pipeline_capacity *capacity, struct err *err)
{
    struct pipeline_width width = {
        .batch = options->batch, .wide = options->wide, .lag = options->lag};
    pipeline_width_settle(&width, policy_find(options->policy), capacity);
    bool certifies = policy_find(options->policy)->certifies;
    enum queue_class in = QUEUE_NORMAL;
    (void)queue_class_find(&in, options->queue_class); // the option table has checked the name
    *started = (struct run_started){
        .problem = xstrdup(dir->problem->name),
        .problem_json = dir->json_digest,
        .reference = dir->reference_digest,
        .baseline = dir->baseline_digest,
        .generator = xstrdup(generators->names),
        .strategy = xstrdup(options->strategy),
        .policy = xstrdup(options->policy),
        .confidence = search_confidence(options),
        .end_confidence = options->confidence > 0 ? options->confidence : NAN,
        .audit = options->audit,
        .share = options->share,
        .guarantee = certifies ? xstrdup(options->guarantee) : NULL,
        .alpha = certifies ? options->alpha : NAN,
        .delta = certifies ? options->delta : NAN,
        .seed = stats_entropy(),
        .budget_seconds = options->budget_ns > 0 ? clock_seconds(options->budget_ns) : NAN,
        .timing_seconds = timing_seconds(options),
        .measurements_max = options->measurements,
        .candidates_max = options->candidates,
        .release = xstrdup(KCAST_VERSION),
        .wall_limit_seconds = options->max_time_ns > 0 ? clock_seconds(options->max_time_ns) : NAN,
        .target = options->target,
        .command = command_line(),
        .batch = width.batch,
        .wide = width.wide,
        .widest = width.widest,
        .weight = options->weight > 0 ? options->weight : NAN,
        .hard_seconds = options->hard_ns > 0 ? clock_seconds(options->hard_ns) : NAN,
        .queue_class = in,
        .unsealed = options->unsealed,
        .accept_unsealed = options->accept_unsealed,
        .machine_code = options->machine_code,
        .exec_jobs = options->exec_jobs,
        .surplus = options->surplus,
        .exec_seconds = options->exec_ns > 0 ? clock_seconds(options->exec_ns) : NAN,
        .lag = width.lag,
        .pool_devices = capacity->devices,
        .pool_compile_slots = capacity->compile_slots,
        .worker_seconds = capacity->worker_seconds,
        .trust_rule = RUN_TRUST_SKILL,
        .rules = RUN_RULES_NOW,
        .play_off = options->play_off,
    };
    struct cost_weights weights;
    int rc = cost_weights_read(&weights, options->weights, err);
    if (rc != 0) {
        return rc;
    }
    cost_weights_put(&weights, started);
    rc = certifies ? risk_check(options->guarantee, options->audit, err) : 0;
    if (rc != 0 || !options->seed) {
        return rc;
    }
    return parse_u64(&started->seed, options->seed, 0, UINT64_MAX, "--seed", err);
}

// Records the sources and the first event, in one transaction.
static int record_start(struct run *run, struct run_state *run_state, struct run_started *started,
                        const struct problem_dir *dir, const struct generator_list *generators,
                        const struct bytes *warm, struct err *err)
{
    generator_list_reserve(generators, started);
    int rc = run_begin(run, err);
    if (rc != 0) {
        return rc;
    }
    const struct bytes *source[] = {&dir->json, &dir->reference, &dir->baseline};
    for (size_t i = 0; i < ARRAY_LEN(source); i++) {
        rc = run_put_blob(run, source[i]->data, source[i]->len, NULL, err);
        if (rc != 0) {
            goto out;
        }
    }
    for (size_t i = 0; i < generators->count; i++) {
        const struct bytes *text = &generators->text[i];
        struct digest *slot = generator_list_slot(generators, started, i);
        rc = slot ? run_put_blob(run, text->data, text->len, slot, err) : 0;
        if (rc != 0) {
            goto out;
        }
    }
    if (warm) {
        rc = run_put_blob(run, warm->data, warm->len, &started->warm, err);
        if (rc != 0) {
            goto out;
        }
    }
    if (dir->readme.len > 0) {
        rc = run_put_blob(run, dir->readme.data, dir->readme.len, &started->readme, err);
        if (rc != 0) {
            goto out;
        }
    }
    rc = pipeline_record(run, run_state, RUN_STARTED, started, err);
    if (rc == 0) {
        return run_commit(run, err);
    }
out:
    run_rollback(run);
    return rc;
}

// What a request for forecasts takes the worker, as it says itself; NaN when it does not, or is
// away.
static double ask_worker_seconds(struct session *session)
{
    if (session_options(session)->no_worker) {
        return NAN;
    }
    struct err why = ERR_INIT; // a search says why there is no worker, when it looks for one
    struct worker_link *link = worker_link_create(session, &why);
    const struct worker_abilities *abilities = worker_link_abilities(link);
    double seconds = abilities ? abilities->forecast_seconds : NAN;
    worker_link_free(link);
    return seconds;
}

static bool are_comparable(const struct generator_list *generators)
{
    for (size_t i = 0; i < generators->count; i++) {
        if (!generator_is_comparable(generators->generator[i])) {
            return false;
        }
    }
    return true;
}

int search_check(struct session *session, struct generator_list *generators,
                 const struct problem_dir *dir, const char *path, struct device_info *ret_device,
                 struct pipeline_capacity *ret_capacity, struct err *err)
{
    struct pool_size pool;
    int rc = generator_list_create(generators, path, err);
    if (rc == 0) {
        rc = pool_size_ask(session, dir->problem, ret_device, &pool, err);
    }
    if (rc == 0) {
        // With one device the size of batches does not depend on the worker.
        double seconds = pool.devices > 1 ? ask_worker_seconds(session) : NAN;
        *ret_capacity = (struct pipeline_capacity){
            .devices = pool.devices,
            .compile_slots = pool.compile_slots,
            .worker_seconds = seconds,
            .compares_points = !session_options(session)->no_worker && are_comparable(generators)};
    }
    return rc;
}

int search_start(struct run **ret, struct run_state *run_state, char **path,
                 const struct generator_list *generators, const struct search_options *options,
                 const struct problem_dir *dir, const struct pipeline_capacity *capacity,
                 struct err *err)
{
    struct run_started started = {0};
    struct run *run = NULL;
    int rc = fill_started(&started, generators, options, dir, capacity, err);
    if (rc != 0) {
        goto out;
    }
    fill_names(&started, path);
    rc = run_create(&run, *path, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_start(run, run_state, &started, dir, generators, options->warm, err);
    if (rc != 0) {
        (void)unlink(*path); // nothing is recorded in it
        goto out;
    }
    *ret = run;
    run = NULL;
out:
    run_close(run);
    message_clear(&run_started_message, &started);
    return rc;
}

// kcast forecast: compiles the named files and asks the worker how fast they will be. Nothing is
// measured.
#include "client/cmd/candidates.h"
#include "client/command.h"
#include "client/pool/daemon_pool.h"
#include "client/problem/problem_blobs.h"
#include "client/problem/problem_dir.h"
#include "client/run/improvement.h"
#include "client/session.h"
#include "client/show.h"
#include "common/mem.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORECAST_MS 60000
#define FORECAST_MAX 256 // candidates of one request

struct forecast_options {
    double incumbent; // speedup
};

static const struct option_row rows[] = {
    {"incumbent", 0, OPTION_F64, offsetof(struct forecast_options, incumbent), "SPEEDUP", "1", 1e-6,
     1e6, NULL, "the speedup that is to be improved on"},
    {0},
};

struct forecasting {
    struct daemon_pool *daemon_pool;
    struct candidate_file *file; // the candidates, and the baseline as the last one
    size_t count;                // of files, with the baseline
    struct device_info device;
};

static void on_compiled(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct forecasting *f = owner;
    struct candidate_file *file = &f->file[tag];
    if (error) {
        file->error = *error;
    } else if (!info->compiled) {
        err_set(&file->error, ERR_STOPPED, "the daemon gave the compilation up (%s)",
                job_state_name(info->state));
    } else {
        file->compiled = info->compiled;
        info->compiled = NULL;
    }
    if (!error) {
        daemon_pool_jobs(f->daemon_pool)->ack(daemon_pool_jobs(f->daemon_pool), ref);
    }
}

static int compile_all(struct forecasting *f, const struct problem_dir *dir, struct err *err)
{
    struct job_service *jobs = daemon_pool_jobs(f->daemon_pool);
    for (size_t i = 0; i < f->count; i++) {
        struct job_spec spec;
        problem_dir_spec(dir, JOB_COMPILE, &f->file[i].digest, &spec);
        char key[32];
        snprintf(key, sizeof(key), "c%zu", i);
        jobs->submit(jobs, key, &spec, i, on_compiled, f, i);
    }
    int rc = daemon_pool_drain(f->daemon_pool, err);
    for (size_t i = 0; i < f->count && rc == 0; i++) {
        if (!f->file[i].compiled) {
            rc = err_set(err, f->file[i].error.code, "%s: %s", f->file[i].path,
                         f->file[i].error.text);
        }
    }
    const struct compiled *baseline = rc == 0 ? f->file[f->count - 1].compiled : NULL;
    if (baseline && baseline->verdict != VERDICT_NONE) {
        rc = err_set(err, ERR_INVALID, "the baseline does not compile: %.500s",
                     baseline->reason ? baseline->reason : "no reason given");
    }
    return rc;
}

static void print_json(const struct candidate_file *file, const struct forecast *forecast)
{
    json_t *bins = json_array();
    for (size_t i = 0; forecast && i < forecast->bins_count; i++) {
        json_array_append_new(bins, show_number(forecast->bins[i]));
    }
    show_print(json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "candidate",
        file->path, "digest", show_digest(&file->digest), "compiled",
        file->compiled->verdict == VERDICT_NONE ? "ok" : verdict_name(file->compiled->verdict),
        "p_correct", show_number(forecast ? forecast->p_correct : NAN), "speedup",
        show_ratio(forecast ? forecast->mean_log2 : NAN), "mean_log2",
        show_number(forecast ? forecast->mean_log2 : NAN), "bins", bins, "p_improves",
        show_number(forecast ? forecast->p_improves : NAN), "confidence",
        show_number(forecast ? forecast->confidence : NAN), "engine",
        show_text(forecast ? forecast->engine : NULL), "trained_rows",
        (json_int_t)(forecast ? forecast->trained_rows : 0), "expected_improvement",
        show_number(forecast ? forecast->expected_improvement : NAN), "reason",
        show_text(forecast ? forecast->reason : file->compiled->reason)));
}

static void print_human(const struct candidate_file *file, const struct forecast *forecast)
{
    if (!forecast) {
        printable_printf(stdout, "%s: %s%s%s\n", file->path, verdict_name(file->compiled->verdict),
                         file->compiled->reason ? ": " : "",
                         file->compiled->reason ? file->compiled->reason : "");
        return;
    }
    printable_printf(
        stdout,
        "%s: about %.3gx the baseline, correct with P = %.2f, an improvement with P = %.2f; "
        "confidence %.2f after %llu "
        "outcomes%s%s\n",
        file->path, exp2(forecast->mean_log2), forecast->p_correct, forecast->p_improves,
        forecast->confidence, (unsigned long long)forecast->trained_rows,
        forecast->reason ? "; " : "", forecast->reason ? forecast->reason : "");
}

// Asks about candidates first to last - 1 in one request and prints their forecasts.
static int forecast_some(struct forecasting *f, struct remote *worker,
                         const struct problem_dir *dir, double incumbent, bool json, size_t first,
                         size_t last, struct err *err)
{
    const struct compiled *baseline = f->file[f->count - 1].compiled;
    struct forecast_request request = {
        .problem = dir->problem->name,
        .problem_digest = dir->json_digest,
        .device_class = f->device.device_class,
        .device_facts = f->device.facts,
        .device_facts_count = f->device.facts_count,
        .baseline_features = baseline->features,
        .baseline_features_count = baseline->features_count,
        .incumbent_log2 = log2(incumbent),
        .candidates = xcalloc(last - first, sizeof(*request.candidates)),
        .margin_log2 = IMPROVEMENT_MARGIN_LOG2,
    };
    for (size_t i = first; i < last; i++) {
        if (f->file[i].compiled->verdict == VERDICT_NONE) {
            request.candidates[request.candidates_count++] = (struct candidate_facts){
                .id = i + 1,
                .digest = f->file[i].digest,
                .features = f->file[i].compiled->features,
                .features_count = f->file[i].compiled->features_count,
            };
        }
    }
    struct forecast_reply reply = {0};
    int rc = 0;
    if (request.candidates_count > 0) {
        rc = remote_call_sync(worker, OP_FORECAST, &forecast_request_message, &request,
                              &forecast_reply_message, &reply, FORECAST_MS, err);
    }
    for (size_t i = first; i < last && rc == 0; i++) {
        const struct forecast *forecast = NULL;
        for (size_t j = 0; j < reply.forecasts_count && !forecast; j++) {
            forecast = reply.forecasts[j].id == i + 1 ? &reply.forecasts[j] : NULL;
        }
        (json ? print_json : print_human)(&f->file[i], forecast);
    }
    message_clear(&forecast_reply_message, &reply);
    free(request.candidates);
    return rc;
}

static int run_forecast(struct session *session, const void *own, char **argument, size_t count,
                        struct err *err)
{
    const struct forecast_options *options = own;
    struct problem_dir dir = {0};
    struct forecasting f = {.count = count};
    struct remote *worker;
    char *search = candidates_search_name("forecast");
    char **path = xcalloc(count, sizeof(*path));
    char *baseline = NULL;
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    baseline = xasprintf("%s/baseline.%s", dir.path, problem_extension(dir.problem));
    memcpy(path, argument + 1, (count - 1) * sizeof(*path));
    path[count - 1] = baseline;
    rc = candidates_read(&f.file, path, count, err);
    if (rc != 0) {
        goto out;
    }
    rc = session_worker(session, &worker, err);
    if (rc != 0) {
        goto out;
    }
    rc = daemon_pool_create(&f.daemon_pool, session, search, NULL, err);
    if (rc != 0) {
        goto out;
    }
    problem_blobs_add(f.daemon_pool, &dir);
    candidates_add(f.file, count, f.daemon_pool);
    rc = daemon_pool_choose(f.daemon_pool, NULL, dir.problem, &f.device, NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = compile_all(&f, &dir, err);
    for (size_t first = 0; rc == 0 && first < count - 1; first += FORECAST_MAX) {
        size_t last = first + FORECAST_MAX < count - 1 ? first + FORECAST_MAX : count - 1;
        rc = forecast_some(&f, worker, &dir, options->incumbent, session_options(session)->json,
                           first, last, err);
    }
out:
    daemon_pool_close(f.daemon_pool);
    candidates_free(f.file, f.count);
    message_clear(&device_info_message, &f.device);
    problem_dir_release(&dir);
    free(baseline);
    free(path);
    free(search);
    return rc != 0 ? err_exit(rc) : EXIT_OK;
}

const struct command cmd_forecast = {
    .name = "forecast",
    .arguments = "PROBLEM CANDIDATE…",
    .help = "Ask the worker how fast candidates will be, without measuring",
    .option = rows,
    .options_size = sizeof(struct forecast_options),
    .argument_min = 2,
    .argument_max = 4096,
    .run = run_forecast,
};

// kcast forecast: compiles the named files and asks the worker how fast they will be. Nothing is
// measured.
#include "client/cmd/candidates/candidates.h"
#include "client/command.h"
#include "client/pool/daemon_pool.h"
#include "client/pool/job_progress.h"
#include "client/problem/problem_blobs.h"
#include "client/problem/problem_dir.h"
#include "client/run/improvement.h"
#include "client/session.h"
#include "client/show.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORECAST_MS 60000
#define MODELS_MS 600000 // the same when language models make the forecasts
#define FORECAST_MAX 256 // candidates of one request
#define MODELS_MAX 16    // the same with their sources

#define COMPILED "compiled" // what the line on stderr counts first,
#define ASKED "asked about" // and then

struct forecast_options {
    double incumbent; // speedup
    bool endpoints;   // each endpoint is asked
};

static const struct option_row rows[] = {
    {"incumbent", 0, OPTION_F64, offsetof(struct forecast_options, incumbent), "SPEEDUP", "1", 1e-6,
     1e6, NULL, "the speedup that is to be improved on"},
    {"endpoints", 0, OPTION_FLAG, offsetof(struct forecast_options, endpoints), NULL, NULL, 0, 0,
     NULL,
     "ask every endpoint of the worker's language models anew, one after the other, to see whether "
     "and how it answers"},
    {0},
};

struct forecasting {
    struct daemon_pool *daemon_pool;
    struct job_progress *job_progress;
    size_t compiled;              // how many have an answer of the daemon
    struct candidates candidates; // the baseline is the last one
    struct bytes *source;         // of each of them
    struct device_info device;
    const struct problem_dir *dir;
    double incumbent;
    bool json;
    bool sources; // the worker's engine reads them
};

static void on_compiled(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct forecasting *f = owner;
    struct candidate_file *file = &f->candidates.file[tag];
    job_progress_set(f->job_progress, COMPILED, ++f->compiled, f->candidates.count);
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
    for (size_t i = 0; i < f->candidates.count; i++) {
        struct job_spec spec;
        problem_dir_spec(dir, JOB_COMPILE, &f->candidates.file[i].digest, &spec);
        char key[32];
        snprintf(key, sizeof(key), "c%zu", i);
        jobs->submit(jobs, key, &spec, i, on_compiled, f, i);
    }
    int rc = daemon_pool_drain(f->daemon_pool, err);
    for (size_t i = 0; i < f->candidates.count && rc == 0; i++) {
        if (!f->candidates.file[i].compiled) {
            rc = err_set(err, f->candidates.file[i].error.code, "%s: %s",
                         f->candidates.file[i].path, f->candidates.file[i].error.text);
        }
    }
    const struct compiled *baseline =
        rc == 0 ? f->candidates.file[f->candidates.count - 1].compiled : NULL;
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
    json_t *line = json_pack(
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
        show_text(forecast ? forecast->reason : file->compiled->reason));
    if (forecast && forecast->endpoint) {
        json_t *asked = json_pack(
            "{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o}", "endpoint", forecast->endpoint, "way",
            show_text(forecast->way), "rung", show_text(forecast->rung), "requests",
            (json_int_t)forecast->requests, "input_tokens", (json_int_t)forecast->input_tokens,
            "cached_tokens", (json_int_t)forecast->cached_tokens, "output_tokens",
            (json_int_t)forecast->output_tokens, "cost", show_number(forecast->cost), "seconds",
            show_number(forecast->seconds));
        json_object_set_new(line, "asked", asked);
    }
    show_print(line);
}

// What it took to ask a language model.
static void print_asked(const struct forecast *forecast)
{
    printable_printf(
        stdout,
        "  asked %s as %s: %llu requests, %.2f s, %llu tokens in (%llu of them kept), "
        "%llu out, price %.6g\n",
        forecast->endpoint, forecast->way ? forecast->way : "?",
        (unsigned long long)forecast->requests, forecast->seconds,
        (unsigned long long)forecast->input_tokens, (unsigned long long)forecast->cached_tokens,
        (unsigned long long)forecast->output_tokens, isnan(forecast->cost) ? 0 : forecast->cost);
}

static void print_human(const struct candidate_file *file, const struct forecast *forecast)
{
    if (!forecast) {
        printable_printf(stdout, "%s: %s%s%s\n", file->path, verdict_name(file->compiled->verdict),
                         file->compiled->reason ? ": " : "",
                         file->compiled->reason ? file->compiled->reason : "");
        return;
    }
    if (isnan(forecast->mean_log2)) {
        printable_printf(stdout, "%s: no forecast%s%s\n", file->path, forecast->reason ? ": " : "",
                         forecast->reason ? forecast->reason : "");
    } else {
        printable_printf(
            stdout,
            "%s: about %.3gx the baseline, correct with P = %.2f, an improvement with P = %.2f; "
            "confidence %.2f after %llu "
            "outcomes%s%s\n",
            file->path, exp2(forecast->mean_log2), forecast->p_correct, forecast->p_improves,
            forecast->confidence, (unsigned long long)forecast->trained_rows,
            forecast->reason ? "; " : "", forecast->reason ? forecast->reason : "");
    }
    if (forecast->endpoint) {
        print_asked(forecast);
    }
}

// Asks about candidates first to last - 1 in one request and prints their forecasts. endpoint: the
// number of the one to ask; 0: any.
static int forecast_some(struct forecasting *f, struct remote *worker, uint64_t endpoint,
                         size_t first, size_t last, struct err *err)
{
    const struct compiled *baseline = f->candidates.file[f->candidates.count - 1].compiled;
    const struct problem_dir *dir = f->dir;
    struct search_context context = {
        .language = (char *)(uintptr_t)(dir->problem->cuda ? "CUDA C++" : "C"),
        .problem_json = dir->json,
        .readme = dir->readme,
        .baseline = dir->baseline,
    };
    struct forecast_request request = {
        .problem = dir->problem->name,
        .problem_digest = dir->json_digest,
        .device_class = f->device.device_class,
        .device_facts = f->device.facts,
        .device_facts_count = f->device.facts_count,
        .baseline_features = baseline->features,
        .baseline_features_count = baseline->features_count,
        .incumbent_log2 = log2(f->incumbent),
        .candidates = xcalloc(last - first, sizeof(*request.candidates)),
        .margin_log2 = IMPROVEMENT_MARGIN_LOG2,
        .context = f->sources ? &context : NULL,
        .endpoint = endpoint,
    };
    for (size_t i = first; i < last; i++) {
        if (f->candidates.file[i].compiled->verdict == VERDICT_NONE) {
            request.candidates[request.candidates_count++] = (struct candidate_facts){
                .id = i + 1,
                .digest = f->candidates.file[i].digest,
                .features = f->candidates.file[i].compiled->features,
                .features_count = f->candidates.file[i].compiled->features_count,
                .source = f->sources ? f->source[i] : (struct bytes){0},
            };
        }
    }
    struct forecast_reply reply = {0};
    int rc = 0;
    job_progress_set(f->job_progress, ASKED, first, f->candidates.count - 1);
    if (request.candidates_count > 0) {
        rc = remote_call_sync(worker, OP_FORECAST, &forecast_request_message, &request,
                              &forecast_reply_message, &reply, f->sources ? MODELS_MS : FORECAST_MS,
                              err);
    }
    job_progress_wipe(f->job_progress);
    for (size_t i = first; i < last && rc == 0; i++) {
        const struct forecast *forecast = NULL;
        for (size_t j = 0; j < reply.forecasts_count && !forecast; j++) {
            forecast = reply.forecasts[j].id == i + 1 ? &reply.forecasts[j] : NULL;
        }
        (f->json ? print_json : print_human)(&f->candidates.file[i], forecast);
    }
    message_clear(&forecast_reply_message, &reply);
    free(request.candidates);
    return rc;
}

// Learns what the worker can do: whether it reads sources and, where each endpoint is to be asked,
// how many it has.
static int learn_worker(struct forecasting *f, struct remote *worker, bool endpoints,
                        uint64_t *ret_count, struct err *err)
{
    struct hello_reply hello = {0};
    struct worker_status status = {0};
    int rc = remote_hello_sync(worker, "kcast-worker", &hello, err);
    if (rc != 0) {
        goto out;
    }
    f->sources = hello.worker && hello.worker->reads_sources;
    if (endpoints) {
        rc = remote_call_sync(worker, OP_WORKER_STATUS, NULL, NULL, &worker_status_message, &status,
                              FORECAST_MS, err);
        if (rc == 0 && status.endpoints_count == 0) {
            rc = err_set(err, ERR_UNSUPPORTED,
                         "the worker's engine %s asks no endpoints; leave --endpoints out",
                         status.engine ? status.engine : "?");
        }
    }
    *ret_count = status.endpoints_count;
out:
    message_clear(&hello_reply_message, &hello);
    message_clear(&worker_status_message, &status);
    return rc;
}

// Asks about all candidates.
static int forecast_all(struct forecasting *f, struct remote *worker, uint64_t endpoint,
                        struct err *err)
{
    size_t most = f->sources ? MODELS_MAX : FORECAST_MAX, count = f->candidates.count - 1;
    int rc = 0;

    for (size_t first = 0; rc == 0 && first < count; first += most) {
        rc = forecast_some(f, worker, endpoint, first, first + most < count ? first + most : count,
                           err);
    }
    return rc;
}

// Keeps the sources, which the pool takes.
static void keep_sources(struct forecasting *f)
{
    f->source = xcalloc(f->candidates.count, sizeof(*f->source));
    for (size_t i = 0; i < f->candidates.count; i++) {
        f->source[i] = (struct bytes){.data = xmalloc(f->candidates.file[i].source.len + 1),
                                      .len = f->candidates.file[i].source.len};
        memcpy(f->source[i].data, f->candidates.file[i].source.data, f->source[i].len);
    }
}

static int run_forecast(struct session *session, const void *own, char **argument, size_t count,
                        struct err *err)
{
    const struct forecast_options *options = own;
    struct problem_dir dir = {0};
    struct forecasting f = {
        .dir = &dir, .incumbent = options->incumbent, .json = session_options(session)->json};
    uint64_t endpoints = 0;
    struct remote *worker;
    char *search = candidates_search_name("forecast");
    char **path = xcalloc(count, sizeof(*path));
    char *baseline = NULL;
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    baseline = xasprintf("%s/%s", dir.path, dir.baseline_name);
    memcpy(path, argument + 1, (count - 1) * sizeof(*path));
    path[count - 1] = baseline;
    rc = candidates_read(&f.candidates, path, count, problem_extension(dir.problem), NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = session_worker(session, &worker, err);
    if (rc != 0) {
        goto out;
    }
    rc = learn_worker(&f, worker, options->endpoints, &endpoints, err);
    if (rc != 0) {
        goto out;
    }
    keep_sources(&f);
    rc = daemon_pool_create(&f.daemon_pool, session, search, NULL, err);
    if (rc != 0) {
        goto out;
    }
    f.job_progress = job_progress_create(session, f.daemon_pool, COMPILED, stderr, &clock_system);
    job_progress_set(f.job_progress, COMPILED, 0, f.candidates.count);
    problem_blobs_add(f.daemon_pool, &dir);
    candidates_add(&f.candidates, f.daemon_pool);
    rc = daemon_pool_choose(f.daemon_pool, NULL, dir.problem, &f.device, NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = compile_all(&f, &dir, err);
    if (rc == 0 && !options->endpoints) {
        rc = forecast_all(&f, worker, 0, err);
    }
    for (uint64_t i = 1; rc == 0 && i <= endpoints; i++) {
        rc = forecast_all(&f, worker, i, err);
    }
out:
    job_progress_free(f.job_progress);
    daemon_pool_close(f.daemon_pool);
    for (size_t i = 0; f.source && i < f.candidates.count; i++) {
        bytes_clear(&f.source[i]);
    }
    free(f.source);
    candidates_free(&f.candidates);
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

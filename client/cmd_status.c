// kcast status: the daemon's devices and queue, and what the worker has learnt.
#include "client/command.h"
#include "client/session.h"
#include "client/show.h"
#include "contract/verdict.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STATUS_MS 10000

static json_t *device_object(const struct device_info *device)
{
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "name", device->name, "class",
        device->device_class, "language", show_text(device->language), "state", device->state,
        "reason", show_text(device->reason), "job", (json_int_t)device->job, "jobs_done",
        (json_int_t)device->jobs_done, "held_seconds", show_number(device->held_seconds), "control",
        show_interval(device->control), "facts", show_facts(device->facts, device->facts_count),
        "readings", show_facts(device->readings, device->readings_count));
}

static json_t *worker_object(const char *url, const struct worker_status *worker)
{
    json_t *models = json_array();
    for (size_t i = 0; i < worker->models_count; i++) {
        const struct model_info *m = &worker->models[i];
        json_array_append_new(models,
                              json_pack("{s:s, s:s, s:I, s:I, s:o, s:I}", "problem", m->problem,
                                        "class", m->device_class, "rows", (json_int_t)m->rows,
                                        "version", (json_int_t)m->model_version,
                                        "decision_accuracy", show_number(m->decision_accuracy),
                                        "decisions", (json_int_t)m->decisions));
    }
    json_t *endpoints = json_array();
    for (size_t i = 0; i < worker->endpoints_count; i++) {
        const struct endpoint_info *e = &worker->endpoints[i];
        json_array_append_new(
            endpoints, json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:b, s:o}", "url", e->url,
                                 "model", show_text(e->model), "requests", (json_int_t)e->requests,
                                 "retries", (json_int_t)e->retries, "failures",
                                 (json_int_t)e->failures, "in_flight", (json_int_t)e->in_flight,
                                 "at_once", show_number(e->at_once), "open", (int)e->open, "rung",
                                 show_text(e->rung)));
    }
    return json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:I}", "url", url, "engine", show_text(worker->engine),
        "uptime_seconds", show_number(worker->uptime_seconds), "forecasts",
        (json_int_t)worker->forecasts, "outcomes", (json_int_t)worker->outcomes, "models", models, "endpoints",
        endpoints, "input_tokens", (json_int_t)worker->input_tokens, "output_tokens",
        (json_int_t)worker->output_tokens, "cost", show_number(worker->cost), "cache_hits",
        (json_int_t)worker->cache_hits);
}

static void print_json(const char *url, const struct status *status, json_t *worker)
{
    json_t *devices = json_array(), *jobs = json_object();
    for (size_t i = 0; i < status->devices_count; i++) {
        json_array_append_new(devices, device_object(&status->devices[i]));
    }
    for (size_t i = 0; i < status->states_count; i++) {
        json_object_set_new(jobs, job_state_name(i), json_integer((json_int_t)status->states[i]));
    }
    show_print(json_pack(
        "{s:s, s:o, s:o, s:o, s:I, s:I, s:o, s:I, s:o, s:o}", "pool", url, "devices", devices,
        "jobs", jobs, "uptime_seconds", show_number(status->uptime_seconds), "compile_slots",
        (json_int_t)status->compile_slots, "compiling", (json_int_t)status->compiling, "sandbox",
        show_text(status->sandbox), "results_cached", (json_int_t)status->results_cached,
        "state_dir", show_text(status->state_dir), "worker", worker));
}

static double reading(const struct device_info *device, const char *name)
{
    for (size_t i = 0; i < device->readings_count; i++) {
        if (strcmp(device->readings[i].name, name) == 0) {
            return device->readings[i].value;
        }
    }
    return NAN;
}

// What a GPU reads, as far as it can tell.
static void print_readings(const struct device_info *device)
{
    static const struct {
        const char *name, *unit;
    } row[] = {
        {"sm_clock_mhz", "MHz"},    {"temperature_c", "C"},
        {"power_w", "W"},           {"ecc_uncorrected", "ECC errors"},
        {"processes", "processes"},
    };
    const char *before = "           reads ";
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        double value = reading(device, row[i].name);
        if (!isnan(value)) {
            printf("%s%.0f %s", before, value, row[i].unit);
            before = ", ";
        }
    }
    double throttle = reading(device, "throttle_reasons");
    if (!isnan(throttle)) {
        printf("%sthrottled by 0x%llx", before, (unsigned long long)throttle);
    }
    if (device->readings_count > 0) {
        printf("\n");
    }
}

static void print_human(const char *url, const struct status *status)
{
    char up[32], held[32];
    show_seconds(status->uptime_seconds, up, sizeof(up));
    printf("daemon %s, up %s, sandbox %s, compiling %llu of %llu at a time, %llu results known\n",
           url, up, status->sandbox != NULL ? status->sandbox : "unknown",
           (unsigned long long)status->compiling, (unsigned long long)status->compile_slots,
           (unsigned long long)status->results_cached);
    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *d = &status->devices[i];
        show_seconds(d->held_seconds, held, sizeof(held));
        printf("  %-8s %-12s %llu jobs in %s, class %s%s%s\n", d->name, d->state,
               (unsigned long long)d->jobs_done, held, d->device_class,
               d->reason != NULL ? "; " : "", d->reason != NULL ? d->reason : "");
        print_readings(d);
    }
    if (status->illness != NULL) {
        printf("not well: %s\n", status->illness);
    }
    printf("jobs  ");
    for (size_t i = 0; i < status->states_count; i++) {
        printf("%s %s %llu", i == 0 ? "" : ",", job_state_name(i),
               (unsigned long long)status->states[i]);
    }
    printf("\n");
}

static void print_worker(const char *url, const struct worker_status *worker)
{
    printf("worker %s, engine %s, %llu forecasts made, %llu outcomes known\n", url,
           worker->engine != NULL ? worker->engine : "unknown",
           (unsigned long long)worker->forecasts, (unsigned long long)worker->outcomes);
    for (size_t i = 0; i < worker->endpoints_count; i++) {
        const struct endpoint_info *e = &worker->endpoints[i];
        printf("  %s model %s, rung %s, %llu requests, %llu of them again, %llu under way of %.0f%s\n",
               e->url, e->model != NULL ? e->model : "?", e->rung != NULL ? e->rung : "?",
               (unsigned long long)e->requests, (unsigned long long)e->retries,
               (unsigned long long)e->in_flight, e->at_once, e->open ? "; left alone for now" : "");
    }
    if (worker->input_tokens + worker->output_tokens > 0) {
        printf("  %llu tokens in, %llu out, at a cost of %.4g; %llu answers were known already\n",
               (unsigned long long)worker->input_tokens, (unsigned long long)worker->output_tokens,
               worker->cost, (unsigned long long)worker->cache_hits);
    }
    for (size_t i = 0; i < worker->models_count; i++) {
        const struct model_info *m = &worker->models[i];
        printf("  %-16s %llu outcomes", m->problem, (unsigned long long)m->rows);
        if (m->decisions > 0 && !isnan(m->decision_accuracy)) {
            printf(", %.0f %% of %llu calls were right", 100 * m->decision_accuracy,
                   (unsigned long long)m->decisions);
        }
        printf(", class %s\n", m->device_class);
    }
}

static int run_status(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    bool json = session_options(session)->json;
    struct status_request request = {0};
    struct status status;
    struct worker_status worker_status;
    struct remote *pool, *worker = NULL;
    struct err why = ERR_INIT;
    (void)own;
    (void)argument;
    (void)count;
    int code = session_pool(session, &pool, err);
    if (code == 0) {
        code = remote_call_sync(pool, OP_STATUS, &status_request_message, &request, &status_message,
                                &status, STATUS_MS, err);
    }
    if (code != 0) {
        return err_exit(code);
    }
    // A worker is a convenience: without one there is still a status.
    bool has_worker = session_worker(session, &worker, &why) == 0 &&
                      remote_call_sync(worker, OP_WORKER_STATUS, NULL, NULL, &worker_status_message,
                                       &worker_status, STATUS_MS, &why) == 0;
    if (json) {
        print_json(remote_url(pool), &status,
                   has_worker ? worker_object(remote_url(worker), &worker_status) : json_null());
    } else {
        print_human(remote_url(pool), &status);
        if (has_worker) {
            print_worker(remote_url(worker), &worker_status);
        } else {
            printf("worker: none (%s)\n", why.text);
        }
    }
    if (has_worker) {
        message_clear(&worker_status_message, &worker_status);
    }
    message_clear(&status_message, &status);
    return EXIT_OK;
}

const struct command cmd_status = {
    .name = "status",
    .help = "Show devices, queue and worker",
    .run = run_status,
};

// kcast status: shows devices and queue of every daemon, the totals of all daemons, and what the
// worker has learnt.
#include "client/cmd/daemon_call.h"
#include "client/cmd/tables/share_table.h"
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/pool/device_choice.h"
#include "client/session.h"
#include "client/show.h"
#include "common/mem.h"
#include "common/printable.h"
#include "proto/status_json.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STATUS_MS 10000

static json_t *worker_object(const char *url, const struct worker_status *worker)
{
    json_t *models = json_array();
    for (size_t i = 0; i < worker->models_count; i++) {
        const struct model_info *m = &worker->models[i];
        json_array_append_new(
            models,
            json_pack("{s:s, s:s, s:I, s:I, s:o, s:I, s:o, s:I}", "problem", m->problem, "class",
                      m->device_class, "rows", (json_int_t)m->rows, "version",
                      (json_int_t)m->model_version, "decision_accuracy",
                      show_number(m->decision_accuracy), "decisions", (json_int_t)m->decisions,
                      "model", show_text(m->model), "alarms", (json_int_t)m->alarms));
    }
    json_t *endpoints = json_array();
    for (size_t i = 0; i < worker->endpoints_count; i++) {
        const struct endpoint_info *e = &worker->endpoints[i];
        json_array_append_new(
            endpoints,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:b, s:o, s:I, s:o, "
                      "s:o}",
                      "url", e->url, "name", show_text(e->name), "api", show_text(e->api),
                      "trouble", show_text(e->trouble), "forecaster", show_text(e->forecaster),
                      "model", show_text(e->model), "requests", (json_int_t)e->requests, "retries",
                      (json_int_t)e->retries, "failures", (json_int_t)e->failures, "in_flight",
                      (json_int_t)e->in_flight, "at_once", show_number(e->at_once), "open",
                      (int)e->open, "rung", show_text(e->rung), "proposals",
                      (json_int_t)e->proposals, "share", show_number(e->share), "gain_log2",
                      show_number(e->gain_log2)));
    }
    return json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:o, s:I}", "url", url, "engine",
        show_text(worker->engine), "uptime_seconds", show_number(worker->uptime_seconds),
        "forecasts", (json_int_t)worker->forecasts, "outcomes", (json_int_t)worker->outcomes,
        "models", models, "endpoints", endpoints, "input_tokens", (json_int_t)worker->input_tokens,
        "output_tokens", (json_int_t)worker->output_tokens, "cost", show_number(worker->cost),
        "cache_hits", (json_int_t)worker->cache_hits);
}

static void print_json(const char *url, const struct status *status, json_t *worker)
{
    json_t *object = status_json(status, url);
    json_object_set_new(object, "worker", worker);
    show_print(object);
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

// Prints the readings of a GPU. A reading that the GPU does not give is left out.
static void print_readings(const struct device_info *device)
{
    static const struct {
        const char *name, *unit;
    } row[] = {
        {"sm_clock_mhz", "MHz"},           {"temperature_c", "C"},     {"power_w", "W"},
        {"ecc_uncorrected", "ECC errors"}, {"processes", "processes"},
    };
    const char *before = "           reads ";
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        double value = reading(device, row[i].name);
        if (!isnan(value)) {
            printable_printf(stdout, "%s%.0f %s", before, value, row[i].unit);
            before = ", ";
        }
    }
    double throttle = reading(device, "throttle_reasons");
    if (!isnan(throttle)) {
        printable_printf(stdout, "%sthrottled by 0x%llx", before, (unsigned long long)throttle);
    }
    if (device->readings_count > 0) {
        printable_printf(stdout, "\n");
    }
}

static void print_states(const uint64_t *state, size_t count)
{
    printable_printf(stdout, "jobs  ");
    for (size_t i = 0; i < count; i++) {
        printable_printf(stdout, "%s %s %llu", i == 0 ? "" : ",", job_state_name(i),
                         (unsigned long long)state[i]);
    }
    printable_printf(stdout, "\n");
}

// An older daemon does not say it.
static void print_utilisation(const struct device_info *device)
{
    if (!isnan(device->utilisation) && !isnan(device->utilisation_minute)) {
        printable_printf(stdout, "held %.0f %% of the last minute and %.0f %% since the start, ",
                         100 * device->utilisation_minute, 100 * device->utilisation);
    }
}

static void print_human(const char *url, const struct status *status)
{
    char up[32], held[32];
    show_seconds(status->uptime_seconds, up, sizeof(up));
    printable_printf(
        stdout,
        "daemon %s, up %s, sandbox %s, compiling %llu of %llu at a time, %llu results known\n", url,
        up, status->sandbox ? status->sandbox : "unknown", (unsigned long long)status->compiling,
        (unsigned long long)status->compile_slots, (unsigned long long)status->results_cached);
    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *d = &status->devices[i];
        show_seconds(d->held_seconds, held, sizeof(held));
        printable_printf(stdout, "  %-8s %-12s %llu jobs in %s, ", d->name, d->state,
                         (unsigned long long)d->jobs_done, held);
        print_utilisation(d);
        printable_printf(stdout, "class %s%s%s\n", d->device_class, d->reason ? "; " : "",
                         d->reason ? d->reason : "");
        print_readings(d);
    }
    if (status->illness) {
        printable_printf(stdout, "not well: %s\n", status->illness);
    }
    print_states(status->states, status->states_count);
    share_table_print(status->shares, status->shares_count);
}

static void print_worker(const char *url, const struct worker_status *worker)
{
    printable_printf(stdout, "worker %s, engine %s, %llu forecasts made, %llu outcomes known\n",
                     url, worker->engine ? worker->engine : "unknown",
                     (unsigned long long)worker->forecasts, (unsigned long long)worker->outcomes);
    for (size_t i = 0; i < worker->endpoints_count; i++) {
        const struct endpoint_info *e = &worker->endpoints[i];
        printable_printf(
            stdout,
            "  %s%s%s model %s, rung %s, %llu requests, %llu of them again, %llu under way of "
            "%.0f%s%s%s%s%s\n",
            e->name ? e->name : "", e->name ? ", " : "", e->url, e->model ? e->model : "?",
            e->rung ? e->rung : "?", (unsigned long long)e->requests,
            (unsigned long long)e->retries, (unsigned long long)e->in_flight, e->at_once,
            e->forecaster ? ", forecasts as " : "", e->forecaster ? e->forecaster : "",
            e->open ? "; left alone for now" : "", e->trouble ? ": " : "",
            e->trouble ? e->trouble : "");
        if (e->proposals > 0) {
            printable_printf(
                stdout,
                "    wrote candidates %llu times: best raised by a factor of %.3f together, "
                "%.0f %% of "
                "what was spent on writing lately\n",
                (unsigned long long)e->proposals, exp2(e->gain_log2), 100 * e->share);
        }
    }
    if (worker->input_tokens + worker->output_tokens > 0) {
        printable_printf(
            stdout,
            "  %llu tokens in, %llu out, at a cost of %.4g; %llu answers were known already\n",
            (unsigned long long)worker->input_tokens, (unsigned long long)worker->output_tokens,
            worker->cost, (unsigned long long)worker->cache_hits);
    }
    for (size_t i = 0; i < worker->models_count; i++) {
        const struct model_info *m = &worker->models[i];
        printable_printf(stdout, "  %-16s %llu outcomes", m->problem, (unsigned long long)m->rows);
        if (m->decisions > 0 && !isnan(m->decision_accuracy)) {
            printable_printf(stdout, ", %.0f %% of %llu calls were right",
                             100 * m->decision_accuracy, (unsigned long long)m->decisions);
        }
        if (m->alarms > 0) {
            printable_printf(stdout, ", forecasts drifted: %llu alarms",
                             (unsigned long long)m->alarms);
        }
        printable_printf(stdout, ", class %s\n", m->device_class);
    }
}

struct totals {
    size_t daemons;     // that answer
    size_t devices;     // of these daemons
    size_t ready;       // of these devices, those that take jobs
    uint64_t state[32]; // how many jobs are in each state
    size_t states;      // how many states there are
};

static void add_up(struct totals *totals, const struct status *status)
{
    totals->daemons++;
    totals->devices += status->devices_count;
    for (size_t i = 0; i < status->devices_count; i++) {
        totals->ready += device_takes_jobs(&status->devices[i]);
    }
    for (size_t i = 0; i < status->states_count && i < ARRAY_LEN(totals->state); i++) {
        totals->state[i] += status->states[i];
        totals->states = i >= totals->states ? i + 1 : totals->states;
    }
}

static void print_totals(const struct totals *totals, size_t daemons)
{
    printable_printf(stdout,
                     "total %zu of %zu daemons answer, %zu of their %zu devices take jobs\n",
                     totals->daemons, daemons, totals->ready, totals->devices);
    print_states(totals->state, totals->states);
}

// Prints a daemon's status as JSON with this worker in it, or as text when worker is NULL. Adds it
// to totals.
static int show_daemon(const struct daemon_link *link, const json_t *worker, struct totals *totals,
                       struct err *err)
{
    struct status_request request = {0};
    struct status status;
    int rc = daemon_call(link, OP_STATUS, &status_request_message, &request, &status_message,
                         &status, STATUS_MS, err);
    if (rc != 0) {
        return rc;
    }
    if (worker) {
        print_json(link->url, &status, json_deep_copy(worker));
    } else {
        print_human(link->url, &status);
    }
    add_up(totals, &status);
    message_clear(&status_message, &status);
    return 0;
}

// Shows every daemon. One that does not answer has a line that says so, unless it is the only one.
// Fails when none answers.
static int show_daemons(const struct daemons *daemons, const json_t *worker, struct err *err)
{
    struct totals totals = {0};
    struct err why = ERR_INIT;
    for (size_t i = 0; i < daemons->count; i++) {
        const struct daemon_link *link = &daemons->link[i];
        err_clear(&why);
        if (show_daemon(link, worker, &totals, &why) == 0 || !daemons->several) {
            continue;
        }
        if (worker) {
            show_print(json_pack("{s:s, s:o}", "pool", link->url, "error", show_error(&why)));
        } else {
            printable_printf(stdout, "daemon %s, not there: %s\n", link->url, why.text);
        }
    }
    if (daemons->several && !worker) {
        print_totals(&totals, daemons->count);
    }
    return totals.daemons > 0 ? 0 : err_set(err, why.code, "%s", why.text);
}

static int run_status(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)own;
    (void)argument;
    (void)count;
    bool json = session_options(session)->json;
    struct daemons daemons;
    int rc = daemons_connect(&daemons, session, err);
    if (rc != 0) {
        return err_exit(rc);
    }
    struct worker_status status;
    struct remote *worker = NULL;
    struct err why = ERR_INIT;
    // The command succeeds without a worker.
    bool has_worker = session_worker(session, &worker, &why) == 0 &&
                      remote_call_sync(worker, OP_WORKER_STATUS, NULL, NULL, &worker_status_message,
                                       &status, STATUS_MS, &why) == 0;
    json_t *object = !json        ? NULL
                     : has_worker ? worker_object(remote_url(worker), &status)
                                  : json_null();
    rc = show_daemons(&daemons, object, err);
    if (!json && rc == 0 && has_worker) {
        print_worker(remote_url(worker), &status);
    } else if (!json && rc == 0) {
        printable_printf(stdout, "worker: none (%s)\n", why.text);
    }
    json_decref(object);
    if (has_worker) {
        message_clear(&worker_status_message, &status);
    }
    daemons_release(&daemons);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_status = {
    .name = "status",
    .help = "Show devices and queue of every daemon, and the worker",
    .run = run_status,
};

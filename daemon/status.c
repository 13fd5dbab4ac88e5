// Design note. Whatever can be counted from the present state is counted when it is asked for; the
// rest comes from the counters. The searches are those that the counters know by name, and one
// without a name for the others.
#include "daemon/status.h"
#include "common/clock.h"
#include "daemon/jobs/budgets.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/wait.h"
#include "daemon/run/compiler.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/store/ledger.h"
#include "net/rpc/service.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void fill_device(struct device_info *info, const struct device *device,
                        const struct daemon_parts *parts, const struct caller *caller,
                        uint64_t now_ns)
{
    const struct device_class *device_class = device->device_class;
    const struct job *job = device->job != 0 ? job_table_find(parts->jobs, device->job) : NULL;
    const char *why = device_why(device);

    message_init(&device_info_message, info);
    info->name = xstrdup(device->name);
    info->device_class = xstrdup(device_class->name);
    info->language = xstrdup(device_class->language);
    info->toolchain = xstrdup(device_class->toolchain);
    info->state = xstrdup(device_state_name(device->state));
    info->reason = why ? xstrdup(why) : NULL;
    info->job = device->job;
    if (job && caller_owns(caller, job->search->tenant)) {
        info->search = xstrdup(job->search->name);
        info->tenant = xstrdup(job->search->tenant);
    }
    info->jobs_done = device->jobs_done;
    info->held_seconds = clock_seconds(device->held_ns);
    if (device->job != 0) {
        info->busy_seconds = clock_seconds(device_job_ns(device, now_ns));
    }
    device_utilisation(device, parts->started_ns, now_ns, &info->utilisation,
                       &info->utilisation_minute);
    info->readings = device_readings(device, now_ns, &info->readings_count);
    info->facts = message_copy_all(&fact_message, device_class->facts, device_class->facts_count);
    info->facts_count = device_class->facts_count;
    if (device->has_control) {
        info->control = xmalloc(sizeof(*info->control));
        message_copy(&estimate_message, info->control, &device->last_control);
    }
}

// Returns the number of devices that are held for jobs of this search.
static size_t held_by(const struct daemon_parts *parts, const struct search *search)
{
    const struct devices *devices = parts->devices;
    size_t held = 0;

    for (size_t i = 0; i < devices->count; i++) {
        uint64_t id = devices->device[i].job;
        const struct job *job = id != 0 ? job_table_find(parts->jobs, id) : NULL;

        held += job && job->search == search;
    }
    return held;
}

static void fill_stages(struct search_load *load, const struct daemon_parts *parts,
                        const char *path)
{
    double seconds[STAGE_COUNT];

    if (!path) {
        return; // of those of long ago nothing is known
    }
    stages_seconds(job_table_stages(parts->jobs), path, clock_now_ns(parts->clock), seconds);
    load->measuring_seconds = seconds[STAGE_MEASURING];
    load->waiting_seconds = seconds[STAGE_WAITING];
    load->compiling_seconds = seconds[STAGE_COMPILING];
    load->queued_seconds = seconds[STAGE_QUEUED];
    load->away_seconds = seconds[STAGE_AWAY];
}

static void add_load(struct status *status, const struct daemon_parts *parts,
                     const struct counters_search *used)
{
    struct search_load *load = &status->searches[status->searches_count++];
    const struct search *search =
        used->name ? job_table_find_search(parts->jobs, used->tenant, used->name) : NULL;

    message_init(&search_load_message, load);
    load->tenant = used->tenant ? xstrdup(used->tenant) : NULL;
    load->name = xstrdup(used->name ? used->name : "");
    load->unfinished = search ? search->unfinished : 0;
    load->running = search ? held_by(parts, search) : 0;
    load->device_seconds = used->device_seconds;
    load->compile_seconds = used->compile_seconds;
    load->measured = used->measured;
    load->problem = used->problem ? xstrdup(used->problem) : NULL;
    load->planned = used->planned;
    load->planned_seconds = used->name ? used->planned_seconds : (double)NAN;
    if (used->name && !isnan(used->best[0])) {
        load->best = xcalloc(1, sizeof(*load->best));
        message_init(&estimate_message, load->best);
        load->best->log2 = used->best[0];
        load->best->lo = used->best[1];
        load->best->hi = used->best[2];
    }
    fill_stages(load, parts, used->path);
}

static void fill_counts(struct status *status, const struct daemon_parts *parts)
{
    const struct job_census *census = job_table_census(parts->jobs);
    const struct device_class *device_class = parts->devices->classes;
    const struct counters *counters = parts->counters;

    status->states = xcalloc(JOB_STATE_COUNT, sizeof(*status->states));
    for (size_t i = 0; i < JOB_STATE_COUNT; i++) {
        status->states[status->states_count++] = census->state[i];
    }
    status->verdicts = xmemdup(counters->verdict, sizeof(counters->verdict));
    status->verdicts_count = COUNTERS_VERDICTS;
    status->waiting = xcalloc(65, sizeof(*status->waiting));
    status->waiting[status->waiting_count++] = scheduler_unprepared(parts->scheduler);
    for (; device_class && status->waiting_count < 65; device_class = device_class->next) {
        status->waiting[status->waiting_count++] = queue_count(device_class->queue);
    }
}

static void fill_searches(struct status *status, const struct daemon_parts *parts,
                          const struct caller *caller)
{
    const struct counters *counters = parts->counters;
    const struct counters_search *search;

    status->searches = xcalloc(COUNTERS_SEARCHES_MAX + 1, sizeof(*status->searches));
    for (search = counters->searches; search; search = search->hh.next) {
        if (caller_owns(caller, search->tenant)) {
            add_load(status, parts, search);
        }
    }
    if (caller->role == CALLER_ADMIN &&
        (counters->others.measured > 0 || counters->others.compile_seconds > 0)) {
        add_load(status, parts, &counters->others);
    }
    budgets_fill_status(parts->budgets, parts->devices, caller, status);
}

void status_fill(struct status *ret, const struct daemon_parts *parts, const struct caller *caller,
                 bool searches)
{
    uint64_t now_ns = clock_now_ns(parts->clock);

    message_init(&status_message, ret);
    ret->devices = xcalloc(parts->devices->count, sizeof(*ret->devices));
    for (size_t i = 0; i < parts->devices->count; i++) {
        fill_device(&ret->devices[ret->devices_count++], &parts->devices->device[i], parts, caller,
                    now_ns);
    }
    fill_counts(ret, parts);
    if (searches) {
        fill_searches(ret, parts, caller);
    }
    ret->uptime_seconds = clock_seconds(now_ns - parts->started_ns);
    ret->compile_slots = parts->limits.compile_slots;
    ret->compiling = compiler_running(parts->compiler);
    ret->sandbox = xstrdup(parts->limits.sandbox_off ? "off" : "on");
    ret->results_cached = ledger_results(parts->ledger);
    ret->waits = waits_count(parts->waits);
    ret->requests = service_request_count(parts->service);
    ret->refusals = service_refusal_count(parts->service);
    ret->state_dir = xstrdup(parts->state_dir);
    ret->http = parts->http ? xstrdup(parts->http) : NULL;
    char illness[STATUS_ILLNESS_MAX];
    ret->illness = status_is_well(parts, illness) ? NULL : xstrdup(illness);
}

// Returns whether a device in this state takes jobs, or will do so by itself within seconds.
static bool is_usable(enum device_state state)
{
    return state <= DEVICE_PROBING;
}

bool status_is_well(const struct daemon_parts *parts, char reason[STATUS_ILLNESS_MAX])
{
    const struct devices *devices = parts->devices;
    size_t unsaved = completions_unsaved(parts->completions);
    size_t usable = 0;

    for (size_t i = 0; i < devices->count; i++) {
        usable += is_usable(devices->device[i].state);
    }
    if (unsaved > 0) {
        (void)snprintf(reason, STATUS_ILLNESS_MAX,
                       "%zu results are in memory only, because the ledger cannot be written; make"
                       " room on the disk of the state directory",
                       unsaved);
        return false;
    }
    if (compiler_is_held(parts->compiler)) {
        (void)snprintf(reason, STATUS_ILLNESS_MAX,
                       "compilations wait, because there is no room for their objects; make room on"
                       " the disk of the state directory, or raise --blobs-max if it is used up");
        return false;
    }
    if (usable == 0 && devices->count > 0) {
        const struct device *first = &devices->device[0];
        const char *why = device_why(first);

        (void)snprintf(reason, STATUS_ILLNESS_MAX, "no device takes jobs; %s is %s: %.300s",
                       first->name, device_state_name(first->state), why ? why : "");
        return false;
    }
    return true;
}

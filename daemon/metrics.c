// Design note. Names begin with kcastd_, units are seconds and bytes, and counters end in _total
// and start at zero with the process. The number of series is bounded: labels are states, verdicts,
// operations, error codes, devices and device classes of this machine, and the searches that were
// active last. The name of a search comes from a client, so the values of labels are escaped.
#include "daemon/metrics.h"
#include "common/clock.h"
#include "daemon/devices/device.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/wait.h"
#include "daemon/run/compiler.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/status.h"
#include "daemon/store/ledger.h"
#include "net/rpc/service.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Begins the samples of one metric.
static void begin(struct strbuf *out, const char *name, const char *type, const char *help)
{
    strbuf_addf(out, "# HELP kcastd_%s %s\n# TYPE kcastd_%s %s\n", name, help, name, type);
}

// Writes the value of a label, escaped.
static void put_value(struct strbuf *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n') {
            strbuf_adds(out, "\\n");
        } else {
            if (*value == '"' || *value == '\\') {
                strbuf_addc(out, '\\');
            }
            strbuf_addc(out, *value);
        }
    }
}

// Writes one sample with up to two labels. The first label that is NULL ends them.
static void sample(struct strbuf *out, const char *name, const char *label, const char *value,
                   const char *label2, const char *value2, double number)
{
    strbuf_addf(out, "kcastd_%s", name);
    if (label) {
        strbuf_addf(out, "{%s=\"", label);
        put_value(out, value);
        if (label2) {
            strbuf_addf(out, "\",%s=\"", label2);
            put_value(out, value2);
        }
        strbuf_adds(out, "\"}");
    }
    strbuf_addf(out, " %.15g\n", number);
}

// Writes a metric of one sample without labels.
static void single(struct strbuf *out, const char *name, const char *type, const char *help,
                   double number)
{
    begin(out, name, type, help);
    sample(out, name, NULL, NULL, NULL, NULL, number);
}

static void write_utilisation(struct strbuf *out, const struct devices *devices,
                              uint64_t started_ns, uint64_t now_ns)
{
    begin(
        out, "device_utilisation_ratio", "gauge",
        "Part of the last minute, and of the time since the start, for which jobs held a device.");
    for (size_t i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[i];
        double start, minute;

        device_utilisation(device, started_ns, now_ns, &start, &minute);
        sample(out, "device_utilisation_ratio", "device", device->name, "over", "minute", minute);
        sample(out, "device_utilisation_ratio", "device", device->name, "over", "start", start);
    }
}

static void write_devices(struct strbuf *out, const struct devices *devices, uint64_t now_ns)
{
    begin(out, "devices", "gauge", "Devices by class and state.");
    const struct device_class *device_class;
    for (device_class = devices->classes; device_class; device_class = device_class->next) {
        size_t count[DEVICE_STATE_COUNT] = {0};

        for (size_t i = 0; i < devices->count; i++) {
            count[devices->device[i].state] += devices->device[i].device_class == device_class;
        }
        for (enum device_state s = 0; s < DEVICE_STATE_COUNT; s++) {
            sample(out, "devices", "class", device_class->name, "state", device_state_name(s),
                   (double)count[s]);
        }
    }
    begin(out, "device_held_seconds_total", "counter", "Seconds a device was held for jobs.");
    for (size_t i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[i];
        uint64_t running_ns = device_job_ns(device, now_ns);

        sample(out, "device_held_seconds_total", "device", device->name, NULL, NULL,
               clock_seconds(device->held_ns + running_ns));
    }
    begin(out, "device_runs_total", "counter", "Runs on a device that ended in an outcome.");
    for (size_t i = 0; i < devices->count; i++) {
        sample(out, "device_runs_total", "device", devices->device[i].name, NULL, NULL,
               (double)devices->device[i].jobs_done);
    }
}

static void write_queues(struct strbuf *out, const struct daemon_parts *parts)
{
    const struct job_census *census = job_table_census(parts->jobs);
    const struct device_class *device_class = parts->devices->classes;

    begin(out, "jobs", "gauge", "Jobs that are not acknowledged yet, by state.");
    for (size_t i = 0; i < JOB_STATE_COUNT; i++) {
        sample(out, "jobs", "state", job_state_name(i), NULL, NULL, (double)census->state[i]);
    }
    single(out, "intake_length", "gauge", "Jobs that wait to be compiled.",
           (double)scheduler_unprepared(parts->scheduler));
    begin(out, "queue_length", "gauge", "Jobs that wait for a device, by its class.");
    for (; device_class; device_class = device_class->next) {
        sample(out, "queue_length", "class", device_class->name, NULL, NULL,
               (double)queue_count(device_class->queue));
    }
}

static void write_work(struct strbuf *out, const struct daemon_parts *parts)
{
    const struct counters *counters = parts->counters;

    begin(out, "verdicts_total", "counter", "Measurements by verdict, without those of the cache.");
    for (size_t i = 0; i < COUNTERS_VERDICTS; i++) {
        sample(out, "verdicts_total", "verdict", verdict_name(i), NULL, NULL,
               (double)counters->verdict[i]);
    }
    begin(out, "jobs_ended_total", "counter", "Jobs that ended, by their last state.");
    for (size_t i = 0; i < JOB_STATE_COUNT; i++) {
        if (job_state_is_terminal(i)) {
            sample(out, "jobs_ended_total", "state", job_state_name(i), NULL, NULL,
                   (double)counters->ended[i]);
        }
    }
    single(out, "jobs_cached_total", "counter", "Jobs that were answered from a cache.",
           (double)counters->cached);
    single(out, "runs_lost_total", "counter", "Runs whose executor was lost.",
           (double)counters->lost);
    single(out, "device_seconds_total", "counter", "Seconds of devices that runs used.",
           counters->device_seconds);
    single(out, "compile_seconds_total", "counter", "Seconds that compilers ran.",
           counters->compile_seconds);
    single(out, "compiling", "gauge", "Compilations under way.",
           (double)compiler_running(parts->compiler));
    single(out, "compile_slots", "gauge",
           "Compilations that may be under way at once, but for some beside recordings.",
           (double)parts->limits.compile_slots);
}

static void write_requests(struct strbuf *out, const struct daemon_parts *parts)
{
    const struct counters *counters = parts->counters;

    begin(out, "requests_total", "counter", "Requests by operation.");
    for (size_t i = 0; i < COUNTERS_OPS; i++) {
        char name[32];
        size_t len = strlen(op_name(i));

        for (size_t c = 0; c <= len && c < sizeof(name); c++) {
            name[c] = (char)tolower((unsigned char)op_name(i)[c]);
        }
        name[sizeof(name) - 1] = '\0';
        if (strcmp(name, "unknown") != 0) {
            sample(out, "requests_total", "op", name, NULL, NULL, (double)counters->request[i]);
        }
    }
    begin(out, "request_failures_total", "counter", "Requests answered by an error, by its code.");
    for (int i = 0; i < ERR_COUNT; i++) {
        sample(out, "request_failures_total", "code", err_name(-1 - i), NULL, NULL,
               (double)service_failure_count(parts->service, (enum err_code)(-1 - i)));
    }
    single(out, "refusals_total", "counter",
           "Connections and requests that were refused, or cut from here.",
           (double)service_refusal_count(parts->service));
    single(out, "waits", "gauge", "Callers that wait for a job to end.",
           (double)waits_count(parts->waits));
}

static void write_searches(struct strbuf *out, const struct counters *counters)
{
    size_t count = HASH_COUNT(counters->searches);
    size_t skip = count > METRICS_SEARCHES_MAX ? count - METRICS_SEARCHES_MAX : 0;
    const struct counters_search *search = counters->searches;
    double rest = counters->others.device_seconds;

    begin(out, "search_device_seconds_total", "counter",
          "Seconds of devices by search; those not heard of lately together, without a name.");
    for (; search && skip > 0; search = search->hh.next, skip--) {
        rest += search->device_seconds;
    }
    for (; search; search = search->hh.next) {
        sample(out, "search_device_seconds_total", "tenant", search->tenant, "search", search->name,
               search->device_seconds);
    }
    sample(out, "search_device_seconds_total", "tenant", "", "search", "", rest);
}

// Returns the resident memory of this process in bytes; 0 when /proc cannot be read.
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;

    if (file) {
        if (fscanf(file, "%*u %llu", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

void metrics_write(struct strbuf *out, const struct daemon_parts *parts)
{
    uint64_t now_ns = clock_now_ns(parts->clock);
    char illness[STATUS_ILLNESS_MAX];

    single(out, "well", "gauge", "1 when /healthz says 200, else 0.",
           status_is_well(parts, illness) ? 1 : 0);
    single(out, "uptime_seconds", "gauge", "Seconds since the start.",
           clock_seconds(now_ns - parts->started_ns));
    write_devices(out, parts->devices, now_ns);
    write_utilisation(out, parts->devices, parts->started_ns, now_ns);
    write_queues(out, parts);
    write_work(out, parts);
    write_requests(out, parts);
    write_searches(out, parts->counters);
    single(out, "results_cached", "gauge", "Rows of the result cache.",
           (double)ledger_results(parts->ledger));
    single(out, "ledger_bytes", "gauge", "Size of the ledger's files.",
           (double)ledger_bytes(parts->ledger));
    single(out, "ledger_damaged_rows_total", "counter",
           "Rows of the ledger that were not as they were written.",
           (double)ledger_damaged(parts->ledger));
    single(out, "unsaved_results", "gauge", "Results that the ledger could not take.",
           (double)completions_unsaved(parts->completions));
    single(out, "resident_bytes", "gauge", "Memory of the daemon itself.", resident_bytes());
}

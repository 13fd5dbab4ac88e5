// Design. Memory and descriptors are compared between moments of equal load. The load is the same
// all the time, so the median of the second quarter of the daemon's longest life is compared with
// that of its last quarter. Caches fill in the first quarter, which is left out. Each child takes
// three of the daemon's descriptors, which come and go with the child and are not counted.
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include "tests/soak/soak.h"
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CALL_MS PROGRAM_LIMIT_MS
#define CHILD_DESCRIPTORS 3
#define ZOMBIE_MAX_NS (10 * NS_PER_S) // longer than the daemon is ever frozen
#define IDLE_MAX_NS (120 * NS_PER_S)

// ---- the daemon's process ----

static double resident_kib(pid_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "re");
    unsigned long long pages = 0;
    if (file) {
        if (fscanf(file, "%*u %llu", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    while (dir && readdir(dir)) {
        count++;
    }
    if (dir) {
        (void)closedir(dir);
    }
    return count > 2 ? count - 2 : 0;
}

double soak_descriptors(const struct soak *soak)
{
    pid_t pids[SOAK_CHILDREN_MAX];
    size_t children = program_children(soak->daemon.pid, pids, ARRAY_LEN(pids));
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)soak->daemon.pid);
    return (double)count_entries(path) - CHILD_DESCRIPTORS * (double)children;
}

static bool is_zombie(pid_t pid)
{
    return !program_alive(pid) && kill(pid, 0) == 0;
}

static void find_zombies(struct soak *soak)
{
    pid_t pids[SOAK_CHILDREN_MAX];
    pid_t zombie[SOAK_CHILDREN_MAX];
    uint64_t since_ns[SOAK_CHILDREN_MAX];
    size_t count = program_children(soak->daemon.pid, pids, ARRAY_LEN(pids));
    uint64_t now_ns = clock_now_ns(&clock_system);
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_zombie(pids[i])) {
            continue;
        }
        zombie[used] = pids[i];
        since_ns[used] = now_ns;
        for (size_t k = 0; k < soak->zombie_count; k++) {
            if (soak->zombie[k] == pids[i]) {
                since_ns[used] = soak->zombie_since_ns[k];
            }
        }
        if (now_ns - since_ns[used] > ZOMBIE_MAX_NS) {
            soak_violation(soak, "the daemon does not reap process %d", (int)pids[i]);
            since_ns[used] = now_ns;
        }
        used++;
    }
    memcpy(soak->zombie, zombie, used * sizeof(*zombie));
    memcpy(soak->zombie_since_ns, since_ns, used * sizeof(*since_ns));
    soak->zombie_count = used;
}

static uint64_t file_size(const struct soak *soak, const char *name)
{
    char *path = xasprintf("%s/%s", soak->state, name);
    struct stat info;
    uint64_t size = stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;

    free(path);
    return size;
}

// Writes the sample to a file, which can be watched while the test runs.
static void note_sample(const struct soak *soak, const struct soak_sample *sample)
{
    char *path = xasprintf("%s/samples", soak->dir);
    FILE *file = fopen(path, "ae");

    if (file) {
        fprintf(file, "%u %.1f %.0f %.0f\n", sample->epoch, sample->at_s, sample->resident_kib,
                sample->descriptors);
        (void)fclose(file);
    }
    free(path);
}

void soak_sample(struct soak *soak)
{
    uint64_t wal = file_size(soak, "ledger.db-wal");

    soak->sample = xgrow(soak->sample, soak->sample_count, sizeof(*soak->sample));
    struct soak_sample *sample = &soak->sample[soak->sample_count++];
    sample->epoch = soak->epoch;
    sample->at_s = clock_seconds(clock_now_ns(&clock_system) - soak->epoch_ns);
    sample->resident_kib = resident_kib(soak->daemon.pid);
    sample->descriptors = soak_descriptors(soak);
    note_sample(soak, sample);
    soak->wal_max = wal > soak->wal_max ? wal : soak->wal_max;
    find_zombies(soak);
    soak_find_orphans(soak);
}

// ---- drift ----

static double median_of(const struct soak_sample *sample, size_t count, bool resident)
{
    double *x = xcalloc(count + 1, sizeof(*x));

    for (size_t i = 0; i < count; i++) {
        x[i] = resident ? sample[i].resident_kib : sample[i].descriptors;
    }
    double median = stats_median(x, count);
    free(x);
    return median;
}

struct soak_drift soak_drift(const struct soak *soak)
{
    const struct soak_sample *best = NULL;
    size_t best_count = 0;
    double longest_s = 0;

    for (size_t i = 0, from = 0; i < soak->sample_count; i++) {
        if (soak->sample[i].epoch != soak->sample[from].epoch) {
            from = i;
        }
        if (soak->sample[i].at_s >= longest_s) {
            longest_s = soak->sample[i].at_s;
            best = &soak->sample[from];
            best_count = i + 1 - from;
        }
    }
    size_t quarter = best_count / 4;
    struct soak_drift drift = {0};
    if (quarter == 0) {
        return drift;
    }
    drift.samples = best_count;
    drift.seconds = longest_s;
    drift.resident_before_kib = median_of(best + quarter, quarter, true);
    drift.resident_after_kib = median_of(best + best_count - quarter, quarter, true);
    drift.descriptors_before = median_of(best + quarter, quarter, false);
    drift.descriptors_after = median_of(best + best_count - quarter, quarter, false);
    return drift;
}

// ---- what the daemon says ----

static bool ask_status(struct soak *soak, struct status *ret)
{
    struct status_request body;

    message_init(&status_request_message, &body);
    struct err err = ERR_INIT;
    return remote_call_sync(soak->remote, OP_STATUS, &status_request_message, &body,
                            &status_message, ret, CALL_MS, &err) == 0;
}

static void probe(struct soak *soak, const char *device)
{
    struct probe_request body = {.device = (char *)(uintptr_t)device};
    struct probed reply;
    struct err err = ERR_INIT;

    if (remote_call_sync(soak->remote, OP_PROBE, &probe_request_message, &body, &probed_message,
                         &reply, CALL_MS, &err) == 0) {
        soak->probes++;
        message_clear(&probed_message, &reply);
    }
}

// Probes quarantined devices, as an operator would. So many executors die here that devices are
// blamed for it.
void soak_probe_quarantined(struct soak *soak)
{
    struct status status;

    if (!ask_status(soak, &status)) {
        return;
    }
    for (size_t i = 0; i < status.devices_count; i++) {
        if (strcmp(status.devices[i].state, "quarantined") == 0) {
            probe(soak, status.devices[i].name);
        }
    }
    message_clear(&status_message, &status);
}

static bool is_idle(struct soak *soak, char *what, size_t size)
{
    struct status status;

    if (!ask_status(soak, &status)) {
        (void)snprintf(what, size, "the daemon does not answer");
        return false;
    }
    bool idle = true;
    for (size_t i = 0; i < status.states_count; i++) {
        if (status.states[i] > 0) {
            (void)snprintf(what, size, "%llu jobs are %s", (unsigned long long)status.states[i],
                           job_state_name(i));
            idle = false;
        }
    }
    for (size_t i = 0; i < status.devices_count; i++) {
        if (status.devices[i].job != 0) {
            (void)snprintf(what, size, "%s is held by job %llu", status.devices[i].name,
                           (unsigned long long)status.devices[i].job);
            idle = false;
        }
    }
    if (status.compiling > 0) {
        (void)snprintf(what, size, "a compiler runs");
        idle = false;
    }
    message_clear(&status_message, &status);
    return idle;
}

bool soak_wait_idle(struct soak *soak)
{
    uint64_t since_ns = clock_now_ns(&clock_system);
    char what[128] = "";

    while (!is_idle(soak, what, sizeof(what))) {
        if (clock_now_ns(&clock_system) - since_ns > IDLE_MAX_NS) {
            soak_violation(soak, "everything is acknowledged, but %s", what);
            return false;
        }
        soak_probe_quarantined(soak);
        (void)usleep(100000);
    }
    return true;
}

// ---- what the daemon leaves on disk ----

static int one_number(void *owner, int columns, char **value, char **name)
{
    (void)columns;
    (void)name;
    (void)snprintf(owner, 64, "%s", value[0] ? value[0] : "");
    return 0;
}

static void check_ledger(struct soak *soak)
{
    char *path = xasprintf("%s/ledger.db", soak->state);
    char jobs[64] = "", integrity[64] = "";
    sqlite3 *db = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "SELECT count(*) FROM job", one_number, jobs, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA integrity_check", one_number, integrity, NULL) != SQLITE_OK) {
        soak_violation(soak, "%s: %s", path, sqlite3_errmsg(db));
    } else {
        if (strcmp(jobs, "0") != 0) {
            soak_violation(soak, "the ledger still has %s jobs", jobs);
        }
        if (strcmp(integrity, "ok") != 0) {
            soak_violation(soak, "the ledger is damaged: %s", integrity);
        }
    }
    (void)sqlite3_close(db);
    free(path);
}

// Reports files that were being written when something was killed.
static void find_temporary_files(struct soak *soak, const char *path, unsigned depth)
{
    bool temporary = strcmp(file_base_name(path), "tmp") == 0;
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        char *below = xasprintf("%s/%s", path, entry->d_name);
        if (temporary || strstr(entry->d_name, ".tmp")) {
            soak_violation(soak, "%s was left behind", below);
        } else if (entry->d_type == DT_DIR && depth < 4) {
            find_temporary_files(soak, below, depth + 1);
        }
        free(below);
    }
    if (dir) {
        (void)closedir(dir);
    }
}

void soak_check_files(struct soak *soak)
{
    check_ledger(soak);
    find_temporary_files(soak, soak->state, 0);
}

// Design note. NVML is opened and read on libuv's thread pool, one call at a time; the loop thread
// only takes what was read.
//
//   timer ─▶ (opened?) read on a thread ─▶ judge ─▶ devices ─▶ probe ─▶ timer
//
// A process that uses a GPU and is not ours counts when it is seen twice in a row: one that has
// just ended may have lost its parent before the driver has forgotten it.
#include "daemon/upkeep/watch.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "daemon/devices/health.h"
#include "daemon/devices/nvml.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/run/measure.h"
#include "daemon/run/process_tree.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_MS 30000
#define PROBE_OUTCOME_MAX 1024

struct watch {
    const struct daemon_parts *parts;
    uv_loop_t *loop;
    uv_timer_t timer;
    bool timer_closed;
    uv_work_t work;
    bool reading;
    bool stopped;
    // Of the thread while reading:
    struct nvml *nvml;
    bool opened; // or tried
    struct err err;
    bool knows_pids;
    struct nvml_state *now;
    uint32_t *stranger; // 0: none
    const char **uuid;
    size_t count;
    // Of the loop:
    bool told; // that there is no NVML
    bool compared;
    struct nvml_state *before;
    uint32_t *stranger_before;
    size_t *index; // of the device
    struct executor *probe;
    size_t probed; // index of the device
};

static void plan(struct watch *watch);

// ---- on the thread ----

static void find_strangers(struct watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        const struct nvml_state *state = &watch->now[i];

        watch->stranger[i] = 0;
        for (size_t p = 0; p < state->process_count && watch->stranger[i] == 0; p++) {
            if (process_tree_is_foreign((pid_t)state->process[p], getpid())) {
                watch->stranger[i] = state->process[p];
            }
        }
    }
}

static void read_work(uv_work_t *work)
{
    struct watch *watch = work->data;

    if (!watch->opened) {
        watch->opened = true;
        if (nvml_open(&watch->nvml, watch->uuid, watch->count, &watch->err) != 0) {
            watch->nvml = NULL;
        }
        watch->knows_pids = process_tree_knows_pids();
    }
    if (watch->nvml) {
        nvml_read(watch->nvml, watch->now);
        if (watch->knows_pids && !watch->parts->limits.share_gpus) {
            find_strangers(watch);
        }
    }
}

// ---- probing ----

static void on_probe_end(void *owner, struct executor_end *end)
{
    struct watch *watch = owner;
    struct device *device = &watch->parts->devices->device[watch->probed];

    watch->probe = NULL;
    if (end->stopped) {
        return;
    }
    device_probe_ends(device, end->ok ? NULL : end->reason, clock_now_ns(&clock_system));
    scheduler_kick(watch->parts->scheduler);
}

// One at a time.
static void probe(struct watch *watch)
{
    struct device *device = devices_to_probe(watch->parts->devices);
    struct executor_config config = {
        .mode = "cuda-health",
        .outcome_max = PROBE_OUTCOME_MAX,
        .deadline_ms = PROBE_MS,
        .grace_ms = watch->parts->limits.grace_ms,
        .limits = {.memory = MEASURE_GROUP_MEMORY, .processes = MEASURE_GROUP_PROCESSES},
        .on_end = on_probe_end,
        .owner = watch,
    };

    if (!device || watch->probe || watch->stopped || executors_held(watch->parts->executors) > 0) {
        return;
    }
    config.argument = device->uuid;
    watch->probed = (size_t)(device - watch->parts->devices->device);
    device_probe_begins(device);
    struct bytes nothing = {0};
    struct err err = ERR_INIT;
    if (executor_start(&watch->probe, watch->parts->executors, &config, &nothing, &err) != 0) {
        watch->probe = NULL;
        log_event(LOG_WARNING, "probe-waits device=%s seconds=%u reason=\"%s\"", device->name,
                  executors_held(watch->parts->executors), err.text);
        device_probe_put_off(device);
    }
}

// ---- on the loop ----

static void take_readings(struct device *device, const struct nvml_state *state, uint64_t now_ns)
{
    struct fact *facts = xcalloc(NVML_READING_COUNT, sizeof(*facts));
    size_t count = 0;

    for (enum nvml_reading i = 0; i < NVML_READING_COUNT; i++) {
        if (state->valid[i]) {
            facts[count++] =
                (struct fact){.name = xstrdup(nvml_reading_name(i)), .value = state->value[i]};
        }
    }
    device_take_readings(device, facts, count, now_ns);
}

static void apply(struct device *device, const struct health *health, uint64_t now_ns)
{
    if (health->program_xid != 0) {
        log_event(LOG_INFO, "gpu-xid device=%s xid=%llu blames=program", device->name,
                  (unsigned long long)health->program_xid);
    }
    if (health->level != HEALTH_LOST) {
        device_found(device);
    }
    switch (health->level) {
    case HEALTH_OK:
        break;
    case HEALTH_THROTTLED:
        device_throttle(device, health->reason, now_ns);
        break;
    case HEALTH_FAULTY:
        device_quarantine(device, health->reason, now_ns);
        break;
    case HEALTH_LOST:
        device_lose(device, false, health->reason);
        break;
    }
}

static void judge(struct watch *watch)
{
    uint64_t now_ns = clock_now_ns(&clock_system);

    for (size_t i = 0; i < watch->count; i++) {
        struct device *device = &watch->parts->devices->device[watch->index[i]];
        bool twice = watch->stranger[i] == watch->stranger_before[i];
        struct health health;

        health_assess(&health, &watch->now[i], watch->compared ? &watch->before[i] : NULL,
                      twice ? watch->stranger[i] : 0);
        if (!watch->now[i].lost) {
            take_readings(device, &watch->now[i], now_ns);
        }
        apply(device, &health, now_ns);
    }
    memcpy(watch->before, watch->now, watch->count * sizeof(*watch->now));
    memcpy(watch->stranger_before, watch->stranger, watch->count * sizeof(*watch->stranger));
    watch->compared = true;
}

static void tell(struct watch *watch)
{
    watch->told = true;
    if (!watch->nvml) {
        log_event(LOG_WARNING, "gpu-health state=unknown reason=\"%s\"", watch->err.text);
    } else if (!watch->knows_pids && !watch->parts->limits.share_gpus) {
        log_event(LOG_INFO, "gpu-health state=on processes=unknown reason=\"in a container with"
                            " process numbers of its own\"");
    } else {
        log_event(LOG_INFO, "gpu-health state=on processes=%s",
                  watch->parts->limits.share_gpus ? "shared" : "known");
    }
}

static void on_read(uv_work_t *work, int status)
{
    struct watch *watch = work->data;

    watch->reading = false;
    if (watch->stopped || status != 0) {
        return;
    }
    if (!watch->told) {
        tell(watch);
    }
    if (watch->nvml) {
        judge(watch);
    }
    probe(watch);
    plan(watch);
}

static void on_timer(uv_timer_t *timer)
{
    struct watch *watch = timer->data;

    watch->work.data = watch;
    watch->reading = uv_queue_work(watch->loop, &watch->work, read_work, on_read) == 0;
}

static void plan(struct watch *watch)
{
    bool busy = false;

    for (size_t i = 0; i < watch->count; i++) {
        busy |= watch->parts->devices->device[watch->index[i]].job != 0;
    }
    (void)uv_timer_start(&watch->timer, on_timer, busy ? WATCH_BUSY_MS : WATCH_MS, 0);
}

// ---- life ----

struct watch *watch_create(const struct daemon_parts *parts)
{
    const struct devices *devices = parts->devices;
    struct watch *watch = xcalloc(1, sizeof(*watch));

    watch->parts = parts;
    watch->loop = parts->loop;
    watch->err = (struct err)ERR_INIT;
    watch->uuid = xcalloc(devices->count + 1, sizeof(*watch->uuid));
    watch->index = xcalloc(devices->count + 1, sizeof(*watch->index));
    for (size_t i = 0; i < devices->count; i++) {
        if (device_is_gpu(&devices->device[i])) {
            watch->uuid[watch->count] = devices->device[i].uuid;
            watch->index[watch->count++] = i;
        }
    }
    watch->now = xcalloc(watch->count + 1, sizeof(*watch->now));
    watch->before = xcalloc(watch->count + 1, sizeof(*watch->before));
    watch->stranger = xcalloc(watch->count + 1, sizeof(*watch->stranger));
    watch->stranger_before = xcalloc(watch->count + 1, sizeof(*watch->stranger_before));
    if (watch->count == 0) {
        watch_free(watch);
        return NULL;
    }
    (void)uv_timer_init(parts->loop, &watch->timer);
    watch->timer.data = watch;
    (void)uv_timer_start(&watch->timer, on_timer, 0, 0);
    return watch;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;

    watch->timer_closed = true;
}

void watch_stop(struct watch *watch)
{
    if (watch && !watch->stopped) {
        watch->stopped = true;
        if (watch->probe) {
            executor_stop(watch->probe);
        }
        uv_close((uv_handle_t *)&watch->timer, on_timer_closed);
    }
}

bool watch_busy(const struct watch *watch)
{
    return watch && (watch->reading || !watch->timer_closed);
}

void watch_free(struct watch *watch)
{
    if (!watch) {
        return;
    }
    nvml_close(watch->nvml);
    free(watch->uuid);
    free(watch->index);
    free(watch->now);
    free(watch->before);
    free(watch->stranger);
    free(watch->stranger_before);
    free(watch);
}

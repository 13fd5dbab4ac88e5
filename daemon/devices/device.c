// Design note. What is known of a device is kept apart, cause by cause. Its state follows from
// these causes in one place (device_settle), which also logs the change. So no cause is forgotten
// when two come together: a GPU drained during a quarantine is still in quarantine when undrained.
//
//   lost > quarantined > draining > probing > suspect > starting > busy > ready
//
// Three executors lost by different jobs in a row are the device's fault; lost by the same job,
// they are the job's. A core then goes into quarantine. A GPU is probed first, and goes into
// quarantine when the same happens again before any run succeeds. Two bad A/A controls in a row put
// either into quarantine, which takes 60 s, then 120 s, and so on up to 64 times 60 s. Afterwards a
// core is on probation, so that one more failure is enough, and a GPU is probed. The first run
// after a quarantine has to include a control.
#include "daemon/devices/device.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *device_state_name(enum device_state state)
{
    static const char *const name[] = {
#define X(id, text) [DEVICE_##id] = text,
        DEVICE_STATES(X)
#undef X
    };

    return name[state];
}

const char *device_why(const struct device *device)
{
    switch (device->state) {
    case DEVICE_LOST:
        return device->loss;
    case DEVICE_QUARANTINED:
        return device->operator_quarantine[0] ? device->operator_quarantine : device->quarantine;
    case DEVICE_DRAINING:
        return device->drain;
    case DEVICE_PROBING:
        return device->suspicion[0] ? device->suspicion : "an operator asked for a probe";
    case DEVICE_SUSPECT:
        return device->suspicion[0] ? device->suspicion : device->throttle_reason;
    case DEVICE_STARTING:
        return "its first process is being started";
    default:
        return NULL;
    }
}

bool device_is_gpu(const struct device *device)
{
    return device->uuid[0] != '\0';
}

static enum device_state state_of(const struct device *device)
{
    if (device->loss[0]) {
        return DEVICE_LOST;
    }
    if (device->quarantine[0] || device->operator_quarantine[0]) {
        return DEVICE_QUARANTINED;
    }
    if (device->drain[0]) {
        return DEVICE_DRAINING;
    }
    if (device->probing || device->inspecting) {
        return DEVICE_PROBING;
    }
    if (device->suspicion[0] || device->throttle_reason[0]) {
        return DEVICE_SUSPECT;
    }
    if (device->starting) {
        return DEVICE_STARTING;
    }
    return device->job != 0 ? DEVICE_BUSY : DEVICE_READY;
}

void device_settle(struct device *device)
{
    static const enum log_level level[] = {
        [DEVICE_READY] = LOG_NOTICE,      [DEVICE_BUSY] = LOG_DEBUG,
        [DEVICE_STARTING] = LOG_INFO,     [DEVICE_SUSPECT] = LOG_NOTICE,
        [DEVICE_PROBING] = LOG_INFO,      [DEVICE_DRAINING] = LOG_NOTICE,
        [DEVICE_QUARANTINED] = LOG_ERROR, [DEVICE_LOST] = LOG_ERROR,
    };
    enum device_state before = device->state;

    device->state = state_of(device);
    // Taking a job and giving it back is not logged.
    if (device->state == before || (before <= DEVICE_BUSY && device->state <= DEVICE_BUSY)) {
        return;
    }
    const char *why = device_why(device);
    log_event(level[device->state], "device-state device=%s from=%s to=%s%s%s%s", device->name,
              device_state_name(before), device_state_name(device->state), why ? " reason=\"" : "",
              why ? why : "", why ? "\"" : "");
}

static void say(device_reason reason, const char *text)
{
    (void)snprintf(reason, DEVICE_REASON_MAX, "%s", text);
}

static double fact_value(const struct fact *facts, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(facts[i].name, name) == 0 && isfinite(facts[i].value) && facts[i].value > 0) {
            return facts[i].value;
        }
    }
    return NAN;
}

void devices_init(struct devices *devices)
{
    *devices = (struct devices){0};
}

// Adds a class to the end of the list. Takes the facts.
static struct device_class *add_class(struct devices *devices, const char *name,
                                      const char *language, struct fact **facts_taken,
                                      size_t *facts_count)
{
    struct device_class *device_class = xcalloc(1, sizeof(*device_class));
    struct device_class **end = &devices->classes;

    device_class->name = xstrdup(name);
    device_class->language = xstrdup(language);
    device_class->queue = queue_create();
    device_class->facts = *facts_taken;
    device_class->facts_count = *facts_count;
    device_class->peak_flops = fact_value(*facts_taken, *facts_count, "peak_flops");
    device_class->peak_bytes = fact_value(*facts_taken, *facts_count, "peak_bytes");
    *facts_taken = NULL;
    *facts_count = 0;
    while (*end) {
        end = &(*end)->next;
    }
    *end = device_class;
    return device_class;
}

static struct device *add_device(struct devices *devices, struct device_class *device_class)
{
    devices->device = xrealloc(devices->device, devices->count + 1, sizeof(*devices->device));
    struct device *device = &devices->device[devices->count++];
    *device = (struct device){.device_class = device_class, .core = -1};
    device->controls = xcalloc(DEVICE_CONTROLS_MAX, sizeof(*device->controls));
    return device;
}

void devices_add_cpus(struct devices *devices, const int *core, size_t count,
                      struct probe_outcome *probe)
{
    struct device_class *device_class =
        add_class(devices, probe->device_class, "c", &probe->facts, &probe->facts_count);

    device_class->toolchain = probe->toolchain;
    probe->toolchain = NULL;
    for (size_t i = 0; i < count; i++) {
        struct device *device = add_device(devices, device_class);

        (void)snprintf(device->name, sizeof(device->name), "cpu%zu", i);
        device->core = core[i];
    }
}

void devices_add_gpu(struct devices *devices, struct gpu_info *gpu, const char *toolchain)
{
    struct device_class *device_class = devices_class(devices, gpu->device_class, "cuda");

    if (!device_class) {
        device_class =
            add_class(devices, gpu->device_class, "cuda", &gpu->facts, &gpu->facts_count);
        device_class->toolchain = xstrdup(toolchain);
        device_class->target = xstrdup(gpu->target);
    }
    struct device *device = add_device(devices, device_class);
    device->ordinal = (unsigned)gpu->ordinal;
    (void)snprintf(device->name, sizeof(device->name), "cuda%u", device->ordinal);
    (void)snprintf(device->uuid, sizeof(device->uuid), "%s", gpu->uuid);
}

static void class_free(struct device_class *device_class)
{
    queue_free(device_class->queue);
    for (size_t i = 0; i < device_class->facts_count; i++) {
        message_clear(&fact_message, &device_class->facts[i]);
    }
    free(device_class->facts);
    free(device_class->toolchain);
    free(device_class->target);
    free(device_class->language);
    free(device_class->name);
    free(device_class);
}

void devices_release(struct devices *devices)
{
    while (devices->classes) {
        struct device_class *next = devices->classes->next;

        class_free(devices->classes);
        devices->classes = next;
    }
    for (size_t i = 0; i < devices->count; i++) {
        device_take_readings(&devices->device[i], NULL, 0, 0);
        free(devices->device[i].controls);
    }
    free(devices->device);
    *devices = (struct devices){0};
}

struct device *devices_find(const struct devices *devices, const char *name)
{
    for (size_t i = 0; i < devices->count; i++) {
        if (strcmp(devices->device[i].name, name) == 0) {
            return &devices->device[i];
        }
    }
    return NULL;
}

uint32_t devices_serving(const struct devices *devices, const struct device_class *device_class,
                         uint32_t *ret_ready)
{
    *ret_ready = 0;
    uint32_t serving = 0;
    for (size_t i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[i];

        if (device->device_class == device_class && device->state <= DEVICE_BUSY) {
            serving++;
            *ret_ready += device->state == DEVICE_READY;
        }
    }
    return serving;
}

uint32_t devices_number(const struct devices *devices, const struct device *device)
{
    return (uint32_t)(device - devices->device) + 1;
}

static bool is_preferred(const struct devices *devices, const struct device *device,
                         const struct device *other, uint32_t avoid)
{
    if (!other || devices_number(devices, other) == avoid) {
        return true;
    }
    if (devices_number(devices, device) == avoid || device->failures != other->failures) {
        return devices_number(devices, device) != avoid && device->failures < other->failures;
    }
    return device->held_ns < other->held_ns;
}

struct device *devices_idle(const struct devices *devices, const struct device_class *device_class,
                            uint32_t avoid)
{
    struct device *best = NULL;

    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        if (device->state == DEVICE_READY && device->device_class == device_class &&
            is_preferred(devices, device, best, avoid)) {
            best = device;
        }
    }
    return best;
}

size_t devices_busy(const struct devices *devices)
{
    size_t busy = 0;

    for (size_t i = 0; i < devices->count; i++) {
        busy += devices->device[i].job != 0;
    }
    return busy;
}

struct device *devices_to_probe(const struct devices *devices)
{
    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        if (device->state == DEVICE_SUSPECT && device->suspicion[0] && device->job == 0) {
            return device;
        }
    }
    return NULL;
}

void device_suspect(struct device *device, const char *reason)
{
    say(device->suspicion, reason);
    device->control_due = true;
}

void device_quarantine(struct device *device, const char *reason, uint64_t now_ns)
{
    unsigned doublings =
        device->quarantines < DEVICE_DOUBLINGS_MAX ? device->quarantines : DEVICE_DOUBLINGS_MAX;

    if (!device->quarantine[0]) {
        device->quarantines++;
        device->until_ns = now_ns + (DEVICE_QUARANTINE_NS << doublings);
    }
    say(device->quarantine, reason);
    device->suspicion[0] = '\0';
    device_settle(device);
}

static void end_quarantine(struct device *device)
{
    device_reason reason;

    (void)snprintf(reason, sizeof(reason), "it has rested, because %.*s", DEVICE_REASON_MAX - 64,
                   device->quarantine);
    device->quarantine[0] = '\0';
    device->control_due = true;
    device->last_failed = 0;
    if (device_is_gpu(device)) {
        device_suspect(device, reason);
    } else if (device->failures > 0) {
        device->failures = DEVICE_FAILURES_MAX - 1; // on probation
    }
}

bool devices_tick(struct devices *devices, uint64_t now_ns)
{
    bool any = false;

    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        if (device->quarantine[0] && now_ns >= device->until_ns) {
            end_quarantine(device);
            any = true;
        }
        if (device->throttle_reason[0] && now_ns - device->throttled_ns >= DEVICE_THROTTLE_NS) {
            device->throttle_reason[0] = '\0';
            any = true;
        }
        device_settle(device);
    }
    return any;
}

void device_lease(struct device *device, uint64_t job, uint64_t now_ns)
{
    device->job = job;
    device->leased_ns = device->since_ns = now_ns;
    device->waiting = true;
    device_settle(device);
}

void device_hold(struct device *device, uint64_t job, uint64_t now_ns)
{
    device->leased_ns = device->job == job ? device->leased_ns : now_ns;
    device->job = job;
    device->since_ns = now_ns;
    device->waiting = false;
    device_settle(device);
}

uint64_t device_job_ns(const struct device *device, uint64_t now_ns)
{
    return device->job != 0 && !device->waiting ? now_ns - device->since_ns : 0;
}

double device_release(struct device *device, uint64_t now_ns)
{
    uint64_t held = device_job_ns(device, now_ns);

    device->since_ns = now_ns - held;
    device->waiting = false;
    device->job = 0;
    device->held_ns += held;
    held_minute_add(&device->minute, device->since_ns, now_ns);
    device_settle(device);
    return clock_seconds(held);
}

void device_succeeded(struct device *device)
{
    device->jobs_done++;
    device->failures = 0;
    device->last_failed = 0;
    device->quarantines = 0;
    device->probe_passed = false;
}

bool device_failed(struct device *device, uint64_t job, const char *reason, uint64_t now_ns)
{
    if (device->last_failed == job) {
        return false;
    }
    device->last_failed = job;
    device->failures++;
    if (device->failures < DEVICE_FAILURES_MAX || device->quarantine[0] || device->loss[0]) {
        return false;
    }
    device_reason text;
    (void)snprintf(text, sizeof(text),
                   "the executors of %u different jobs in a row were lost, the last one: %s",
                   device->failures, reason);
    if (device_is_gpu(device) && !device->probe_passed) {
        device_suspect(device, text);
        device_settle(device);
    } else {
        device_quarantine(device, text, now_ns);
    }
    return true;
}

void devices_forgive(struct devices *devices, uint64_t job, uint32_t first)
{
    if (first == 0 || devices->device[first - 1].failures > 0) {
        return;
    }
    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        if (device->last_failed == job && device->failures > 0) {
            device->failures--;
            device->last_failed = 0;
        }
    }
}

void device_throttle(struct device *device, const char *reason, uint64_t now_ns)
{
    say(device->throttle_reason, reason);
    say(device->disturbance, reason);
    device->throttled_ns = now_ns;
    device_settle(device);
}

bool device_was_disturbed(const struct device *device)
{
    return device->job != 0 && device->throttled_ns >= device->since_ns;
}

void device_lose(struct device *device, bool stuck, const char *reason)
{
    device->stuck |= stuck;
    say(device->loss, reason);
    device_settle(device);
}

void device_starts(struct device *device)
{
    device->starting = true;
    device_settle(device);
}

void device_started(struct device *device)
{
    device->starting = false;
    device_settle(device);
}

void device_found(struct device *device)
{
    if (device->loss[0] && !device->stuck) {
        device->loss[0] = '\0';
        device_suspect(device, "it was lost and is there again");
        device_settle(device);
    }
}

void device_probe_begins(struct device *device)
{
    device->probing = true;
    device_settle(device);
}

void device_probe_put_off(struct device *device)
{
    device->probing = false;
    device_settle(device);
}

void device_probe_ends(struct device *device, const char *failure, uint64_t now_ns)
{
    device->probing = false;
    device->suspicion[0] = '\0';
    if (failure) {
        device_quarantine(device, failure, now_ns);
        return;
    }
    device->probe_passed = true;
    device->failures = 0;
    device_settle(device);
}

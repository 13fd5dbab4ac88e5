// Design note.
//
//   READY --hold--> BUSY --release--> READY
//   READY --3 different jobs lost their executor in a row--> QUARANTINED
//   READY --2 bad A/A controls in a row--> QUARANTINED
//   QUARANTINED --60 s--> READY, on probation
//
// On probation one more failure or bad control is enough, and the first run has to include a
// control. A device that is lost stays out.
//
// A failure is blamed on the job when the same job fails again, and on the device when different
// ones do.
#include "daemon/device.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *device_state_name(enum device_state state)
{
    static const char *const name[] = {
        [DEVICE_READY] = "ready",
        [DEVICE_BUSY] = "busy",
        [DEVICE_QUARANTINED] = "quarantined",
    };

    return name[state];
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

// A new class, the last of the list. Takes the facts.
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
    struct device *device;

    devices->device = xrealloc(devices->device, devices->count + 1, sizeof(*devices->device));
    device = &devices->device[devices->count++];
    *device = (struct device){.device_class = device_class, .core = -1};
    device->controls = xcalloc(DEVICE_CONTROLS_MAX, sizeof(*device->controls));
    return device;
}

void devices_add_cpus(struct devices *devices, const int *core, size_t count,
                      struct probe_report *probe)
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
    struct device *device;

    if (!device_class) {
        device_class =
            add_class(devices, gpu->device_class, "cuda", &gpu->facts, &gpu->facts_count);
        device_class->toolchain = xstrdup(toolchain);
        device_class->target = xstrdup(gpu->target);
    }
    device = add_device(devices, device_class);
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
        free(devices->device[i].controls);
    }
    free(devices->device);
    *devices = (struct devices){0};
}

struct device_class *devices_class(const struct devices *devices, const char *name,
                                   const char *language)
{
    struct device_class *device_class = devices->classes;

    while (device_class && ((name && strcmp(device_class->name, name) != 0) ||
                            (language && strcmp(device_class->language, language) != 0))) {
        device_class = device_class->next;
    }
    return device_class;
}

static void list_classes(const struct devices *devices, struct strbuf *out)
{
    const struct device_class *device_class = devices->classes;

    for (; device_class; device_class = device_class->next) {
        strbuf_addf(out, "%s%s (%s)", out->len > 0 ? ", " : "", device_class->name,
                    device_class->language);
    }
}

int devices_choose(struct device_class **ret, const struct devices *devices, const char *name,
                   const char *language, struct err *err)
{
    struct device_class *device_class = devices_class(devices, name, language);
    struct strbuf classes = STRBUF_INIT;

    if (device_class) {
        *ret = device_class;
        return 0;
    }
    list_classes(devices, &classes);
    if (name && devices_class(devices, name, NULL)) {
        (void)err_set(err, ERR_NOT_FOUND, "devices of class %s do not run %s problems; there is %s",
                      name, language, strbuf_text(&classes));
    } else if (name) {
        (void)err_set(err, ERR_NOT_FOUND, "no device of class %s here; there is %s", name,
                      strbuf_text(&classes));
    } else {
        (void)err_set(err, ERR_NOT_FOUND, "no device of this daemon runs %s problems; there is %s",
                      language, strbuf_text(&classes));
    }
    strbuf_release(&classes);
    return ERR_NOT_FOUND;
}

struct device *devices_idle(const struct devices *devices, const struct device_class *device_class)
{
    struct device *best = NULL;

    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        if (device->state == DEVICE_READY && device->device_class == device_class &&
            (!best || device->held_ns < best->held_ns)) {
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

static void quarantine(struct device *device, uint64_t now_ns)
{
    device->state = DEVICE_QUARANTINED;
    device->until_ns = now_ns + DEVICE_REST_NS;
    log_event(LOG_ERROR, "device-quarantined device=%s reason=\"%s\"", device->name,
              device->reason);
}

bool devices_tick(struct devices *devices, uint64_t now_ns)
{
    bool any = false;

    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];

        if (device->state == DEVICE_QUARANTINED && !device->lost && now_ns >= device->until_ns) {
            device->state = DEVICE_READY;
            device->reason[0] = '\0';
            device->control_due = true;
            // On probation: the next failure counts as the last of a row.
            device->failures = device->failures > 0 ? DEVICE_FAILURES_MAX - 1 : 0;
            device->last_failed = 0;
            log_event(LOG_NOTICE, "device-tried-again device=%s", device->name);
            any = true;
        }
    }
    return any;
}

void device_hold(struct device *device, uint64_t job, uint64_t now_ns)
{
    device->state = DEVICE_BUSY;
    device->job = job;
    device->since_ns = now_ns;
}

double device_release(struct device *device, uint64_t now_ns)
{
    uint64_t held = now_ns - device->since_ns;

    device->state = DEVICE_READY;
    device->job = 0;
    device->held_ns += held;
    return clock_seconds(held);
}

void device_succeeded(struct device *device)
{
    device->jobs_done++;
    device->failures = 0;
    device->last_failed = 0;
}

bool device_failed(struct device *device, uint64_t job, const char *reason, uint64_t now_ns)
{
    if (device->last_failed == job) {
        return false;
    }
    device->last_failed = job;
    device->failures++;
    if (device->failures < DEVICE_FAILURES_MAX || device->state == DEVICE_QUARANTINED) {
        return false;
    }
    (void)snprintf(device->reason, sizeof(device->reason),
                   "the executors of %u different jobs in a row were lost, the last one: %s",
                   device->failures, reason);
    quarantine(device, now_ns);
    return true;
}

void device_lose(struct device *device, const char *reason)
{
    device->lost = true;
    device->state = DEVICE_QUARANTINED;
    (void)snprintf(device->reason, sizeof(device->reason), "%s", reason);
    log_event(LOG_ERROR, "device-lost device=%s reason=\"%s\"", device->name, device->reason);
}

static struct control *find_control(const struct device *device, const struct digest *about)
{
    for (size_t i = 0; i < device->control_count; i++) {
        if (digest_equal(&device->controls[i].about, about)) {
            return &device->controls[i];
        }
    }
    return NULL;
}

bool device_needs_control(const struct device *device, const struct digest *about, uint64_t now_ns)
{
    const struct control *control = find_control(device, about);

    return device->control_due || device->bad_controls > 0 || !control ||
           now_ns - control->at_ns > DEVICE_CONTROL_AGE_NS;
}

static void remember(struct device *device, const struct digest *about,
                     const struct estimate *estimate, uint64_t now_ns)
{
    struct control *control = find_control(device, about);
    size_t index;

    // The list is by age: what is renewed goes to its end, and the oldest makes room.
    if (control || device->control_count == DEVICE_CONTROLS_MAX) {
        index = control ? (size_t)(control - device->controls) : 0;
        memmove(&device->controls[index], &device->controls[index + 1],
                (device->control_count - index - 1) * sizeof(*device->controls));
        device->control_count--;
    }
    device->controls[device->control_count++] =
        (struct control){.about = *about, .at_ns = now_ns, .estimate = *estimate};
    device->last_control = *estimate;
    device->has_control = true;
}

bool device_control(struct device *device, const struct digest *about,
                    const struct estimate *estimate, uint64_t now_ns)
{
    bool bad = estimate->lo > DEVICE_CONTROL_LOG2 || estimate->hi < -DEVICE_CONTROL_LOG2;

    remember(device, about, estimate, now_ns);
    device->control_due = false;
    if (!bad) {
        device->bad_controls = 0;
        return true;
    }
    log_event(LOG_WARNING, "control-off device=%s log2=%.4f lo=%.4f hi=%.4f", device->name,
              estimate->log2, estimate->lo, estimate->hi);
    if (++device->bad_controls < 2) {
        return false;
    }
    device->bad_controls = 1; // on probation after its rest
    (void)snprintf(device->reason, sizeof(device->reason),
                   "the baseline measured against itself differs by more than 1 %% twice in a row"
                   " (log2 ratio %.4f, interval %.4f to %.4f)",
                   estimate->log2, estimate->lo, estimate->hi);
    quarantine(device, now_ns);
    return false;
}

const struct estimate *device_last_control(const struct device *device, const struct digest *about)
{
    const struct control *control = find_control(device, about);

    return control ? &control->estimate : NULL;
}

struct digest device_about(const struct digest *problem, const struct digest *baseline)
{
    struct digest_state *state = digest_begin();

    digest_add(state, problem, sizeof(*problem));
    digest_add(state, baseline, sizeof(*baseline));
    return digest_end(state);
}

// The devices: who holds each, whether it can be trusted, what it was held for. Also the queue of
// each class of devices. Decides when a device goes out of service, when it has to be probed and
// when it needs an A/A control. Knows nothing of executors and NVML; time comes in.
#ifndef DAEMON_DEVICES_DEVICE_H
#define DAEMON_DEVICES_DEVICE_H

#include "common/digest.h"
#include "daemon/sched/queue.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_NAME_MAX 32
#define DEVICE_UUID_MAX 64
#define DEVICE_REASON_MAX 512
#define DEVICE_FAILURES_MAX 3 // executors lost by different jobs in a row
#define DEVICE_REST_NS                                                                             \
    (60 * 1000000000ULL)   // the first quarantine; each further one is twice as long
#define DEVICE_RESTS_MAX 6 // … up to 2^6 times
#define DEVICE_HOLD_NS (5 * 1000000000ULL) // what hinders must have been gone for so long
#define DEVICE_CONTROL_AGE_NS (3600 * 1000000000ULL)
#define DEVICE_CONTROL_LOG2 0.0143553 // log2(1.01): a control may exclude 0 by this much
#define DEVICE_CONTROLS_MAX 128       // (problem, baseline) pairs remembered per device

// Follows from what is known of the device: the last of these that applies.
#define DEVICE_STATES(X)                                                                           \
    X(READY, "ready")             /* takes the next job */                                         \
    X(BUSY, "busy")               /* held for a job */                                             \
    X(SUSPECT, "suspect")         /* something hinders it, or it is to be probed */                \
    X(PROBING, "probing")         /* kcast-exec tries it */                                        \
    X(DRAINING, "draining")       /* an operator wants it to take no job */                        \
    X(QUARANTINED, "quarantined") /* out of service for some time */                               \
    X(LOST, "lost")               /* gone, or held by a process that does not die */

enum device_state {
#define X(id, name) DEVICE_##id,
    DEVICE_STATES(X)
#undef X
        DEVICE_STATE_COUNT
};

// Texts and facts about why; the first byte is 0 where there is nothing.
typedef char device_reason[DEVICE_REASON_MAX];

// Devices whose results are interchangeable.
struct device_class {
    char *name;          // as the probe says
    char *language;      // of the problems it runs: "c" or "cuda"
    char *target;        // cuda: architecture, "sm_90"; else NULL
    struct queue *queue; // READY jobs
    struct fact *facts;  // from the probe
    size_t facts_count;
    char *toolchain;
    double peak_flops; // NaN when unknown
    double peak_bytes;
    struct device_class *next;
};

// The last A/A control of a device for a problem and a baseline.
struct control {
    struct digest about; // of the two
    uint64_t at_ns;
    struct estimate estimate;
};

struct device {
    char name[DEVICE_NAME_MAX]; // "cpu0", "cuda0"
    struct device_class *device_class;
    int core;                      // -1: none of its own
    char uuid[DEVICE_UUID_MAX];    // of a GPU, else ""
    unsigned ordinal;              // of a GPU
    enum device_state state;       // of device.c, as everything down to until_ns
    device_reason throttle_reason; // that passes by itself: heat, another program
    device_reason disturbance;     // the last throttle reason, also when it has passed
    uint64_t hindered_ns;          // when it was last seen
    device_reason suspicion;       // a probe has to be passed first
    bool probing;
    device_reason drain;               // an operator's
    device_reason operator_quarantine; // an operator's too: until a probe is passed
    bool inspecting;                   // a probe that an operator asked for is due or under way
    device_reason quarantine;          // until until_ns
    device_reason loss;
    bool stuck;               // lost to a process: never returns
    uint64_t until_ns;        // end of quarantine
    uint64_t job;             // that it is held for, 0: none
    uint64_t since_ns;        // when that began
    uint64_t held_ns;         // altogether
    uint64_t jobs_done;       // runs that ended in a report
    unsigned failures;        // runs of different jobs that failed since the last report
    uint64_t last_failed;     // job of the last of them
    unsigned bad_controls;    // in a row
    bool control_due;         // back from quarantine: the next run needs a control
    unsigned rests;           // quarantines since the last report
    bool cleared;             // a probe was passed since the last report
    struct control *controls; // [DEVICE_CONTROLS_MAX], oldest first
    size_t control_count;
    struct estimate last_control;
    bool has_control;
    struct fact *readings; // of NVML, what was read last
    size_t readings_count;
    uint64_t read_ns; // when
};

struct devices {
    struct device *device;
    size_t count;
    struct device_class *classes; // in the order in which they were added
};

const char *device_state_name(enum device_state state);
// Why it is in its state; NULL for READY and BUSY.
const char *device_why(const struct device *device);
bool device_is_gpu(const struct device *device);

void devices_init(struct devices *devices); // none
void devices_release(struct devices *devices);
// The next two invalidate pointers to devices (not to classes).
// CPU devices on the given cores, all of the probe's class. Takes facts and toolchain out of the
// probe.
void devices_add_cpus(struct devices *devices, const int *core, size_t count,
                      struct probe_outcome *probe);
// A GPU, named after its ordinal. GPUs of the same device_class share one. Takes facts out of *gpu.
void devices_add_gpu(struct devices *devices, struct gpu_info *gpu, const char *toolchain);

// The class of this name, or the first one of this language; NULL matches all of them. NULL when
// there is none.
struct device_class *devices_class(const struct devices *devices, const char *name,
                                   const char *language);
// The class that problems of this language (NULL: any) run on: the named one, or the first one that
// runs them when name is NULL. ERR_NOT_FOUND says which classes there are.
MUST_CHECK int devices_choose(struct device_class **ret, const struct devices *devices,
                              const char *name, const char *language, struct err *err);
// The device of this name, NULL when there is none.
struct device *devices_find(const struct devices *devices, const char *name);
// A device of the class that is READY; NULL when there is none. When there are several, not the one
// of number `avoid` (0: none); of the others the one that lost the fewest runs in a row, so that
// failing fast does not attract work, and of those the one held least so far.
struct device *devices_idle(const struct devices *devices, const struct device_class *device_class,
                            uint32_t avoid);
// Its place in the list, from 1 on.
uint32_t devices_number(const struct devices *devices, const struct device *device);
// How many of the class may be measured on, now or when they are free; of these how many are READY.
uint32_t devices_serving(const struct devices *devices, const struct device_class *device_class,
                         uint32_t *ret_ready);
size_t devices_busy(const struct devices *devices);
// A device that waits to be probed and is not held; NULL when there is none.
struct device *devices_to_probe(const struct devices *devices);
// Ends quarantines and hindrances whose time is over: a core is tried again on probation, a GPU is
// probed first. Returns true when there was one.
bool devices_tick(struct devices *devices, uint64_t now_ns);

// READY -> BUSY.
void device_hold(struct device *device, uint64_t job, uint64_t now_ns);
// The end of that, and the seconds it was held. Say afterwards how it went:
double device_release(struct device *device, uint64_t now_ns);
// The run ended in a report. Forgives earlier failures.
void device_succeeded(struct device *device);
// The run was lost. When too many different jobs failed in a row a core goes into quarantine, and a
// GPU has to be probed, or into quarantine when it was a probe that it passed last; true then.
bool device_failed(struct device *device, uint64_t job, const char *reason, uint64_t now_ns);

// The job is given up after its last executor was lost; first: number of the device (0: unknown)
// where it was lost before. When that one has worked since, the job was at fault, and its failure
// counts against no device. When nothing has worked in between it may be the host's, and counts.
void devices_forgive(struct devices *devices, uint64_t job, uint32_t first);

// Whether something has hindered it since it was held; device->disturbance says what.
bool device_was_disturbed(const struct device *device);
// What health.h finds. Each replaces what was said before.
void device_hinder(struct device *device, const char *reason, uint64_t now_ns);
void device_quarantine(struct device *device, const char *reason, uint64_t now_ns);
// The GPU cannot be reached any more; it returns through a probe when device_found is called.
// stuck: a process on it does not die, and it is out of service until the daemon restarts.
void device_lose(struct device *device, bool stuck, const char *reason);
void device_found(struct device *device);

void device_probe_begins(struct device *device);
// It could not be tried, for no reason of its own: it is still to be probed.
void device_probe_put_off(struct device *device);
// NULL: it works. Otherwise it goes into quarantine.
void device_probe_ends(struct device *device, const char *failure, uint64_t now_ns);

// An operator's (device_operator.c): it takes no more jobs until device_undrain; the running one
// goes on. A GPU that was drained is probed when it comes back.
void device_drain(struct device *device, const char *reason);
void device_undrain(struct device *device);
// An operator thinks that it is broken: it takes no more jobs until an inspection is passed.
void device_quarantine_by_operator(struct device *device, const char *reason);
// A probe that an operator asked for: from now on it takes no more jobs; when none is on it
// (device->job) and it is not being probed already, it can be tried.
void device_inspection_begins(struct device *device);
// failure NULL: it works, and every quarantine and suspicion is over. Otherwise it goes into
// quarantine.
void device_inspection_ends(struct device *device, const char *failure, uint64_t now_ns);
// It was not tried after all: as before.
void device_inspection_fails(struct device *device);

// For device.c and device_operator.c alone: the state from the causes, and a line in the log when
// it changed; a probe has to be passed first (settle afterwards).
void device_settle(struct device *device);
void device_suspect(struct device *device, const char *reason);

// What NVML reads now. Takes the facts.
void device_take_readings(struct device *device, struct fact *readings_taken, size_t count,
                          uint64_t now_ns);

// A copy of these and, as read_seconds_ago, how old they are; none without readings. malloc'd.
struct fact *device_readings(const struct device *device, uint64_t now_ns, size_t *ret_count);

// Whether the next run for (problem, baseline) has to include an A/A control.
bool device_needs_control(const struct device *device, const struct digest *about, uint64_t now_ns);
// A control has been measured. Returns false when it excludes 0 by more than is allowed; the second
// time in a row the device goes out of service.
bool device_control(struct device *device, const struct digest *about,
                    const struct estimate *estimate, uint64_t now_ns);
// The last control for (problem, baseline); NULL when there is none.
const struct estimate *device_last_control(const struct device *device, const struct digest *about);
// Names the pair.
struct digest device_about(const struct digest *problem, const struct digest *baseline);

#endif

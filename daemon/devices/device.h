// The devices: who holds each, whether it can be trusted, how long it was held. Also the queue of
// each class of devices. Decides when a device goes out of service, when it has to be probed and
// when it needs an A/A control. Called by the scheduler, by measure.c and by the upkeep of devices.
// Knows nothing of executors and NVML; time comes in as an argument.
#ifndef DAEMON_DEVICES_DEVICE_H
#define DAEMON_DEVICES_DEVICE_H

#include "common/digest.h"
#include "daemon/devices/utilisation.h"
#include "daemon/sched/queue.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_NAME_MAX 32
#define DEVICE_UUID_MAX 64
#define DEVICE_REASON_MAX 512
#define DEVICE_FAILURES_MAX 3 // runs of different jobs lost in a row: the device is at fault
// The first quarantine. Each further one is twice as long, up to 2^DEVICE_DOUBLINGS_MAX times.
#define DEVICE_QUARANTINE_NS (60 * 1000000000ULL)
#define DEVICE_DOUBLINGS_MAX 6
// A throttle reason holds for so long after it was last seen.
#define DEVICE_THROTTLE_NS (5 * 1000000000ULL)
#define DEVICE_CONTROL_AGE_NS (3600 * 1000000000ULL) // an older control is measured again
// log2(1.01): the interval of a control may exclude 0 by so much.
#define DEVICE_CONTROL_LOG2 0.0143553
#define DEVICE_CONTROLS_MAX 128 // (problem, baseline) pairs remembered per device

// The state follows from what is known of the device. It is the last of these that applies.
#define DEVICE_STATES(X)                                                                           \
    X(READY, "ready")             /* takes the next job */                                         \
    X(BUSY, "busy")               /* held for a job */                                             \
    X(STARTING, "starting")       /* its first process is being started */                         \
    X(SUSPECT, "suspect")         /* it is throttled, or is to be probed */                        \
    X(PROBING, "probing")         /* kcast-exec tries it */                                        \
    X(DRAINING, "draining")       /* an operator keeps it from jobs */                             \
    X(QUARANTINED, "quarantined") /* out of service for some time */                               \
    X(LOST, "lost")               /* gone, or held by a process that does not die */

enum device_state {
#define X(id, name) DEVICE_##id,
    DEVICE_STATES(X)
#undef X
        DEVICE_STATE_COUNT
};

// One sentence that says why something is so; an empty text says that it is not so.
typedef char device_reason[DEVICE_REASON_MAX];

// Devices whose results are interchangeable.
struct device_class {
    char *name;          // as the probe of the device says
    char *language;      // of the problems it runs: "c" or "cuda"
    char *target;        // cuda: architecture, "sm_90"; else NULL
    struct queue *queue; // READY jobs; owned
    struct fact *facts;  // from the probe
    size_t facts_count;
    char *toolchain;
    double peak_flops; // NaN when unknown
    double peak_bytes;
    struct device_class *next;
};

// The last A/A control of a device (the baseline measured against itself) for a problem and a
// baseline.
struct device_control {
    struct digest pair; // of problem and baseline, see device_control_pair
    uint64_t at_ns;
    struct estimate estimate;
};

struct device {
    char name[DEVICE_NAME_MAX]; // "cpu0", "cuda0"
    struct device_class *device_class;
    int core;                   // processor number; -1: none of its own
    char uuid[DEVICE_UUID_MAX]; // of a GPU, else ""
    unsigned ordinal;           // of a GPU
    // The state and the causes from which it follows. Only the functions below change them.
    enum device_state state;
    device_reason throttle_reason; // passes by itself: heat, another program
    device_reason disturbance;     // the last throttle reason, kept when it has passed
    uint64_t throttled_ns;         // when a throttle reason was last seen
    device_reason suspicion;       // why a probe has to be passed first
    bool probing;                  // such a probe is under way
    device_reason drain;           // set while an operator keeps new jobs from the device
    // Set while an operator keeps the device out of service. Cleared when an inspection succeeds.
    device_reason operator_quarantine;
    bool inspecting;          // a probe that an operator asked for is due or under way
    device_reason quarantine; // set until until_ns
    uint64_t until_ns;        // end of the quarantine
    device_reason loss;       // the device is gone, or held by a process that does not die
    bool stuck;               // lost to a process that does not die: it never returns
    bool starting;            // its first process is being started
    // The job that holds it.
    uint64_t job;       // number, 0: none
    uint64_t leased_ns; // since when the device is kept for it
    bool waiting;       // it is kept, and its process is not ready or has no plan yet
    uint64_t since_ns;  // since when it holds the device; while it waits, leased_ns
    // What has happened on it.
    uint64_t held_ns;          // time held by all jobs so far
    struct held_minute minute; // the same of the last minute
    uint64_t jobs_done;        // runs that ended with an outcome
    unsigned failures;         // runs of different jobs lost since the last outcome
    uint64_t last_failed;      // job of the last of these
    unsigned quarantines;      // since the last outcome
    bool probe_passed;         // since the last outcome
    // A/A controls.
    unsigned bad_controls;           // in a row
    bool control_due;                // it was out of service: the next run needs a control
    struct device_control *controls; // [DEVICE_CONTROLS_MAX], oldest first
    size_t control_count;
    struct estimate last_control; // of any pair
    bool has_control;             // last_control is set
    // What NVML read last.
    struct fact *readings;
    size_t readings_count;
    uint64_t read_ns;
};

struct devices {
    struct device *device;
    size_t count;
    struct device_class *classes; // in the order in which they were added
};

const char *device_state_name(enum device_state state);
// The sentence that says why it is in its state; NULL for READY and BUSY.
const char *device_why(const struct device *device);
bool device_is_gpu(const struct device *device);

void devices_init(struct devices *devices); // an empty list
void devices_release(struct devices *devices);
// Adds a CPU device for each of the given cores, all of the probe's class. Takes facts and
// toolchain out of the probe. Pointers to devices become invalid, pointers to classes do not.
void devices_add_cpus(struct devices *devices, const int *core, size_t count,
                      struct probe_outcome *probe);
// Adds a GPU, which is named after its ordinal. GPUs of the same device_class share one class.
// Takes facts out of *gpu. Pointers to devices become invalid, pointers to classes do not.
void devices_add_gpu(struct devices *devices, struct gpu_info *gpu, const char *toolchain);

// Returns the first class of this name and this language, of which each may be NULL: any. NULL when
// there is none.
struct device_class *devices_class(const struct devices *devices, const char *name,
                                   const char *language);
// Sets *ret to the class that problems of this language (NULL: any) run on: the named one, or the
// first one that runs them when name is NULL. ERR_NOT_FOUND says which classes there are.
MUST_CHECK int devices_choose(struct device_class **ret, const struct devices *devices,
                              const char *name, const char *language, struct err *err);
// Returns the device of this name, NULL when there is none.
struct device *devices_find(const struct devices *devices, const char *name);
// Returns a READY device of the class, NULL when there is none. Of several it is not the one of
// number `avoid` (0: none). Of the others it is the one that lost the fewest runs in a row, so that
// failing fast does not attract work, and of those the one that was held least so far.
struct device *devices_idle(const struct devices *devices, const struct device_class *device_class,
                            uint32_t avoid);
// Its place in the list, counted from 1.
uint32_t devices_number(const struct devices *devices, const struct device *device);
// How many devices of the class are in service (READY or BUSY). *ret_ready is how many are READY.
uint32_t devices_serving(const struct devices *devices, const struct device_class *device_class,
                         uint32_t *ret_ready);
// How many devices are held for a job.
size_t devices_busy(const struct devices *devices);
// Returns a device that is to be probed and is not held; NULL when there is none.
struct device *devices_to_probe(const struct devices *devices);
// Ends quarantines and throttle reasons whose time is over. After a quarantine a core is READY on
// probation, and a GPU is probed first. Returns true when something has ended.
bool devices_tick(struct devices *devices, uint64_t now_ns);

// The device is kept for the job from now on: READY becomes BUSY. No time counts as held until
// device_hold.
void device_lease(struct device *device, uint64_t job, uint64_t now_ns);
// The job holds the device from now on: READY becomes BUSY if it was not leased before. The time
// that is held counts from here.
void device_hold(struct device *device, uint64_t job, uint64_t now_ns);
// How long the job has held the device; 0 when none does.
uint64_t device_job_ns(const struct device *device, uint64_t now_ns);
// The job no longer holds the device. Returns the seconds for which it did. The caller then says
// how the run went, by one of the next two functions.
double device_release(struct device *device, uint64_t now_ns);
// The run ended with an outcome. Earlier failures no longer count.
void device_succeeded(struct device *device);
// The run was lost. After DEVICE_FAILURES_MAX different jobs in a row a core goes into quarantine.
// A GPU has to be probed then, or goes into quarantine when it has passed a probe since the last
// outcome. Returns true when that happens.
bool device_failed(struct device *device, uint64_t job, const char *reason, uint64_t now_ns);

// The job is given up because its last executor was lost. first is the number of the device where
// it was lost before, 0 when that is unknown. If that device has worked since, the job was at
// fault, and its failure counts against no device. If nothing has worked in between, the host may
// be at fault, and the failure counts.
void devices_forgive(struct devices *devices, uint64_t job, uint32_t first);

// Whether it was throttled while its job has held it; device->disturbance says by what.
bool device_was_disturbed(const struct device *device);
// A reading says that the device is slowed down or disturbed (health.h). The reason replaces an
// earlier one and holds until DEVICE_THROTTLE_NS after the last call.
void device_throttle(struct device *device, const char *reason, uint64_t now_ns);
// The device goes out of service for some time. During a quarantine only the reason is replaced.
void device_quarantine(struct device *device, const char *reason, uint64_t now_ns);
// The device cannot be reached any more. stuck: a process on it does not die, so it stays lost
// until the daemon restarts.
void device_lose(struct device *device, bool stuck, const char *reason);
// The first process of a GPU is being started: it takes no jobs until device_started, which is
// called however that has ended.
void device_starts(struct device *device);
void device_started(struct device *device);
// The device can be reached. One that was lost and is not stuck has to pass a probe.
void device_found(struct device *device);

void device_probe_begins(struct device *device);
// The probe could not be run, and that says nothing about the device: it is still to be probed.
void device_probe_put_off(struct device *device);
// failure NULL: the device works. Otherwise it goes into quarantine.
void device_probe_ends(struct device *device, const char *failure, uint64_t now_ns);

// The next functions are what an operator asks for (device_operator.c). reason may be NULL.

// The device takes no more jobs until device_undrain; the running one goes on. A GPU that was
// drained is probed before it takes jobs again.
void device_drain(struct device *device, const char *reason);
void device_undrain(struct device *device);
// The device takes no more jobs until an inspection succeeds.
void device_quarantine_by_operator(struct device *device, const char *reason);
// An inspection is a probe that an operator asks for. The device takes no more jobs from now on;
// the probe can run when no job holds the device and no other probe is under way.
void device_inspection_begins(struct device *device);
// failure NULL: the device works, and all its quarantines and suspicions end. Otherwise it goes
// into quarantine.
void device_inspection_ends(struct device *device, const char *failure, uint64_t now_ns);
// The probe was not run. The device is as it was before the inspection.
void device_inspection_put_off(struct device *device);

// The next two are for device.c and device_operator.c alone.

// Derives the state from what is known of the device, and logs it when it has changed.
void device_settle(struct device *device);
// The device has to pass a probe first. The caller calls device_settle afterwards.
void device_suspect(struct device *device, const char *reason);

// The next two are in device_readings.c.

// Stores what NVML reads now. The facts are taken.
void device_take_readings(struct device *device, struct fact *readings_taken, size_t count,
                          uint64_t now_ns);
// Returns a copy of the last readings and, as the fact read_seconds_ago, how old they are.
// malloc'd; *ret_count is 0 when there are none.
struct fact *device_readings(const struct device *device, uint64_t now_ns, size_t *ret_count);

// The next four are in device_control.c. A pair is a problem and a baseline, as device_control_pair
// names it.

// Whether the next run for the pair has to include an A/A control.
bool device_needs_control(const struct device *device, const struct digest *pair, uint64_t now_ns);
// A control has been measured. Returns false when its interval excludes 0 by more than is allowed.
// The second time in a row the device goes into quarantine.
bool device_add_control(struct device *device, const struct digest *pair,
                        const struct estimate *estimate, uint64_t now_ns);
// The last control for the pair; NULL when there is none. Valid until the next one is added.
const struct estimate *device_last_control(const struct device *device, const struct digest *pair);
struct digest device_control_pair(const struct digest *problem, const struct digest *baseline);

#endif

// The GPUs as NVIDIA's management library sees them: readings, events, and the processes that use
// them. The library is loaded at run time. Called by the watch over GPUs. A call can take
// milliseconds and more, so it belongs on another thread than the loop's, and only one may run at a
// time.
#ifndef DAEMON_DEVICES_NVML_H
#define DAEMON_DEVICES_NVML_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_PROCESSES_MAX 64 // processes of one GPU whose numbers are kept
#define NVML_XIDS_MAX 8       // events of one GPU between two readings that are kept

// What a GPU may be able to tell: the index of the reading, and its name as a fact
// (docs/measuring.md).
#define NVML_READINGS(X)                                                                           \
    X(SM_CLOCK, "sm_clock_mhz")                                                                    \
    X(MEM_CLOCK, "mem_clock_mhz")                                                                  \
    X(TEMPERATURE, "temperature_c")                                                                \
    X(SLOWDOWN, "slowdown_c") /* the temperature at which the hardware slows itself down */        \
    X(POWER, "power_w")                                                                            \
    X(POWER_LIMIT, "power_limit_w")                                                                \
    X(THROTTLE, "throttle_reasons") /* bits, NVML_THROTTLE_… */                                  \
    X(ECC, "ecc_uncorrected")       /* errors since the driver was loaded */                       \
    X(REMAP, "rows_to_remap")       /* 1: rows of memory wait for a reset */                       \
    X(PROCESSES, "processes")       /* with a compute context */

enum nvml_reading {
#define X(id, name) NVML_##id,
    NVML_READINGS(X)
#undef X
        NVML_READING_COUNT
};

// Bits of the reading THROTTLE, as in nvmlClocksEventReasons.
#define NVML_THROTTLE_POWER_CAP 0x4ULL
#define NVML_THROTTLE_HW_SLOWDOWN 0x8ULL
#define NVML_THROTTLE_SW_THERMAL 0x20ULL
#define NVML_THROTTLE_HW_THERMAL 0x40ULL
#define NVML_THROTTLE_HW_BRAKE 0x80ULL

struct nvml_state {
    bool lost; // the GPU does not answer any more, and nothing else is valid
    bool gone; // because the driver is not loaded; all GPUs are lost until it is
    bool valid[NVML_READING_COUNT];   // the GPU has told this reading
    double value[NVML_READING_COUNT]; // in the units of the names
    uint64_t xid[NVML_XIDS_MAX];      // events since the last reading, oldest first
    size_t xid_count;
    uint32_t process[NVML_PROCESSES_MAX]; // pids, numbered as on the host
    size_t process_count;                 // pids kept; value[NVML_PROCESSES] may be larger
};

struct nvml;

const char *nvml_reading_name(enum nvml_reading reading);

// Opens the library and finds the GPUs by their UUIDs ("GPU-…"). ERR_NOT_FOUND when there is no
// library, ERR_SYSTEM when it does not work or does not know one of the GPUs.
MUST_CHECK int nvml_open(struct nvml **ret, const char *const *uuids, size_t count,
                         struct err *err);
// Reads every GPU into ret[0..count), in the order of the UUIDs, with the events since the last
// call.
void nvml_read(struct nvml *nvml, struct nvml_state *ret);
void nvml_close(struct nvml *nvml); // NULL is fine

#endif

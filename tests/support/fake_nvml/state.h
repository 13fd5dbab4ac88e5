// libnvidia-ml.so.1 for tests: GPUs whose state is the text of a file, so that a test changes it
// while a daemon runs. KCAST_FAKE_NVML names the file; it is read at every call. Lines:
//
//   count=2               GPUs (1); their uuids are those of the fake libcuda.so.1
//   fail=N                nvmlInit_v2 gives N
//   gone=1                no driver: every call fails, and those after it until nvmlInit_v2
//   delay_ms=50           every call takes this long
//   GPU0.lost=1           every call about it gives "GPU is lost"
//   GPU0.temperature=45   and slowdown=90 (threshold), in degrees
//   GPU0.power=120000     mW; power_limit=700000
//   GPU0.sm_clock=1980    MHz; mem_clock=3201; the highest are 1980 and 3201
//   GPU0.throttle=0x40    reasons
//   GPU0.ecc=2            uncorrected errors
//   GPU0.process=4711:1024,4712:5    compute processes, pid and bytes
//   GPU0.utilisation=30   per cent
//   GPU0.persistence=1
//   GPU0.remap=1          rows wait for a reset to be remapped
//   GPU0.xid=31,79        each number is one event, given once; a test appends to the list
//   GPU0.without=ecc      readings that this GPU does not support (any of the names above)
//
// Without a file there is one GPU, idle and healthy. The types are those of NVML's public
// interface.
#ifndef TESTS_SUPPORT_FAKE_NVML_STATE_H
#define TESTS_SUPPORT_FAKE_NVML_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX 16

enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_TIMEOUT = 10,
    NVML_LOST = 15,
};

typedef struct nvml_device *nvml_device;
typedef struct nvml_set *nvml_set;

struct nvml_device {
    unsigned index;
    bool registered;
    unsigned delivered; // events of its list that were delivered
};
struct nvml_set {
    int unused;
};
struct nvml_event {
    nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};
struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};
struct nvml_memory {
    unsigned long long total, unused, used;
};
struct nvml_utilisation {
    unsigned gpu, memory;
};

extern struct nvml_device fake_devices[GPU_MAX];
extern bool fake_initialised;

unsigned long long fake_number(const char *key, unsigned long long otherwise);
// Finds a line about a GPU. Returns false when there is none.
bool fake_text(const struct nvml_device *device, const char *name, char value[static 256]);
unsigned fake_count(void);

// Every call begins with one of these. reading names what the call reads, or is NULL; the GPU may
// be one that does not support it.
int fake_begin(void);
int fake_device(const struct nvml_device *device, const char *reading);

int fake_give(const struct nvml_device *device, const char *reading, unsigned long long otherwise,
              unsigned long long *ret);
int fake_give_unsigned(const struct nvml_device *device, const char *reading, unsigned otherwise,
                       unsigned *ret);
int fake_give_text(const char *text, char *ret, unsigned size);

#endif

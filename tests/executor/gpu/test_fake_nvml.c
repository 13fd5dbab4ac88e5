// The fake NVML reads its file at every call and delivers each Xid event once
// (tests/support/fake_nvml/state.h).
#include "common/file.h"
#include "common/mem.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct nvml_device *nvml_device;
typedef struct nvml_set *nvml_set;
struct event {
    nvml_device device;
    unsigned long long type, data;
    unsigned instances[2];
};
struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instances[2];
};

#define FUNCTIONS(X)                                                                               \
    X(nvmlInit_v2, (void))                                                                         \
    X(nvmlDeviceGetCount_v2, (unsigned *))                                                         \
    X(nvmlDeviceGetHandleByUUID, (const char *, nvml_device *))                                    \
    X(nvmlDeviceGetTemperature, (nvml_device, int, unsigned *))                                    \
    X(nvmlDeviceGetCurrentClocksEventReasons, (nvml_device, unsigned long long *))                 \
    X(nvmlDeviceGetTotalEccErrors, (nvml_device, int, int, unsigned long long *))                  \
    X(nvmlDeviceGetComputeRunningProcesses_v3, (nvml_device, unsigned *, struct process *))        \
    X(nvmlEventSetCreate, (nvml_set *))                                                            \
    X(nvmlDeviceRegisterEvents, (nvml_device, unsigned long long, nvml_set))                       \
    X(nvmlEventSetWait_v2, (nvml_set, struct event *, unsigned))

#define X(name, parameters) static int(*name) parameters;
FUNCTIONS(X)
#undef X

static char path[] = "/tmp/kcast-test-nvml.XXXXXX";

static void write_state(const char *text)
{
    struct err err = ERR_INIT;

    assert_int_equal(file_replace(path, text, strlen(text), false, &err), 0);
}

static void readings_follow_the_file(void **state)
{
    (void)state;
    write_state("count=2\nGPU0.temperature=50\n");
    unsigned value;
    assert_int_equal(nvmlDeviceGetCount_v2(&value), 0);
    assert_int_equal(value, 2);
    nvml_device device;
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-fa4e0000-0000-4000-8000-000000000001", &device),
                     0);
    assert_int_equal(nvmlDeviceGetTemperature(device, 0, &value), 0);
    assert_int_equal(value, 35);
    write_state("count=2\nGPU1.temperature=91\nGPU1.throttle=0x48\nGPU1.ecc=2\n"
                "GPU1.process=4711:1024,12:1\n");
    assert_int_equal(nvmlDeviceGetTemperature(device, 0, &value), 0);
    assert_int_equal(value, 91);
    unsigned long long wide;
    assert_int_equal(nvmlDeviceGetCurrentClocksEventReasons(device, &wide), 0);
    assert_int_equal(wide, 0x48);
    assert_int_equal(nvmlDeviceGetTotalEccErrors(device, 1, 0, &wide), 0);
    assert_int_equal(wide, 2);
    value = 1;
    struct process processes[4];
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &value, processes), 7);
    assert_int_equal(value, 2);
    value = 4;
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &value, processes), 0);
    assert_int_equal(value, 2);
    assert_int_equal(processes[0].pid, 4711);
    assert_int_equal(processes[0].bytes, 1024);
    assert_int_equal(processes[1].pid, 12);
    write_state("count=2\nGPU1.without=ecc,power\nGPU0.lost=1\n");
    assert_int_equal(nvmlDeviceGetTotalEccErrors(device, 1, 0, &wide), 3);
    write_state("count=2\nGPU1.lost=1\n");
    assert_int_equal(nvmlDeviceGetTemperature(device, 0, &value), 15);
    write_state("count=1\n");
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-fa4e0000-0000-4000-8000-000000000001", &device),
                     6);
}

static void each_xid_is_given_once(void **state)
{
    (void)state;
    write_state("");
    nvml_device device;
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-fa4e0000-0000-4000-8000-000000000000", &device),
                     0);
    nvml_set set;
    assert_int_equal(nvmlEventSetCreate(&set), 0);
    assert_int_equal(nvmlDeviceRegisterEvents(device, 8, set), 0);
    struct event event;
    assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), 10);
    write_state("GPU0.xid=31\n");
    assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), 0);
    assert_ptr_equal(event.device, device);
    assert_int_equal(event.type, 8);
    assert_int_equal(event.data, 31);
    assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), 10);
    write_state("GPU0.xid=31,79,48\n");
    assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), 0);
    assert_int_equal(event.data, 79);
    assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), 0);
    assert_int_equal(event.data, 48);
    assert_int_equal(nvmlEventSetWait_v2(set, &event, 0), 10);
}

static int load_the_fake(void **state)
{
    void *library;
    int fd = mkstemp(path);

    (void)state;
    close(fd);
    setenv("KCAST_FAKE_NVML", path, 1);
    gpu_fake_use("");
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || fd < 0) {
        return -1;
    }
#define X(name, parameters)                                                                        \
    {                                                                                              \
        void *address = dlsym(library, #name);                                                     \
        memcpy(&name, &address, sizeof(address));                                                  \
    }
    FUNCTIONS(X)
#undef X
    return nvmlInit_v2();
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_follow_the_file),
        cmocka_unit_test(each_xid_is_given_once),
    };

    return cmocka_run_group_tests(tests, load_the_fake, remove_file);
}

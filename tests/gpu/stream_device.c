#include "tests/gpu/stream_device.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define RING_BYTES ((size_t)STREAM_RING_BYTES)
#define L2_TIMES 3

static int attribute(const struct stream_device *device, int which, const char *what, int *ret,
                     struct err *err)
{
    const struct driver *d = &device->driver;

    return driver_check(d, d->device_attribute(ret, which, device->device), what, err);
}

static int describe(struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;
    int major = 0, minor = 0, l2 = 0, smem = 0;
    int rc = driver_check(d, d->device_name(device->name, sizeof(device->name), device->device),
                          "the GPU's name", err);

    if (rc == 0) {
        rc = attribute(device, CU_ATTRIBUTE_MAJOR, "the GPU's architecture", &major, err);
    }
    if (rc == 0) {
        rc = attribute(device, CU_ATTRIBUTE_MINOR, "the GPU's architecture", &minor, err);
    }
    if (rc == 0) {
        rc = attribute(device, CU_ATTRIBUTE_L2_BYTES, "the size of the L2 cache", &l2, err);
    }
    if (rc == 0) {
        rc = attribute(device, CU_ATTRIBUTE_SMEM_PER_BLOCK_OPTIN, "a block's shared memory", &smem,
                       err);
    }
    if (rc == 0 && (l2 <= 0 || smem <= 0)) {
        rc = err_set(err, ERR_UNSUPPORTED,
                     "the driver does not tell the size of the L2 cache or of a block's shared "
                     "memory; use another GPU");
    }
    device->name[sizeof(device->name) - 1] = '\0';
    (void)snprintf(device->target, sizeof(device->target), "sm_%d%d", major, minor);
    device->flush_bytes = L2_TIMES * (size_t)l2;
    device->smem_optin = (size_t)smem;
    return rc;
}

int stream_device_find(struct stream_device *ret, struct err *err)
{
    int count = 0;

    *ret = (struct stream_device){.context = NULL};
    stats_rng_init(&ret->rng, stats_entropy(), 0);
    const struct driver *d = &ret->driver;
    int rc = driver_load(&ret->driver, err);
    if (rc != 0) {
        return rc;
    }
    rc = driver_check(d, d->init(0), "the CUDA driver", err);
    if (rc == 0) {
        rc = driver_check(d, d->device_count(&count), "counting the GPUs", err);
    }
    if (rc == 0 && count < 1) {
        rc = err_set(err, ERR_NOT_FOUND, "this machine has no GPU; run this on one that has");
    }
    if (rc == 0) {
        rc = driver_check(d, d->device_get(&ret->device, 0), "finding the GPU", err);
    }
    return rc == 0 ? describe(ret, err) : rc;
}

static int make_ring(struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;
    void *ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (ring == MAP_FAILED) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%zu bytes of memory for new data",
                             RING_BYTES);
    }
    device->ring = ring;
    return driver_check(d, d->host_register(ring, RING_BYTES, CU_HOST_REGISTER_PORTABLE),
                        "making the memory for new data readable for the GPU", err);
}

static int make_events(struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;
    int rc = 0;

    for (size_t i = 0; i < sizeof(device->event) / sizeof(cu_event) && rc == 0; i++) {
        rc = driver_check(d, d->event_create(&device->event[0][0][0] + i, CU_EVENT_DEFAULT),
                          "making an event", err);
    }
    return rc;
}

int stream_device_start(struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;
    int rc = driver_check(d, d->context_retain(&device->context, device->device),
                          "making a context on the GPU", err);

    if (rc != 0) {
        device->context = NULL;
        return rc;
    }
    rc = driver_check(d, d->context_set(device->context), "using the context", err);
    if (rc == 0) {
        rc = driver_check(d, d->stream_create(&device->stream, CU_STREAM_NON_BLOCKING),
                          "making a stream", err);
    }
    if (rc == 0) {
        rc = driver_check(d, d->allocate(&device->flush, device->flush_bytes),
                          "memory on the GPU to flush its cache with", err);
    }
    if (rc == 0) {
        rc = make_ring(device, err);
    }
    return rc == 0 ? make_events(device, err) : rc;
}

void stream_device_stop(struct stream_device *device)
{
    if (device->context) { // with which everything in it goes
        (void)device->driver.context_release(device->device);
    }
    if (device->ring) {
        (void)munmap(device->ring, RING_BYTES);
    }
    device->context = NULL;
    device->ring = NULL;
}

// Which GPUs there are, and what each is. executor/gpu/gpu.c makes contexts on them.
#include "executor/gpu/gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gpu_count(struct driver *driver, char reason[static ERR_TEXT_MAX])
{
    reason[0] = '\0';
    struct err err = ERR_INIT;
    if (driver_load(driver, &err) != 0) {
        (void)snprintf(reason, ERR_TEXT_MAX, "%s", err.text);
        return 0;
    }
    cu_result result = driver->init(0);
    int count = 0;
    if (result == CU_OK) {
        result = driver->device_count(&count);
    }
    char buf[256];
    if (result != CU_OK) {
        (void)snprintf(reason, ERR_TEXT_MAX, "the CUDA driver finds no GPU: %s",
                       driver_error(driver, result, buf));
        return 0;
    }
    if (count <= 0) {
        (void)snprintf(reason, ERR_TEXT_MAX, "the CUDA driver knows of no GPU");
    }
    return count > 0 ? count : 0;
}

static void format_uuid(const struct cu_uuid *uuid, char out[static GPU_UUID_MAX])
{
    size_t len = (size_t)snprintf(out, GPU_UUID_MAX, "GPU-");

    for (size_t i = 0; i < sizeof(uuid->byte); i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

        len += (size_t)snprintf(out + len, GPU_UUID_MAX - len, "%s%02x", dash, uuid->byte[i]);
    }
}

static int read_attributes(struct gpu *gpu, struct err *err)
{
    int major = 0, minor = 0, clock_khz = 0, l2 = 0, smem = 0, smem_all = 0, rc = 0;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {CU_ATTRIBUTE_MAJOR, &major},
        {CU_ATTRIBUTE_MINOR, &minor},
        {CU_ATTRIBUTE_CLOCK_RATE, &clock_khz},
        {CU_ATTRIBUTE_L2_BYTES, &l2},
        {CU_ATTRIBUTE_SMEM_PER_BLOCK_OPTIN, &smem},
        {CU_ATTRIBUTE_SMEM_PER_MULTIPROCESSOR, &smem_all},
        {CU_ATTRIBUTE_MULTIPROCESSORS, &gpu->multiprocessors},
        {CU_ATTRIBUTE_THREADS_PER_MULTIPROCESSOR, &gpu->threads_per_multiprocessor},
        {CU_ATTRIBUTE_REGISTERS_PER_MULTIPROCESSOR, &gpu->registers},
        {CU_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &gpu->pageable},
    };

    for (size_t i = 0; i < ARRAY_LEN(wanted) && rc == 0; i++) {
        rc = driver_check(
            &gpu->driver,
            gpu->driver.device_attribute(wanted[i].value, wanted[i].attribute, gpu->device),
            "reading an attribute of the GPU", err);
    }
    if (rc != 0) {
        return rc;
    }
    (void)snprintf(gpu->target, sizeof(gpu->target), "sm_%d%d", major, minor);
    gpu->clock_hz = clock_khz * 1e3;
    gpu->l2_bytes = l2 > 0 ? (size_t)l2 : 0;
    gpu->smem_optin = smem > 0 ? (size_t)smem : 0;
    gpu->smem_multiprocessor = smem_all > 0 ? (size_t)smem_all : 0;
    return 0;
}

int gpu_describe(struct gpu *gpu, const struct driver *driver, int ordinal, struct err *err)
{
    const struct driver *d = &gpu->driver;

    *gpu = (struct gpu){.driver = *driver};
    int rc = driver_check(d, d->device_get(&gpu->device, ordinal), "finding the GPU", err);
    if (rc != 0) {
        return rc;
    }
    struct cu_uuid uuid;
    rc = driver_check(d, d->device_uuid(&uuid, gpu->device), "the GPU's identifier", err);
    if (rc != 0) {
        return rc;
    }
    rc = driver_check(d, d->device_name(gpu->name, (int)sizeof(gpu->name), gpu->device),
                      "the GPU's name", err);
    if (rc != 0) {
        return rc;
    }
    rc =
        driver_check(d, d->device_memory(&gpu->memory_bytes, gpu->device), "the GPU's memory", err);
    if (rc != 0) {
        return rc;
    }
    rc = driver_check(d, d->driver_version(&gpu->driver_version), "the driver's version", err);
    if (rc != 0) {
        return rc;
    }
    gpu->name[sizeof(gpu->name) - 1] = '\0';
    format_uuid(&uuid, gpu->uuid);
    return read_attributes(gpu, err);
}

// The driver sets up every GPU that it sees, one process after the other: with four of them a
// context took ten times as long as with one. So it is shown the one that is wanted, which it heeds
// if it has not been initialised before. What names no GPU by its identifier is looked for among
// all.
static void show_only(const char *uuid)
{
    if (strncmp(uuid, "GPU-", 4) == 0 || strncmp(uuid, "MIG-", 4) == 0) {
        (void)setenv("CUDA_VISIBLE_DEVICES", uuid, 1);
    }
}

int gpu_find(struct gpu *gpu, const char *uuid, struct err *err)
{
    char reason[ERR_TEXT_MAX], ordinal[16];
    struct driver driver;
    show_only(uuid);
    int count = gpu_count(&driver, reason);

    if (count == 0) {
        return err_set(err, ERR_NOT_FOUND, "%s", reason);
    }
    for (int i = 0; i < count; i++) {
        int rc = gpu_describe(gpu, &driver, i, err);

        (void)snprintf(ordinal, sizeof(ordinal), "%d", i);
        if (rc != 0 || strcmp(gpu->uuid, uuid) == 0 || strcmp(ordinal, uuid) == 0) {
            return rc;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "this machine has no GPU %s", uuid);
}

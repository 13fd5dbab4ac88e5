#include "daemon/devices/device_spec.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include "daemon/devices/cores.h"
#include <stdlib.h>
#include <string.h>

static bool has_gpu(const struct device_spec *device_spec, uint64_t ordinal)
{
    for (size_t i = 0; i < device_spec->gpu_count; i++) {
        if (device_spec->gpu[i] == ordinal) {
            return true;
        }
    }
    return false;
}

static int parse_cpu(struct device_spec *device_spec, const char *count, struct err *err)
{
    if (device_spec->cpus) {
        return err_set(err, ERR_USAGE, "--devices: cpu is there twice");
    }
    uint64_t wanted = 0;
    int rc = 0;
    if (count) {
        rc = parse_u64(&wanted, count, 1, CORES_DEVICE_MAX, "--devices cpu:N", err);
    }
    device_spec->cpus = true;
    device_spec->cpu_count = (size_t)wanted;
    return rc;
}

static int parse_cuda(struct device_spec *device_spec, char *list, struct err *err)
{
    if (device_spec->cuda) {
        return err_set(err, ERR_USAGE, "--devices: cuda is there twice");
    }
    device_spec->cuda = true;
    device_spec->must = true;
    if (list && list[0] == '\0') {
        return err_set(err, ERR_USAGE, "--devices cuda:N,…: no number of a GPU");
    }
    char *save = NULL;
    int rc = 0;
    for (char *at = list ? strtok_r(list, ",", &save) : NULL; at && rc == 0;
         at = strtok_r(NULL, ",", &save)) {
        uint64_t ordinal;

        rc = parse_u64(&ordinal, at, 0, DEVICE_SPEC_GPU_MAX - 1, "--devices cuda:N,…", err);
        if (rc == 0 && has_gpu(device_spec, ordinal)) {
            rc = err_set(err, ERR_USAGE, "--devices cuda:N,…: GPU %s is there twice", at);
        }
        if (rc == 0) {
            device_spec->gpu[device_spec->gpu_count++] = (unsigned)ordinal;
        }
    }
    return rc;
}

static int parse_part(struct device_spec *device_spec, char *part, const char *spec,
                      struct err *err)
{
    char *colon = strchr(part, ':');
    size_t len = colon ? (size_t)(colon - part) : strlen(part);
    char *rest = colon ? colon + 1 : NULL;

    if (len == 3 && strncmp(part, "cpu", 3) == 0) {
        return parse_cpu(device_spec, rest, err);
    }
    if (len == 4 && strncmp(part, "cuda", 4) == 0) {
        return parse_cuda(device_spec, rest, err);
    }
    return err_set(
        err, ERR_USAGE,
        "--devices %s: neither auto nor any of cpu, cpu:N, cuda and cuda:N,… joined by +", spec);
}

int device_spec_parse(struct device_spec *ret, const char *spec, struct err *err)
{
    struct device_spec device_spec = {.cpus = false};
    char *text = xstrdup(spec);
    char *next = text;
    int rc = 0;

    if (strcmp(spec, "auto") == 0) {
        device_spec.cpus = true;
        device_spec.cuda = true;
    } else {
        while (next && rc == 0) {
            char *part = strsep(&next, "+");

            rc = parse_part(&device_spec, part, spec, err);
        }
    }
    free(text);
    if (rc != 0) { // a wrong number is a wrong option, too
        if (err) {
            err->code = ERR_USAGE;
        }
        return ERR_USAGE;
    }
    *ret = device_spec;
    return 0;
}

static const struct gpu_info *find_gpu(const struct cuda_probe_outcome *outcome, unsigned ordinal)
{
    for (size_t i = 0; i < outcome->gpus_count; i++) {
        if (outcome->gpus[i].ordinal == ordinal) {
            return &outcome->gpus[i];
        }
    }
    return NULL;
}

// Returns why the GPU cannot be used; NULL when it can.
static const char *defect_of(const struct device_spec *device_spec, const struct gpu_info *gpu)
{
    if (gpu->reason || !gpu->pageable || device_spec->pageable) {
        return gpu->reason;
    }
    return "its kernels could read the memory of kcast-exec, and with it how candidates are judged;"
           " load nvidia-uvm with uvm_disable_hmm=1, or allow it with --pageable-gpus";
}

static int check_named(const struct device_spec *device_spec,
                       const struct cuda_probe_outcome *outcome, struct err *err)
{
    for (size_t i = 0; i < device_spec->gpu_count; i++) {
        const struct gpu_info *gpu = find_gpu(outcome, device_spec->gpu[i]);

        if (!gpu) {
            return err_set(err, ERR_NOT_FOUND,
                           "--devices: there is no GPU %u here (%zu in all)%s%s",
                           device_spec->gpu[i], outcome->gpus_count, outcome->reason ? ": " : "",
                           outcome->reason ? outcome->reason : "");
        }
        const char *defect = defect_of(device_spec, gpu);
        if (defect) {
            return err_set(err, ERR_NOT_FOUND, "--devices: GPU %u (%s) cannot be used: %s",
                           device_spec->gpu[i], gpu->name ? gpu->name : "unnamed", defect);
        }
    }
    return 0;
}

int device_spec_gpus(const struct device_spec *device_spec, struct cuda_probe_outcome *outcome,
                     struct devices *devices, struct err *err)
{
    const char *reason = outcome->reason;
    size_t added = 0;
    int rc = check_named(device_spec, outcome, err);

    for (size_t i = 0; rc == 0 && i < outcome->gpus_count; i++) {
        struct gpu_info *gpu = &outcome->gpus[i];

        if (device_spec->gpu_count > 0 && !has_gpu(device_spec, gpu->ordinal)) {
            continue;
        }
        const char *defect = defect_of(device_spec, gpu);
        if (defect) {
            log_event(LOG_WARNING, "gpu-left-out gpu=%llu uuid=%s reason=\"%s\"",
                      (unsigned long long)gpu->ordinal, gpu->uuid, defect);
            reason = defect;
            continue;
        }
        devices_add_gpu(devices, gpu, outcome->toolchain);
        added++;
    }
    if (rc != 0 || added > 0) {
        return rc;
    }
    reason = reason ? reason : "kcast-exec cuda-probe gives no reason";
    if (device_spec->must) {
        return err_set(err, ERR_NOT_FOUND, "--devices: no GPU can be used here: %s", reason);
    }
    log_event(LOG_INFO, "no-gpu reason=\"%s\"", reason);
    return 0;
}

#include "daemon/offer.h"
#include "common/log.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include "daemon/cores.h"
#include <stdlib.h>
#include <string.h>

static bool has_gpu(const struct offer *offer, uint64_t ordinal)
{
    for (size_t i = 0; i < offer->gpu_count; i++) {
        if (offer->gpu[i] == ordinal) {
            return true;
        }
    }
    return false;
}

static int parse_cpu(struct offer *offer, const char *count, struct err *err)
{
    uint64_t wanted = 0;
    int rc = 0;

    if (offer->cpus) {
        return err_set(err, ERR_USAGE, "--devices: cpu is there twice");
    }
    if (count) {
        rc = parse_u64(&wanted, count, 1, CORES_DEVICE_MAX, "--devices cpu:N", err);
    }
    offer->cpus = true;
    offer->cpu_count = (size_t)wanted;
    return rc;
}

static int parse_cuda(struct offer *offer, char *list, struct err *err)
{
    char *save = NULL;
    int rc = 0;

    if (offer->cuda) {
        return err_set(err, ERR_USAGE, "--devices: cuda is there twice");
    }
    offer->cuda = true;
    offer->must = true;
    if (list && list[0] == '\0') {
        return err_set(err, ERR_USAGE, "--devices cuda:N,…: no number of a GPU");
    }
    for (char *at = list ? strtok_r(list, ",", &save) : NULL; at && rc == 0;
         at = strtok_r(NULL, ",", &save)) {
        uint64_t ordinal;

        rc = parse_u64(&ordinal, at, 0, OFFER_GPU_MAX - 1, "--devices cuda:N,…", err);
        if (rc == 0 && has_gpu(offer, ordinal)) {
            rc = err_set(err, ERR_USAGE, "--devices cuda:N,…: GPU %s is there twice", at);
        }
        if (rc == 0) {
            offer->gpu[offer->gpu_count++] = (unsigned)ordinal;
        }
    }
    return rc;
}

static int parse_part(struct offer *offer, char *part, const char *spec, struct err *err)
{
    char *colon = strchr(part, ':');
    size_t len = colon ? (size_t)(colon - part) : strlen(part);
    char *rest = colon ? colon + 1 : NULL;

    if (len == 3 && strncmp(part, "cpu", 3) == 0) {
        return parse_cpu(offer, rest, err);
    }
    if (len == 4 && strncmp(part, "cuda", 4) == 0) {
        return parse_cuda(offer, rest, err);
    }
    return err_set(
        err, ERR_USAGE,
        "--devices %s: neither auto nor any of cpu, cpu:N, cuda and cuda:N,… joined by +", spec);
}

int offer_parse(struct offer *ret, const char *spec, struct err *err)
{
    struct offer offer = {.cpus = false};
    char *text = xstrdup(spec);
    char *next = text;
    int rc = 0;

    if (strcmp(spec, "auto") == 0) {
        offer.cpus = true;
        offer.cuda = true;
    } else {
        while (next && rc == 0) {
            char *part = strsep(&next, "+");

            rc = parse_part(&offer, part, spec, err);
        }
    }
    free(text);
    if (rc != 0) {
        if (err) {
            err->code = ERR_USAGE;
        }
        return ERR_USAGE;
    }
    *ret = offer;
    return 0;
}

static const struct gpu_info *find_gpu(const struct cuda_probe_report *report, unsigned ordinal)
{
    for (size_t i = 0; i < report->gpus_count; i++) {
        if (report->gpus[i].ordinal == ordinal) {
            return &report->gpus[i];
        }
    }
    return NULL;
}

static int check_named(const struct offer *offer, const struct cuda_probe_report *report,
                       struct err *err)
{
    for (size_t i = 0; i < offer->gpu_count; i++) {
        const struct gpu_info *gpu = find_gpu(report, offer->gpu[i]);

        if (!gpu) {
            return err_set(err, ERR_NOT_FOUND,
                           "--devices: there is no GPU %u here (%zu in all)%s%s", offer->gpu[i],
                           report->gpus_count, report->reason ? ": " : "",
                           report->reason ? report->reason : "");
        }
        if (gpu->reason) {
            return err_set(err, ERR_NOT_FOUND, "--devices: GPU %u (%s) cannot be used: %s",
                           offer->gpu[i], gpu->name ? gpu->name : "unnamed", gpu->reason);
        }
    }
    return 0;
}

int offer_gpus(const struct offer *offer, struct cuda_probe_report *report, struct devices *devices,
               struct err *err)
{
    const char *reason = report->reason;
    size_t added = 0;
    int rc = check_named(offer, report, err);

    for (size_t i = 0; rc == 0 && i < report->gpus_count; i++) {
        struct gpu_info *gpu = &report->gpus[i];

        if (offer->gpu_count > 0 && !has_gpu(offer, gpu->ordinal)) {
            continue;
        }
        if (gpu->reason) {
            log_event(LOG_WARNING, "gpu-left-out gpu=%llu uuid=%s reason=\"%s\"",
                      (unsigned long long)gpu->ordinal, gpu->uuid, gpu->reason);
            reason = gpu->reason;
            continue;
        }
        devices_add_gpu(devices, gpu, report->toolchain);
        added++;
    }
    if (rc != 0 || added > 0) {
        return rc;
    }
    reason = reason ? reason : "kcast-exec cuda-probe gives no reason";
    if (offer->must) {
        return err_set(err, ERR_NOT_FOUND, "--devices: no GPU can be used here: %s", reason);
    }
    log_event(LOG_INFO, "no-gpu reason=\"%s\"", reason);
    return 0;
}

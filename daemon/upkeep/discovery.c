// Design note. The probes run one after the other, because each measures what the machine can do. A
// failure of the first probe ends the daemon. A failure of the second one does so only when GPUs
// were asked for by name; otherwise it is logged and the daemon serves without GPUs.
#include "daemon/upkeep/discovery.h"
#include "common/log.h"
#include "daemon/run/measure.h"
#include "daemon/run/outcome.h"

#define PROBE_MS 60000                // time limit of a probe
#define OUTCOME_MAX ((size_t)1 << 20) // bytes that kcast-exec may reply

static int start(struct discovery *discovery, const char *mode,
                 void (*on_end)(void *owner, struct executor_end *end), struct err *err)
{
    struct executor_config probe = {
        .mode = mode,
        .outcome_max = OUTCOME_MAX,
        .deadline_ms = PROBE_MS,
        .grace_ms = discovery->config.parts->limits.grace_ms,
        .limits = {.memory = MEASURE_GROUP_MEMORY, .processes = MEASURE_GROUP_PROCESSES},
        .on_end = on_end,
        .owner = discovery,
    };
    struct bytes nothing = {0};

    return executor_start(&discovery->executor, discovery->config.parts->executors, &probe,
                          &nothing, err);
}

static void finish(struct discovery *discovery, const struct err *error)
{
    discovery->config.on_end(discovery->config.owner, error);
}

static int add_gpus(const struct discovery_config *config, const struct executor_end *end,
                    struct err *err)
{
    struct cuda_probe_outcome outcome;
    struct err reason = ERR_INIT;
    int rc = end->ok ? outcome_read_cuda_probe(&outcome, &end->outcome, &reason)
                     : err_set(&reason, ERR_SYSTEM, "%s", end->reason);

    if (rc == 0) {
        rc = device_spec_gpus(config->device_spec, &outcome, config->parts->devices, err);
        message_clear(&cuda_probe_outcome_message, &outcome);
    } else if (config->device_spec->must) {
        *err = reason;
    } else {
        log_event(LOG_WARNING, "no-gpu reason=\"%s\"", reason.text);
        rc = 0;
    }
    return rc;
}

static void on_cuda_probe_end(void *owner, struct executor_end *end)
{
    struct discovery *discovery = owner;

    discovery->executor = NULL;
    struct err err = ERR_INIT;
    if (!discovery->stopped) {
        finish(discovery, add_gpus(&discovery->config, end, &err) == 0 ? NULL : &err);
    }
}

static int add_cores(const struct discovery_config *config, const struct executor_end *end,
                     struct err *err)
{
    struct probe_outcome outcome;
    int rc = end->ok ? outcome_read_probe(&outcome, &end->outcome, err)
                     : err_set(err, ERR_SYSTEM, "%s", end->reason);

    if (rc != 0) {
        return rc;
    }
    if (!outcome.sandbox && !config->parts->limits.sandbox_off) {
        rc = err_set(err, ERR_SANDBOX, "the sandbox cannot be set up here: %s",
                     outcome.reason ? outcome.reason : "kcast-exec probe gives no reason");
    } else if (config->cores->device_count > 0) {
        devices_add_cpus(config->parts->devices, config->cores->device, config->cores->device_count,
                         &outcome);
    }
    message_clear(&probe_outcome_message, &outcome);
    return rc;
}

static void on_probe_end(void *owner, struct executor_end *end)
{
    struct discovery *discovery = owner;

    discovery->executor = NULL;
    if (discovery->stopped) {
        return;
    }
    struct err err = ERR_INIT;
    int rc = add_cores(&discovery->config, end, &err);
    if (rc == 0 && discovery->config.device_spec->cuda) {
        rc = start(discovery, "cuda-probe", on_cuda_probe_end, &err);
        if (rc == 0) {
            return;
        }
    }
    finish(discovery, rc == 0 ? NULL : &err);
}

int discovery_start(struct discovery *discovery, const struct discovery_config *config,
                    struct err *err)
{
    *discovery = (struct discovery){.config = *config};
    return start(discovery, "probe", on_probe_end, err);
}

void discovery_stop(struct discovery *discovery)
{
    discovery->stopped = true;
    if (discovery->executor) {
        executor_stop(discovery->executor);
    }
}

// Design note. One after the other, because each measures what the machine can do. A failure of the
// first is one of the daemon; of the second only where a GPU was asked for by name.
#include "daemon/upkeep/probing.h"
#include "common/log.h"
#include "daemon/run/measure.h"
#include "daemon/run/outcome.h"

#define PROBE_MS 60000
#define OUTCOME_MAX ((size_t)1 << 20)

static int start(struct probing *probing, const char *mode,
                 void (*on_end)(void *owner, struct executor_end *end), struct err *err)
{
    struct executor_config probe = {
        .mode = mode,
        .outcome_max = OUTCOME_MAX,
        .deadline_ms = PROBE_MS,
        .grace_ms = probing->config.parts->limits.grace_ms,
        .limits = {.memory = MEASURE_GROUP_MEMORY, .processes = MEASURE_GROUP_PROCESSES},
        .on_end = on_end,
        .owner = probing,
    };
    struct bytes nothing = {0};

    return executor_start(&probing->executor, probing->config.parts->executors, &probe, &nothing,
                          err);
}

static void tell(struct probing *probing, const struct err *error)
{
    probing->config.on_end(probing->config.owner, error);
}

static int add_gpus(const struct probing_config *config, const struct executor_end *end,
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

static void on_cuda_end(void *owner, struct executor_end *end)
{
    struct probing *probing = owner;

    probing->executor = NULL;
    struct err err = ERR_INIT;
    if (!probing->stopped) {
        tell(probing, add_gpus(&probing->config, end, &err) == 0 ? NULL : &err);
    }
}

static int add_cores(const struct probing_config *config, const struct executor_end *end,
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

static void on_end(void *owner, struct executor_end *end)
{
    struct probing *probing = owner;

    probing->executor = NULL;
    if (probing->stopped) {
        return;
    }
    struct err err = ERR_INIT;
    int rc = add_cores(&probing->config, end, &err);
    if (rc == 0 && probing->config.device_spec->cuda) {
        rc = start(probing, "cuda-probe", on_cuda_end, &err);
        if (rc == 0) {
            return;
        }
    }
    tell(probing, rc == 0 ? NULL : &err);
}

int probing_start(struct probing *probing, const struct probing_config *config, struct err *err)
{
    *probing = (struct probing){.config = *config};
    return start(probing, "probe", on_end, err);
}

void probing_stop(struct probing *probing)
{
    probing->stopped = true;
    if (probing->executor) {
        executor_stop(probing->executor);
    }
}

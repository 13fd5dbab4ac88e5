#include "daemon/run/job_cache.h"
#include "daemon/run/setup.h"
#include "daemon/store/cache.h"
#include "proto/messages.h"

struct digest job_cache_key(const struct job *job, bool sandbox_off)
{
    struct job_spec spec;

    message_init(&job_spec_message, &spec);
    spec.kind = job->kind;
    spec.problem = job->setup->problem;
    spec.reference = job->setup->reference.source;
    spec.baseline = job->setup->baseline.source;
    spec.candidate = job->candidate;
    spec.repeat = job->repeat;
    spec.max_launches = job->max_launches;
    spec.unsealed = job->unsealed;
    return cache_key(&spec, job->device_class->name, sandbox_off);
}

struct bytes job_cache_question(const struct job *job)
{
    struct job_spec spec;

    message_init(&job_spec_message, &spec);
    spec.kind = job->kind;
    spec.problem = job->setup->problem;
    spec.candidate = job->candidate;
    spec.max_seconds = job->max_seconds;
    spec.precision_log2 = job->precision_log2;
    spec.max_launches = job->max_launches;
    return cache_pack(&job_spec_message, &spec);
}

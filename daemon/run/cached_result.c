#include "daemon/run/cached_result.h"
#include "daemon/run/setup.h"
#include "daemon/state/job.h"
#include "daemon/store/cache.h"
#include "proto/messages.h"

struct digest cached_result_key(const struct job *job, bool sandbox_off)
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
    return cache_key(&spec, job->device_class->name, sandbox_off);
}

struct bytes cached_result_question(const struct job *job)
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

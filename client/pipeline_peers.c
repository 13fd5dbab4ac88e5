// A daemon and a worker as a pipeline's peers.
#include "client/pipeline.h"

static void submit(void *pool, const char *key, const struct job_spec *spec, uint64_t priority,
                   pool_callback *callback, void *owner, uint64_t tag)
{
    pool_submit(pool, key, spec, priority, callback, owner, tag);
}

static void ack(void *pool, uint64_t job)
{
    pool_ack(pool, job);
}

static void ask(void *forecaster, const struct fold *fold, uint64_t first, uint64_t last,
                uint64_t visible, forecaster_callback *callback, void *owner)
{
    forecaster_ask(forecaster, fold, first, last, visible, callback, owner);
}

static void tell(void *forecaster, const struct fold *fold, uint64_t after, uint64_t last,
                 forecaster_told *callback, void *owner)
{
    forecaster_tell(forecaster, fold, after, last, callback, owner);
}

static bool busy(const void *forecaster)
{
    return forecaster_busy(forecaster);
}

struct pipeline_peers pipeline_peers_of(struct pool *pool, struct forecaster *forecaster)
{
    return (struct pipeline_peers){.pool = pool,
                                   .submit = submit,
                                   .ack = ack,
                                   .forecaster = forecaster,
                                   .ask = ask,
                                   .tell = tell,
                                   .busy = busy};
}

// Daemons and a worker as a pipeline's peers.
#include "client/search/pipeline.h"

static void submit(void *pool, const char *key, const struct job_spec *spec, uint64_t priority,
                   job_client_callback *callback, void *owner, uint64_t tag)
{
    daemon_pool_submit(pool, key, spec, priority, callback, owner, tag);
}

static void ack(void *pool, uint64_t job)
{
    daemon_pool_ack(pool, job);
}

static const char *where(void *pool, uint64_t *job)
{
    const char *url = daemon_pool_where(pool, *job);
    *job = daemon_pool_number(*job);
    return url;
}

static void ask(void *forecaster, const struct run_state *run_state, uint64_t first, uint64_t last,
                uint64_t visible, forecaster_callback *callback, void *owner)
{
    forecaster_ask(forecaster, run_state, first, last, visible, callback, owner);
}

static void tell(void *forecaster, const struct run_state *run_state, uint64_t after, uint64_t last,
                 forecaster_told *callback, void *owner)
{
    forecaster_tell(forecaster, run_state, after, last, callback, owner);
}

static bool busy(const void *forecaster)
{
    return forecaster_busy(forecaster);
}

struct pipeline_peers pipeline_peers_of(struct daemon_pool *daemon_pool,
                                        struct forecaster *forecaster)
{
    return (struct pipeline_peers){.pool = daemon_pool,
                                   .submit = submit,
                                   .ack = ack,
                                   .where = where,
                                   .forecaster = forecaster,
                                   .ask = ask,
                                   .tell = tell,
                                   .busy = busy};
}

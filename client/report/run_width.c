#include "client/report/run_width.h"

#include "client/show.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <math.h>

// A number that is 0 where the run does not say it.
static json_t *said(uint64_t x)
{
    return x != 0 ? json_integer((json_int_t)x) : json_null();
}

static uint64_t batch_of(const struct run_started *started)
{
    return started->batch != 0 ? started->batch : RUN_BATCH_DEFAULT;
}

static uint64_t wide_of(const struct run_started *started)
{
    return started->wide != 0 ? started->wide : batch_of(started);
}

static uint64_t widest_of(const struct run_started *started)
{
    return started->widest != 0 ? started->widest : wide_of(started);
}

static uint64_t lag_of(const struct run_started *started)
{
    return started->lag != 0 ? started->lag : RUN_LAG_DEFAULT;
}

json_t *run_width_json(const struct run_started *started)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "batch", said(batch_of(started)),
                     "wide", said(wide_of(started)), "widest", said(widest_of(started)), "lag",
                     said(lag_of(started)), "devices", said(started->pool_devices), "compile_slots",
                     said(started->pool_compile_slots), "worker_seconds",
                     show_number(started->worker_seconds > 0 ? started->worker_seconds : NAN));
}

char *run_width_text(const struct run_started *started)
{
    unsigned long long lag = lag_of(started), devices = started->pool_devices;
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "batches of %llu", (unsigned long long)batch_of(started));
    if (wide_of(started) != batch_of(started)) {
        strbuf_addf(&text, ", later %llu", (unsigned long long)wide_of(started));
    }
    if (widest_of(started) != wide_of(started)) {
        strbuf_addf(&text, ", from the %dth on %llu", RUN_BATCHES_NARROW + 1,
                    (unsigned long long)widest_of(started));
    }
    strbuf_addf(&text, ", decided from outcomes at most %llu batch%s behind", lag,
                lag == 1 ? "" : "es");
    if (devices != 0) {
        strbuf_addf(&text, "; there %s %llu device%s", devices == 1 ? "was" : "were", devices,
                    devices == 1 ? "" : "s");
    }
    if (devices != 0 && started->pool_compile_slots != 0) {
        strbuf_addf(&text, " with %llu compile slot%s",
                    (unsigned long long)started->pool_compile_slots,
                    started->pool_compile_slots == 1 ? "" : "s");
    }
    if (devices != 0 && started->worker_seconds > 0) {
        strbuf_addf(&text, ", and a worker that forecast a batch in %.2g s",
                    started->worker_seconds);
    }
    char *ret = xstrdup(strbuf_text(&text));
    strbuf_release(&text);
    return ret;
}

// Streams and events of libcuda.so.1.
#include "tests/support/fake_gpu/fake.h"
#include <stdlib.h>

#define EVENT_NS 1250
#define EVENT_TICK_NS 32
#define START_NS 1000000000

struct cu_event {
    bool recorded, never; // never: recorded after a kernel that does not end
    uint64_t ns;
    struct cu_event *next;
};

static struct cu_event *events;
static struct cu_stream default_stream, *streams;

bool fake_enter(struct cu_stream *stream)
{
    fake.stream = stream ? stream : &default_stream;
    return !fake.stream->hung;
}

void fake_free_streams(void)
{
    while (events) {
        struct cu_event *next = events->next;

        free(events);
        events = next;
    }
    while (streams) {
        struct cu_stream *next = streams->next;

        free(streams);
        streams = next;
    }
}

CALL(cuStreamCreate, cu_stream *ret, unsigned flags)
{
    struct cu_stream *stream;

    NEED_CONTEXT;
    if (flags > 1) {
        return CU_INVALID_VALUE;
    }
    if (!(stream = calloc(1, sizeof(*stream)))) {
        return CU_OUT_OF_MEMORY;
    }
    *stream = (struct cu_stream){.ns = START_NS, .next = streams};
    streams = stream;
    *ret = stream;
    return CU_OK;
}

CALL(cuStreamSynchronize, cu_stream stream)
{
    NEED_CONTEXT;
    (void)stream;
    fake_wait();
    return CU_OK;
}

CALL(cuEventCreate, cu_event *ret, unsigned flags)
{
    struct cu_event *event;

    NEED_CONTEXT;
    (void)flags;
    if (!(event = calloc(1, sizeof(*event)))) {
        return CU_OUT_OF_MEMORY;
    }
    event->next = events;
    events = event;
    *ret = event;
    return CU_OK;
}

CALL(cuEventDestroy_v2, cu_event event)
{
    NEED_CONTEXT;
    for (struct cu_event **at = &events; *at; at = &(*at)->next) {
        if (*at == event) {
            *at = event->next;
            free(event);
            return CU_OK;
        }
    }
    return 400;
}

CALL(cuEventRecord, cu_event event, cu_stream stream);
static cu_result record_again(const struct fake_work *work)
{
    return cuEventRecord(work->event, work->stream);
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    struct fake_work work = {.act = record_again, .event = event, .stream = stream};
    cu_result result;

    NEED_CONTEXT;
    if (fake_keep(&work, &result)) {
        return result;
    }
    event->recorded = true;
    event->never = !fake_enter(stream);
    event->ns = fake.stream->ns / EVENT_TICK_NS * EVENT_TICK_NS;
    fake.stream->ns += EVENT_NS;
    return CU_OK;
}

CALL(cuStreamWaitEvent, cu_stream stream, cu_event event, unsigned flags);
static cu_result wait_again(const struct fake_work *work)
{
    return cuStreamWaitEvent(work->stream, work->event, 0);
}

cu_result cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
    struct fake_work work = {.act = wait_again, .event = event, .stream = stream};
    cu_result result;

    NEED_CONTEXT;
    if (fake_keep(&work, &result)) {
        return result;
    }
    (void)fake_enter(stream);
    fake.stream->hung |= event->recorded && event->never;
    if (event->recorded && event->ns > fake.stream->ns) {
        fake.stream->ns = event->ns;
    }
    return flags == 0 ? CU_OK : CU_INVALID_VALUE;
}

CALL(cuEventQuery, cu_event event)
{
    NEED_CONTEXT;
    return event->never ? CU_NOT_READY : CU_OK;
}

CALL(cuEventElapsedTime, float *ret_ms, cu_event from, cu_event to)
{
    NEED_CONTEXT;
    if (!from->recorded || !to->recorded) {
        return 400;
    }
    if (from->never || to->never) {
        return CU_NOT_READY;
    }
    *ret_ms = (float)(((double)to->ns - (double)from->ns) / 1e6);
    return CU_OK;
}

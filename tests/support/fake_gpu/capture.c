// Capture and graphs of libcuda.so.1. While a capture goes on, on whatever stream, work is kept and
// not done; a launch of the graph does it, on the streams for which it was kept.
#include "tests/support/fake_gpu/fake.h"
#include <stdlib.h>

struct cu_graph {
    struct fake_work *work;
    size_t count, room;
};

struct cu_graph_exec {
    struct cu_graph *graph;
};

static struct cu_graph *capture; // NULL: no capture goes on
static struct cu_stream *origin;

static void free_graph(struct cu_graph *graph)
{
    for (size_t i = 0; graph && i < graph->count; i++) {
        free(graph->work[i].packed);
    }
    free(graph ? graph->work : NULL);
    free(graph);
}

bool fake_keep(const struct fake_work *work, cu_result *ret)
{
    if (!capture) {
        return false;
    }
    *ret = CU_OK;
    if (capture->count == capture->room) {
        size_t room = 2 * capture->room + 16;
        struct fake_work *more = realloc(capture->work, room * sizeof(*more));

        if (!more) {
            *ret = CU_OUT_OF_MEMORY;
            return true;
        }
        capture->work = more;
        capture->room = room;
    }
    capture->work[capture->count++] = *work;
    return true;
}

CALL(cuStreamBeginCapture_v2, cu_stream stream, int mode)
{
    NEED_CONTEXT;
    if (capture || mode < 0 || mode > 2 || !stream) {
        return CU_INVALID_VALUE;
    }
    origin = stream;
    capture = calloc(1, sizeof(*capture));
    return capture ? CU_OK : CU_OUT_OF_MEMORY;
}

CALL(cuStreamEndCapture, cu_stream stream, cu_graph *ret)
{
    NEED_CONTEXT;
    if (!capture || stream != origin) {
        return CU_INVALID_VALUE;
    }
    *ret = capture;
    capture = NULL;
    return CU_OK;
}

CALL(cuGraphInstantiateWithFlags, cu_graph_exec *ret, cu_graph graph, uint64_t flags)
{
    NEED_CONTEXT;
    if (flags != 0 || !(*ret = calloc(1, sizeof(**ret))) ||
        !((*ret)->graph = malloc(sizeof(*graph)))) {
        return flags != 0 ? CU_INVALID_VALUE : CU_OUT_OF_MEMORY;
    }
    *(*ret)->graph = *graph;
    *graph = (struct cu_graph){.work = NULL}; // the new one has it
    return CU_OK;
}

CALL(cuGraphDestroy, cu_graph graph)
{
    NEED_CONTEXT;
    free_graph(graph);
    return CU_OK;
}

CALL(cuGraphExecDestroy, cu_graph_exec exec)
{
    NEED_CONTEXT;
    free_graph(exec->graph);
    free(exec);
    return CU_OK;
}

CALL(cuGraphLaunch, cu_graph_exec exec, cu_stream stream)
{
    cu_result result = CU_OK;

    NEED_CONTEXT;
    if (capture || !stream) {
        return CU_INVALID_VALUE;
    }
    for (size_t i = 0; i < exec->graph->count && result == CU_OK; i++) {
        result = exec->graph->work[i].act(&exec->graph->work[i]);
    }
    return result;
}

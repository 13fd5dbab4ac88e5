// Streams, and the graphs that become of what a stream is given while it is captured: each node
// comes after the one before it.
#include "tests/support/fake_capture/capture.h"
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 8192
#define MEMORY_HOST 1
#define MEMORY_DEVICE 2

struct graph {
    struct node *node[NODES_MAX];
    size_t count;
};

struct stream {
    struct graph *captured; // NULL: what is queued runs
};

static struct stream default_stream;

static struct stream *stream_of(struct stream *stream)
{
    return stream ? stream : &default_stream;
}

CALL(cuStreamCreate, struct stream **ret, unsigned flags)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret && flags <= 1 ? broken : INVALID_VALUE;
}

CALL(cuStreamSynchronize, struct stream *stream)
{
    return stream_of(stream)->captured ? CAPTURE_UNSUPPORTED : broken;
}

CALL(cuStreamBeginCapture_v2, struct stream *stream, int mode)
{
    (void)mode;
    stream->captured = calloc(1, sizeof(*stream->captured));
    return stream->captured ? broken : OUT_OF_MEMORY;
}

CALL(cuStreamEndCapture, struct stream *stream, struct graph **ret)
{
    *ret = stream->captured;
    stream->captured = NULL;
    return *ret ? broken : INVALID_VALUE;
}

static int queue(struct stream *stream, struct node node)
{
    struct graph *graph = stream_of(stream)->captured;

    if (!graph || broken) {
        return broken ? broken : node_run(&node);
    }
    struct node *kept = malloc(sizeof(*kept));
    if (!kept || graph->count == NODES_MAX) {
        free(kept);
        return OUT_OF_MEMORY;
    }
    *kept = node;
    for (size_t i = 0; i < PARAMETERS_MAX; i++) {
        kept->place[i] = kept->value[i];
    }
    graph->node[graph->count++] = kept;
    return OK;
}

CALL(cuLaunchKernel, struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned smem, struct stream *stream, void **parameter, void **extra)
{
    struct node node = {.kind = NODE_KERNEL,
                        .function = function,
                        .grid = {gx, gy, gz},
                        .block = {bx, by, bz},
                        .smem = smem};
    size_t size[PARAMETERS_MAX], count = kernel_parameters(function->name, size);

    if (extra) {
        return INVALID_VALUE;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(node.value[i], parameter[i], size[i]);
    }
    return queue(stream, node);
}

CALL(cuMemsetD8Async, uint64_t to, unsigned char value, size_t bytes, struct stream *stream)
{
    struct node node = {.kind = NODE_FILL, .to = to, .fill = value, .width = 1, .bytes = bytes};

    return queue(stream, node);
}

CALL(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, struct stream *stream)
{
    return queue(stream, (struct node){.kind = NODE_COPY, .to = to, .from = from, .bytes = bytes});
}

CALL(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, struct stream *stream)
{
    struct node node = {.kind = NODE_COPY,
                        .to = to,
                        .from = (uint64_t)(uintptr_t)from,
                        .from_host = true,
                        .bytes = bytes};

    return queue(stream, node);
}

CALL(cuLaunchHostFunc, struct stream *stream, void (*call)(void *), void *context)
{
    return queue(stream, (struct node){.kind = NODE_HOST, .call = call, .context = context});
}

// ---- graphs ----

CALL(cuGraphInstantiateWithFlags, struct graph **ret, struct graph *graph, uint64_t flags)
{
    *ret = graph;
    return flags == 0 ? broken : INVALID_VALUE;
}

CALL(cuGraphLaunch, struct graph *graph, struct stream *stream)
{
    int rc = stream_of(stream)->captured ? CAPTURE_UNSUPPORTED : broken;

    for (size_t i = 0; i < graph->count && rc == 0; i++) {
        rc = node_run(graph->node[i]);
    }
    return rc;
}

CALL(cuGraphGetNodes, const struct graph *graph, struct node **ret, size_t *count)
{
    for (size_t i = 0; i < graph->count && ret && i < *count; i++) {
        ret[i] = graph->node[i];
    }
    *count = graph->count;
    return OK;
}

CALL(cuGraphGetEdges_v2, const struct graph *graph, struct node **from, struct node **to,
     uint64_t *data, size_t *count)
{
    size_t edges = graph->count > 0 ? graph->count - 1 : 0;

    for (size_t i = 0; i < edges && from && i < *count; i++) {
        from[i] = graph->node[i];
        to[i] = graph->node[i + 1];
        data[i] = 0;
    }
    *count = edges;
    return OK;
}

CALL(cuGraphNodeGetType, const struct node *node, int *ret)
{
    *ret = node->kind;
    return OK;
}

struct kernel_params { // CUDA_KERNEL_NODE_PARAMS_v2
    const struct function *function;
    unsigned grid[3], block[3], smem;
    void *const *parameter;
    void **extra;
    void *kernel, *context;
};

CALL(cuGraphKernelNodeGetParams_v2, const struct node *node, struct kernel_params *ret)
{
    *ret = (struct kernel_params){.function = node->function, .smem = node->smem};
    memcpy(ret->grid, node->grid, sizeof(ret->grid));
    memcpy(ret->block, node->block, sizeof(ret->block));
    ret->parameter = node->place;
    return OK;
}

CALL(cuGraphKernelNodeGetAttribute, const struct node *node, int which, void *ret)
{
    (void)which;
    memset(ret, 0, 64); // a CUlaunchAttributeValue; no kernel here has any
    return node->kind == NODE_KERNEL ? OK : INVALID_VALUE;
}

struct fill_params { // CUDA_MEMSET_NODE_PARAMS
    uint64_t to;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};

CALL(cuGraphMemsetNodeGetParams, const struct node *node, struct fill_params *ret)
{
    *ret = (struct fill_params){.to = node->to,
                                .value = node->fill,
                                .element = node->width,
                                .width = node->bytes / node->width,
                                .height = 1};
    return OK;
}

struct side {
    size_t x, y, z, lod;
    int type;
    const void *host;
    uint64_t device;
    void *array, *reserved;
    size_t pitch, height;
};

struct copy_params { // CUDA_MEMCPY3D
    struct side from, to;
    size_t width, height, depth;
};

CALL(cuGraphMemcpyNodeGetParams, const struct node *node, struct copy_params *ret)
{
    *ret = (struct copy_params){.from = {.type = MEMORY_DEVICE, .device = node->from},
                                .to = {.type = MEMORY_DEVICE, .device = node->to},
                                .width = node->bytes,
                                .height = 1,
                                .depth = 1};
    if (node->from_host) {
        ret->from = (struct side){.type = MEMORY_HOST, .host = (void *)(uintptr_t)node->from};
    }
    return OK;
}

// Streams, and the graphs that become of what they are given while they are captured: a node comes
// after the one before it on its stream, and after what the stream has waited for since.
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

struct after { // what the next node on a stream comes after
    struct node *node[AFTER_MAX];
    size_t count;
};

struct stream {
    struct graph *captured; // NULL: what is queued runs
    struct after after;
    bool early; // the next node may begin before the one before it has ended
    struct stream *next;
};

struct event {
    bool recorded;
    struct graph *captured; // that it is in; NULL: none
    struct after after;
};

static struct stream default_stream, *streams = &default_stream;

static struct stream *stream_of(struct stream *stream)
{
    return stream ? stream : &default_stream;
}

bool is_capturing(void)
{
    const struct stream *stream = streams;

    while (stream && !stream->captured) {
        stream = stream->next;
    }
    return stream;
}

CALL(cuStreamCreate, struct stream **ret, unsigned flags)
{
    *ret = calloc(1, sizeof(**ret));
    if (!*ret || flags > 1) {
        return INVALID_VALUE;
    }
    (*ret)->next = streams;
    streams = *ret;
    return broken;
}

CALL(cuStreamSynchronize, struct stream *stream)
{
    return stream_of(stream)->captured ? CAPTURE_UNSUPPORTED : broken;
}

CALL(cuStreamIsCapturing, struct stream *stream, int *ret)
{
    *ret = stream_of(stream)->captured ? 1 : 0;
    return OK;
}

CALL(cuStreamBeginCapture_v2, struct stream *stream, int mode)
{
    (void)mode;
    stream->captured = calloc(1, sizeof(*stream->captured));
    stream->after.count = 0;
    return stream->captured ? broken : OUT_OF_MEMORY;
}

static void mark(struct node *const *node, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!node[i]->mark) {
            node[i]->mark = true;
            mark(node[i]->after, node[i]->after_count);
        }
    }
}

// Whether the last nodes of a stream come after all others of the graph, or are these.
static bool is_joined(const struct graph *graph, const struct stream *stream)
{
    bool joined = true;

    mark(stream->after.node, stream->after.count);
    for (size_t i = 0; i < graph->count; i++) {
        joined = joined && graph->node[i]->mark;
        graph->node[i]->mark = false;
    }
    return joined;
}

CALL(cuStreamEndCapture, struct stream *stream, struct graph **ret)
{
    struct graph *graph = stream->captured;

    if (!graph) {
        return INVALID_VALUE;
    }
    bool joined = is_joined(graph, stream);
    for (struct stream *each = streams; each; each = each->next) {
        each->captured = each->captured == graph ? NULL : each->captured;
    }
    *ret = joined ? graph : NULL;
    return joined ? broken : CAPTURE_UNJOINED;
}

CALL(cuEventCreate, struct event **ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof(**ret));
    return *ret ? broken : OUT_OF_MEMORY;
}

CALL(cuEventRecord, struct event *event, struct stream *stream)
{
    stream = stream_of(stream);
    *event = (struct event){.recorded = true, .captured = stream->captured, .after = stream->after};
    return broken;
}

// Adds what is not in it already.
static int add_after(struct after *to, const struct after *from)
{
    for (size_t i = 0; i < from->count; i++) {
        size_t k = 0;

        while (k < to->count && to->node[k] != from->node[i]) {
            k++;
        }
        if (k == AFTER_MAX) {
            return OUT_OF_MEMORY;
        }
        to->node[k] = from->node[i];
        to->count = k == to->count ? k + 1 : to->count;
    }
    return OK;
}

CALL(cuStreamWaitEvent, struct stream *stream, struct event *event, unsigned flags)
{
    stream = stream_of(stream);
    if (flags != 0) {
        return INVALID_VALUE;
    }
    if (event->captured != stream->captured && event->recorded) {
        if (stream->captured) {
            return CAPTURE_ISOLATION;
        }
        stream->captured = event->captured;
        stream->after.count = 0;
    }
    return event->captured ? add_after(&stream->after, &event->after) : broken;
}

// Not of CUDA: what is launched next on the stream is launched as dependent of what is before it.
CALL(fakeNextIsEarly, struct stream *stream)
{
    stream_of(stream)->early = true;
    return OK;
}

// Adds a node to a graph. NULL when there is no room.
static struct node *add_node(struct graph *graph, const struct node *node)
{
    struct node *kept = malloc(sizeof(*kept));

    if (!kept || graph->count == NODES_MAX) {
        free(kept);
        return NULL;
    }
    *kept = *node;
    graph->node[graph->count++] = kept;
    return kept;
}

static int queue(struct stream *stream, struct node node)
{
    stream = stream_of(stream);
    struct graph *graph = stream->captured;

    if (!graph || broken) {
        return broken ? broken : node_run(&node);
    }
    struct node *kept = add_node(graph, &node);
    if (!kept) {
        return OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < PARAMETERS_MAX; i++) {
        kept->place[i] = kept->value[i];
    }
    memcpy(kept->after, stream->after.node, sizeof(kept->after));
    kept->after_count = stream->after.count;
    kept->early = stream->early;
    stream->early = false;
    stream->after.node[0] = kept;
    stream->after.count = 1;
    return OK;
}

// Not of CUDA: a node without work, as some calls of the driver leave in a graph.
CALL(fakeEmptyNode, struct stream *stream)
{
    return queue(stream, (struct node){.kind = NODE_EMPTY});
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

int graph_run(const struct graph *graph)
{
    int rc = broken;

    for (size_t i = 0; i < graph->count && rc == 0; i++) {
        rc = node_run(graph->node[i]);
    }
    return rc;
}

// No graph can be launched into another.
CALL(cuGraphLaunch, struct graph *graph, struct stream *stream)
{
    if (stream_of(stream)->captured) {
        return CAPTURE_UNSUPPORTED;
    }
    return broken ? broken : graph_run(graph);
}

CALL(cuStreamGetCaptureInfo_v2, struct stream *stream, int *status, uint64_t *number,
     struct graph **graph, struct node *const **after, size_t *count)
{
    stream = stream_of(stream);
    *status = stream->captured ? 1 : 0;
    *number = 1;
    *graph = stream->captured;
    *after = stream->after.node;
    *count = stream->after.count;
    return broken;
}

CALL(cuGraphAddChildGraphNode, struct node **ret, struct graph *graph, struct node *const *after,
     size_t count, struct graph *child)
{
    struct node node = {.kind = NODE_GRAPH, .child = child, .after_count = count};

    if (!graph || !child || count > AFTER_MAX) {
        return INVALID_VALUE;
    }
    memcpy(node.after, after, count * sizeof(*after));
    *ret = add_node(graph, &node);
    return *ret ? OK : OUT_OF_MEMORY;
}

CALL(cuStreamUpdateCaptureDependencies, struct stream *stream, struct node *const *after,
     size_t count, unsigned flags)
{
    stream = stream_of(stream);
    if (!stream->captured || count > AFTER_MAX || flags != 1) { // 1: instead of those of before
        return INVALID_VALUE;
    }
    memcpy(stream->after.node, after, count * sizeof(*after));
    stream->after.count = count;
    return OK;
}

CALL(cuGraphChildGraphNodeGetGraph, const struct node *node, struct graph **ret)
{
    *ret = node->child;
    return node->kind == NODE_GRAPH ? OK : INVALID_VALUE;
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
    const uint64_t programmatic = (uint64_t)1 << 16; // the type, third byte of an edge's data
    size_t edges = 0;

    for (size_t i = 0; i < graph->count; i++) {
        struct node *node = graph->node[i];

        for (size_t k = 0; k < node->after_count; k++, edges++) {
            if (from && edges < *count) {
                from[edges] = node->after[k];
                to[edges] = node;
                data[edges] = node->early && k == 0 ? programmatic : 0;
            }
        }
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

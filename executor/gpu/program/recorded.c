// Design note. The launches of a recording. Their parameters are bytes that hold addresses, which
// nobody can tell from other numbers; so they are passed on as they are, and everything lies where
// it lay when it was recorded: the problem's tensors, and the blocks of memory that the candidate
// had beside them. Contents of blocks that must be there before each run are uploaded once, into
// the arena that no launch may see, and copied from there.
#include "common/mem.h"
#include "executor/gpu/program/inside.h"
#include "executor/gpu/program/recording.h"
#include <stdlib.h>
#include <string.h>

// ---- memory ----

static int check_places(const struct program *program, const struct recorded_case *of,
                        const struct program_tensors *tensors, struct err *err)
{
    for (size_t t = 0; t < of->tensors_count; t++) {
        if (!tensors->tensor[t] || tensors->tensor[t]->tensor != of->tensors[t]) {
            return err_set(err, ERR_SYSTEM,
                           "%s is at another address here than where it was recorded",
                           program->problem->tensor[t].name);
        }
    }
    return 0;
}

// Whether the range lies in one of the tensors or blocks of the case.
static bool is_known(const struct program *program, const struct recorded_case *of,
                     const struct program_tensors *tensors, uint64_t at, uint64_t bytes)
{
    for (size_t t = 0; t < program->problem->tensor_count; t++) {
        const struct guarded_buffer *buffer = tensors->tensor[t];

        if (at >= buffer->tensor && bytes <= buffer->bytes &&
            at - buffer->tensor <= buffer->bytes - bytes) {
            return true;
        }
    }
    return recording_holds(of, at, bytes);
}

// Uploads a content unless it is there.
static int upload(struct program *program, size_t content, struct err *err)
{
    const struct bytes *data = &program->object.recording->contents[content].data;
    struct gpu *gpu = program->gpu;

    if (program->content[content] != 0) {
        return 0;
    }
    int rc = arena_place(&gpu->judge, data->len, &program->content[content], err);
    if (rc != 0) {
        program->content[content] = 0;
        return rc;
    }
    return gpu_check(
        gpu,
        gpu->driver.copy_to_device(program->content[content], data->data, data->len, gpu->stream),
        "uploading memory of a recording", err);
}

static int add_block(struct program *program, const struct recorded_block *block, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < block->pieces_count && block->kept && rc == 0; i++) {
        rc = upload(program, block->pieces[i].content, err);
    }
    program->area[program->area_count++] =
        (struct program_area){.at = block->at,
                              .bytes = block->bytes,
                              .fill = block->kept ? FILL_KEPT : FILL_PATTERN,
                              .block = block};
    return rc;
}

static int place_blocks(struct program *program, const struct recorded_case *of, struct err *err)
{
    if (of->blocks_count > PROGRAM_AREAS_MAX) {
        return err_set(err, ERR_LIMIT, "more blocks of memory than can be guarded");
    }
    if (of->blocks_count == 0) {
        return 0;
    }
    const struct recorded_block *last = &of->blocks[of->blocks_count - 1];
    int rc = arena_reach(program->memory, last->at + last->bytes - program->memory->base, err);
    for (size_t i = 0; i < of->blocks_count && rc == 0; i++) {
        rc = add_block(program, &of->blocks[i], err);
    }
    return rc;
}

// Where a run leaves a result of this many bytes: in a block, unless `at` is 0.
static int place_result(const struct recorded_case *of, const struct tensor *tensor, uint64_t at,
                        size_t bytes, struct guarded_buffer *ret, struct err *err)
{
    if (at == 0) {
        return 0;
    }
    if (!recording_holds(of, at, bytes)) {
        (void)err_set(err, ERR_INVALID, "what it gave as %s is smaller than that", tensor->name);
        return PROGRAM_UNFIT;
    }
    *ret = (struct guarded_buffer){.tensor = at, .bytes = bytes};
    return 0;
}

static int place_results(struct program *program, const struct recorded_case *of,
                         const struct program_tensors *tensors, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < of->outputs_count && rc == 0; t++) {
        const struct tensor *tensor = &program->problem->tensor[t];
        const struct guarded_buffer *wanted =
            tensors->expected[t] ? tensors->expected[t] : tensors->tensor[t];

        rc = place_result(of, tensor, of->outputs[t], wanted->bytes, &program->result[t], err);
        if (rc == 0 && of->scales_count > 0) {
            rc = place_result(of, tensor, of->scales[t], wanted->bytes, &program->scale[t], err);
        }
    }
    return rc;
}

// ---- launches ----

// Whether a kernel may begin before the launch before it has ended. Of several streams that one is
// the right one only where the kernel waits for nothing else.
static bool may_begin_early(const struct program *program, const struct recorded_node *node,
                            size_t number)
{
    return (node->flags & RECORDED_PDL) != 0 &&
           (program->plan.streams == 1 || program->plan.step[number].follows_one);
}

static int add_kernel(struct program *program, const struct recorded_node *node, bool early,
                      struct program_launch *out, struct err *err)
{
    const struct recorded_image *image = &program->object.recording->images[node->image];
    uint32_t cluster[3];
    int rc = program_load(program, node->image, image->data.data, image->globals,
                          image->globals_count, err);

    if (rc != 0) {
        return rc;
    }
    out->work = WORK_KERNEL;
    out->name = node->symbol;
    for (size_t i = 0; i < 3; i++) {
        out->config.grid[i] = (uint32_t)node->shape[i];
        out->config.block[i] = (uint32_t)node->shape[3 + i];
        cluster[i] = (uint32_t)node->shape[6 + i];
    }
    out->config.smem = (uint32_t)node->smem;
    program_add_attributes(out, cluster, (node->flags & RECORDED_COOPERATIVE) != 0, early);
    out->value = xmalloc(node->parameters.len + 1);
    if (node->parameters.len > 0) { // where a kernel has none there is nothing at all
        memcpy(out->value, node->parameters.data, node->parameters.len);
    }
    out->packed_bytes = node->parameters.len;
    return program_find_kernel(program, node->image, node->symbol, out, err);
}

static int add_node(struct program *program, const struct recorded_case *of, size_t number,
                    const struct program_tensors *tensors, struct err *err)
{
    const struct recorded_node *node = &of->nodes[number];
    struct program_launch *out = &program->launch[program->launch_count++];

    cu_stream stream = gpu_stream(program->gpu, program->plan.step[number].stream);
    *out = (struct program_launch){.name = "memory", .config.stream = stream};
    if (node->kind == RECORDED_KERNEL) {
        int rc = add_kernel(program, node, may_begin_early(program, node, number), out, err);

        out->config.stream = stream;
        return rc;
    }
    bool known =
        is_known(program, of, tensors, node->to, node->bytes) &&
        (node->kind != RECORDED_COPY || is_known(program, of, tensors, node->from, node->bytes));
    if (!known) {
        (void)err_set(err, ERR_INVALID, "it copies or fills memory that is not its own");
        return PROGRAM_UNFIT;
    }
    out->work = node->kind == RECORDED_FILL ? WORK_FILL : WORK_COPY;
    out->to = node->to;
    out->from = node->from;
    out->set = (unsigned)node->value;
    out->set_size = (unsigned)node->width;
    out->count = node->kind == RECORDED_FILL ? node->bytes / node->width : node->bytes;
    return 0;
}

int program_prepare_recorded(struct program *program, const struct shape_case *shape,
                             const struct program_tensors *tensors, struct err *err)
{
    const struct recorded_case *of =
        recording_find(program->object.recording, program->problem, shape);

    if (!of) {
        return err_set(err, ERR_INTERNAL, "it was not recorded for this case");
    }
    int rc = check_places(program, of, tensors, err);
    if (rc != 0) {
        return rc;
    }
    rc = place_blocks(program, of, err);
    if (rc != 0) {
        return rc == ERR_LIMIT ? PROGRAM_UNFIT : rc;
    }
    rc = place_results(program, of, tensors, err);
    if (rc != 0) {
        return rc;
    }
    stream_plan_make(&program->plan, of);
    rc = program_make_events(program, err);
    program->launch = xcalloc(of->nodes_count + 1, sizeof(*program->launch));
    for (size_t i = 0; i < of->nodes_count && rc == 0; i++) {
        rc = add_node(program, of, i, tensors, err);
    }
    return rc == 0 ? program_make_graph(program, err) : rc;
}

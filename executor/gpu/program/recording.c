#include "executor/gpu/program/recording.h"
#include "common/printable.h"
#include "executor/gpu/arena.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/gpu.h"
#include <elf.h>
#include <string.h>

#define GRID_MAX 0x7fffffffu
#define BLOCK_THREADS_MAX 1024
#define CLUSTER_MAX 16          // blocks
#define SMEM_MAX (1024u * 1024) // bytes; a GPU says itself when it has less

// ---- images ----

static int check_image(const struct recorded_image *image, size_t number, struct err *err)
{
    struct err why = ERR_INIT;

    if (!is_cubin(&image->data)) {
        return err_set(err, ERR_INVALID, "image %zu is no cubin", number);
    }
    return cubin_check(&image->data, &why) == 0
               ? 0
               : err_set(err, ERR_INVALID, "image %zu: %s", number, why.text);
}

// ---- nodes ----

static int check_kernel(const struct cuda_recording *recording, const struct recorded_node *node,
                        struct err *err)
{
    const uint64_t *shape = node->shape;

    if (node->image >= recording->images_count || !node->symbol || node->symbol[0] == '\0') {
        return err_set(err, ERR_INVALID, "a kernel has no image or no name");
    }
    int rc = printable_check("the name of a kernel", node->symbol, err);
    if (rc != 0) {
        return rc;
    }
    if (node->shape_count != RECORDED_SHAPE) {
        return err_set(err, ERR_INVALID, "%.80s has no shape", node->symbol);
    }
    for (size_t i = 0; i < 3; i++) {
        if (shape[i] < 1 || shape[i] > GRID_MAX || shape[3 + i] < 1 ||
            shape[3 + i] > BLOCK_THREADS_MAX || shape[6 + i] > CLUSTER_MAX) {
            return err_set(err, ERR_INVALID, "%.80s has extents that no launch has", node->symbol);
        }
    }
    if (shape[3] * shape[4] * shape[5] > BLOCK_THREADS_MAX ||
        shape[6] * shape[7] * shape[8] > CLUSTER_MAX || node->smem > SMEM_MAX) {
        return err_set(err, ERR_INVALID, "%.80s has a block or cluster that is too large",
                       node->symbol);
    }
    return 0;
}

static int check_fill(const struct recorded_node *node, struct err *err)
{
    bool width = node->width == 1 || node->width == 2 || node->width == 4;

    return width && node->bytes > 0 && node->bytes % node->width == 0
               ? 0
               : err_set(err, ERR_INVALID, "memory is filled with values of a wrong size");
}

static int check_node(const struct cuda_recording *recording, const struct recorded_case *of,
                      size_t number, struct err *err)
{
    const struct recorded_node *node = &of->nodes[number];

    for (size_t i = 0; i < node->after_count; i++) {
        if (node->after[i] >= number) {
            return err_set(err, ERR_INVALID, "node %zu comes after node %llu", number,
                           (unsigned long long)node->after[i]);
        }
    }
    switch (node->kind) {
    case RECORDED_KERNEL:
        return check_kernel(recording, node, err);
    case RECORDED_FILL:
        return check_fill(node, err);
    case RECORDED_COPY:
        return node->bytes > 0 ? 0 : err_set(err, ERR_INVALID, "a copy has no bytes");
    default:
        return err_set(err, ERR_INVALID, "node %zu is of kind %llu, which there is not", number,
                       (unsigned long long)node->kind);
    }
}

// ---- memory ----

static int check_pieces(const struct cuda_recording *recording, const struct recorded_block *block,
                        struct err *err)
{
    uint64_t end = 0;

    for (size_t i = 0; i < block->pieces_count; i++) {
        const struct recorded_piece *piece = &block->pieces[i];

        if (piece->content >= recording->contents_count) {
            return err_set(err, ERR_INVALID, "a block has a content that there is not");
        }
        uint64_t bytes = recording->contents[piece->content].data.len;
        if (piece->at < end || bytes > block->bytes || piece->at > block->bytes - bytes) {
            return err_set(err, ERR_INVALID, "a piece does not lie in its block");
        }
        end = piece->at + bytes;
    }
    return 0;
}

// Blocks are as far apart as areas of an arena, so that writes outside them are found.
static int check_blocks(const struct cuda_recording *recording, const struct recorded_case *of,
                        struct err *err)
{
    uint64_t least = recording->base + GUARD_BYTES, most = recording->base + RECORDING_BYTES_MAX;

    for (size_t i = 0; i < of->blocks_count; i++) {
        const struct recorded_block *block = &of->blocks[i];

        if (block->bytes == 0 || block->at % RECORDING_ALIGN != 0 || block->at < least ||
            block->at >= most || block->bytes > most - block->at) {
            return err_set(err, ERR_INVALID, "a block lies where no block may be");
        }
        least = block->at + block->bytes + GUARD_BYTES;
        int rc = check_pieces(recording, block, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

// ---- cases ----

static size_t param_count(const struct problem *problem, enum param_type type)
{
    size_t count = 0;

    for (size_t i = 0; i < problem->param_count; i++) {
        count += problem->param[i].type == type;
    }
    return count;
}

// The executor's kernels write words of four bytes to where a result will be, and read elements.
static int check_output(const struct recorded_case *of, const struct tensor *tensor, uint64_t at,
                        struct err *err)
{
    size_t size = dtype_size(tensor->dtype), step = size > 4 ? size : 4;

    if (tensor->direction != DIRECTION_OUT || !recording_holds(of, at, 1)) {
        return err_set(err, ERR_INVALID, "a result lies where no result may be");
    }
    return at % step == 0
               ? 0
               : err_set(err, ERR_INVALID,
                         "what it gave as %s begins at an address that is no multiple of %zu",
                         tensor->name, step);
}

// Whether the doubles of a reference may lie there: nowhere for an input.
static bool may_hold_doubles(const struct recorded_case *of, const struct tensor *tensor,
                             uint64_t at)
{
    return tensor->direction == DIRECTION_IN
               ? at == 0
               : at % sizeof(double) == 0 && recording_holds(of, at, sizeof(double));
}

static int check_results(const struct recorded_case *of, const struct problem *problem,
                         enum manifest_role role, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < of->outputs_count && rc == 0; i++) {
        const struct tensor *tensor = &problem->tensor[i];

        if (role != MANIFEST_REFERENCE) {
            rc = of->outputs[i] != 0 ? check_output(of, tensor, of->outputs[i], err) : 0;
        } else if (!may_hold_doubles(of, tensor, of->outputs[i]) ||
                   !may_hold_doubles(of, tensor, of->scales[i])) {
            rc = err_set(err, ERR_INVALID,
                         "the expected value of %s or its error scale lies where it may not",
                         tensor->name);
        }
    }
    return rc;
}

// Whether the case has as many of everything as one of the problem has.
static bool has_all(const struct recorded_case *of, const struct problem *problem,
                    enum manifest_role role)
{
    size_t numbers = param_count(problem, PARAM_F64), tensors = problem->tensor_count;
    bool results =
        role == MANIFEST_REFERENCE
            ? of->outputs_count == tensors && of->scales_count == tensors
            : (of->outputs_count == 0 || of->outputs_count == tensors) && of->scales_count == 0;

    return results && of->values_count == param_count(problem, PARAM_INT) &&
           of->tensors_count == tensors && (of->numbers_count == 0 || of->numbers_count == numbers);
}

static int check_case(const struct cuda_recording *recording, const struct problem *problem,
                      enum manifest_role role, const struct recorded_case *of, struct err *err)
{
    if (!has_all(of, problem, role)) {
        return err_set(err, ERR_INVALID, "a case is not one of the problem");
    }
    if (of->nodes_count == 0) {
        return err_set(err, ERR_INVALID, "nothing was launched for a case");
    }
    int rc = check_blocks(recording, of, err);
    for (size_t i = 0; i < of->nodes_count && rc == 0; i++) {
        rc = check_node(recording, of, i, err);
    }
    return rc == 0 ? check_results(of, problem, role, err) : rc;
}

static int check_whole(const struct cuda_recording *recording, const struct problem *problem,
                       enum manifest_role role, struct err *err)
{
    uint64_t number = (recording->base - ARENA_RECORDED) / ARENA_RECORDED_STEP;
    int rc = 0;

    if (recording->base < ARENA_RECORDED || number >= GPU_RECORDINGS ||
        (recording->base - ARENA_RECORDED) % ARENA_RECORDED_STEP != 0) {
        return err_set(err, ERR_INVALID, "it is of other addresses");
    }
    for (size_t i = 0; i < recording->contents_count; i++) {
        if (recording->contents[i].data.len == 0) {
            return err_set(err, ERR_INVALID, "content %zu is empty", i);
        }
    }
    for (size_t i = 0; i < recording->images_count && rc == 0; i++) {
        rc = check_image(&recording->images[i], i, err);
    }
    for (size_t i = 0; i < recording->cases_count && rc == 0; i++) {
        rc = check_case(recording, problem, role, &recording->cases[i], err);
    }
    return rc;
}

int recording_check(const struct cuda_recording *recording, const struct problem *problem,
                    enum manifest_role role, struct err *err)
{
    int rc = check_whole(recording, problem, role, err);

    return rc != 0 ? err_wrap(err, "the recording cannot be replayed") : 0;
}

static bool is_of(const struct recorded_case *of, const struct problem *problem,
                  const struct shape_case *shape)
{
    size_t integers = 0, numbers = 0;
    bool same = true;

    for (size_t i = 0; i < problem->param_count; i++) {
        if (problem->param[i].type == PARAM_INT) {
            same = same && (int64_t)of->values[integers++] == shape->i[i];
        } else if (of->numbers_count > 0) {
            same = same && memcmp(&of->numbers[numbers++], &shape->f[i], sizeof(double)) == 0;
        }
    }
    return same;
}

const struct recorded_case *recording_find(const struct cuda_recording *recording,
                                           const struct problem *problem,
                                           const struct shape_case *shape)
{
    for (size_t c = 0; c < recording->cases_count; c++) {
        if (is_of(&recording->cases[c], problem, shape)) {
            return &recording->cases[c];
        }
    }
    return NULL;
}

bool recording_holds(const struct recorded_case *of, uint64_t at, uint64_t bytes)
{
    for (size_t i = 0; i < of->blocks_count; i++) {
        const struct recorded_block *block = &of->blocks[i];

        if (at >= block->at && bytes <= block->bytes && at - block->at <= block->bytes - bytes) {
            return true;
        }
    }
    return false;
}

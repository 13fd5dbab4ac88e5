#include "tests/support/gpu_recording.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "executor/gpu/arena.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/gpu.h"
#include "executor/gpu/input_set.h"
#include "tests/support/gpu_cubin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED 5 // of hidden cases, which those problems do not have

const char gpu_recording_problem_text[] =
    "{\"name\": \"p\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"
    "[\"n\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"n\": 300, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

static void fail(const struct err *err)
{
    fprintf(stderr, "making a recording: %s\n", err->text);
    abort();
}

struct problem *gpu_recording_problem(void)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;

    if (problem_parse(&problem, gpu_recording_problem_text, strlen(gpu_recording_problem_text), "p",
                      &err) != 0) {
        fail(&err);
    }
    return problem;
}

static void add_image(struct cuda_recording *recording, const char *kernel)
{
    struct recorded_image *image;

    recording->images = xrealloc(recording->images, recording->images_count + 1, sizeof(*image));
    image = &recording->images[recording->images_count++];

    message_init(&recorded_image_message, image);
    image->data = gpu_cubin(kernel, NULL);
}

static void add_launch(struct recorded_case *of, const char *kernel, int32_t n, float a)
{
    struct recorded_node *node = gpu_recording_node(of, RECORDED_KERNEL);
    const uint64_t shape[RECORDED_SHAPE] = {(uint64_t)(n + 255) / 256, 1, 1, 256, 1, 1};
    unsigned char value[24];

    memcpy(value, &of->tensors[0], 8);
    memcpy(value + 8, &of->tensors[1], 8);
    memcpy(value + 16, &n, sizeof(n));
    memcpy(value + 20, &a, sizeof(a));
    node->symbol = xstrdup(kernel);
    node->shape = xcalloc(RECORDED_SHAPE, sizeof(*node->shape));
    memcpy(node->shape, shape, sizeof(shape));
    node->shape_count = RECORDED_SHAPE;
    node->parameters = bytes_copy(value, sizeof(value));
}

static void add_case(struct recorded_case *of, const struct problem *problem,
                     const struct shape_case *shape, const char *kernel)
{
    struct tensor_sizes sizes;
    struct err err = ERR_INIT;

    message_init(&recorded_case_message, of);
    if (tensor_sizes_of(problem, shape, &sizes, &err) != 0) {
        fail(&err);
    }
    of->values = xcalloc(1, sizeof(*of->values));
    of->values[of->values_count++] = (uint64_t)shape->i[0];
    of->tensors_count = problem->tensor_count;
    of->tensors = xcalloc(of->tensors_count, sizeof(*of->tensors));
    cu_pointer at[PROBLEM_TENSOR_MAX];
    gpu_tensor_addresses(GPU_RECORDING_L2, sizes.bytes, problem->tensor_count, at);
    for (size_t t = 0; t < problem->tensor_count; t++) {
        of->tensors[t] = at[t];
    }
    add_launch(of, kernel, (int32_t)shape->i[0], (float)shape->f[1]);
}

void gpu_recording_make(struct cuda_recording *ret, const struct problem *problem,
                        const char *kernel, unsigned number)
{
    struct shape_case shape[GPU_CASES_MAX];
    size_t count = gpu_cases(problem, COMPILE_CANDIDATE, SEED, shape);

    message_init(&cuda_recording_message, ret);
    ret->base = ARENA_RECORDED + number * ARENA_RECORDED_STEP;
    add_image(ret, kernel);
    ret->cases = xcalloc(count, sizeof(*ret->cases));
    for (size_t i = 0; i < count; i++) {
        add_case(&ret->cases[ret->cases_count++], problem, &shape[i], kernel);
    }
}

// One step of a reference: a kernel from one place to another.
static void add_step(struct cuda_recording *recording, struct recorded_case *of, const char *kernel,
                     uint64_t from, uint64_t to, int32_t n, float a)
{
    size_t number = of->nodes_count;

    add_launch(of, kernel, n, a);
    struct recorded_node *node = &of->nodes[number];
    memcpy(node->parameters.data, &from, sizeof(from));
    memcpy(node->parameters.data + 8, &to, sizeof(to));
    for (size_t i = 0; i < recording->images_count; i++) {
        if (memmem(recording->images[i].data.data, recording->images[i].data.len, kernel,
                   strlen(kernel))) {
            node->image = i;
        }
    }
    if (number > 0) {
        gpu_recording_after(node, number - 1);
    }
}

void gpu_recording_reference(struct cuda_recording *ret, const struct problem *problem)
{
    static const char *const kernel[] = {"fk_double", "fk_times", "fk_magnitude"};

    gpu_recording_make(ret, problem, kernel[0], 1);
    add_image(ret, kernel[1]);
    add_image(ret, kernel[2]);
    for (size_t i = 0; i < ret->cases_count; i++) {
        struct recorded_case *of = &ret->cases[i];
        size_t bytes = of->values[0] * sizeof(double);
        uint64_t at = gpu_recording_block(ret, of, 3 * bytes)->at;
        int32_t n = (int32_t)of->values[0];
        float a;

        memcpy(&a, of->nodes[0].parameters.data + 20, sizeof(a));
        gpu_recording_clear_nodes(of);
        add_step(ret, of, kernel[0], of->tensors[0], at, n, a);
        add_step(ret, of, kernel[1], at, at + bytes, n, a);
        add_step(ret, of, kernel[2], at + bytes, at + 2 * bytes, n, a);
        of->outputs = xcalloc(2, sizeof(*of->outputs));
        of->scales = xcalloc(2, sizeof(*of->scales));
        of->outputs_count = of->scales_count = 2;
        of->outputs[1] = at + bytes;
        of->scales[1] = at + 2 * bytes;
    }
}

struct recorded_node *gpu_recording_node(struct recorded_case *of, enum recorded_kind kind)
{
    of->nodes = xrealloc(of->nodes, of->nodes_count + 1, sizeof(*of->nodes));
    struct recorded_node *node = &of->nodes[of->nodes_count++];

    message_init(&recorded_node_message, node);
    node->kind = kind;
    return node;
}

struct recorded_block *gpu_recording_block(const struct cuda_recording *recording,
                                           struct recorded_case *of, size_t bytes)
{
    uint64_t end = recording->base;

    if (of->blocks_count > 0) {
        const struct recorded_block *last = &of->blocks[of->blocks_count - 1];

        end = last->at + last->bytes;
    }
    of->blocks = xrealloc(of->blocks, of->blocks_count + 1, sizeof(*of->blocks));
    struct recorded_block *block = &of->blocks[of->blocks_count++];
    message_init(&recorded_block_message, block);
    block->at = (end + GUARD_BYTES + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    block->bytes = bytes;
    return block;
}

struct bytes gpu_recording_pack(struct cuda_recording *recording)
{
    struct cuda_object object;
    struct strbuf packed;
    struct err err = ERR_INIT;

    message_init(&cuda_object_message, &object);
    object.source = bytes_copy("def p(): pass\n", 14);
    object.target = xstrdup("sm_90");
    object.recording = recording;
    strbuf_init(&packed, (size_t)32 << 20);
    if (message_pack(&cuda_object_message, &object, &packed, &err) != 0) {
        fail(&err);
    }
    object.recording = NULL;
    message_clear(&cuda_object_message, &object);
    message_clear(&cuda_recording_message, recording);
    return strbuf_detach_bytes(&packed);
}

void gpu_recording_after(struct recorded_node *node, uint64_t number)
{
    node->after = xrealloc(node->after, node->after_count + 1, sizeof(*node->after));
    node->after[node->after_count++] = number;
}

void gpu_recording_fill(struct recorded_case *of)
{
    struct recorded_node *node = gpu_recording_node(of, RECORDED_FILL);

    node->to = of->tensors_count > 1 ? of->tensors[1] : 0;
    node->width = 4;
    node->bytes = 16;
}

void gpu_recording_clear_nodes(struct recorded_case *of)
{
    for (size_t i = 0; i < of->nodes_count; i++) {
        message_clear(&recorded_node_message, &of->nodes[i]);
    }
    of->nodes_count = 0;
}

void gpu_recording_draw(struct recorded_case *of, const char *text)
{
    gpu_recording_clear_nodes(of);
    gpu_recording_fill(of);
    while (text) {
        gpu_recording_fill(of);
        while (*text != '\0' && *text != ';') {
            char *end;

            gpu_recording_after(&of->nodes[of->nodes_count - 1], strtoul(text, &end, 10));
            text = end + (*end == ' ');
        }
        text = *text == ';' ? text + 1 : NULL;
    }
}

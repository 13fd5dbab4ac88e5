// Any bytes as what a recorder's process writes. They are refused, or give a recording whose parts
// lie where they may, with images that are whole; its cases are found again, streams keep the
// order of their launches, and its features are finite. Its images' variables are read as the
// executor does.
#include "executor/gpu/arena.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/gpu.h"
#include "executor/gpu/program/recording.h"
#include "executor/gpu/record/features.h"
#include "tests/support/stream_plan_check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char problem_text[] =
    "{\"name\": \"p\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"
    "[\"n\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"n\": 300, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

static void must(bool what)
{
    if (!what) {
        abort();
    }
}

// Streams for the launches. The check knows a limited number of them.
static void look_at_streams(const struct recorded_case *of)
{
    struct stream_plan plan;
    bool chain = true;

    stream_plan_make(&plan, of);
    for (size_t i = 1; i < of->nodes_count; i++) {
        bool follows = false;

        for (size_t k = 0; k < of->nodes[i].after_count; k++) {
            follows = follows || of->nodes[i].after[k] == i - 1;
        }
        chain = chain && follows;
    }
    must(chain == (plan.streams == 1) && (!chain || plan.wait_count == 0));
    must(of->nodes_count > PLAN_CHECK_MAX || !plan_fault(of, &plan));
    stream_plan_release(&plan);
}

static void look_at_case(const struct cuda_recording *recording, const struct recorded_case *of)
{
    uint64_t end = recording->base;

    must(of->nodes_count > 0 && of->tensors_count == 2 && of->values_count == 1);
    for (size_t i = 0; i < of->nodes_count; i++) {
        const struct recorded_node *node = &of->nodes[i];

        for (size_t k = 0; k < node->after_count; k++) {
            must(node->after[k] < i);
        }
        must(node->kind != RECORDED_KERNEL ||
             (node->image < recording->images_count && node->symbol &&
              node->shape_count == RECORDED_SHAPE));
        must(node->kind == RECORDED_KERNEL || node->bytes > 0);
    }
    look_at_streams(of);
    for (size_t i = 0; i < of->blocks_count; i++) {
        const struct recorded_block *block = &of->blocks[i];

        must(block->at >= end + GUARD_BYTES && block->bytes <= RECORDING_BYTES_MAX);
        end = block->at + block->bytes;
        must(end > block->at && end <= recording->base + RECORDING_BYTES_MAX);
        for (size_t k = 0; k < block->pieces_count; k++) {
            must(block->pieces[k].content < recording->contents_count);
            must(block->pieces[k].at + recording->contents[block->pieces[k].content].data.len <=
                 block->bytes);
        }
    }
    for (size_t i = 0; i < of->outputs_count; i++) {
        must(of->outputs[i] == 0 ||
             (recording_holds(of, of->outputs[i], 1) && of->outputs[i] % 4 == 0));
    }
}

// Reads the variables of an image, as the executor does. All are cubins here.
static void look_at_image(const struct recorded_image *image)
{
    struct cuda_global *globals = NULL;
    size_t count = 0;
    struct err err = ERR_INIT;

    must(cubin_check(&image->data, &err) == 0);
    must(cubin_globals(&image->data, &globals, &count, &err) == 0);
    for (size_t i = 0; i < count; i++) {
        message_clear(&cuda_global_message, &globals[i]);
    }
    free(globals);
}

static void look_at_reference(const struct recorded_case *of)
{
    must(of->outputs_count == 2 && of->scales_count == 2);
    must(of->outputs[0] == 0 && of->scales[0] == 0);
    must(of->outputs[1] % 8 == 0 && recording_holds(of, of->outputs[1], 8));
    must(of->scales[1] % 8 == 0 && recording_holds(of, of->scales[1], 8));
}

static void look(const struct cuda_recording *recording, const struct problem *problem,
                 enum manifest_role role)
{
    const struct recorded_case *bench = recording_find(recording, problem, &problem->bench[0]);
    struct fact *features = NULL;
    size_t count = 0;

    for (size_t i = 0; i < recording->images_count; i++) {
        look_at_image(&recording->images[i]);
    }
    for (size_t i = 0; i < recording->cases_count; i++) {
        look_at_case(recording, &recording->cases[i]);
        must(recording->cases[i].numbers_count <= 1);
        if (role == MANIFEST_REFERENCE) {
            look_at_reference(&recording->cases[i]);
        } else {
            must(recording->cases[i].scales_count == 0);
        }
    }
    if (!bench) {
        return;
    }
    must(bench->values[0] == 2000);
    record_features(recording, problem, &problem->bench[0], NULL, 0, &features, &count);
    for (size_t i = 0; i < count; i++) {
        must(isfinite(features[i].value));
        message_clear(&fact_message, &features[i]);
    }
    free(features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const enum manifest_role role[] = {MANIFEST_CANDIDATE, MANIFEST_REFERENCE};
    static struct problem *problem;
    struct record_reply reply;
    struct err err = ERR_INIT;

    if (!problem && problem_parse(&problem, problem_text, sizeof(problem_text) - 1, "p", &err)) {
        abort();
    }
    if (message_read(&record_reply_message, &reply, data, len, &err) != 0) {
        return 0;
    }
    if (reply.recording && recording_unpack_images(reply.recording, &err) == 0) {
        for (size_t i = 0; i < reply.recording->images_count; i++) {
            must(reply.recording->images[i].bytes == 0);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(role) && reply.recording; i++) {
        err = (struct err)ERR_INIT;
        if (recording_check(reply.recording, problem, role[i], &err) == 0) {
            look(reply.recording, problem, role[i]);
        }
    }
    message_clear(&record_reply_message, &reply);
    return 0;
}

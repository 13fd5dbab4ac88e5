// Recordings that are kept in tests/data/recordings: each is read, checked and replayed on the fake
// GPU, and what is launched is what NAME.launches says. Damaged copies are refused, or at least do
// no harm. NAME.json is the problem that NAME.recording, a packed cuda_object, was made for.
//   test_kept_recordings expect     writes NAME.launches for each recording; read what it wrote
//   test_kept_recordings make       writes two recordings without a GPU, with code of NVRTC's
#include "common/stats.h"
#include "executor/fact_list.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/record/features.h"
#include "tests/executor/gpu/program/kept_fixture.h"
#include "tests/support/gpu_recording.h"

#define FLIPS 2000 // copies of each recording with a byte that is wrong
#define CUTS 100   // copies that are too short
#define WAIT_NS 10000000000ULL

// ---- what is launched, as text ----

static void add_place(struct strbuf *out, const struct replayed *r, cu_pointer at)
{
    for (size_t t = 0; t < r->kept->problem->tensor_count; t++) {
        if (at >= r->tensor[t].tensor && at - r->tensor[t].tensor < r->tensor[t].bytes) {
            strbuf_addf(out, "%s+%llu", r->kept->problem->tensor[t].name,
                        (unsigned long long)(at - r->tensor[t].tensor));
            return;
        }
    }
    strbuf_addf(out, "memory+%llu", (unsigned long long)(at - r->program->memory->base));
}

static void add_kernel(struct strbuf *out, const struct program_launch *launch)
{
    const struct cu_launch *config = &launch->config;

    strbuf_addf(out, "kernel %s\n  grid %u %u %u block %u %u %u smem %u parameters %zu",
                launch->name, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                config->block[1], config->block[2], config->smem, launch->packed_bytes);
    for (uint32_t i = 0; i < config->attribute_count; i++) {
        const struct cu_attribute *attribute = &launch->attribute[i];

        if (attribute->id == CU_LAUNCH_CLUSTER) {
            strbuf_addf(out, " cluster %u %u %u", attribute->value.cluster[0],
                        attribute->value.cluster[1], attribute->value.cluster[2]);
        } else {
            strbuf_adds(out, attribute->id == CU_LAUNCH_PDL ? " pdl" : " cooperative");
        }
    }
    strbuf_addc(out, '\n');
}

static void add_launch(struct strbuf *out, const struct replayed *r,
                       const struct program_launch *launch)
{
    switch (launch->work) {
    case WORK_KERNEL:
        add_kernel(out, launch);
        break;
    case WORK_FILL:
        strbuf_addf(out, "fill %zu times %u in %u bytes, ", launch->count, launch->set,
                    launch->set_size);
        add_place(out, r, launch->to);
        strbuf_addc(out, '\n');
        break;
    case WORK_COPY:
        strbuf_addf(out, "copy %zu bytes, ", launch->count);
        add_place(out, r, launch->from);
        strbuf_adds(out, " to ");
        add_place(out, r, launch->to);
        strbuf_addc(out, '\n');
        break;
    }
}

static void add_case(struct strbuf *out, const struct replayed *r)
{
    strbuf_adds(out, "case ");
    problem_case_name(r->kept->problem, &r->shape, out);
    strbuf_addc(out, '\n');
    for (size_t i = 0; i < r->program->launch_count; i++) {
        add_launch(out, r, &r->program->launch[i]);
    }
    for (size_t i = 0; i < r->program->area_count; i++) {
        const struct program_area *area = &r->program->area[i];

        strbuf_addf(out, "area of %zu bytes%s\n", area->bytes,
                    area->fill == FILL_KEPT ? ", kept" : "");
    }
}

// ---- replaying ----

// A kernel's parameters are as long as its code says.
static void check_parameters(const struct kept *kept, const struct cuda_recording *recording,
                             const struct recorded_node *node)
{
    struct cuda_kernel sizes;
    struct err err = ERR_INIT;
    uint64_t most = 0;

    message_init(&cuda_kernel_message, &sizes);
    must(cubin_parameters(&recording->images[node->image].data, node->symbol, &sizes, &err), &err,
         kept->name);
    for (size_t i = 0; i < sizes.sizes_count; i++) {
        uint64_t last = sizes.offsets[i] + sizes.sizes[i];

        most = last > most ? last : most;
    }
    if (node->parameters.len != most) {
        fail_msg("%s: %s takes %llu bytes of parameters and was recorded with %zu", kept->name,
                 node->symbol, (unsigned long long)most, node->parameters.len);
    }
    message_clear(&cuda_kernel_message, &sizes);
}

static void replay_case(struct kept_fixture *f, struct replayed *r, size_t number,
                        struct strbuf *out)
{
    const struct cuda_recording *recording = r->program->object.recording;
    const struct recorded_case *of = &recording->cases[number];
    struct err err = ERR_INIT;

    must(prepare(f, r, number, &err), &err, r->kept->name);
    add_case(out, r);
    for (size_t i = 0; i < of->nodes_count; i++) {
        if (of->nodes[i].kind == RECORDED_KERNEL) {
            check_parameters(r->kept, recording, &of->nodes[i]);
        }
    }
    must(program_restore(r->program, &err), &err, r->kept->name);
    must(program_run(r->program, &err), &err, r->kept->name);
    assert_int_equal(gpu_wait(&f->gpu, WAIT_NS), GPU_DONE);
}

// What forecasts know of real kernels: their registers, and how they fit a device.
static void check_features(const struct kept *kept, const struct cuda_recording *recording)
{
    static struct fact device[] = {
        {.name = (char *)(uintptr_t) "multiprocessors", .value = 132},
        {.name = (char *)(uintptr_t) "threads_per_multiprocessor", .value = 2048},
        {.name = (char *)(uintptr_t) "registers_per_multiprocessor", .value = 65536},
        {.name = (char *)(uintptr_t) "shared_bytes_per_multiprocessor", .value = 233472},
    };
    struct fact *list = NULL;
    size_t count = 0;

    record_features(recording, kept->problem, &kept->problem->bench[0], device, ARRAY_LEN(device),
                    &list, &count);
    double registers = fact_list_find(list, count, "registers");
    double occupancy = fact_list_find(list, count, "occupancy");
    if (!(registers >= 8 && registers <= 255) || !(occupancy > 0 && occupancy <= 1) ||
        fact_list_find(list, count, "launches") !=
            fact_list_find(list, count, "recorded_kernels")) {
        fail_msg("%s: %g registers, occupancy %g", kept->name, registers, occupancy);
    }
    for (size_t i = 0; i < count; i++) {
        message_clear(&fact_message, &list[i]);
    }
    free(list);
}

static void replay(struct kept_fixture *f, const struct kept *kept, struct strbuf *out)
{
    struct replayed r;
    struct err err = ERR_INIT;

    must(begin(f, &r, kept, &kept->packed, &err), &err, kept->name);
    assert_true(r.program->object.recording->cases_count > 0);
    check_features(kept, r.program->object.recording);
    for (size_t i = 0; i < r.program->object.recording->cases_count; i++) {
        replay_case(f, &r, i, out);
    }
    end(f, &r);
}

static void each_is_replayed_as_it_says(void **state)
{
    struct kept_fixture *f = *state;

    if (f->count == 0) {
        fail_msg("there are no recordings in tests/data/recordings");
    }
    for (size_t i = 0; i < f->count; i++) {
        struct bytes expected = read_file(f->kept[i].name, ".launches");
        struct strbuf found = STRBUF_INIT;

        replay(f, &f->kept[i], &found);
        if (found.len != expected.len || memcmp(found.data, expected.data, found.len) != 0) {
            fail_msg("%s launches\n%s", f->kept[i].name, strbuf_text(&found));
        }
        strbuf_release(&found);
        bytes_clear(&expected);
    }
}

// ---- damage ----

static bool has_same_images(const struct cuda_recording *a, const struct cuda_recording *b)
{
    bool same = a->images_count == b->images_count;

    for (size_t i = 0; same && i < a->images_count; i++) {
        const struct bytes *x = &a->images[i].data, *y = &b->images[i].data;

        same = x->len == y->len && memcmp(x->data, y->data, x->len) == 0;
    }
    return same;
}

// Does with a damaged object what is done with one that a recorder hands out, and makes its
// launches where its code is what it was: a driver reads that, which is the driver's to check.
// Returns whether it was accepted.
static bool is_accepted(struct kept_fixture *f, const struct kept *kept,
                        const struct bytes *damaged)
{
    struct cuda_object whole, object;
    struct err err = ERR_INIT;
    bool accepted = false;

    if (message_read(&cuda_object_message, &object, damaged->data, damaged->len, &err) != 0) {
        return false;
    }
    must(message_read(&cuda_object_message, &whole, kept->packed.data, kept->packed.len, &err),
         &err, kept->name);
    must(recording_unpack_images(whole.recording, &err), &err, kept->name);
    if (object.recording && recording_unpack_images(object.recording, &err) == 0 &&
        recording_check(object.recording, kept->problem, MANIFEST_CANDIDATE, &err) == 0) {
        bool same = has_same_images(whole.recording, object.recording);
        struct replayed r;

        accepted = true;
        int rc = same ? begin(f, &r, kept, damaged, &err) : 0;
        for (size_t i = 0; same && rc == 0 && i < object.recording->cases_count; i++) {
            struct err why = ERR_INIT;

            accepted = prepare(f, &r, i, &why) == 0 && accepted;
        }
        if (same && rc == 0) {
            end(f, &r);
        }
        accepted = accepted && rc == 0;
    }
    message_clear(&cuda_object_message, &object);
    message_clear(&cuda_object_message, &whole);
    return accepted;
}

static void what_is_cut_off_is_refused(void **state)
{
    struct kept_fixture *f = *state;
    struct stats_rng rng;

    stats_rng_init(&rng, 1, 0);
    for (size_t i = 0; i < f->count; i++) {
        const struct kept *kept = &f->kept[i];

        assert_true(is_accepted(f, kept, &kept->packed));
        for (size_t k = 0; k < CUTS; k++) {
            // A copy of its own, so that reading behind its end is seen.
            size_t len = k == 0 ? kept->packed.len - 1 : stats_rng_below(&rng, kept->packed.len);
            struct bytes cut = bytes_copy(kept->packed.data, len);

            if (is_accepted(f, kept, &cut)) {
                fail_msg("the first %zu bytes of %s are accepted", len, kept->name);
            }
            bytes_clear(&cut);
        }
    }
}

// Half of the places lie in the first and last bytes, where images are not: what is between them is
// code, which nobody but the driver reads.
static void a_wrong_byte_does_no_harm(void **state)
{
    struct kept_fixture *f = *state;
    struct stats_rng rng;

    stats_rng_init(&rng, 2, 0);
    for (size_t i = 0; i < f->count; i++) {
        const struct kept *kept = &f->kept[i];
        size_t refused = 0, near = kept->packed.len < 4096 ? kept->packed.len : 4096;

        for (size_t k = 0; k < FLIPS; k++) {
            struct bytes wrong = bytes_copy(kept->packed.data, kept->packed.len);
            size_t at = k % 2 == 0   ? stats_rng_below(&rng, wrong.len)
                        : k % 4 == 1 ? stats_rng_below(&rng, near)
                                     : wrong.len - 1 - stats_rng_below(&rng, near);

            wrong.data[at] ^= (unsigned char)(1 + stats_rng_below(&rng, 255));
            refused += !is_accepted(f, kept, &wrong);
            bytes_clear(&wrong);
        }
        if (refused == 0) {
            fail_msg("no copy of %s with a wrong byte is refused", kept->name);
        }
    }
}

// ---- the other modes ----

static void write_expectations(void **state)
{
    struct kept_fixture *f = *state;

    for (size_t i = 0; i < f->count; i++) {
        struct strbuf text = STRBUF_INIT;

        replay(f, &f->kept[i], &text);
        write_file(f->kept[i].name, ".launches", strbuf_text(&text), text.len);
        strbuf_release(&text);
    }
}

static struct bytes compile(void)
{
    static const char source[] = "extern \"C\" __global__ void fk_scale(const float *x, float *y, "
                                 "int n, float a)\n{\n    int i = blockIdx.x * blockDim.x + "
                                 "threadIdx.x;\n    if (i < n) {\n        y[i] = a * x[i];\n    }\n"
                                 "}\n";
    const struct nvrtc_input input = {.source = source, .file = "scale.cu", .target = "sm_90"};
    struct nvrtc_output output;
    struct toolkit toolkit;
    struct nvrtc *nvrtc = NULL;
    struct err err = ERR_INIT;

    must(toolkit_find(&toolkit, &err), &err, "the toolkit");
    must(nvrtc_open(&nvrtc, &toolkit, &err), &err, "the compiler");
    must(nvrtc_compile(nvrtc, &input, &output, &err), &err, "scale.cu");
    assert_true(output.compiled);
    struct bytes cubin = bytes_take(&output.cubin);
    nvrtc_output_release(&output);
    nvrtc_close(nvrtc);
    toolkit_release(&toolkit);
    return cubin;
}

// A copy of x to memory of its own, a fill, the kernel from a kept block to the memory, and copies
// of both to y.
static void add_more(struct cuda_recording *recording, struct recorded_case *of)
{
    size_t bytes = 4 * of->values[0];
    struct recorded_block *kept = gpu_recording_block(recording, of, bytes);

    kept->kept = true;
    kept->pieces = xcalloc(1, sizeof(*kept->pieces));
    kept->pieces_count = 1;
    uint64_t from = kept->at, work = gpu_recording_block(recording, of, bytes)->at;
    memcpy(of->nodes[0].parameters.data, &from, sizeof(from));
    memcpy(of->nodes[0].parameters.data + 8, &work, sizeof(work));
    struct recorded_node *fill = gpu_recording_node(of, RECORDED_FILL);
    fill->to = of->tensors[1];
    fill->bytes = bytes;
    fill->width = 4;
    struct recorded_node *copy = gpu_recording_node(of, RECORDED_COPY);
    copy->from = work;
    copy->to = of->tensors[1];
    copy->bytes = bytes / 2;
}

static void make_recordings(void **state)
{
    static const char *const name[] = {"made_kernel", "made_memory"};
    struct problem *problem = gpu_recording_problem();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        struct cuda_recording recording;

        gpu_recording_make(&recording, problem, "fk_scale", 1);
        bytes_clear(&recording.images[0].data);
        recording.images[0].data = compile();
        if (i == 1) {
            recording.contents = xcalloc(1, sizeof(*recording.contents));
            recording.contents_count = 1;
            recording.contents[0].data = bytes_copy("\0\0\200\77", 4); // 1
            add_more(&recording, &recording.cases[0]);
        }
        struct bytes packed = gpu_recording_pack(&recording);
        write_file(name[i], ENDING, packed.data, packed.len);
        write_file(name[i], ".json", gpu_recording_problem_text,
                   strlen(gpu_recording_problem_text));
        bytes_clear(&packed);
    }
    problem_free(problem);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kept_set_up, kept_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(each_is_replayed_as_it_says),
        TEST(what_is_cut_off_is_refused),
        TEST(a_wrong_byte_does_no_harm),
    };
    const struct CMUnitTest expect[] = {TEST(write_expectations)};
    const struct CMUnitTest make[] = {cmocka_unit_test(make_recordings)};

    if (argc == 2 && strcmp(argv[1], "expect") == 0) {
        return cmocka_run_group_tests(expect, NULL, NULL);
    }
    if (argc == 2 && strcmp(argv[1], "make") == 0) {
        return cmocka_run_group_tests(make, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

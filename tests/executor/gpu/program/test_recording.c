// What makes a recording one that can be replayed. Each test damages one thing of a good one.
#include "common/mem.h"
#include "executor/gpu/arena.h"
#include "executor/gpu/gpu.h"
#include "executor/gpu/program/program.h"
#include "tests/support/gpu_recording.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct problem *problem;
    struct cuda_recording recording;
    enum manifest_role role;  // that it is checked for
    struct recorded_case *of; // its first case, of n = 2000
    struct recorded_node *launch;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->problem = gpu_recording_problem();
    gpu_recording_make(&f->recording, f->problem, "fk_scale", 1);
    f->of = &f->recording.cases[0];
    f->launch = &f->of->nodes[0];
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    message_clear(&cuda_recording_message, &f->recording);
    problem_free(f->problem);
    free(f);
    return 0;
}

static void passes(struct fixture *f)
{
    struct err err = ERR_INIT;

    if (recording_check(&f->recording, f->problem, f->role, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void fails(struct fixture *f, const char *words)
{
    struct err err = ERR_INIT;
    int rc = recording_check(&f->recording, f->problem, f->role, &err);

    if (rc != ERR_INVALID || !strstr(err.text, words) ||
        strncmp(err.text, "the recording cannot be replayed: ", 34) != 0) {
        fail_msg("%s; expected: %s", rc == 0 ? "it passes" : err.text, words);
    }
}

// Sets a number to something bad, sees the sentence, and sets it back.
static void refused(struct fixture *f, uint64_t *number, uint64_t bad, const char *words)
{
    uint64_t good = *number;

    *number = bad;
    fails(f, words);
    *number = good;
    passes(f);
}

static void its_memory_begins_at_an_address_for_recordings(void **state)
{
    struct fixture *f = *state;
    uint64_t *base = &f->recording.base;

    passes(f);
    refused(f, base, ARENA_OPEN, "it is of other addresses");
    refused(f, base, ARENA_JUDGE, "it is of other addresses");
    refused(f, base, ARENA_RECORDED + 4096, "it is of other addresses");
    refused(f, base, ARENA_RECORDED + GPU_RECORDINGS * ARENA_RECORDED_STEP,
            "it is of other addresses");
}

// A driver is given an image without its length.
static void images_are_as_long_as_they_say(void **state)
{
    struct fixture *f = *state;
    struct bytes *image = &f->recording.images[0].data, whole = *image;

    passes(f);
    for (size_t len = 0; len < whole.len; len++) {
        image->len = len;
        fails(f, len < 4 ? "image 0 is no cubin" : "image 0: ");
    }
    image->len = whole.len;
    memcpy(image->data, "\x50\xed\x55\xba", 4); // a fat binary, out of which nobody took one
    fails(f, "image 0 is no cubin");
}

// An object has its images packed; who reads it has them as they were.
static void images_are_packed_and_unpacked(void **state)
{
    struct fixture *f = *state;
    struct recorded_image *image = &f->recording.images[0];
    struct err err = ERR_INIT;

    struct bytes whole = bytes_copy(image->data.data, image->data.len);
    recording_pack_images(&f->recording);
    assert_true(image->data.len < whole.len);
    assert_int_equal(image->bytes, whole.len);
    fails(f, "image 0");
    assert_int_equal(recording_unpack_images(&f->recording, &err), 0);
    assert_int_equal(image->bytes, 0);
    assert_int_equal(image->data.len, whole.len);
    assert_memory_equal(image->data.data, whole.data, whole.len);
    passes(f);
    assert_int_equal(recording_unpack_images(&f->recording, &err), 0); // there is nothing to do
    passes(f);
    bytes_clear(&whole);
}

static void packed_images_that_are_damaged_are_refused(void **state)
{
    struct fixture *f = *state;
    struct recorded_image *image = &f->recording.images[0];
    struct err err = ERR_INIT;

    recording_pack_images(&f->recording);
    struct bytes *packed = &image->data;
    uint64_t bytes = image->bytes;
    const uint64_t other[] = {bytes - 1, bytes + 1};
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        image->bytes = other[i];
        assert_int_equal(recording_unpack_images(&f->recording, &err), ERR_INVALID);
    }
    const uint64_t large[] = {RECORDING_IMAGES_MAX + 1, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(large); i++) {
        image->bytes = large[i];
        assert_int_equal(recording_unpack_images(&f->recording, &err), ERR_LIMIT);
    }
    image->bytes = bytes;
    recording_pack_images(&f->recording); // too small to be packed again
    assert_int_equal(image->bytes, 0);
    image->bytes = bytes;
    for (size_t cut = 1; cut < packed->len; cut++) {
        packed->len -= cut;
        assert_int_equal(recording_unpack_images(&f->recording, &err), ERR_INVALID);
        packed->len += cut;
    }
    assert_int_equal(recording_unpack_images(&f->recording, &err), 0);
    passes(f);
}

static void a_launch_has_extents_that_a_gpu_has(void **state)
{
    struct fixture *f = *state;
    uint64_t *shape = f->launch->shape;

    refused(f, &f->launch->image, 1, "a kernel has no image");
    for (size_t i = 0; i < 6; i++) {
        refused(f, &shape[i], 0, "has extents that no launch has");
        refused(f, &shape[i], UINT64_MAX, "has extents that no launch has");
    }
    refused(f, &shape[3], 1025, "has extents");
    refused(f, &shape[4], 5, "a block or cluster that is too large"); // 1280 threads
    refused(f, &shape[6], 17, "has extents");
    f->launch->shape[6] = f->launch->shape[7] = f->launch->shape[8] = 16;
    fails(f, "too large");
    shape[6] = shape[7] = shape[8] = 0;
    refused(f, &f->launch->smem, UINT32_MAX, "too large");
    f->launch->shape_count = 8;
    fails(f, "has no shape");
    f->launch->shape_count = RECORDED_SHAPE;
    char *name = f->launch->symbol;
    f->launch->symbol = NULL;
    fails(f, "no name");
    f->launch->symbol = (char[]){"k\033[2J"}; // which a terminal would obey
    fails(f, "the name of a kernel");
    f->launch->symbol = name;
    passes(f);
}

static void nodes_come_after_those_that_they_wait_for(void **state)
{
    struct fixture *f = *state;
    struct recorded_node *fill = gpu_recording_node(f->of, RECORDED_FILL);

    f->launch = &f->of->nodes[0];
    fill->width = 4;
    fill->bytes = 16;
    fill->after = xcalloc(1, sizeof(*fill->after));
    fill->after_count = 1;
    passes(f);
    refused(f, &fill->after[0], 1, "node 1 comes after node 1");
    refused(f, &fill->after[0], UINT64_MAX, "node 1 comes after node 18446744073709551615");
    refused(f, &fill->width, 3, "values of a wrong size");
    refused(f, &fill->bytes, 15, "values of a wrong size");
    refused(f, &fill->bytes, 0, "values of a wrong size");
    refused(f, &fill->kind, RECORDED_COPY + 1, "is of kind 4");
    fill->kind = RECORDED_COPY;
    refused(f, &fill->bytes, 0, "a copy has no bytes");
}

static void blocks_lie_apart_in_its_memory(void **state)
{
    struct fixture *f = *state;
    struct recorded_block *first = gpu_recording_block(&f->recording, f->of, 1000), *second;

    second = gpu_recording_block(&f->recording, f->of, 4096);
    first = &f->of->blocks[0];
    passes(f);
    refused(f, &first->at, f->recording.base, "where no block may be");
    refused(f, &first->at, first->at + 8, "where no block may be");
    refused(f, &second->at, first->at, "where no block may be");
    refused(f, &second->at, second->at - ARENA_ALIGN, "where no block may be");
    refused(f, &second->at, UINT64_MAX - 255, "where no block may be");
    refused(f, &second->bytes, UINT64_MAX, "where no block may be");
    refused(f, &second->bytes, 0, "where no block may be");
    assert_true(recording_holds(f->of, second->at, 4096));
    assert_true(recording_holds(f->of, second->at + 4095, 1));
    assert_false(recording_holds(f->of, second->at, 4097));
    assert_false(recording_holds(f->of, second->at + 4095, UINT64_MAX));
    assert_false(recording_holds(f->of, first->at + 1000, 1));
}

static void pieces_lie_in_their_block_in_order(void **state)
{
    struct fixture *f = *state;
    struct recorded_block *block = gpu_recording_block(&f->recording, f->of, 1000);
    struct recorded_piece *piece = block->pieces = xcalloc(2, sizeof(*piece));

    f->recording.contents = xcalloc(1, sizeof(*f->recording.contents));
    f->recording.contents_count = 1;
    f->recording.contents[0].data = bytes_copy("0123456789", 10);
    block->kept = true;
    block->pieces_count = 2;
    piece[1].at = 990;
    passes(f);
    refused(f, &piece[1].at, 991, "a piece does not lie in its block");
    refused(f, &piece[1].at, 9, "a piece does not lie in its block");
    refused(f, &piece[1].at, UINT64_MAX, "a piece does not lie in its block");
    refused(f, &piece[1].content, 1, "a content that there is not");
    f->recording.contents[0].data.len = 0;
    fails(f, "content 0 is empty");
    f->recording.contents[0].data.len = 10;
}

static void a_case_is_one_of_the_problem(void **state)
{
    struct fixture *f = *state;

    f->of->tensors_count = 1;
    fails(f, "a case is not one of the problem");
    f->of->tensors_count = 2;
    f->of->values_count = 0;
    fails(f, "a case is not one of the problem");
    f->of->values_count = 1;
    f->of->outputs = xcalloc(2, sizeof(*f->of->outputs));
    f->of->outputs_count = 2;
    passes(f);
    struct recorded_block *block = gpu_recording_block(&f->recording, f->of, 8000);
    f->of->outputs[1] = block->at;
    passes(f);
    refused(f, &f->of->outputs[1], block->at + 8000, "where no result may be");
    refused(f, &f->of->outputs[1], f->of->tensors[0], "where no result may be");
    refused(f, &f->of->outputs[0], block->at, "where no result may be"); // of an input
    // The executor's own kernels would fail there, which nobody would take for the candidate's.
    refused(f, &f->of->outputs[1], block->at + 2,
            "what it gave as y begins at an address that is "
            "no multiple of 4");
    f->of->nodes_count = 0;
    fails(f, "nothing was launched for a case");
    f->of->nodes_count = 1;
}

static void a_case_is_found_by_its_parameters(void **state)
{
    struct fixture *f = *state;
    struct shape_case shape = f->problem->check[0];

    assert_ptr_equal(recording_find(&f->recording, f->problem, &f->problem->bench[0]), f->of);
    assert_ptr_equal(recording_find(&f->recording, f->problem, &shape), &f->recording.cases[1]);
    shape.i[0] = 301;
    assert_null(recording_find(&f->recording, f->problem, &shape));
}

// Cases of the same extents are told apart by other parameters, where a recording has these.
static void a_case_is_found_by_its_numbers_too(void **state)
{
    struct fixture *f = *state;
    struct shape_case shape = f->problem->bench[0];

    f->of->numbers = xcalloc(1, sizeof(*f->of->numbers));
    f->of->numbers_count = 1;
    memcpy(f->of->numbers, &shape.f[1], sizeof(double));
    passes(f);
    assert_ptr_equal(recording_find(&f->recording, f->problem, &shape), f->of);
    shape.f[1] = 3;
    assert_null(recording_find(&f->recording, f->problem, &shape));
    f->of->numbers = xrealloc(f->of->numbers, 2, sizeof(*f->of->numbers));
    f->of->numbers[1] = 0;
    f->of->numbers_count = 2;
    fails(f, "a case is not one of the problem");
}

static void a_reference_has_expected_values_and_scales(void **state)
{
    struct fixture *f = *state;

    f->role = MANIFEST_REFERENCE;
    fails(f, "a case is not one of the problem"); // it is a candidate's
    message_clear(&cuda_recording_message, &f->recording);
    gpu_recording_reference(&f->recording, f->problem);
    f->of = &f->recording.cases[0];
    uint64_t begin = f->of->blocks[0].at, bytes = f->of->blocks[0].bytes;
    const char *words = "the expected value of y or its error scale lies where it may not";
    uint64_t *place[] = {&f->of->outputs[1], &f->of->scales[1]};
    for (size_t i = 0; i < ARRAY_LEN(place); i++) {
        refused(f, place[i], 0, words);
        refused(f, place[i], f->of->tensors[1], words);
        refused(f, place[i], begin + bytes, words);
        refused(f, place[i], begin + bytes - 4, words);
        refused(f, place[i], begin - 8, words);
    }
    refused(f, &f->of->outputs[0], begin, "the expected value of x");
    refused(f, &f->of->scales[0], begin, "the expected value of x");
    refused(f, &f->of->scales_count, 1, "a case is not one of the problem");
    refused(f, &f->of->outputs_count, 1, "a case is not one of the problem");
    f->role = MANIFEST_CANDIDATE;
    fails(f, "a case is not one of the problem");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(its_memory_begins_at_an_address_for_recordings),
        TEST(images_are_as_long_as_they_say),
        TEST(images_are_packed_and_unpacked),
        TEST(packed_images_that_are_damaged_are_refused),
        TEST(a_launch_has_extents_that_a_gpu_has),
        TEST(nodes_come_after_those_that_they_wait_for),
        TEST(blocks_lie_apart_in_its_memory),
        TEST(pieces_lie_in_their_block_in_order),
        TEST(a_case_is_one_of_the_problem),
        TEST(a_case_is_found_by_its_parameters),
        TEST(a_case_is_found_by_its_numbers_too),
        TEST(a_reference_has_expected_values_and_scales),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

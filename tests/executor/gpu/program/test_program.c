// What executor/gpu/program.c passes to the driver: arguments of every kind, launches, attributes,
// scratch memory and device variables. On the fake GPU, with objects that are made without a
// compiler.
#include "common/file.h"
#include "executor/gpu/program/program.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_object.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 12
#define COLS 32
#define BIG ((int64_t)1 << 33)
#define FACTOR 0.1

static const char problem_text[] =
    "{\"name\": \"t\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"rows\", \"type\": \"int\"}, {\"name\": \"cols\", \"type\": \"int\"},"
    "{\"name\": \"big\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f16\", \"shape\":"
    "[\"rows\", \"cols\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"rows\"],"
    "\"tolerance\": 4}],"
    "\"cases\": {\"check\": [{\"rows\": 12, \"cols\": 32, \"big\": 8589934592, \"a\": 0.1}],"
    "\"bench\": [{\"params\": {\"rows\": 12, \"cols\": 32, \"big\": 8589934592, \"a\": 0.1},"
    "\"weight\": 1}]}, \"cache\": \"cold\", \"work\": {\"flops\": \"rows\", \"bytes\": "
    "\"8*rows\"}}";

struct fixture {
    struct gpu gpu;
    struct problem *problem;
    struct shape_case shape;
    struct guarded_buffer x, y;
    struct program_tensors tensors;
    struct program *program;
};

// The memory of the fake GPU is host memory at the same address.
static void *host(cu_pointer pointer)
{
    return (void *)(uintptr_t)pointer;
}

#define OK(call) assert_int_equal(fixture->gpu.driver.call, CU_OK)

static void load_kernels(struct fixture *fixture)
{
    static const char *const symbol[] = {
#define X(id, name) name,
        GPU_KERNELS(X)
#undef X
    };

#define X(id, name) name " "
    OK(module_load(&fixture->gpu.kernels, "fake:" GPU_KERNELS(X)));
#undef X
    for (size_t i = 0; i < GPU_KERNEL_COUNT; i++) {
        OK(module_function(&fixture->gpu.function[i], fixture->gpu.kernels, symbol[i]));
    }
}

// Does what gpu_open does, without the executor's kernels, which need a compiler.
static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    gpu_fake_use("memory=64M");
    char reason[ERR_TEXT_MAX];
    struct driver driver;
    assert_int_equal(gpu_count(&driver, reason), 1);
    struct err err = ERR_INIT;
    assert_int_equal(gpu_describe(&fixture->gpu, &driver, 0, &err), 0);
    OK(context_retain(&fixture->gpu.context, 0));
    OK(context_set(fixture->gpu.context));
    OK(stream_create(&fixture->gpu.stream, CU_STREAM_NON_BLOCKING));
    load_kernels(fixture);
    struct gpu *gpu = &fixture->gpu;
    assert_int_equal(arena_open(&gpu->open, &gpu->driver, 0, ARENA_OPEN, gpu->memory_bytes, &err),
                     0);
    assert_int_equal(arena_open(&gpu->judge, &gpu->driver, 0, ARENA_JUDGE, gpu->memory_bytes, &err),
                     0);
    assert_int_equal(
        problem_parse(&fixture->problem, problem_text, strlen(problem_text), "p", &err), 0);
    fixture->shape = fixture->problem->check[0];
    assert_int_equal(guarded_buffer_place(&fixture->x, &gpu->open, (size_t)2 * ROWS * COLS, &err),
                     0);
    assert_int_equal(guarded_buffer_place(&fixture->y, &gpu->open, sizeof(float) * ROWS, &err), 0);
    fixture->tensors = (struct program_tensors){.tensor = {&fixture->x, &fixture->y}};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    program_free(fixture->program);
    arena_release(&fixture->gpu.open);
    arena_release(&fixture->gpu.judge);
    OK(context_release(0));
    problem_free(fixture->problem);
    free(fixture);
    return 0;
}

static void create(struct fixture *fixture, struct bytes object)
{
    program_free(fixture->program);
    fixture->program = NULL;
    struct err err = ERR_INIT;
    if (program_create(&fixture->program, &fixture->gpu, fixture->problem, MANIFEST_CANDIDATE,
                       &object, NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    bytes_clear(&object);
}

static int prepare(struct fixture *fixture, struct err *err)
{
    *err = (struct err)ERR_INIT;
    return program_prepare(fixture->program, &fixture->shape, &fixture->tensors, err);
}

static struct program_launch *prepared(struct fixture *fixture, const char *source,
                                       const char *kernels)
{
    create(fixture, gpu_object(source, kernels));
    struct err err;
    if (prepare(fixture, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return fixture->program->launch;
}

static void unfit(struct fixture *fixture, const char *source, const char *kernels,
                  const char *words)
{
    create(fixture, gpu_object(source, kernels));
    struct err err;
    assert_int_equal(prepare(fixture, &err), PROGRAM_UNFIT);
    if (!strstr(err.text, words)) {
        fail_msg("%s: not %s", err.text, words);
    }
}

// ---- arguments ----

static void numbers_have_the_width_of_their_parameters(void **state)
{
    struct fixture *fixture = *state;
    const struct program_launch *launch =
        prepared(fixture,
                 "#define MB 7\n//@ launch k grid=(rows) block=(32)"
                 " args=(x, rows, big, y, a, a, rows * MB - 100, ceildiv(cols, 5))\n",
                 "k 8 4 8 8 4 8 4 8");

    assert_int_equal(*(cu_pointer *)launch->parameter[0], fixture->x.tensor);
    assert_int_equal(*(int32_t *)launch->parameter[1], ROWS);
    assert_int_equal(*(int64_t *)launch->parameter[2], BIG);
    assert_int_equal(*(cu_pointer *)launch->parameter[3], fixture->y.tensor);
    float narrow;
    memcpy(&narrow, launch->parameter[4], sizeof(narrow));
    double wide;
    memcpy(&wide, launch->parameter[5], sizeof(wide));
    assert_true(narrow == (float)FACTOR && wide == FACTOR);
    assert_int_equal(*(int32_t *)launch->parameter[6], -16);
    assert_int_equal(*(int64_t *)launch->parameter[7], 7);
    for (size_t i = 0; i < 8; i++) { // they follow each other, each of them aligned
        assert_true(i == 0 || (char *)launch->parameter[i] > (char *)launch->parameter[i - 1]);
    }
}

static void a_number_that_does_not_fit_is_told(void **state)
{
    unfit(*state, "//@ launch k grid=(1) block=(32) args=(x, big)\n", "k 8 4",
          "k: argument 2 is 8589934592, which its 4 bytes cannot hold");
    unfit(*state, "//@ launch k grid=(1) block=(32) args=(x, rows / (cols - 32))\n", "k 8 4",
          "zero");
}

static void parameters_that_no_argument_has_are_told(void **state)
{
    unfit(*state, "//@ launch k grid=(1) block=(32) args=(x, rows)\n", "k 8 2",
          "k: parameter 2 has 2 bytes");
    unfit(*state, "//@ launch k grid=(1) block=(32) args=(x, rows)\n", "k 8 4 4",
          "k has 3 parameters, its launch line 2 arguments");
    unfit(*state, "//@ launch k grid=(1) block=(32) args=(x)\n", "k 4",
          "k: parameter 1 has 4 bytes");
    unfit(*state, "//@ launch k grid=(1) block=(32) args=(x)\n", "other 8",
          "the object has no kernel k");
}

static void a_tensor_map_is_passed_by_value(void **state)
{
    struct fixture *fixture = *state;
    const struct program_launch *launch =
        prepared(fixture,
                 "//@ tensormap m tensor=x box=(4, 16) swizzle=32\n"
                 "//@ launch k grid=(1) block=(32) args=(rows, m, y)\n",
                 "k 4 128 8");
    const struct cu_tensormap *map = launch->parameter[1];

    assert_int_equal((uintptr_t)map % 64, 0);
    // The fake driver stores address, extents and box, with the last axis first.
    assert_int_equal(map->opaque[0], fixture->x.tensor);
    assert_int_equal(map->opaque[1], COLS);
    assert_int_equal(map->opaque[2], ROWS);
    assert_int_equal(map->opaque[6], 16);
    assert_int_equal(map->opaque[7], 4);
    assert_int_equal(*(cu_pointer *)launch->parameter[2], fixture->y.tensor);
    unfit(fixture,
          "//@ tensormap m tensor=x box=(4, 512)\n//@ launch k grid=(1) block=(32) args=(m)\n",
          "k 128", "tensormap m is none for x");
    unfit(fixture,
          "//@ tensormap m tensor=x box=(4, 16)\n//@ launch k grid=(1) block=(32) args=(m)\n",
          "k 8", "k: parameter 1 has 8 bytes");
}

// ---- launches ----

static void launches_keep_their_order_and_conditions(void **state)
{
    struct fixture *fixture = *state;
    const struct program_launch *launch =
        prepared(fixture,
                 "//@ launch a grid=(rows, 2, 3) block=(8, 4, 2) args=(x)\n"
                 "//@ launch b grid=(1) block=(32) args=(x) if=(rows > 12)\n"
                 "//@ launch c grid=(1) block=(32) args=(y) if=(rows > 11)\n"
                 "//@ launch a grid=(cols) block=(1) args=(y)\n",
                 "a 8;b 8;c 8");
    static const uint32_t grid[] = {ROWS, 2, 3}, block[] = {8, 4, 2};

    assert_int_equal(fixture->program->launch_count, 3);
    assert_memory_equal(launch[0].config.grid, grid, sizeof(grid));
    assert_memory_equal(launch[0].config.block, block, sizeof(block));
    assert_int_equal(launch[0].config.attribute_count, 0);
    assert_string_equal(launch[1].name, "c");
    assert_ptr_equal(launch[0].function, launch[2].function);
    assert_int_equal(launch[2].config.grid[0], COLS);
    assert_ptr_equal(launch[2].config.stream, fixture->gpu.stream);
}

static void attributes_are_passed(void **state)
{
    struct fixture *fixture = *state;
    const struct program_launch *launch =
        prepared(fixture,
                 "//@ launch a grid=(32, 2) block=(32) args=(x) cluster=(4, 2) cooperative pdl\n"
                 "//@ launch b grid=(16) block=(32) args=(x) cluster=(16)\n"
                 "//@ launch c grid=(16) block=(32) args=(x) cooperative\n",
                 "a 8;b 8;c 8");
    const struct cu_launch *a = &launch[0].config;

    assert_int_equal(a->attribute_count, 3);
    assert_int_equal(a->attribute[0].id, CU_LAUNCH_CLUSTER);
    assert_int_equal(a->attribute[0].value.cluster[0], 4);
    assert_int_equal(a->attribute[0].value.cluster[1], 2);
    assert_int_equal(a->attribute[0].value.cluster[2], 1);
    assert_int_equal(a->attribute[1].id, CU_LAUNCH_COOPERATIVE);
    assert_int_equal(a->attribute[1].value.flag, 1);
    assert_int_equal(a->attribute[2].id, CU_LAUNCH_PDL);
    assert_int_equal(launch[2].config.attribute_count, 1);
    assert_int_equal(launch[2].config.attribute[0].id, CU_LAUNCH_COOPERATIVE);
    int allowed = -1;
    // The driver accepts clusters of more than eight blocks only after they have been allowed.
    OK(function_get(&allowed, CU_FUNCTION_NON_PORTABLE_CLUSTER, launch[0].function));
    assert_int_equal(allowed, 0);
    OK(function_get(&allowed, CU_FUNCTION_NON_PORTABLE_CLUSTER, launch[1].function));
    assert_int_equal(allowed, 1);
    struct err err = ERR_INIT;
    assert_int_equal(program_run(fixture->program, &err), 0);
}

static void a_launch_that_the_driver_refuses_is_told(void **state)
{
    struct fixture *fixture = *state;

    (void)prepared(fixture, "//@ launch k grid=(100000) block=(256) args=(x) cooperative\n", "k 8");
    struct err err = ERR_INIT;
    assert_int_equal(program_run(fixture->program, &err), PROGRAM_UNFIT);
    assert_non_null(strstr(err.text, "k: it cannot be launched: CUDA_ERROR_COOPERATIVE"));
    assert_false(fixture->gpu.broken);
    unfit(fixture, "//@ launch k grid=(3) block=(32) args=(x) cluster=(2)\n", "k 8", "cluster");
    unfit(fixture, "//@ launch k grid=(rows - 12) block=(32) args=(x)\n", "k 8", "grid");
}

static void shared_memory_is_asked_for(void **state)
{
    struct fixture *fixture = *state;
    struct program_launch *launch =
        prepared(fixture,
                 "//@ launch a grid=(1) block=(32) args=(x) smem=48 * 1024\n"
                 "//@ launch b grid=(1) block=(32) args=(x) smem=rows * 10000\n",
                 "a 8;b 8");

    assert_int_equal(launch[0].config.smem, 48 * 1024);
    assert_int_equal(launch[1].config.smem, ROWS * 10000);
    int most = 0;
    OK(function_get(&most, CU_FUNCTION_MAX_DYNAMIC_SMEM, launch[1].function));
    assert_int_equal(most, ROWS * 10000);
    struct err err = ERR_INIT;
    assert_int_equal(program_run(fixture->program, &err), 0);
    unfit(fixture, "//@ launch k grid=(1) block=(32) args=(x) smem=300000\n", "k 8",
          "k asks for 300000 bytes of shared memory; a block has at most 232448 here");
}

// ---- what a run finds ----

static void scratch_is_cleared_or_poisoned_before_every_run(void **state)
{
    struct fixture *fixture = *state;
    const struct program_launch *launch =
        prepared(fixture,
                 "//@ scratch zeros bytes=4 * rows init=zero\n//@ scratch rest bytes=4 * cols\n"
                 "//@ launch k grid=(1) block=(32) args=(zeros, rest)\n",
                 "k 8 8");
    const struct guarded_buffer *scratch = fixture->program->scratch;
    const float *zeros = host(scratch[0].tensor), *rest = host(scratch[1].tensor);

    assert_int_equal(*(cu_pointer *)launch->parameter[0], scratch[0].tensor);
    assert_int_equal(*(cu_pointer *)launch->parameter[1], scratch[1].tensor);
    struct err err = ERR_INIT;
    struct gpu_zones areas = {.count = 0};
    assert_true(program_zones(fixture->program, false, &areas));
    assert_int_equal(areas.count, 2);
    for (int run = 0; run < 2; run++) {
        memset(host(scratch[0].tensor), 1, scratch[0].bytes);
        memset(host(scratch[1].tensor), 1, scratch[1].bytes);
        assert_int_equal(gpu_pattern_fill(&fixture->gpu, &areas, 7, &err), 0);
        assert_int_equal(program_clear(fixture->program, &err), 0);
        for (size_t i = 0; i < ROWS; i++) {
            assert_true(zeros[i] == 0);
        }
        for (size_t i = 0; i < COLS; i++) {
            assert_true(rest[i] != rest[i]); // a NaN
        }
    }
    struct gpu_zones zones = {.count = 0};
    assert_true(program_zones(fixture->program, true, &zones));
    assert_int_equal(zones.count, 4);
    assert_int_equal(zones.at[0], scratch[0].tensor - GUARD_BYTES);
    assert_int_equal(zones.at[3], scratch[1].tensor + 4 * COLS);
}

static void scratch_that_is_too_large_is_told(void **state)
{
    unfit(*state,
          "//@ scratch s bytes=100 * 1024 * 1024\n//@ launch k grid=(1) block=(32) args=(s)\n",
          "k 8", "the GPU has no 100.0 MiB of memory left");
    unfit(*state, "//@ scratch s bytes=big\n//@ launch k grid=(1) block=(32) args=(s)\n", "k 8",
          "scratch s: 8589934592 bytes are not between 1 and");
    unfit(*state, "//@ scratch s bytes=rows - 12\n//@ launch k grid=(1) block=(32) args=(s)\n",
          "k 8", "scratch s: 0 bytes are not");
}

static struct bytes variables(bool with_globals)
{
    char *path = xasprintf("%s/tests/data/cuda/variables.cubin",
                           getenv("KCAST_ROOT") ? getenv("KCAST_ROOT") : ".");
    struct bytes cubin = {0};
    struct err err = ERR_INIT;

    assert_int_equal(file_read(&cubin, path, 1 << 20, &err), 0);
    struct cuda_object object;
    gpu_object_init(&object, "//@ launch fk_axpy_state grid=(1) block=(64) args=(x, y, rows, a)\n");
    gpu_object_add(&object, &cubin, "fk_axpy_state 8 8 4 4", NULL, 0);
    if (with_globals) {
        gpu_object_global(&object, "counter");
        gpu_object_global(&object, "table");
        gpu_object_global(&object, "first");
        gpu_object_global(&object, "left_out_by_the_compiler");
    }
    bytes_clear(&cubin);
    free(path);
    return gpu_object_pack(&object);
}

static int *variable(struct fixture *fixture, const char *name)
{
    cu_pointer at = 0;
    size_t size;

    OK(module_global(&at, &size, fixture->program->module[0].module, name));
    return host(at);
}

static void device_variables_are_what_they_were_before_every_run(void **state)
{
    struct fixture *fixture = *state;

    create(fixture, variables(true));
    struct err err;
    assert_int_equal(prepare(fixture, &err), 0);
    for (int run = 0; run < 3; run++) {
        assert_int_equal(program_restore(fixture->program, &err), 0);
        assert_int_equal(*variable(fixture, "counter"), 0);
        assert_int_equal(*variable(fixture, "first"), 3);
        assert_int_equal(program_run(fixture->program, &err), 0);
        assert_int_equal(*variable(fixture, "counter"), 1); // the kernel increments it
        *variable(fixture, "first") = 8;
    }
    // Preparing again keeps the module and the initial values of its variables.
    assert_int_equal(prepare(fixture, &err), 0);
    assert_int_equal(program_restore(fixture->program, &err), 0);
    assert_int_equal(*variable(fixture, "first"), 3);
    // A variable that the object does not list is not reset.
    create(fixture, variables(false));
    assert_int_equal(prepare(fixture, &err), 0);
    *variable(fixture, "first") = 8;
    assert_int_equal(program_restore(fixture->program, &err), 0);
    assert_int_equal(*variable(fixture, "first"), 8);
}

static void variables_that_leave_no_room_are_the_sources_fault(void **state)
{
    struct fixture *fixture = *state;
    size_t available, total;

    create(fixture, variables(true));
    // The module fits into the memory that is left, but the copy of its variables does not.
    OK(memory_info(&available, &total));
    cu_pointer rest = 0;
    OK(allocate(&rest, available - 60000));
    struct err err;
    assert_int_equal(prepare(fixture, &err), PROGRAM_UNFIT);
    assert_non_null(strstr(err.text, "of memory left"));
    OK(release(rest));
}

// ---- variants ----

static void the_variant_is_that_of_the_case(void **state)
{
    static const int64_t values[][2] = {{ROWS, 1}, {ROWS, COLS}, {5, COLS}};
    struct fixture *fixture = *state;
    struct cuda_object object;

    gpu_object_init(&object,
                    "//@ specialize rows, cols\n//@ launch k grid=(1) block=(1) args=(x)\n");
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        gpu_object_add(&object, NULL, "k 8", values[i], 2);
    }
    create(fixture, gpu_object_pack(&object));
    struct err err;
    assert_int_equal(prepare(fixture, &err), 0);
    assert_non_null(fixture->program->module[1].module);
    assert_null(fixture->program->module[0].module); // a variant that no case needs is not loaded
    fixture->shape.i[0] = 5;
    assert_int_equal(prepare(fixture, &err), 0);
    assert_non_null(fixture->program->module[2].module);
    fixture->shape.i[1] = 6;
    assert_int_equal(prepare(fixture, &err), ERR_INTERNAL);
    assert_non_null(strstr(err.text, "not compiled for this case"));
}

static void a_module_that_cannot_be_loaded_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct cuda_object object;

    gpu_object_init(&object, "//@ launch k grid=(1) block=(32) args=(x)\n");
    struct bytes image = {.data = (unsigned char *)(uintptr_t) "no image", .len = 9};
    gpu_object_add(&object, &image, "k 8", NULL, 0);
    create(fixture, gpu_object_pack(&object));
    struct err err;
    assert_int_equal(prepare(fixture, &err), PROGRAM_UNFIT);
    assert_non_null(strstr(err.text, "the module cannot be loaded: CUDA_ERROR_INVALID_IMAGE"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(numbers_have_the_width_of_their_parameters),
        TEST(a_number_that_does_not_fit_is_told),
        TEST(parameters_that_no_argument_has_are_told),
        TEST(a_tensor_map_is_passed_by_value),
        TEST(launches_keep_their_order_and_conditions),
        TEST(attributes_are_passed),
        TEST(a_launch_that_the_driver_refuses_is_told),
        TEST(shared_memory_is_asked_for),
        TEST(scratch_is_cleared_or_poisoned_before_every_run),
        TEST(scratch_that_is_too_large_is_told),
        TEST(device_variables_are_what_they_were_before_every_run),
        TEST(variables_that_leave_no_room_are_the_sources_fault),
        TEST(the_variant_is_that_of_the_case),
        TEST(a_module_that_cannot_be_loaded_is_told),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}

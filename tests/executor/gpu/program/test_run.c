// What the driver is told when a recording runs whose launches may overlap. On the fake GPU.
#include "common/mem.h"
#include "executor/gpu/program/program.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_recording.h"
#include "tests/support/stream_plan_check.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct gpu gpu;
    struct problem *problem;
    struct guarded_buffer x, y;
    struct program_tensors tensors;
    struct arena memory;
    struct program *program;
    struct recorded_case of; // the graph of that case
};

#define OK(call) assert_int_equal(fixture->gpu.driver.call, CU_OK)
#define COOPERATIVE (SIZE_MAX - 1)
#define STREAMS_MAX 16
#define EVENTS_MAX 128

// Stands between a program and the fake: notes what is certain to have ended before each launch, by
// what streams and events are told.
static struct {
    struct driver real;
    cu_stream stream[STREAMS_MAX]; // the first one is the GPU's
    struct plan_ended ended[STREAMS_MAX];
    cu_event event[EVENTS_MAX];
    struct plan_ended recorded[EVENTS_MAX];
    struct plan_ended before[PLAN_CHECK_MAX]; // each launch
    size_t launches, records, waits, events;  // events: that there are
    size_t graphs;                            // launches of one
    size_t refused;                           // this launch is; SIZE_MAX: none
} seen;

static struct plan_ended *ended_on(cu_stream stream)
{
    size_t i = 0;

    while (seen.stream[i] && seen.stream[i] != stream) {
        i++;
    }
    assert_true(i < STREAMS_MAX - 1);
    seen.stream[i] = stream;
    return &seen.ended[i];
}

static struct plan_ended *recorded_with(cu_event event)
{
    size_t i = 0;

    while (seen.event[i] && seen.event[i] != event) {
        i++;
    }
    assert_true(i < EVENTS_MAX - 1);
    seen.event[i] = event;
    return &seen.recorded[i];
}

static cu_result note_launch(cu_stream stream)
{
    struct plan_ended *ended = ended_on(stream);

    if (seen.launches == seen.refused) {
        return CU_LAUNCH_OUT_OF_RESOURCES;
    }
    assert_true(seen.launches < PLAN_CHECK_MAX);
    seen.before[seen.launches] = *ended;
    ended->launches |= (uint64_t)1 << seen.launches++;
    return CU_OK;
}

static cu_result noted_launch(const struct cu_launch *launch, cu_function function,
                              void **parameters, void **extra)
{
    cu_result result = note_launch(launch->stream);

    return result == CU_OK ? seen.real.launch(launch, function, parameters, extra) : result;
}

static cu_result noted_words(cu_pointer to, unsigned value, size_t count, cu_stream stream)
{
    cu_result result = note_launch(stream);

    return result == CU_OK ? seen.real.set_words(to, value, count, stream) : result;
}

static cu_result noted_copy(cu_pointer to, cu_pointer from, size_t size, cu_stream stream)
{
    cu_result result = note_launch(stream);

    return result == CU_OK ? seen.real.copy(to, from, size, stream) : result;
}

static cu_result noted_record(cu_event event, cu_stream stream)
{
    *recorded_with(event) = *ended_on(stream);
    seen.records++;
    return seen.real.event_record(event, stream);
}

static cu_result noted_wait(cu_stream stream, cu_event event, unsigned flags)
{
    struct plan_ended *ended = ended_on(stream);

    *ended = plan_both(*ended, *recorded_with(event));
    seen.waits++;
    return seen.real.stream_wait(stream, event, flags);
}

static cu_result noted_graph(cu_graph_exec graph, cu_stream stream)
{
    assert_ptr_equal(stream, seen.stream[0]);
    seen.graphs++;
    return seen.real.graph_launch(graph, stream);
}

static cu_result noted_create(cu_event *ret, unsigned flags)
{
    seen.events++;
    return seen.real.event_create(ret, flags);
}

static cu_result noted_destroy(cu_event event)
{
    seen.events--;
    return seen.real.event_destroy(event);
}

static void stand_between(struct gpu *gpu)
{
    memset(&seen, 0, sizeof(seen));
    seen.real = gpu->driver;
    seen.refused = SIZE_MAX;
    gpu->driver.launch = noted_launch;
    gpu->driver.set_words = noted_words;
    gpu->driver.copy = noted_copy;
    gpu->driver.event_record = noted_record;
    gpu->driver.stream_wait = noted_wait;
    gpu->driver.graph_launch = noted_graph;
    gpu->driver.event_create = noted_create;
    gpu->driver.event_destroy = noted_destroy;
}

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    char reason[ERR_TEXT_MAX];
    struct driver driver;
    struct err err = ERR_INIT;

    gpu_fake_use("memory=64M");
    assert_int_equal(gpu_count(&driver, reason), 1);
    struct gpu *gpu = &fixture->gpu;
    assert_int_equal(gpu_describe(gpu, &driver, 0, &err), 0);
    OK(context_retain(&gpu->context, 0));
    OK(context_set(gpu->context));
    OK(stream_create(&gpu->stream, CU_STREAM_NON_BLOCKING));
    stand_between(gpu);
    assert_int_equal(arena_open(&gpu->open, &gpu->driver, 0, ARENA_OPEN, gpu->memory_bytes, &err),
                     0);
    assert_int_equal(arena_open(&gpu->judge, &gpu->driver, 0, ARENA_JUDGE, gpu->memory_bytes, &err),
                     0);
    fixture->problem = gpu_recording_problem();
    size_t bytes = (size_t)4 * 2000;
    assert_int_equal(guarded_buffer_place(&fixture->x, &gpu->open, bytes, &err), 0);
    assert_int_equal(guarded_buffer_place(&fixture->y, &gpu->open, bytes, &err), 0);
    fixture->tensors = (struct program_tensors){.tensor = {&fixture->x, &fixture->y}};
    *state = fixture;
    return 0;
}

static void forget_program(struct fixture *fixture)
{
    program_free(fixture->program);
    fixture->program = NULL;
    assert_int_equal(seen.events, 0);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    forget_program(fixture);
    arena_release(&fixture->memory);
    arena_release(&fixture->gpu.open);
    arena_release(&fixture->gpu.judge);
    OK(context_release(0));
    problem_free(fixture->problem);
    message_clear(&recorded_case_message, &fixture->of);
    free(fixture);
    return 0;
}

// Makes a recording whose graph is drawn like this; every third node is a kernel, the others are
// fills and copies; NULL: one kernel alone. `early`: number of a kernel that may begin before the
// one before it has ended; COOPERATIVE: the first kernel is a cooperative launch.
static void make(struct fixture *fixture, struct cuda_recording *recording, const char *text,
                 size_t early)
{
    gpu_recording_make(recording, fixture->problem, "fk_scale", 1);
    struct recorded_case *of = &recording->cases[0];
    of->tensors[0] = fixture->x.tensor;
    of->tensors[1] = fixture->y.tensor;
    struct bytes parameters = bytes_copy(of->nodes[0].parameters.data, 24);
    memcpy(parameters.data, of->tensors, 16);
    if (!text) {
        bytes_clear(&of->nodes[0].parameters);
        of->nodes[0].parameters = parameters;
        return;
    }
    uint64_t shape[RECORDED_SHAPE];
    memcpy(shape, of->nodes[0].shape, sizeof(shape));
    gpu_recording_draw(of, text);
    for (size_t i = 0; i < of->nodes_count; i++) {
        struct recorded_node *node = &of->nodes[i];

        node->from = fixture->x.tensor;
        node->kind = i % 3 == 1 ? RECORDED_COPY : RECORDED_FILL;
        if (i % 3 != 0 && i != early) {
            continue;
        }
        node->kind = RECORDED_KERNEL;
        node->symbol = xstrdup("fk_scale");
        node->shape = xcalloc(RECORDED_SHAPE, sizeof(*node->shape));
        memcpy(node->shape, shape, sizeof(shape));
        node->shape_count = RECORDED_SHAPE;
        node->parameters = bytes_copy(parameters.data, parameters.len);
        node->flags = i == early                       ? RECORDED_PDL
                      : early == COOPERATIVE && i == 0 ? RECORDED_COOPERATIVE
                                                       : 0;
    }
    bytes_clear(&parameters);
}

// Prepares it with nothing noted before: that is when several launches are queued, for a graph.
static int try_to_prepare(struct fixture *fixture, const char *text, size_t early, struct err *err)
{
    struct cuda_recording recording;

    forget_program(fixture);
    memset(seen.ended, 0, sizeof(seen.ended));
    memset(seen.recorded, 0, sizeof(seen.recorded));
    seen.launches = seen.records = seen.waits = seen.graphs = 0;
    ended_on(fixture->gpu.stream)->begin = true;
    *err = (struct err)ERR_INIT;
    make(fixture, &recording, text, early);
    struct bytes object = gpu_recording_pack(&recording);
    if (text) {
        gpu_recording_draw(&fixture->of, text);
    }
    int rc = program_create(&fixture->program, &fixture->gpu, fixture->problem, MANIFEST_CANDIDATE,
                            &object, &fixture->memory, err);
    bytes_clear(&object);
    return rc != 0 ? rc
                   : program_prepare(fixture->program, &fixture->problem->bench[0],
                                     &fixture->tensors, err);
}

static void prepare(struct fixture *fixture, const char *text, size_t early)
{
    struct err err;

    if (try_to_prepare(fixture, text, early, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
}

static void runs_in_order(struct fixture *fixture, const char *text)
{
    struct err err = ERR_INIT;

    prepare(fixture, text, SIZE_MAX);
    assert_int_equal(seen.launches, fixture->of.nodes_count);
    for (size_t i = 0; i < seen.launches; i++) {
        assert_true(seen.before[i].begin);
        for (size_t k = 0; k < fixture->of.nodes[i].after_count; k++) {
            if ((seen.before[i].launches >> fixture->of.nodes[i].after[k] & 1) == 0) {
                fail_msg("%s: node %zu may begin early", text, i);
            }
        }
    }
    assert_int_equal(ended_on(fixture->gpu.stream)->launches, ((uint64_t)1 << seen.launches) - 1);
    for (size_t round = 1; round <= 2; round++) { // by the graph alone
        assert_int_equal(program_run(fixture->program, &err), 0);
        assert_int_equal(seen.graphs, round);
        assert_int_equal(seen.launches, fixture->of.nodes_count);
    }
}

static void one_launch_is_no_graph(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;

    prepare(fixture, NULL, SIZE_MAX);
    assert_int_equal(seen.launches, 0);
    assert_int_equal(program_run(fixture->program, &err), 0);
    assert_int_equal(seen.launches, 1);
    assert_int_equal(seen.graphs, 0);
}

static void one_after_the_other_is_told_nothing_of_streams(void **state)
{
    struct fixture *fixture = *state;

    runs_in_order(fixture, "0;1;2;3;4");
    assert_int_equal(seen.records + seen.waits + seen.events, 0);
    assert_null(fixture->gpu.side[0]);
    for (size_t i = 0; i < 6; i++) {
        assert_ptr_equal(fixture->program->launch[i].config.stream, fixture->gpu.stream);
    }
}

static void nodes_wait_for_what_they_come_after(void **state)
{
    static const char *const text[] = {
        "",
        ";;",
        "0;0;1;2;3 4",
        "0;0;1 2;3;3;4 5",
        ";1;0 1 2;0 1 2 3",
        ";;;;;;;;;;",
        "0;0;0;0;0;0;0;0;0;0;1 2 3 4 5 6 7 8 9 10",
        ";0;1;2 0;;5 1;6;7 3;2 8;",
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(text); i++) {
        runs_in_order(fixture, text[i]);
        assert_true(seen.waits > 0);
        assert_non_null(fixture->gpu.side[0]);
    }
    // Launches that nothing orders were on different streams.
    runs_in_order(fixture, "0;0;1;2;3 4");
    assert_int_equal(seen.before[4].launches, 1 << 0 | 1 << 2);
    assert_int_equal(seen.before[3].launches, 1 << 0 | 1 << 1);
    assert_int_equal(seen.records, 2);
    assert_int_equal(seen.waits, 2);
}

static void a_cooperative_launch_is_queued_by_each_run(void **state)
{
    struct fixture *fixture = *state;
    struct err err = ERR_INIT;

    prepare(fixture, "0;0;1", COOPERATIVE);
    assert_int_equal(seen.launches, 0);
    for (size_t round = 1; round <= 2; round++) {
        assert_int_equal(program_run(fixture->program, &err), 0);
        assert_int_equal(seen.launches, round * fixture->of.nodes_count);
    }
    assert_int_equal(seen.graphs, 0);
}

// Whatever has been queued is waited for, also when the rest cannot be queued.
static void nothing_goes_on_after_a_launch_that_fails(void **state)
{
    struct fixture *fixture = *state;
    const char *text = ";;0;1;2;0 1 2";
    struct err err;

    for (seen.refused = 0; seen.refused < 7; seen.refused++) {
        assert_int_equal(try_to_prepare(fixture, text, SIZE_MAX, &err), PROGRAM_UNFIT);
        assert_null(fixture->program->graph);
        assert_non_null(strstr(err.text, "it cannot be launched"));
        assert_int_equal(seen.launches, seen.refused);
        assert_int_equal(ended_on(fixture->gpu.stream)->launches,
                         ((uint64_t)1 << seen.launches) - 1);
    }
    seen.refused = SIZE_MAX;
    prepare(fixture, text, SIZE_MAX);
    assert_int_equal(program_run(fixture->program, &err), 0);
}

static uint32_t attributes(struct fixture *fixture, const char *text, size_t early)
{
    prepare(fixture, text, early);
    return fixture->program->launch[early].config.attribute_count;
}

// It would be the wrong launch that it may overlap with.
static void a_kernel_begins_early_only_behind_the_launch_that_allows_it(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(attributes(fixture, "0;1", 1), 1);
    assert_int_equal(attributes(fixture, "0;0;1;2", 3), 1);
    assert_int_equal(attributes(fixture, "0;0;1;2", 2), 0); // behind nothing
    assert_int_equal(attributes(fixture, "0;0;1 2", 3), 0); // it waits for another one, too
    assert_int_equal(attributes(fixture, ";", 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_after_the_other_is_told_nothing_of_streams),
        TEST(nodes_wait_for_what_they_come_after),
        TEST(one_launch_is_no_graph),
        TEST(a_cooperative_launch_is_queued_by_each_run),
        TEST(nothing_goes_on_after_a_launch_that_fails),
        TEST(a_kernel_begins_early_only_behind_the_launch_that_allows_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

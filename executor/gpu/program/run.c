// Design note. What comes before, during and after a run of a prepared program. All of it goes to
// the GPU's stream, but for launches of a recording that may overlap (streams.h here):
//
//   stream   … | begin | launches | wait for the last launch of each other stream | …
//   others             | wait | launches |
//
// Nothing of a run is on another stream before the begin on the stream, nor after what comes on the
// stream when program_run has returned. So events that the caller records on the stream before and
// after have the whole run between them, whatever the launches do: none can begin before the first
// event, and the second is not reached while one of them goes on. gpu_wait waits for them all, and
// what no launch may see stays closed as long. This holds also when a launch cannot be queued: then
// the stream waits for all that has been queued.
//
// Several launches of a recording are queued in this way once, while the driver notes them down as
// a graph, and each run launches that. So what a run takes is the GPU's time for them, as in the
// application that launches such a graph, and not the host's for queueing one after the other. With
// cooperative launches there is no graph: each run queues them.
#include "common/mem.h"
#include "executor/gpu/program/inside.h"
#include <stdlib.h>

// ---- memory ----

// Appends the zones before and behind an area. Where the next area is near, one zone serves both.
static bool add_guards(const struct program *program, size_t index, struct gpu_zones *zones)
{
    const struct program_area *area = &program->area[index], *next = area + 1;
    cu_pointer end = area->at + area->bytes;
    bool shared = index + 1 < program->area_count && next->at - end <= GUARD_BYTES;

    return gpu_zones_add(zones, area->at - GUARD_BYTES, GUARD_BYTES) &&
           (shared || gpu_zones_add(zones, end, GUARD_BYTES));
}

bool program_zones(const struct program *program, bool guards, struct gpu_zones *zones)
{
    for (size_t i = 0; i < program->area_count; i++) {
        const struct program_area *area = &program->area[i];

        if (guards ? !add_guards(program, i, zones)
                   : area->fill != FILL_KEPT && !gpu_zones_add(zones, area->at, area->bytes)) {
            return false;
        }
    }
    return true;
}

// Areas are in the order of their addresses.
bool program_gaps(const struct program *program, bool all, struct gpu_zones *zones)
{
    cu_pointer at = program->memory ? program->memory->base : 0;
    bool room = true;

    if (!program->memory || program->memory->mapped == 0) {
        return true;
    }
    for (size_t i = 0; i < program->area_count; i++) {
        const struct program_area *area = &program->area[i];

        if (all || area->fill == FILL_KEPT) {
            room = room && gpu_zones_add_gap(zones, &at, area->at, area->bytes);
        }
    }
    return room &&
           gpu_zones_add_gap(zones, &at, program->memory->base + program->memory->mapped, 0);
}

static int clear_area(struct program *program, const struct program_area *area, struct err *err)
{
    struct gpu *gpu = program->gpu;

    return gpu_check(gpu, gpu->driver.set_bytes(area->at, 0, area->bytes, gpu->stream),
                     "clearing scratch memory", err);
}

// Queues what a block is to hold: zeros, and its pieces, which have been uploaded already.
static int restore_block(struct program *program, const struct program_area *area, struct err *err)
{
    const struct cuda_recording *recording = program->object.recording;
    struct gpu *gpu = program->gpu;
    int rc = clear_area(program, area, err);

    for (size_t i = 0; i < area->block->pieces_count && rc == 0; i++) {
        const struct recorded_piece *piece = &area->block->pieces[i];

        rc = gpu_check(gpu,
                       gpu->driver.copy(area->at + piece->at, program->content[piece->content],
                                        recording->contents[piece->content].data.len, gpu->stream),
                       "filling memory of a recording", err);
    }
    return rc;
}

int program_clear(struct program *program, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < program->area_count && rc == 0; i++) {
        if (program->area[i].fill == FILL_ZERO) {
            rc = clear_area(program, &program->area[i], err);
        }
    }
    return rc;
}

bool program_must_restore(const struct program *program)
{
    bool must = false;

    for (size_t m = 0; m < program->module_count; m++) {
        must = must || program->module[m].global_count > 0;
    }
    for (size_t i = 0; i < program->area_count; i++) {
        must = must || program->area[i].fill == FILL_KEPT;
    }
    return must;
}

int program_restore(struct program *program, struct err *err)
{
    int rc = 0;

    for (size_t m = 0; m < program->module_count; m++) {
        const struct program_module *module = &program->module[m];

        for (size_t i = 0; i < module->global_count && rc == 0; i++) {
            const struct program_global *global = &module->global[i];

            rc = program_copy_range(program->gpu, global->at, global->pristine, global->size, err);
        }
    }
    for (size_t i = 0; i < program->area_count && rc == 0; i++) {
        if (program->area[i].fill == FILL_KEPT) {
            rc = restore_block(program, &program->area[i], err);
        }
    }
    return rc;
}

// ---- events ----

// Makes an event unless it is there. It has no time, which would cost some.
static int make_event(struct gpu *gpu, cu_event *event, struct err *err)
{
    return *event ? 0
                  : gpu_check(gpu, gpu->driver.event_create(event, CU_EVENT_WITHOUT_TIME),
                              "making an event", err);
}

int program_make_events(struct program *program, struct err *err)
{
    const struct stream_plan *plan = &program->plan;

    if (plan->streams <= 1) {
        return 0;
    }
    int rc = gpu_make_streams(program->gpu, plan->streams, err);
    if (rc != 0) {
        return rc;
    }
    program->event = xcalloc(plan->count, sizeof(*program->event));
    rc = make_event(program->gpu, &program->begin, err);
    for (size_t i = 0; i < plan->count && rc == 0; i++) {
        rc = plan->step[i].awaited ? make_event(program->gpu, &program->event[i], err) : 0;
    }
    return rc;
}

static void forget_event(struct gpu *gpu, cu_event *event)
{
    if (*event && !gpu->hung) {
        (void)gpu->driver.event_destroy(*event);
    }
    *event = NULL;
}

void program_forget_events(struct program *program)
{
    for (size_t i = 0; i < program->plan.count && program->event; i++) {
        forget_event(program->gpu, &program->event[i]);
    }
    forget_event(program->gpu, &program->begin);
    free(program->event);
    program->event = NULL;
}

static int record(struct gpu *gpu, cu_event event, unsigned stream, struct err *err)
{
    return gpu_check(gpu, gpu->driver.event_record(event, gpu_stream(gpu, stream)),
                     "recording an event", err);
}

static int wait_for(struct gpu *gpu, cu_event event, unsigned stream, struct err *err)
{
    return gpu_check(gpu, gpu->driver.stream_wait(gpu_stream(gpu, stream), event, 0),
                     "having a stream wait for another one", err);
}

// Has the stream of a step wait for all that the step waits for.
static int wait_for_others(struct program *program, const struct stream_step *step, struct err *err)
{
    const size_t *wait = program->plan.wait + step->wait;
    int rc = 0;

    for (size_t i = 0; i < step->waits && rc == 0; i++) {
        cu_event event = wait[i] == STREAM_BEGIN ? program->begin : program->event[wait[i]];

        rc = wait_for(program->gpu, event, step->stream, err);
    }
    return rc;
}

// Has the stream wait for whatever has been queued on the others.
static int wait_for_all(struct program *program, struct err *err)
{
    int rc = 0;

    for (unsigned s = 1; s < program->plan.streams && rc == 0; s++) {
        rc = record(program->gpu, program->begin, s, err);
        if (rc == 0) {
            rc = wait_for(program->gpu, program->begin, 0, err);
        }
    }
    return rc;
}

// ---- launches ----

static cu_result run_kernel(struct program *program, struct program_launch *launch)
{
    void *extra[] = {CU_PARAMETER_POINTER, launch->value, CU_PARAMETER_SIZE, &launch->packed_bytes,
                     CU_PARAMETER_END};

    return launch->packed_bytes > 0
               ? program->gpu->driver.launch(&launch->config, launch->function, NULL, extra)
               : program->gpu->driver.launch(&launch->config, launch->function, launch->parameter,
                                             NULL);
}

static cu_result run_fill(struct program *program, const struct program_launch *launch)
{
    struct driver *d = &program->gpu->driver;
    cu_stream stream = launch->config.stream;

    switch (launch->set_size) {
    case 1:
        return d->set_bytes(launch->to, (unsigned char)launch->set, launch->count, stream);
    case 2:
        return d->set_halves(launch->to, (unsigned short)launch->set, launch->count, stream);
    default:
        return d->set_words(launch->to, launch->set, launch->count, stream);
    }
}

// What is to be launched under this name cannot be, or a fault of before is told now.
static int refused(const struct program *program, cu_result result, const char *name,
                   struct err *err)
{
    int rc = gpu_check(program->gpu, result, "it cannot be launched", err);

    (void)err_wrap(err, "%s", name);
    return program->gpu->broken ? rc : PROGRAM_UNFIT;
}

static int run_one(struct program *program, struct program_launch *launch, struct err *err)
{
    struct driver *d = &program->gpu->driver;
    cu_result result = CU_OK;

    switch (launch->work) {
    case WORK_KERNEL:
        result = run_kernel(program, launch);
        break;
    case WORK_FILL:
        result = run_fill(program, launch);
        break;
    case WORK_COPY:
        result = d->copy(launch->to, launch->from, launch->count, launch->config.stream);
        break;
    }
    if (result == CU_OK) {
        return 0;
    }
    return refused(program, result, launch->name, err);
}

static int run_in_order(struct program *program, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < program->launch_count && rc == 0; i++) {
        rc = run_one(program, &program->launch[i], err);
    }
    return rc;
}

static int queue_steps(struct program *program, struct err *err)
{
    const struct stream_plan *plan = &program->plan;
    int rc = plan->begins_apart ? record(program->gpu, program->begin, 0, err) : 0;

    for (size_t i = 0; i < plan->count && rc == 0; i++) {
        const struct stream_step *step = &plan->step[i];

        rc = wait_for_others(program, step, err);
        if (rc == 0) {
            rc = run_one(program, &program->launch[i], err);
        }
        if (rc == 0 && step->awaited) {
            rc = record(program->gpu, program->event[i], step->stream, err);
        }
    }
    return rc == 0 ? wait_for_others(program, &plan->step[plan->count], err) : rc;
}

static int run_overlapping(struct program *program, struct err *err)
{
    int rc = queue_steps(program, err);

    if (rc != 0) {
        struct err ignored = ERR_INIT; // the first error is told; after a fault none of this works

        (void)!wait_for_all(program, &ignored);
    }
    return rc;
}

static int queue(struct program *program, struct err *err)
{
    return program->plan.streams > 1 ? run_overlapping(program, err) : run_in_order(program, err);
}

// Whether the launches become a graph. The driver notes no cooperative launch down whose parameters
// are in one piece, as they are in a recording.
static bool wants_graph(const struct program *program)
{
    for (size_t i = 0; i < program->launch_count; i++) {
        const struct program_launch *launch = &program->launch[i];

        for (size_t a = 0; a < launch->config.attribute_count; a++) {
            if (launch->attribute[a].id == CU_LAUNCH_COOPERATIVE) {
                return false;
            }
        }
    }
    return program->launch_count > 1;
}

int program_make_graph(struct program *program, struct err *err)
{
    struct gpu *gpu = program->gpu;
    struct driver *d = &gpu->driver;
    cu_graph graph = NULL;

    if (!wants_graph(program)) {
        return 0;
    }
    int rc = gpu_check(gpu, d->capture_begin(gpu->stream, CU_CAPTURE_THREAD_LOCAL),
                       "noting launches down", err);
    if (rc != 0) {
        return rc;
    }
    rc = queue(program, err);
    cu_result result = d->capture_end(gpu->stream, &graph);
    if (rc == 0 && result == CU_OK) {
        result = d->graph_make(&program->graph, graph, 0);
    }
    if (rc == 0 && result != CU_OK) {
        program->graph = NULL;
        rc = refused(program, result, "the graph of its launches", err);
    }
    if (graph) {
        (void)d->graph_destroy(graph);
    }
    return rc;
}

void program_forget_graph(struct program *program)
{
    if (program->graph && !program->gpu->hung) {
        (void)program->gpu->driver.graph_exec_destroy(program->graph);
    }
    program->graph = NULL;
}

int program_run(struct program *program, struct err *err)
{
    struct gpu *gpu = program->gpu;

    if (!program->graph) {
        return queue(program, err);
    }
    cu_result result = gpu->driver.graph_launch(program->graph, gpu->stream);
    return result == CU_OK ? 0 : refused(program, result, "the graph of its launches", err);
}

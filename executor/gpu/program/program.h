// A compiled source as one GPU runs it: its modules, and for one case a list of launches with their
// parameters, and the memory that they need beside the problem's tensors. The list comes from the
// launch manifest of a sealed source (executor/gpu/program/sealed.c) or from a recording of what
// other host code has launched (executor/gpu/program/recorded.c); everything after that is the same
// for both. This is trusted host code. The GPU harness and the oracle call it. It must not know
// what is measured.
//
// The object of a candidate that runs unsealed is a program without launches: whoever runs that
// candidate has its process do it (executor/gpu/harness_handover.h).
//
// A failure that the source causes is not an error but PROGRAM_UNFIT with a sentence: the source
// asks for more shared memory than there is, a kernel is missing, and the like.
#ifndef EXECUTOR_GPU_PROGRAM_PROGRAM_H
#define EXECUTOR_GPU_PROGRAM_PROGRAM_H

#include "executor/gpu/gpu.h"
#include "executor/gpu/guarded_buffer.h"
#include "executor/gpu/program/streams.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"

#define PROGRAM_UNFIT 2
#define PROGRAM_PARAMETER_BYTES 4096 // of all parameters of one kernel of a sealed source
#define PROGRAM_AREAS_MAX 40         // areas of memory of a case

// Where the tensors of a case are. A tensor that the program does not use is NULL.
struct program_tensors {
    const struct guarded_buffer *tensor[PROBLEM_TENSOR_MAX];   // a reference has its inputs here, a
                                                               // recorded one all tensors
    const struct guarded_buffer *expected[PROBLEM_TENSOR_MAX]; // outputs of a reference, in double
    const struct guarded_buffer *scale[PROBLEM_TENSOR_MAX];    // error scales, of a reference
};

enum program_work { WORK_KERNEL, WORK_FILL, WORK_COPY };

// One piece of work with all that the driver needs for it.
struct program_launch {
    enum program_work work;
    const char *name;        // of the kernel; borrowed
    struct cu_launch config; // of a fill or a copy its stream alone
    // Of a kernel:
    cu_function function;
    struct cu_attribute attribute[3];
    unsigned char *value;              // the parameters' bytes; owned
    void *parameter[MANIFEST_ARG_MAX]; // pointers into value; not used when packed
    size_t packed_bytes;               // of value, which is given to the driver as it is; 0: not
    // Of a fill or a copy:
    cu_pointer to, from;
    size_t count;      // values of a fill, bytes of a copy
    unsigned set;      // the value that memory is filled with
    unsigned set_size; // its bytes: 1, 2 or 4
};

// A range of device memory that holds one or more __device__ variables.
struct program_global {
    cu_pointer at;
    cu_pointer pristine; // copy of the range from when the module was loaded, in the arena `judge`
    size_t size;         // bytes
};

// One image on the GPU: a variant of a sealed source, or an image of a recording.
struct program_module {
    cu_module module; // NULL: not loaded yet
    struct program_global *global;
    size_t global_count;
};

enum program_fill {
    FILL_PATTERN, // holds anything before a run
    FILL_ZERO,
    FILL_KEPT // holds what the recording says, always
};

// Memory that the launches of a case have. While the program does not run it holds the pattern, or
// what is kept there.
struct program_area {
    cu_pointer at;
    size_t bytes;
    enum program_fill fill;
    const struct recorded_block *block; // of FILL_KEPT
};

struct program {
    struct gpu *gpu;               // borrowed
    const struct problem *problem; // borrowed
    enum manifest_role role;
    struct cuda_object object;
    struct program_module *module; // one for each variant or image
    size_t module_count;
    struct manifest *manifest;                           // of a sealed source; else NULL
    struct guarded_buffer scratch[MANIFEST_SCRATCH_MAX]; // that it asks for, in the arena `open`
    struct arena *memory; // of a recording: where its memory is; else NULL
    cu_pointer *content;  // of a recording: where its contents are in the arena `judge`; 0: nowhere
    // For the case that program_prepare was called with last:
    struct program_launch *launch;
    size_t launch_count;
    struct stream_plan plan; // of a recording; else empty, and all launches are on one stream
    cu_event *event;         // of each launch that another stream waits for; NULL: one stream
    cu_event begin;          // of the run, for streams that have nothing else to wait for
    cu_graph_exec graph;     // of a recording with several launches: all; else NULL
    struct program_area area[PROGRAM_AREAS_MAX]; // in the order of their addresses
    size_t area_count;
    // Where the results of outputs are that a run does not leave in their tensor; 0 bytes: it does.
    // Whoever runs the program copies them there. Of a recorded reference those of every output
    // are here, as doubles, and so are the error scales.
    struct guarded_buffer result[PROBLEM_TENSOR_MAX], scale[PROBLEM_TENSOR_MAX];
    size_t local_bytes; // most local memory that a thread of the launches has
};

// Reads a packed cuda_object. Loads nothing onto the GPU yet. `memory` is for a recording, whose
// addresses it must have: an arena that no other program uses at the same time, but one of the same
// object. It is opened when it is not; NULL: recordings are refused. problem, gpu and memory must
// outlive the program.
MUST_CHECK int program_create(struct program **ret, struct gpu *gpu, const struct problem *problem,
                              enum manifest_role role, const struct bytes *object,
                              struct arena *memory, struct err *err);
void program_free(struct program *program); // NULL is fine

// Makes the launches of a case: loads modules if needed, places memory, sets parameters. The
// tensors must stay where they are, and whoever owns the arenas must not rewind them, until the
// next call. The memory is not filled. Returns 0, PROGRAM_UNFIT or an error.
MUST_CHECK int program_prepare(struct program *program, const struct shape_case *shape,
                               const struct program_tensors *tensors, struct err *err);
// Appends what holds the pattern while the program does not run: its areas without those of
// FILL_KEPT, or with `guards` the zones round all of them. Returns false when the list is full.
bool program_zones(const struct program *program, bool guards, struct gpu_zones *zones);
// Appends the arena of a recording without its areas of FILL_KEPT, or with `all` without any area;
// nothing for another program. Returns false when the list is full.
bool program_gaps(const struct program *program, bool all, struct gpu_zones *zones);
// Queues clearing the areas that a run must find cleared. The others must hold the pattern.
MUST_CHECK int program_clear(struct program *program, struct err *err);
// Whether program_prepare and program_restore use the arena `judge`. The compiler may have left a
// variable out of some of the object's variants, of which not all are loaded yet.
bool program_uses_judge(const struct program *program);
// Whether program_restore gives anything back.
bool program_must_restore(const struct program *program);
// Queues giving the device variables of all loaded modules the values from when they were loaded,
// and the areas of FILL_KEPT what they hold. Reads the arena `judge`.
MUST_CHECK int program_restore(struct program *program, struct err *err);
// Queues the launches: in their order, or beside each other where a recording allows that, those
// of a recording at once, as a graph, unless one is cooperative. In either case events that are
// recorded on gpu->stream before and after this call have all of them between them, and who waits
// for the stream waits for all; also after a failure that leaves the context usable. Returns 0,
// PROGRAM_UNFIT or an error.
MUST_CHECK int program_run(struct program *program, struct err *err);

#endif

// A sealed source, compiled, as one GPU runs it: its modules, and for one case the launches with
// their arguments. This is trusted host code that does for a candidate, a baseline or a reference
// what its manifest says. The GPU harness and the oracle call it. It must not know what is
// measured.
//
// A failure that the source causes is not an error but PROGRAM_UNFIT with a sentence: the source
// asks for more shared memory than there is, a kernel is missing, and the like.
#ifndef EXECUTOR_GPU_PROGRAM_H
#define EXECUTOR_GPU_PROGRAM_H

#include "executor/gpu/gpu.h"
#include "executor/gpu/guarded_buffer.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"

#define PROGRAM_UNFIT 2
#define PROGRAM_PARAMETER_BYTES 4096 // of all parameters of one kernel

// Where the tensors of a case are. A tensor that the program does not use is NULL.
struct program_tensors {
    const struct guarded_buffer *tensor[PROBLEM_TENSOR_MAX];   // a reference has its inputs here
    const struct guarded_buffer *expected[PROBLEM_TENSOR_MAX]; // outputs of a reference, in double
    const struct guarded_buffer *scale[PROBLEM_TENSOR_MAX];    // error scales, of a reference
};

// One launch with all that the driver needs for it.
struct program_launch {
    cu_function function;
    struct cu_launch config;
    struct cu_attribute attribute[3];
    void *parameter[MANIFEST_ARG_MAX]; // pointers into value
    unsigned char *value;              // the parameters' bytes, owned
    char *kernel;                      // name of the kernel, borrowed from the manifest
};

// A range of device memory that holds one or more __device__ variables.
struct program_global {
    cu_pointer at;
    cu_pointer pristine; // copy of the range from when the module was loaded, in the arena `judge`
    size_t size;         // bytes
};

// One compiled variant of the source.
struct program_module {
    cu_module module; // NULL: not loaded yet
    struct program_global *global;
    size_t global_count;
};

struct program {
    struct gpu *gpu;               // borrowed
    const struct problem *problem; // borrowed
    enum manifest_role role;
    struct cuda_object object;
    struct manifest *manifest;
    struct program_module *module; // one for each variant of the object
    struct guarded_buffer
        scratch[MANIFEST_SCRATCH_MAX]; // what the manifest asks for, in the arena `open`
    // For the case that program_prepare was called with last:
    struct program_launch launch[MANIFEST_LAUNCH_MAX];
    size_t launch_count;
    size_t local_bytes; // most local memory that a thread of the launches has
};

// Reads a packed cuda_object and the manifest in its source. Loads nothing onto the GPU yet.
// problem and gpu must outlive the program.
MUST_CHECK int program_create(struct program **ret, struct gpu *gpu, const struct problem *problem,
                              enum manifest_role role, const struct bytes *object, struct err *err);
void program_free(struct program *program); // NULL is fine

// Makes the launches of a case: loads the module if needed, places scratch memory, sets arguments.
// The tensors must stay where they are, and whoever owns the arenas must not rewind them, until the
// next call. The scratch memory is not filled. Returns 0, PROGRAM_UNFIT or an error.
MUST_CHECK int program_prepare(struct program *program, const struct shape_case *shape,
                               const struct program_tensors *tensors, struct err *err);
// Appends the areas of scratch memory, or with `guards` the zones round them. Returns false when
// the list is full.
bool program_scratch(const struct program *program, bool guards, struct gpu_zones *zones);
// Queues clearing the scratch memory that a run must find cleared. The rest must hold a pattern.
MUST_CHECK int program_clear(struct program *program, struct err *err);
// Queues giving the device variables of all loaded modules the values from when they were loaded.
MUST_CHECK int program_restore(struct program *program, struct err *err);
// Queues the launches. Returns 0, PROGRAM_UNFIT or an error.
MUST_CHECK int program_run(struct program *program, struct err *err);

#endif

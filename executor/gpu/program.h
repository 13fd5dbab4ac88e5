// A sealed source, compiled, as one GPU runs it: its modules, and for one case the launches with their
// arguments. Trusted host code that does for the candidate what its manifest says.
//
// What fails because of the source (it asks for more shared memory than there is, a kernel is missing)
// is no error of ours: PROGRAM_UNFIT with the sentence.
#ifndef EXECUTOR_GPU_PROGRAM_H
#define EXECUTOR_GPU_PROGRAM_H

#include "executor/gpu/area.h"
#include "executor/gpu/gpu.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"

#define PROGRAM_UNFIT 2
#define PROGRAM_PARAMETER_BYTES 4096 // of one kernel

// Where the tensors of the present case are. Unused ones are NULL.
struct program_tensors {
    const struct area *tensor[PROBLEM_TENSOR_MAX];   // in, out, inout; a reference's inputs
    const struct area *expected[PROBLEM_TENSOR_MAX]; // reference only
    const struct area *scale[PROBLEM_TENSOR_MAX];
};

// One launch, ready to go.
struct program_launch {
    cu_function function;
    struct cu_launch config;
    struct cu_attribute attribute[3];
    void *parameter[MANIFEST_ARG_MAX];
    unsigned char *value; // what they point into
    char *kernel;         // the manifest's name
};

struct program_global {
    cu_pointer at;
    cu_pointer pristine; // a copy made when the module was loaded
    size_t size;
};

struct program_module {
    cu_module module; // NULL: not loaded yet
    struct program_global *global;
    size_t global_count;
};

struct program {
    struct gpu *gpu;
    const struct problem *problem;
    enum manifest_role role;
    struct cuda_object object;
    struct manifest *manifest;
    struct program_module *module; // one per variant
    struct area scratch[MANIFEST_SCRATCH_MAX];
    // Of the present case:
    const struct program_module *current;
    struct program_launch launch[MANIFEST_LAUNCH_MAX];
    size_t launch_count;
};

// Reads a packed cuda_object and its manifest; loads nothing yet. problem and gpu must outlive it.
MUST_CHECK int program_create(struct program **ret, struct gpu *gpu, const struct problem *problem,
                              enum manifest_role role, const struct bytes *object, struct err *err);
void program_free(struct program *program); // NULL is fine

// Makes the launches of a case. 0, PROGRAM_UNFIT or an error.
MUST_CHECK int program_prepare(struct program *program, const struct shape_case *shape,
                               const struct program_tensors *tensors, struct err *err);
// Queues: scratch areas and device variables are as they must be before a run. key: of the poison.
MUST_CHECK int program_reset(struct program *program, uint64_t key, struct err *err);
// Queues the launches. 0, PROGRAM_UNFIT or an error.
MUST_CHECK int program_run(struct program *program, struct err *err);
// Adds the guards of the scratch areas.
bool program_guards(const struct program *program, struct gpu_zones *zones);

#endif

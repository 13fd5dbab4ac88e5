// One arm of a stream (tests/gpu/stream_run.h) on the GPU: its module, and for one case its
// launches with their arguments, as its manifest says.
#ifndef TESTS_GPU_STREAM_ARM_H
#define TESTS_GPU_STREAM_ARM_H

#include "tests/gpu/stream_code.h"
#include "tests/gpu/stream_device.h"

struct stream_launch {
    cu_function function;
    struct cu_launch config;
    struct cu_attribute attribute[3];
    uint64_t value[MANIFEST_ARG_MAX]; // the arguments, each in the lowest bytes
    void *parameter[MANIFEST_ARG_MAX];
};

struct stream_arm {
    const struct stream_code *code; // borrowed
    cu_module module;
    cu_pointer scratch[MANIFEST_SCRATCH_MAX];
    size_t scratch_bytes[MANIFEST_SCRATCH_MAX];
    struct stream_launch *launch; // owned
    size_t launch_count;          // of the case: what its conditions leave out does not count
};

// Loads the code and places what the case needs. tensor[] are the tensors' addresses. The caller
// releases *ret, also after an error.
MUST_CHECK int stream_arm_open(struct stream_arm *ret, struct stream_device *device,
                               const struct stream_code *code, const struct problem *problem,
                               const struct shape_case *shape, const cu_pointer *tensor,
                               struct err *err);
void stream_arm_release(struct stream_arm *arm, struct stream_device *device);

// Queues clearing the scratch memory that a run must find cleared.
MUST_CHECK int stream_arm_clear(const struct stream_arm *arm, struct stream_device *device,
                                struct err *err);
// Queues the launches.
MUST_CHECK int stream_arm_launch(const struct stream_arm *arm, struct stream_device *device,
                                 struct err *err);

#endif

// Objects of sealed sources for the fake GPU without a compiler: images of the form "fake:NAME
// NAME…" (tests/support/fake_gpu/fake.h) and parameter sizes as the test says.
#ifndef TESTS_SUPPORT_GPU_OBJECT_H
#define TESTS_SUPPORT_GPU_OBJECT_H

#include "common/mem.h"
#include "proto/messages.h"

// An object without variants.
void gpu_object_init(struct cuda_object *object, const char *source);
// Adds one. kernels: "fk_scale 8 8 4 4;fk_copy 8 8 4", names as in the manifest and in the image,
// with the bytes of each parameter. image: a cubin, or NULL for one that has just these kernels.
// values: of the specialised params.
void gpu_object_add(struct cuda_object *object, const struct bytes *image, const char *kernels,
                    const int64_t *values, size_t value_count);
// Names a __device__ variable of the last variant.
void gpu_object_global(struct cuda_object *object, const char *symbol);
// Packed; the object is cleared. The caller's to clear.
struct bytes gpu_object_pack(struct cuda_object *object);

// The three in one for an object of one variant.
struct bytes gpu_object(const char *source, const char *kernels);

#endif

// What one compilation is about. Its key in the cache and its plan for kcast-exec follow from this
// alone. Called by compiler.c; setup.c fills it. Pure functions.
#ifndef DAEMON_RUN_COMPILE_INPUT_H
#define DAEMON_RUN_COMPILE_INPUT_H

#include "common/digest.h"
#include "common/mem.h"
#include "daemon/devices/device.h"
#include "daemon/state/parts.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stdbool.h>
#include <stdint.h>

#define COMPILER_FLAGS "" // in addition to those that kcast-exec always uses
// Changes whenever kcast-exec cuda-compile makes other objects of the same source, and whenever
// older daemons cannot use the entries of the cache: since 2 an object may be incomplete, since 3
// it may be a recording, since 4 the images of a recording are packed, since 5 a recording has the
// features that a sealed source has, since 6, and again since 7, tensors lie elsewhere.
#define COMPILER_CUDA_METHOD "kcast-cuda-compile-7"
#define COMPILER_MEMORY_MAX ((uint64_t)4 << 30)  // address space of one compiler process, in bytes
#define COMPILER_OUTPUT_MAX ((uint64_t)32 << 20) // object and scratch files, in bytes
// The wall time of a compilation is this many times its processor time. A host on which compilers
// get a tenth of a core each blames nobody, nor does one that stands still for minutes; a compiler
// that waits for ever keeps its slot for no longer.
#define COMPILER_WALL_FACTOR 10

struct compile_input {
    struct digest source; // blob
    const char *header;   // put in front of the source
    const char *glue;     // second translation unit
    const char *name;     // of the source in messages of the compiler: "candidate.c"
    bool fresh;           // do not look into the cache
    // Language, toolchain and target. Outlives the compilation.
    const struct device_class *device_class;
    // The rest is for cuda alone.
    struct digest problem; // blob
    enum compile_role role;
    uint64_t hidden_seed; // the hidden cases of a candidate follow from it, which a recorded
                          // reference has, too; else 0
    const char *device; // uuid of a GPU of the class, on which a candidate may be recorded; not in
                        // the key
    bool unsealed;      // a candidate that cannot be recorded becomes an object that runs unsealed
    // How much is needed; not in the key.
    bool features_only; // what the features need; else all variants, as for a measurement
    bool machine_code;  // features of machine code, too
    size_t width;       // variants that are compiled at once
};

// What the cache has of a compilation that needs more: its object, whose variants are taken over.
struct compile_known {
    struct digest object;  // blob; zero: nothing is known
    struct fact *features; // of its first variant
    size_t features_count;
    bool machine_code; // these are among the features
};

// Seconds of wall time after which kcast-exec gives a compilation up.
uint64_t compile_input_wall_seconds(const struct daemon_limits *limits);
bool compile_input_is_cuda(const struct compile_input *input);
// The key in the cache: a digest of everything that the object depends on.
struct digest compile_input_key(const struct compile_input *input, bool sandbox_off);
// Returns a packed compile_plan, which the caller frees. blobs are the source, for cuda the
// problem, and where known has an object that object; they are taken. Features that lack those of
// machine code are left out where these are needed, so that they are made anew. Empty when the plan
// is larger than a message may be.
struct bytes compile_input_plan(const struct compile_input *input,
                                const struct daemon_limits *limits,
                                const struct compile_known *known, struct bytes *blobs);

#endif

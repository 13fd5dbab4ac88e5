// What the files of this folder share. No other file includes this.
#ifndef EXECUTOR_GPU_PROGRAM_INSIDE_H
#define EXECUTOR_GPU_PROGRAM_INSIDE_H

#include "executor/gpu/program/program.h"

// Loads an image unless it is loaded, and keeps the values of its variables. Returns 0,
// PROGRAM_UNFIT or an error.
MUST_CHECK int program_load(struct program *program, size_t module, const void *image,
                            const struct cuda_global *global, size_t global_count, struct err *err);
// Finds a kernel of a loaded module and sets what the driver must be told before it is launched:
// out->config and out->attribute are set. Notes how much local memory it has. Returns 0,
// PROGRAM_UNFIT or an error.
MUST_CHECK int program_find_kernel(struct program *program, size_t module, const char *symbol,
                                   struct program_launch *out, struct err *err);
// Adds the attributes that a launch has to out->config. A cluster of 0 is none.
void program_add_attributes(struct program_launch *out, const uint32_t cluster[3], bool cooperative,
                            bool pdl);

// Queues a copy by a kernel of the executor, because a range may hold several variables and the
// driver copies only within one.
MUST_CHECK int program_copy_range(struct gpu *gpu, cu_pointer to, cu_pointer from, uint64_t bytes,
                                  struct err *err);
// Makes the streams and events that program->plan asks for; none when that is one stream.
MUST_CHECK int program_make_events(struct program *program, struct err *err);
// Destroys the events, before the plan is released.
void program_forget_events(struct program *program);

// Makes program->graph of the launches, when there are several and the driver can. Returns 0,
// PROGRAM_UNFIT or an error.
MUST_CHECK int program_make_graph(struct program *program, struct err *err);
// Destroys it, before anything that it was made of.
void program_forget_graph(struct program *program);

// program_prepare, after everything of the last case has been forgotten.
MUST_CHECK int program_prepare_sealed(struct program *program, const struct shape_case *shape,
                                      const struct program_tensors *tensors, struct err *err);
MUST_CHECK int program_prepare_recorded(struct program *program, const struct shape_case *shape,
                                        const struct program_tensors *tensors, struct err *err);

#endif

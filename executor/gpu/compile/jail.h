// NVRTC in a jail: no GPU, no network, an empty file system but the toolkit. A warm process has NVRTC
// loaded and has compiled something; for each source it forks a child, which compiles and ends. So a source
// that breaks the compiler breaks its own child only, and what it costs is the compilation alone. The child also runs the disassembler,
// a program of its own that reads what the compiler made.
#ifndef EXECUTOR_GPU_COMPILE_JAIL_H
#define EXECUTOR_GPU_COMPILE_JAIL_H

#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/compile/toolkit.h"
#include "executor/sandbox/zygote.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cuda_jail {
    struct zygote *zygote;
    struct toolkit toolkit;
    bool sandbox_off;
    bool entered; // the zygote
    pid_t pid;    // of the warm process; 0: none
    int socket;
    int memory_fd;
    unsigned char *memory; // shared with it
};

struct cuda_jail_limits {
    double seconds;
    uint64_t memory;  // bytes of address space of the compiling child
    bool disassemble; // give the code's text too, where the toolkit can and there is time
};

// How one compilation ended.
enum cuda_jail_end {
    CUDA_JAIL_DONE,    // see the output
    CUDA_JAIL_TIMEOUT, // longer than limits.seconds
    CUDA_JAIL_DIED,    // the compiler crashed or ran out of memory
};

// For zygote_create; context is struct sandbox_filter * of STAGE_COMPILE.
int cuda_jail_child(const struct zygote_child *child);

// Takes the toolkit. zygote was created with cuda_jail_child and not entered yet; it must outlive the jail.
void cuda_jail_init(struct cuda_jail *jail, struct zygote *zygote, struct toolkit *toolkit_take,
                    bool sandbox_off);
void cuda_jail_release(struct cuda_jail *jail);
// Starts the warm process if there is none. ERR_SANDBOX says what is missing.
MUST_CHECK int cuda_jail_warm(struct cuda_jail *jail, struct err *err);

// Compiles in the jail. What comes back is not trusted: only its lengths have been checked. ret is valid for
// CUDA_JAIL_DONE. Errors are the machine's.
MUST_CHECK int cuda_jail_compile(struct cuda_jail *jail, const struct nvrtc_input *input,
                                 const struct cuda_jail_limits *limits, enum cuda_jail_end *ret_end,
                                 struct nvrtc_output *ret, struct err *err);

#endif

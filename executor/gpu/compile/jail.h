// NVRTC in a jail: no GPU, no network, and a file system that holds only the toolkit. A process in
// the jail, the compile server, has NVRTC loaded and has compiled a small source already. It forks
// a child for each source; the child compiles and ends. So a source that breaks the compiler breaks
// only its own child, and a compilation costs no loading. The child also runs the disassembler.
//
// executor/gpu/compile/compile.c calls this. It must not know plans, roles and verdicts. This side
// trusts nothing that comes out of the jail.
#ifndef EXECUTOR_GPU_COMPILE_JAIL_H
#define EXECUTOR_GPU_COMPILE_JAIL_H

#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/compile/toolkit.h"
#include "executor/sandbox/zygote.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cuda_jail {
    struct zygote *zygote; // borrowed
    struct toolkit toolkit;
    bool sandbox_off;
    bool entered;          // the zygote is in the sandbox
    pid_t pid;             // of the compile server; 0: it is not running
    int socket;            // to the compile server; -1: none
    int memory_fd;         // of the shared memory; -1: none
    int words_fd;          // of the compiler's stderr, a memfd that does not grow; -1: none
    unsigned char *memory; // shared with the compile server (executor/gpu/compile/jail_wire.h)
};

struct cuda_jail_limits {
    double cpu_seconds;  // of processor time
    double wall_seconds; // of wall time
    uint64_t memory;     // bytes of address space of the child that compiles
    bool disassemble;    // also disassemble, if the toolkit can and time is left
};

#define CUDA_JAIL_WORDS_MAX 4096 // bytes that the compiler may write to its stderr

// How one compilation ended.
enum cuda_jail_end {
    CUDA_JAIL_DONE,      // the output is valid
    CUDA_JAIL_TIMEOUT,   // it has not ended, or not answered, within limits.wall_seconds
    CUDA_JAIL_DIED,      // the compiler crashed, or ran out of memory or processor time
    CUDA_JAIL_TOO_LARGE, // what it made does not fit the memory shared with the jail
    CUDA_JAIL_LOST,      // the compile server has gone
};

struct cuda_jail_report {
    enum cuda_jail_end end;
    int status;                          // CUDA_JAIL_DIED: wait status of the compiler
    double cpu_seconds;                  // that the compiler has used
    char words[CUDA_JAIL_WORDS_MAX + 1]; // what it wrote to its stderr; not to be trusted
};

// The main function of the compile server. It is for zygote_create, whose context must be the
// struct sandbox_filter of STAGE_COMPILE.
int cuda_jail_child(const struct zygote_child *child);

// Takes over the toolkit. The zygote must have been created with cuda_jail_child, must not have
// been entered, and must outlive the jail. Starts nothing.
void cuda_jail_init(struct cuda_jail *jail, struct zygote *zygote, struct toolkit *toolkit_take,
                    bool sandbox_off);
void cuda_jail_release(struct cuda_jail *jail);
// Starts the compile server unless it is running. ERR_SANDBOX says what is missing.
MUST_CHECK int cuda_jail_start(struct cuda_jail *jail, struct err *err);

// Compiles a source in the jail, which is started if needed. The output is valid only when
// ret_report->end is CUDA_JAIL_DONE. Its lengths have been checked, its contents are not to be
// trusted. An error is a failure of the machine.
MUST_CHECK int cuda_jail_compile(struct cuda_jail *jail, const struct nvrtc_input *input,
                                 const struct cuda_jail_limits *limits,
                                 struct cuda_jail_report *ret_report, struct nvrtc_output *ret,
                                 struct err *err);

#endif

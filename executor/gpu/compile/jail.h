// NVRTC in a jail: no GPU, no network, and a file system that holds only the toolkit. A process in
// the jail, a compile server, has NVRTC loaded and has compiled a small source already. It forks
// a child for each source; the child compiles and ends. So a source that breaks the compiler breaks
// only its own child, and a compilation costs no loading. The child also runs the disassembler.
// Several servers compile several sources at once.
//
// executor/gpu/compile/compile.c and what records (executor/gpu/record) call this. It must not know
// plans, roles and verdicts. This side trusts nothing that comes out of the jail.
#ifndef EXECUTOR_GPU_COMPILE_JAIL_H
#define EXECUTOR_GPU_COMPILE_JAIL_H

#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/compile/toolkit.h"
#include "executor/sandbox/zygote.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CUDA_JAIL_SERVERS 4

// A compile server. All zero: there is none.
struct cuda_jail_server {
    bool made;             // the descriptors below are open, or -1
    bool starting;         // it has not said yet that it can compile
    pid_t pid;             // 0: it is not running
    int socket;            // to it
    int memory_fd;         // of the shared memory
    int words_fd;          // of the compiler's stderr, a memfd that does not grow
    unsigned char *memory; // shared with it (executor/gpu/compile/jail_wire.h)
    // Of the source that it compiles:
    bool busy;
    const char *file; // its name; borrowed
    double wall_seconds;
    size_t name_count;
};

struct cuda_jail {
    struct zygote *zygote; // borrowed
    struct toolkit toolkit;
    bool sandbox_off;
    bool entered; // the zygote is in the sandbox
    struct cuda_jail_server server[CUDA_JAIL_SERVERS];
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
    CUDA_JAIL_LOST,      // its server has gone
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
// Starts the first server unless it is running. ERR_SANDBOX says what is missing.
MUST_CHECK int cuda_jail_start(struct cuda_jail *jail, struct err *err);
// Begins to start servers, so that there are `count`, and waits for none.
MUST_CHECK int cuda_jail_widen(struct cuda_jail *jail, size_t count, struct err *err);

// Has a server, which is started if needed and must not be busy, begin to compile a source.
MUST_CHECK int cuda_jail_begin(struct cuda_jail *jail, size_t server,
                               const struct nvrtc_input *input,
                               const struct cuda_jail_limits *limits, struct err *err);
// Waits for it. The output is valid only when ret_report->end is CUDA_JAIL_DONE. Its lengths have
// been checked, its contents are not to be trusted. An error is a failure of the machine.
MUST_CHECK int cuda_jail_end(struct cuda_jail *jail, size_t server,
                             struct cuda_jail_report *ret_report, struct nvrtc_output *ret,
                             struct err *err);
// Ends servers that are busy, and what they compile.
void cuda_jail_abandon(struct cuda_jail *jail);

#endif

// What the compile jail and its parent share: the layout of the memory and of the message on their
// socket. Included by jail.c and jail_child.c only.
//
// One compilation: the parent writes a request into the memory and sends one byte. The compile
// server forks a child. The child compiles, writes the answer into the memory and ends. The server
// reaps it, kills whatever else lives in its pid namespace, and sends a jail_status. The jail's
// system call filter refuses socket calls, so inside the socket is used by read and write.
//
// A request holds the file name, the target, the name expressions and the source. An answer holds
// lengths, then log, PTX, cubin and disassembly without gaps.
#ifndef EXECUTOR_GPU_COMPILE_JAIL_WIRE_H
#define EXECUTOR_GPU_COMPILE_JAIL_WIRE_H

#include "executor/gpu/compile/nvrtc.h"
#include <stddef.h>
#include <stdint.h>

#define JAIL_MEMORY_BYTES ((size_t)96 << 20)
#define JAIL_REQUEST_BYTES ((size_t)16 << 20)
#define JAIL_SYMBOL_MAX 4096

// What the compile server is told when it is cloned. Its descriptor 0 is the socket, 1 the memory,
// 2 the file that becomes the stderr of its children.
struct jail_spec {
    // Paths relative to the toolkit; all but the first may be "".
    char nvrtc[256], nvjitlink[256], nvdisasm[256];
    uint32_t number; // of the server; all see the same files
};

struct jail_request {
    uint64_t source_len; // without the NUL that follows it
    uint64_t memory;     // see struct cuda_jail_limits
    double cpu_seconds, wall_seconds;
    uint32_t name_count;
    uint32_t form; // enum candidate_form
    uint32_t disassemble;
    char file[80];
    char target[32];
    char name[NVRTC_NAMES_MAX][256];
    char source[];
};

struct jail_answer {
    int32_t error; // not 0: NVRTC itself has failed, error_text says why
    uint32_t compiled;
    uint32_t too_large; // for the memory
    uint64_t log_len, ptx_len, cubin_len, sass_len;
    char error_text[512];
    char result[160]; // see struct nvrtc_output
    char symbol[NVRTC_NAMES_MAX][JAIL_SYMBOL_MAX];
    unsigned char data[];
};

// What the compile server sends: once when it has started, and after each compilation.
struct jail_status {
    int32_t status;     // wait status of the child
    uint32_t timed_out; // the child was killed because it took too long
    double cpu_seconds; // of the child and what it has started
    char text[256];     // at the start: why the server cannot work; "": it can
};

#define JAIL_ANSWER_ROOM (JAIL_MEMORY_BYTES - JAIL_REQUEST_BYTES - sizeof(struct jail_answer))

static inline struct jail_answer *jail_answer_of(unsigned char *memory)
{
    return (struct jail_answer *)(memory + JAIL_REQUEST_BYTES);
}

#endif

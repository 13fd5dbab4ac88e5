// What lies in the memory that the compile jail shares with its parent, and what goes over their socket.
//
// The jail's filter refuses socket calls: inside, the socket is read and written. The parent writes a
// request and sends a byte; the warm process forks; the child compiles, writes the answer and ends; the
// warm process reaps it, kills whatever else lives in its pid namespace, and sends how the child ended.
//
// A request is text: file name, target, name expressions, source. An answer: lengths, then log, PTX,
// cubin, disassembly.
#ifndef EXECUTOR_GPU_COMPILE_JAIL_WIRE_H
#define EXECUTOR_GPU_COMPILE_JAIL_WIRE_H

#include "executor/gpu/compile/nvrtc.h"
#include <stddef.h>
#include <stdint.h>

#define JAIL_MEMORY_BYTES ((size_t)96 << 20)
#define JAIL_REQUEST_BYTES ((size_t)16 << 20)
#define JAIL_SYMBOL_MAX 4096

// What the warm process is told when it is cloned. Descriptors: 0 the socket, 1 the memory.
struct jail_spec {
    char nvrtc[256], nvdisasm[256]; // paths in the toolkit; nvdisasm "": none
};

struct jail_request {
    uint64_t source_len;
    uint64_t memory;
    double seconds;
    uint32_t name_count;
    uint32_t disassemble;
    char file[80];
    char target[32];
    char name[NVRTC_NAMES_MAX][256];
    char source[];
};

struct jail_answer {
    int32_t error; // of NVRTC itself
    uint32_t compiled;
    uint64_t log_len, ptx_len, cubin_len, sass_len;
    char error_text[512];
    char symbol[NVRTC_NAMES_MAX][JAIL_SYMBOL_MAX];
    unsigned char data[];
};

// What the warm process says: when it is ready, and after each compilation.
struct jail_word {
    int32_t status; // wait status of the child
    uint32_t timed_out;
    char text[256]; // why it cannot be set up; "" when it can
};

#define JAIL_ANSWER_ROOM (JAIL_MEMORY_BYTES - JAIL_REQUEST_BYTES - sizeof(struct jail_answer))

static inline struct jail_answer *jail_answer_of(unsigned char *memory)
{
    return (struct jail_answer *)(memory + JAIL_REQUEST_BYTES);
}

#endif

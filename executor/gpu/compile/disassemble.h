// nvdisasm, NVIDIA's disassembler: a cubin in, text out. For inside a jail: both the program and
// what it reads may be anything.
#ifndef EXECUTOR_GPU_COMPILE_DISASSEMBLE_H
#define EXECUTOR_GPU_COMPILE_DISASSEMBLE_H

#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

struct disassembler {
    const char *program; // path of nvdisasm
    const char
        *file; // where the cubin is put for it; must not exist, and is the caller's to remove
};

// Writes the code sections' text to text[0 .. *ret_len), without a NUL. False, and nothing is left
// running, when the program fails, takes longer than that or has more than room to say.
bool disassemble(const struct disassembler *disassembler, const struct bytes *cubin, double seconds,
                 char *text, size_t room, size_t *ret_len);

#endif

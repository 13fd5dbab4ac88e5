// Running nvdisasm, NVIDIA's disassembler: a cubin goes in, text comes out. Called inside the
// compile jail only, because neither the program nor the cubin that it reads is trusted. It must
// not know what the text is used for.
#ifndef EXECUTOR_GPU_COMPILE_DISASSEMBLE_H
#define EXECUTOR_GPU_COMPILE_DISASSEMBLE_H

#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

struct disassembler {
    const char *program; // path of nvdisasm; NULL: there is none
    const char *file;    // path where the cubin is put; nothing may be there, the caller removes it
};

// Writes the text of the code sections to text[0 .. *ret_len), without a NUL. Returns false when
// the program fails, needs more than this many seconds, or has more text than fits. Nothing is left
// running in either case.
bool disassemble(const struct disassembler *disassembler, const struct bytes *cubin, double seconds,
                 char *text, size_t room, size_t *ret_len);

#endif

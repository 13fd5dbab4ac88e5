#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/cubin_view.h"
#include <stdlib.h>
#include <string.h>

// Of a function that the host can launch, by what nvcc and NVRTC 13.0 write.
#define STO_CUDA_ENTRY 0x10

static int by_name(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

void cubin_keep_kernels(struct bytes *cubin, const char *const *kept, size_t count)
{
    enum { UNKNOWN, LEFT_OUT, KEPT };
    struct cubin_view view;
    struct cubin_walk walk;
    struct err ignored = ERR_INIT;

    if (cubin_view_open(cubin, &view, &ignored) != 0 || !cubin_walk_begin(&walk, &view)) {
        return;
    }
    unsigned char *code = xcalloc((size_t)view.head.e_shnum + 1, 1); // of each section
    const char *name;
    Elf64_Sym symbol;
    while (cubin_walk_next(&walk, &symbol, &name)) {
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx < view.head.e_shnum) {
            bool is_kernel = (symbol.st_other & STO_CUDA_ENTRY) != 0;
            bool stays =
                is_kernel && count > 0 && bsearch(name, kept, count, sizeof(*kept), by_name);
            unsigned char what = stays ? KEPT : is_kernel ? LEFT_OUT : UNKNOWN;

            code[symbol.st_shndx] = what > code[symbol.st_shndx] ? what : code[symbol.st_shndx];
        }
    }
    for (unsigned i = 0; i < view.head.e_shnum; i++) {
        Elf64_Shdr section;

        if (code[i] == LEFT_OUT && cubin_section(&view, i, &section) && cubin_has_bytes(&section) &&
            cubin_name_begins(cubin_section_name(&view, &section), ".text.")) {
            memset((unsigned char *)cubin->data + section.sh_offset, 0, section.sh_size);
        }
    }
    free(code);
}

// What the files that look into a cubin share: its tables, with every offset checked. No others
// include this; for them there is executor/gpu/compile/cubin.h.
#ifndef EXECUTOR_GPU_COMPILE_CUBIN_VIEW_H
#define EXECUTOR_GPU_COMPILE_CUBIN_VIEW_H

#include "common/err.h"
#include "common/mem.h"
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#define VARIABLES ".nv.global" // how names of the sections of __device__ variables begin

// The file, its header checked.
struct cubin_view {
    const unsigned char *data; // borrowed
    size_t len;
    Elf64_Ehdr head;
    uint64_t names_at, names_len; // where the names of sections are
};

// Sets ERR_INVALID with a sentence about damage, which it returns.
int cubin_damaged(struct err *err, const char *what);
MUST_CHECK int cubin_view_open(const struct bytes *cubin, struct cubin_view *ret, struct err *err);
// Whether the file has these bytes.
bool cubin_view_inside(const struct cubin_view *view, uint64_t at, uint64_t len);
// Copies the header of a section. False when there is none or its bytes are not in the file.
bool cubin_section(const struct cubin_view *view, unsigned index, Elf64_Shdr *ret);
// Whether the section has bytes in the file.
bool cubin_has_bytes(const Elf64_Shdr *section);
// Its name, "" when it has none.
const char *cubin_section_name(const struct cubin_view *view, const Elf64_Shdr *section);
bool cubin_name_begins(const char *text, const char *prefix);

// A walk through the table of symbols.
struct cubin_walk {
    const struct cubin_view *view;
    Elf64_Shdr symbols, strings;
    uint64_t next, count;
};

// False when there is no table.
bool cubin_walk_begin(struct cubin_walk *walk, const struct cubin_view *view);
// Copies the next symbol and sets its name, "" for none. False at the end.
bool cubin_walk_next(struct cubin_walk *walk, Elf64_Sym *ret, const char **ret_name);
bool cubin_is_variable(const Elf64_Sym *symbol);

#endif

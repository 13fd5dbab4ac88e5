// An object and its headers as the dynamic loader will see them, for executor/sandbox/elf.c and
// executor/sandbox/elf_rules.c only. Every address and offset is checked before it is used. It must
// not know what is allowed.
#ifndef EXECUTOR_SANDBOX_ELF_VIEW_H
#define EXECUTOR_SANDBOX_ELF_VIEW_H

#include "common/err.h"
#include "common/mem.h"
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#define ELF_SEGMENTS_MAX 64
#define ELF_DYNAMIC_MAX 4096
#define ELF_NAME_MAX 256 // bytes of a library's name with the NUL

// Addresses are those that the object asks for: the loader adds one number to all of them.
struct elf_view {
    const unsigned char *data; // the object's bytes; borrowed
    size_t len;
    Elf64_Ehdr header;
    Elf64_Phdr segment[ELF_SEGMENTS_MAX];
    size_t segment_count;
    Elf64_Phdr dynamic_segment;   // the last PT_DYNAMIC, which the loader takes
    const unsigned char *dynamic; // its bytes by its address; NULL when there is none
    size_t dynamic_count;         // entries before the first DT_NULL, where the loader stops
};

// ERR_INVALID when the object is no shared object of this machine, or when its program headers or
// its dynamic section cannot be read to the end. The view borrows the object's bytes.
MUST_CHECK int elf_view_open(const struct bytes *object, struct elf_view *ret, struct err *err);

// Returns the segment of type PT_LOAD that has all these bytes of the file at this address, NULL
// when there is none.
const Elf64_Phdr *elf_view_segment(const struct elf_view *view, uint64_t address, uint64_t size);

// Returns where these bytes are in the file, NULL when no segment has them.
const unsigned char *elf_view_at(const struct elf_view *view, uint64_t address, uint64_t size);

// i < dynamic_count.
Elf64_Dyn elf_view_entry(const struct elf_view *view, size_t i);

// Whether the dynamic section has this tag. *ret is the value of the last one, which the loader
// takes, and 0 when there is none.
bool elf_view_tag(const struct elf_view *view, int64_t tag, uint64_t *ret);

// Returns the text at an offset of the dynamic string table, NULL when it is not a whole text of
// less than ELF_NAME_MAX bytes.
const char *elf_view_string(const struct elf_view *view, uint64_t offset);

#endif

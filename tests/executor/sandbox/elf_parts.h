// Finding the parts of an object that gcc has made, for tests that change them.
#ifndef TESTS_EXECUTOR_SANDBOX_ELF_PARTS_H
#define TESTS_EXECUTOR_SANDBOX_ELF_PARTS_H

#include "common/mem.h"
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static inline Elf64_Phdr *segments(const struct bytes *object, size_t *ret_count)
{
    *ret_count = ((Elf64_Ehdr *)object->data)->e_phnum;
    return (Elf64_Phdr *)(object->data + sizeof(Elf64_Ehdr));
}

static inline Elf64_Phdr *segment_of(const struct bytes *object, uint32_t type)
{
    size_t count;
    Elf64_Phdr *segment = segments(object, &count);

    for (size_t i = 0; i < count; i++) {
        if (segment[i].p_type == type) {
            return &segment[i];
        }
    }
    fail_msg("there is no segment of type %u", type);
    return NULL;
}

// Of an unchanged object: where an address is in its bytes.
static inline void *at(const struct bytes *object, uint64_t address)
{
    size_t count;
    const Elf64_Phdr *segment = segments(object, &count);

    for (size_t i = 0; i < count; i++) {
        if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
            address < segment[i].p_vaddr + segment[i].p_filesz) {
            return object->data + segment[i].p_offset + (address - segment[i].p_vaddr);
        }
    }
    fail_msg("nothing is at address %#llx", (unsigned long long)address);
    return NULL;
}

static inline Elf64_Dyn *dynamic_of(const struct bytes *object, size_t *ret_count)
{
    const Elf64_Phdr *segment = segment_of(object, PT_DYNAMIC);

    *ret_count = segment->p_filesz / sizeof(Elf64_Dyn);
    return at(object, segment->p_vaddr);
}

static inline Elf64_Dyn *tag_of(const struct bytes *object, int64_t tag)
{
    size_t count;
    Elf64_Dyn *entry = dynamic_of(object, &count);

    for (size_t i = 0; i < count; i++) {
        if (entry[i].d_tag == tag) {
            return &entry[i];
        }
    }
    return NULL;
}

static inline Elf64_Sym *symbol_named(const struct bytes *object, const char *name)
{
    Elf64_Sym *symbol = at(object, tag_of(object, DT_SYMTAB)->d_un.d_val);
    const char *strings = at(object, tag_of(object, DT_STRTAB)->d_un.d_val);
    size_t i = 1;

    while (strcmp(strings + symbol[i].st_name, name) != 0) { // the test's own object has it
        i++;
    }
    return &symbol[i];
}

#endif

// Made objects for the tests of the inspection: ordinary ones, of which a test changes one thing.
#ifndef TESTS_EXECUTOR_SANDBOX_ELF_MADE_H
#define TESTS_EXECUTOR_SANDBOX_ELF_MADE_H

#include "executor/sandbox/elf.h"
#include "tests/executor/fixture.h"
#include <elf.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define IRELATIVE R_X86_64_IRELATIVE
#define RELATIVE R_X86_64_RELATIVE
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT R_X86_64_GLOB_DAT
#define COPY R_X86_64_COPY
#else
#define MACHINE EM_AARCH64
#define IRELATIVE R_AARCH64_IRELATIVE
#define RELATIVE R_AARCH64_RELATIVE
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT R_AARCH64_GLOB_DAT
#define COPY R_AARCH64_COPY
#endif

// A made object, at the same addresses as in the file: a page that is only read, with headers and
// tables, and behind it one with data and the dynamic section.
#define SEGMENTS 5
#define RELOCATIONS_AT 512
#define STRINGS_AT 1024
#define SYMBOLS_AT 1280
#define HASH_AT 1536
#define WORDS_AT 4096
#define DYNAMIC_AT (WORDS_AT + 64)
#define ENTRIES 64 // of the dynamic section, as its segment says
#define ENTRIES_MAX 4200

struct made {
    Elf64_Ehdr header;
    Elf64_Phdr segment[SEGMENTS];
    unsigned char room[RELOCATIONS_AT - sizeof(Elf64_Ehdr) - SEGMENTS * sizeof(Elf64_Phdr)];
    Elf64_Rela relocation[(STRINGS_AT - RELOCATIONS_AT) / sizeof(Elf64_Rela)];
    unsigned char more[(STRINGS_AT - RELOCATIONS_AT) % sizeof(Elf64_Rela)];
    char strings[SYMBOLS_AT - STRINGS_AT];
    Elf64_Sym symbol[2];
    unsigned char behind_symbols[HASH_AT - SYMBOLS_AT - 2 * sizeof(Elf64_Sym)];
    uint32_t hash[8]; // a GNU hash table of symbol 1
    unsigned char behind_hash[WORDS_AT - HASH_AT - 32];
    uint64_t word[8]; // what relocations write to
    Elf64_Dyn dynamic[ENTRIES_MAX];
    size_t entries; // of dynamic; not part of the object
};

_Static_assert(offsetof(struct made, relocation) == RELOCATIONS_AT &&
                   offsetof(struct made, strings) == STRINGS_AT &&
                   offsetof(struct made, symbol) == SYMBOLS_AT &&
                   offsetof(struct made, hash) == HASH_AT &&
                   offsetof(struct made, word) == WORDS_AT &&
                   offsetof(struct made, dynamic) == DYNAMIC_AT,
               "the parts are where the headers say");

static inline void add_entry(struct made *made, int64_t tag, uint64_t value)
{
    assert_true(made->entries < ENTRIES_MAX);
    made->dynamic[made->entries++] = (Elf64_Dyn){.d_tag = tag, .d_un.d_val = value};
}

// An object that needs libm.so.6 and has one function. Entries can be added to its dynamic section,
// whose rest is zeros.
static inline struct made *make(void)
{
    static const char strings[] = "\0libm.so.6\0libevil.so\0libmvec.so.1";
    // One bucket, which begins with symbol 1; one word of the filter; the chain ends with it.
    static const uint32_t hash[] = {1, 1, 1, 6, UINT32_MAX, UINT32_MAX, 1, 0x12345 | 1};
    struct made *made = xcalloc(1, sizeof(*made));

    memcpy(made->header.e_ident, ELFMAG, SELFMAG);
    made->header.e_ident[EI_CLASS] = ELFCLASS64;
    made->header.e_ident[EI_DATA] = ELFDATA2LSB;
    made->header.e_ident[EI_VERSION] = EV_CURRENT;
    made->header.e_version = EV_CURRENT;
    made->header.e_ehsize = sizeof(Elf64_Ehdr);
    made->header.e_type = ET_DYN;
    made->header.e_machine = MACHINE;
    made->header.e_phentsize = sizeof(Elf64_Phdr);
    made->header.e_phoff = sizeof(Elf64_Ehdr);
    made->header.e_phnum = 4;
    made->segment[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R,
                                    .p_filesz = WORDS_AT,
                                    .p_memsz = WORDS_AT,
                                    .p_align = 4096};
    made->segment[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R | PF_W,
                                    .p_offset = WORDS_AT,
                                    .p_vaddr = WORDS_AT,
                                    .p_filesz = offsetof(struct made, entries) - WORDS_AT,
                                    .p_memsz = offsetof(struct made, entries) - WORDS_AT,
                                    .p_align = 4096};
    made->segment[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                    .p_flags = PF_R | PF_W,
                                    .p_offset = DYNAMIC_AT,
                                    .p_vaddr = DYNAMIC_AT,
                                    .p_filesz = ENTRIES * sizeof(Elf64_Dyn),
                                    .p_memsz = ENTRIES * sizeof(Elf64_Dyn)};
    made->segment[3] = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
    memcpy(made->strings, strings, sizeof(strings));
    memcpy(made->hash, hash, sizeof(hash));
    made->symbol[1] =
        (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1, .st_value = 64};
    for (size_t i = 0; i < ARRAY_LEN(made->relocation); i++) {
        made->relocation[i].r_info = ELF64_R_INFO(0, RELATIVE);
        made->relocation[i].r_offset = WORDS_AT + 8 * (i % 8);
    }
    add_entry(made, DT_STRTAB, STRINGS_AT);
    add_entry(made, DT_STRSZ, sizeof(strings));
    add_entry(made, DT_SYMTAB, SYMBOLS_AT);
    add_entry(made, DT_SYMENT, sizeof(Elf64_Sym));
    add_entry(made, DT_RELAENT, sizeof(Elf64_Rela));
    add_entry(made, DT_PLTREL, DT_RELA);
    add_entry(made, DT_GNU_HASH, HASH_AT);
    add_entry(made, DT_NEEDED, 1);
    return made;
}

// Inspects the object and frees it. Returns what the inspection returned.
static inline int inspect(struct made *made_take, struct elf_facts *ret, struct err *err)
{
    struct bytes object = bytes_copy(made_take, offsetof(struct made, entries));

    free(made_take);
    int rc = elf_inspect(&object, ret, err);
    bytes_clear(&object);
    return rc;
}

#endif

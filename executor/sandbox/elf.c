// Reads the program headers and the dynamic section, which are what the dynamic loader uses.
// Section headers are not read, because the loader ignores them and they can say anything. A source
// can put entries of its own into the dynamic section, before and behind the linker's. The section
// is therefore read exactly as the loader reads it, to the first DT_NULL, and an object whose tables
// cannot be read as a whole is refused: otherwise it could hide what it does.
#include "executor/sandbox/elf.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OWN_IRELATIVE R_X86_64_IRELATIVE
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#define OWN_IRELATIVE R_AARCH64_IRELATIVE
#else
#error "this machine's ELF constants are not known"
#endif

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX 4096
#define RELOCATIONS_MAX 1000000

// An object and its decoded headers. Addresses are those that the object asks for.
struct view {
    const unsigned char *data;
    size_t len;
    Elf64_Phdr segment[SEGMENTS_MAX];
    size_t segment_count;
    // From the dynamic section: addresses and sizes, 0 when absent.
    uint64_t strings, strings_size, symbols;
    struct {
        uint64_t address, size;
    } relocations[2]; // DT_RELA, DT_JMPREL
    bool init;        // some function runs when it is loaded or unloaded
    const unsigned char *dynamic;
    size_t dynamic_count;
};

// Returns where size bytes from the file offset are, NULL when they are not in the file.
static const unsigned char *at_offset(const struct view *view, uint64_t offset, uint64_t size)
{
    return offset <= view->len && size <= view->len - offset ? view->data + offset : NULL;
}

// Returns where size bytes from the address are, NULL when no segment has them in the file.
static const unsigned char *at_address(const struct view *view, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *segment = &view->segment[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr <= segment->p_filesz &&
            size <= segment->p_filesz - (address - segment->p_vaddr)) {
            return at_offset(view, segment->p_offset + (address - segment->p_vaddr), size);
        }
    }
    return NULL;
}

static int open_view(const struct bytes *object, struct view *view, struct err *err)
{
    *view = (struct view){.data = object->data, .len = object->len};
    Elf64_Ehdr header;
    if (object->len < sizeof(header)) {
        return err_set(err, ERR_INVALID, "the object is too short");
    }
    memcpy(&header, object->data, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_type != ET_DYN || header.e_machine != OWN_MACHINE ||
        header.e_phentsize != sizeof(Elf64_Phdr)) {
        return err_set(err, ERR_INVALID, "the object is no shared object of this machine");
    }
    if (header.e_phnum > SEGMENTS_MAX) {
        return err_set(err, ERR_INVALID, "the object has %u segments", header.e_phnum);
    }
    const unsigned char *table =
        at_offset(view, header.e_phoff, (uint64_t)header.e_phnum * sizeof(Elf64_Phdr));
    if (!table) {
        return err_set(err, ERR_INVALID, "the object's program headers are damaged");
    }
    view->segment_count = header.e_phnum;
    memcpy(view->segment, table, view->segment_count * sizeof(Elf64_Phdr));
    return 0;
}

static Elf64_Dyn dynamic_entry(const struct view *view, size_t i)
{
    Elf64_Dyn entry;
    memcpy(&entry, view->dynamic + i * sizeof(entry), sizeof(entry));
    return entry;
}

// Finds the dynamic section and its end, which is the first DT_NULL. ERR_INVALID when it is too
// long, is not in the file or has no end.
static int find_dynamic(struct view *view, struct err *err)
{
    const Elf64_Phdr *found = NULL;

    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *segment = &view->segment[i];
        if (segment->p_type == PT_DYNAMIC && segment->p_filesz > 0) {
            found = segment;
        }
    }
    if (!found) {
        return 0; // the loader refuses such an object
    }
    size_t most = found->p_filesz / sizeof(Elf64_Dyn);
    most = most < DYNAMIC_MAX ? most : DYNAMIC_MAX;
    view->dynamic = at_address(view, found->p_vaddr, most * sizeof(Elf64_Dyn));
    for (size_t i = 0; view->dynamic && i < most; i++) {
        if (dynamic_entry(view, i).d_tag == DT_NULL) {
            view->dynamic_count = i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "the object's dynamic section is damaged or has more than %d"
                   " entries",
                   DYNAMIC_MAX);
}

// ERR_INVALID when a table of relocations is too long or cannot be read as the loader will. The
// loader takes a part of an entry at the end for a whole one, and zeros behind the file's bytes for
// entries, into which earlier relocations may have written.
static int check_relocations(const struct view *view, struct err *err)
{
    for (size_t table = 0; table < ARRAY_LEN(view->relocations); table++) {
        uint64_t address = view->relocations[table].address, size = view->relocations[table].size;

        if (size / sizeof(Elf64_Rela) > RELOCATIONS_MAX) {
            return err_set(err, ERR_INVALID, "the object has more than %d relocations",
                           RELOCATIONS_MAX);
        }
        if (size % sizeof(Elf64_Rela) != 0 || (size > 0 && !at_address(view, address, size))) {
            return err_set(err, ERR_INVALID, "the object's relocations are damaged");
        }
    }
    return 0;
}

static int read_dynamic(struct view *view, struct err *err)
{
    int rc = find_dynamic(view, err);

    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < view->dynamic_count; i++) {
        Elf64_Dyn entry = dynamic_entry(view, i);
        switch (entry.d_tag) {
        case DT_STRTAB:
            view->strings = entry.d_un.d_ptr;
            break;
        case DT_STRSZ:
            view->strings_size = entry.d_un.d_val;
            break;
        case DT_SYMTAB:
            view->symbols = entry.d_un.d_ptr;
            break;
        case DT_RELA:
            view->relocations[0].address = entry.d_un.d_ptr;
            break;
        case DT_RELASZ:
            view->relocations[0].size = entry.d_un.d_val;
            break;
        case DT_JMPREL:
            view->relocations[1].address = entry.d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            view->relocations[1].size = entry.d_un.d_val;
            break;
        case DT_INIT:
        case DT_FINI:
        case DT_INIT_ARRAY:
        case DT_FINI_ARRAY:
        case DT_PREINIT_ARRAY:
            view->init = true;
            break;
        default:
            break;
        }
    }
    return check_relocations(view, err);
}

// Whether the entry makes the loader load another library.
static bool is_library(const Elf64_Dyn *entry)
{
    return entry->d_tag == DT_NEEDED || entry->d_tag == DT_AUXILIARY || entry->d_tag == DT_FILTER;
}

// Returns a text of the dynamic string table, NULL when the offset is not that of a whole text.
static const char *string_at(const struct view *view, uint64_t offset)
{
    const char *text = NULL;

    if (offset < view->strings_size) {
        text = (const char *)at_address(view, view->strings + offset, view->strings_size - offset);
    }
    return text && memchr(text, '\0', view->strings_size - offset) ? text : NULL;
}

static bool library_allowed(const char *name)
{
    static const char *const allowed[] = {"libc.so.6", "libm.so.6", "libmvec.so.1",
                                          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        if (strcmp(name, allowed[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool relocation_is_ifunc(const struct view *view, const Elf64_Rela *relocation)
{
    if (ELF64_R_TYPE(relocation->r_info) == OWN_IRELATIVE) {
        return true;
    }
    if (ELF64_R_SYM(relocation->r_info) == 0) {
        return false;
    }
    Elf64_Sym symbol;
    const unsigned char *data = at_address(
        view, view->symbols + ELF64_R_SYM(relocation->r_info) * sizeof(symbol), sizeof(symbol));
    if (!data) {
        return true; // what the loader will find there is not known
    }
    memcpy(&symbol, data, sizeof(symbol));
    return ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC && symbol.st_shndx != SHN_UNDEF;
}

static bool find_ifunc(const struct view *view)
{
    for (size_t table = 0; table < 2; table++) {
        size_t count = view->relocations[table].size / sizeof(Elf64_Rela);
        for (size_t i = 0; i < count; i++) {
            const unsigned char *data =
                at_address(view, view->relocations[table].address + i * sizeof(Elf64_Rela),
                           sizeof(Elf64_Rela));
            if (!data) {
                break;
            }
            Elf64_Rela relocation;
            memcpy(&relocation, data, sizeof(relocation));
            if (relocation_is_ifunc(view, &relocation)) {
                return true;
            }
        }
    }
    return false;
}

static void add_size(uint64_t *sum, uint64_t size)
{
    if (__builtin_add_overflow(*sum, size, sum)) {
        *sum = UINT64_MAX;
    }
}

int elf_inspect(const struct bytes *object, struct elf_facts *ret, struct err *err)
{
    struct view view;
    int rc = open_view(object, &view, err);

    if (rc != 0) {
        return rc;
    }
    rc = read_dynamic(&view, err);
    if (rc != 0) {
        return rc;
    }
    struct elf_facts facts = {0};
    for (size_t i = 0; i < view.segment_count; i++) {
        const Elf64_Phdr *segment = &view.segment[i];
        if (segment->p_type != PT_LOAD) {
            continue;
        }
        if (segment->p_flags & PF_X) {
            add_size(&facts.code_bytes, segment->p_memsz);
        } else if (segment->p_flags & PF_W) {
            add_size(&facts.data_bytes, segment->p_filesz);
            add_size(&facts.bss_bytes, segment->p_memsz > segment->p_filesz
                                           ? segment->p_memsz - segment->p_filesz
                                           : 0);
        } else {
            add_size(&facts.read_only_bytes, segment->p_memsz);
        }
    }
    for (size_t i = 0; i < view.dynamic_count; i++) {
        Elf64_Dyn entry = dynamic_entry(&view, i);
        const char *name = is_library(&entry) ? string_at(&view, entry.d_un.d_val) : NULL;
        if (is_library(&entry) && (!name || !library_allowed(name)) && facts.needs[0] == '\0') {
            snprintf(facts.needs, sizeof(facts.needs), "%.63s", name ? name : "?");
        }
    }
    facts.runs_when_loaded = view.init;
    facts.has_ifunc = find_ifunc(&view);
    *ret = facts;
    return 0;
}

bool elf_needs(const struct bytes *object, const char *library)
{
    struct view view;

    if (open_view(object, &view, NULL) != 0 || read_dynamic(&view, NULL) != 0) {
        return false;
    }
    for (size_t i = 0; i < view.dynamic_count; i++) {
        Elf64_Dyn entry = dynamic_entry(&view, i);
        const char *name = entry.d_tag == DT_NEEDED ? string_at(&view, entry.d_un.d_val) : NULL;
        if (name && strcmp(name, library) == 0) {
            return true;
        }
    }
    return false;
}

// Design note. A cubin is an ELF file. Code is in the sections .text.<kernel>, attributes are in
// .nv.info.<kernel>, and variables are in .nv.global (zero) and .nv.global.init. An attribute
// begins with four bytes: format, number, and 16 bits of value or size. With format 4 that many
// bytes follow. Attribute 0x17 describes one parameter: index (32 bits), ordinal (16), offset (16),
// and 32 bits of which bits 18 to 31 are its size. NVIDIA does not document these. They were found
// by reading what nvcc and NVRTC 13.0 write, and the tests compare them with the source.
#include "executor/gpu/compile/cubin.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EM_CUDA_MACHINE 190
#define FORMAT_SIZED 4
#define ATTRIBUTE_PARAMETER 0x17

// The file, its header checked.
struct view {
    const unsigned char *data; // borrowed
    size_t len;
    Elf64_Ehdr head;
    uint64_t names_at, names_len; // where the names of sections are
};

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "the compiled code is damaged: %s", what);
}

static bool inside(const struct view *view, uint64_t at, uint64_t len)
{
    return at <= view->len && len <= view->len - at;
}

static bool section_at(const struct view *view, unsigned index, Elf64_Shdr *ret)
{
    uint64_t at = view->head.e_shoff + (uint64_t)index * sizeof(*ret);

    if (index >= view->head.e_shnum || !inside(view, at, sizeof(*ret))) {
        return false;
    }
    memcpy(ret, view->data + at, sizeof(*ret));
    return ret->sh_type == SHT_NOBITS || inside(view, ret->sh_offset, ret->sh_size);
}

// Returns the NUL-terminated text at offset `at` of a table, "" when there is none.
static const char *text_at(const struct view *view, uint64_t table_at, uint64_t table_len,
                           uint64_t at)
{
    if (at >= table_len || !inside(view, table_at, table_len)) {
        return "";
    }
    const char *text = (const char *)view->data + table_at + at;
    return memchr(text, '\0', table_len - at) ? text : "";
}

static const char *section_name(const struct view *view, const Elf64_Shdr *section)
{
    return text_at(view, view->names_at, view->names_len, section->sh_name);
}

static int open_view(const struct bytes *cubin, struct view *ret, struct err *err)
{
    struct view view = {.data = cubin->data, .len = cubin->len};

    if (cubin->len < sizeof(view.head)) {
        return damaged(err, "it is too short");
    }
    memcpy(&view.head, cubin->data, sizeof(view.head));
    if (memcmp(view.head.e_ident, ELFMAG, SELFMAG) != 0 ||
        view.head.e_ident[EI_CLASS] != ELFCLASS64 || view.head.e_machine != EM_CUDA_MACHINE ||
        view.head.e_shentsize != sizeof(Elf64_Shdr)) {
        return damaged(err, "it is no cubin");
    }
    Elf64_Shdr names;
    if (!section_at(&view, view.head.e_shstrndx, &names) || names.sh_type != SHT_STRTAB) {
        return damaged(err, "its sections have no names");
    }
    view.names_at = names.sh_offset;
    view.names_len = names.sh_size;
    *ret = view;
    return 0;
}

// Finds the section whose name is the prefix followed by the name.
static bool find_section(const struct view *view, const char *prefix, const char *name,
                         Elf64_Shdr *ret)
{
    size_t len = strlen(prefix);

    for (unsigned i = 0; i < view->head.e_shnum; i++) {
        if (!section_at(view, i, ret)) {
            continue;
        }
        const char *text = section_name(view, ret);
        if (strncmp(text, prefix, len) == 0 && strcmp(text + len, name) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t u32_at(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint16_t u16_at(const unsigned char *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static int put_parameter(struct cuda_kernel *kernel, const unsigned char *data, bool *seen,
                         struct err *err)
{
    unsigned ordinal = u16_at(data + 4);

    if (ordinal >= CUBIN_PARAMETERS_MAX || seen[ordinal]) {
        return damaged(err, "a parameter's number");
    }
    seen[ordinal] = true;
    kernel->offsets[ordinal] = u16_at(data + 6);
    kernel->sizes[ordinal] = u32_at(data + 8) >> 18;
    if (ordinal + 1 > kernel->sizes_count) {
        kernel->sizes_count = kernel->offsets_count = ordinal + 1;
    }
    return 0;
}

static int read_attributes(const unsigned char *at, uint64_t len, struct cuda_kernel *kernel,
                           struct err *err)
{
    bool seen[CUBIN_PARAMETERS_MAX] = {false};

    while (len >= 4) {
        unsigned format = at[0], attribute = at[1];
        uint64_t size = 4 + (format == FORMAT_SIZED ? (uint64_t)u16_at(at + 2) : 0);

        if (size > len) {
            return damaged(err, "an attribute is longer than its section");
        }
        if (attribute == ATTRIBUTE_PARAMETER && format == FORMAT_SIZED) {
            int rc = size >= 16 ? put_parameter(kernel, at + 4, seen, err)
                                : damaged(err, "a parameter's description");

            if (rc != 0) {
                return rc;
            }
        }
        at += size;
        len -= size;
    }
    for (size_t i = 0; i < kernel->sizes_count; i++) {
        if (!seen[i]) {
            return damaged(err, "a parameter is not described");
        }
    }
    return 0;
}

int cubin_parameters(const struct bytes *cubin, const char *symbol, struct cuda_kernel *ret,
                     struct err *err)
{
    struct view view;
    int rc = open_view(cubin, &view, err);

    if (rc != 0) {
        return rc;
    }
    Elf64_Shdr section;
    if (!find_section(&view, ".text.", symbol, &section)) {
        return err_set(err, ERR_NOT_FOUND, "the compiled code has no kernel %s", symbol);
    }
    ret->sizes = xcalloc(CUBIN_PARAMETERS_MAX, sizeof(*ret->sizes));
    ret->offsets = xcalloc(CUBIN_PARAMETERS_MAX, sizeof(*ret->offsets));
    ret->sizes_count = ret->offsets_count = 0;
    if (!find_section(&view, ".nv.info.", symbol, &section) || section.sh_type == SHT_NOBITS) {
        return 0; // no parameters
    }
    return read_attributes(view.data + section.sh_offset, section.sh_size, ret, err);
}

// ---- symbols ----

// An iteration over the symbol table.
struct symbol_walk {
    const struct view *view;
    Elf64_Shdr symbols, strings;
    uint64_t next, count;
};

static bool walk_begin(struct symbol_walk *walk, const struct view *view)
{
    *walk = (struct symbol_walk){.view = view};
    for (unsigned i = 0; i < view->head.e_shnum; i++) {
        if (section_at(view, i, &walk->symbols) && walk->symbols.sh_type == SHT_SYMTAB &&
            section_at(view, walk->symbols.sh_link, &walk->strings) &&
            walk->strings.sh_type == SHT_STRTAB) {
            walk->count = walk->symbols.sh_size / sizeof(Elf64_Sym);
            return true;
        }
    }
    return false;
}

static bool walk_next(struct symbol_walk *walk, Elf64_Sym *ret, const char **ret_name)
{
    if (walk->next >= walk->count) {
        return false;
    }
    memcpy(ret, walk->view->data + walk->symbols.sh_offset + walk->next++ * sizeof(*ret),
           sizeof(*ret));
    *ret_name = text_at(walk->view, walk->strings.sh_offset, walk->strings.sh_size, ret->st_name);
    return true;
}

int cubin_globals(const struct bytes *cubin, struct cuda_global **list, size_t *count,
                  struct err *err)
{
    struct symbol_walk walk;
    struct view view;
    int rc = open_view(cubin, &view, err);

    if (rc != 0 || !walk_begin(&walk, &view)) {
        return rc;
    }
    const char *name;
    Elf64_Sym symbol;
    while (walk_next(&walk, &symbol, &name)) {
        Elf64_Shdr section;

        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || name[0] == '\0' || name[0] == '$' ||
            !section_at(&view, symbol.st_shndx, &section) ||
            strncmp(section_name(&view, &section), ".nv.global", 10) != 0) {
            continue;
        }
        *list = xrealloc(*list, *count + 1, sizeof(**list));
        message_init(&cuda_global_message, &(*list)[*count]);
        (*list)[*count].symbol = xstrdup(name);
        (*list)[(*count)++].size = symbol.st_size;
    }
    return 0;
}

int cubin_forbidden(const struct bytes *cubin, char ret[static 64], struct err *err)
{
    static const char *const forbidden[] = {
        "vprintf", "malloc", "free", "cudaLaunchDevice", "cudaMalloc", "cudaFree", "__cudaCDP2"};
    struct view view;
    int rc = open_view(cubin, &view, err);

    ret[0] = '\0';
    struct symbol_walk walk;
    if (rc != 0 || !walk_begin(&walk, &view)) {
        return rc;
    }
    const char *name;
    Elf64_Sym symbol;
    while (ret[0] == '\0' && walk_next(&walk, &symbol, &name)) {
        for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
            // Functions of the CUDA runtime exist in versions, such as cudaLaunchDeviceV2.
            bool same = i < 3 ? strcmp(name, forbidden[i]) == 0
                              : strncmp(name, forbidden[i], strlen(forbidden[i])) == 0;

            if (same && symbol.st_shndx == SHN_UNDEF) {
                (void)snprintf(ret, 64, "%s", i == 0 ? "printf" : forbidden[i]);
                break;
            }
        }
    }
    return 0;
}

int cubin_sizes(const struct bytes *cubin, uint64_t *ret_code, uint64_t *ret_constants,
                struct err *err)
{
    struct view view;
    int rc = open_view(cubin, &view, err);

    *ret_code = *ret_constants = 0;
    Elf64_Shdr section;
    for (unsigned i = 0; rc == 0 && i < view.head.e_shnum; i++) {
        if (!section_at(&view, i, &section)) {
            continue;
        }
        if (strncmp(section_name(&view, &section), ".text.", 6) == 0) {
            *ret_code += section.sh_size;
        } else if (strncmp(section_name(&view, &section), ".nv.constant", 12) == 0) {
            *ret_constants += section.sh_size;
        }
    }
    return rc;
}

#include "executor/gpu/compile/cubin_view.h"
#include <string.h>

#define EM_CUDA_MACHINE 190
#define STT_CUDA_OBJECT 13 // what nvcc calls a variable of code that is linked later

int cubin_damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "the compiled code is damaged: %s", what);
}

bool cubin_view_inside(const struct cubin_view *view, uint64_t at, uint64_t len)
{
    return at <= view->len && len <= view->len - at;
}

// Code that is linked later has types of NVIDIA's own for zeroed variables, local and shared
// memory.
bool cubin_has_bytes(const Elf64_Shdr *section)
{
    switch (section->sh_type) {
    case SHT_NOBITS:
    case SHT_LOPROC + 0x07: // zeroed variables
    case SHT_LOPROC + 0x09: // local memory
    case SHT_LOPROC + 0x0a: // shared memory
    case SHT_LOPROC + 0x15: // shared memory that is reserved
        return false;
    default:
        return true;
    }
}

bool cubin_section(const struct cubin_view *view, unsigned index, Elf64_Shdr *ret)
{
    uint64_t at = view->head.e_shoff + (uint64_t)index * sizeof(*ret);

    if (index >= view->head.e_shnum || !cubin_view_inside(view, at, sizeof(*ret))) {
        return false;
    }
    memcpy(ret, view->data + at, sizeof(*ret));
    return !cubin_has_bytes(ret) || cubin_view_inside(view, ret->sh_offset, ret->sh_size);
}

// Returns the NUL-terminated text at offset `at` of a table, "" when there is none.
static const char *text_at(const struct cubin_view *view, uint64_t table_at, uint64_t table_len,
                           uint64_t at)
{
    if (at >= table_len || !cubin_view_inside(view, table_at, table_len)) {
        return "";
    }
    const char *text = (const char *)view->data + table_at + at;
    return memchr(text, '\0', table_len - at) ? text : "";
}

const char *cubin_section_name(const struct cubin_view *view, const Elf64_Shdr *section)
{
    return text_at(view, view->names_at, view->names_len, section->sh_name);
}

bool cubin_name_begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

int cubin_view_open(const struct bytes *cubin, struct cubin_view *ret, struct err *err)
{
    struct cubin_view view = {.data = cubin->data, .len = cubin->len};

    if (cubin->len < sizeof(view.head)) {
        return cubin_damaged(err, "it is too short");
    }
    memcpy(&view.head, cubin->data, sizeof(view.head));
    if (memcmp(view.head.e_ident, ELFMAG, SELFMAG) != 0 ||
        view.head.e_ident[EI_CLASS] != ELFCLASS64 || view.head.e_machine != EM_CUDA_MACHINE ||
        view.head.e_shentsize != sizeof(Elf64_Shdr)) {
        return cubin_damaged(err, "it is no cubin");
    }
    Elf64_Shdr names;
    if (!cubin_section(&view, view.head.e_shstrndx, &names) || names.sh_type != SHT_STRTAB) {
        return cubin_damaged(err, "its sections have no names");
    }
    view.names_at = names.sh_offset;
    view.names_len = names.sh_size;
    *ret = view;
    return 0;
}

// ---- symbols ----

bool cubin_walk_begin(struct cubin_walk *walk, const struct cubin_view *view)
{
    *walk = (struct cubin_walk){.view = view};
    for (unsigned i = 0; i < view->head.e_shnum; i++) {
        if (cubin_section(view, i, &walk->symbols) && walk->symbols.sh_type == SHT_SYMTAB &&
            cubin_section(view, walk->symbols.sh_link, &walk->strings) &&
            walk->strings.sh_type == SHT_STRTAB) {
            walk->count = walk->symbols.sh_size / sizeof(Elf64_Sym);
            return true;
        }
    }
    return false;
}

bool cubin_walk_next(struct cubin_walk *walk, Elf64_Sym *ret, const char **ret_name)
{
    if (walk->next >= walk->count) {
        return false;
    }
    memcpy(ret, walk->view->data + walk->symbols.sh_offset + walk->next++ * sizeof(*ret),
           sizeof(*ret));
    *ret_name = text_at(walk->view, walk->strings.sh_offset, walk->strings.sh_size, ret->st_name);
    return true;
}

bool cubin_is_variable(const Elf64_Sym *symbol)
{
    int type = ELF64_ST_TYPE(symbol->st_info);

    return type == STT_OBJECT || type == STT_CUDA_OBJECT;
}

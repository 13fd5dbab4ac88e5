// Design note. A driver believes a cubin: it gets no length, and reads what tables point to. So all
// that points into the file is held against its length. Memory that a kernel can write to must be
// put back before each launch, which takes a name; bytes that no variable has are refused, but for
// those that alignment leaves.
//
// In many kernels of cuBLAS (libcublasLt 13.1) .rel.debug_frame or .rela.debug_frame names .nv.info
// as its table of symbols. Such code is loaded all the same, so a driver does not read that section
// as symbols. Where a debugger's section is relocated the link may lead to any section; the symbols
// are those of the only table that there is.
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/cubin_view.h"
#include <stdlib.h>
#include <string.h>

#define UNNAMED_MAX 256 // bytes between two variables that have no name

// A section of entries of this size.
static bool is_table(const Elf64_Shdr *section, uint64_t entry)
{
    return cubin_has_bytes(section) && section->sh_entsize == entry &&
           section->sh_size % entry == 0;
}

// The section that another one names by its number, if it is of this type.
static bool linked(const struct cubin_view *view, unsigned index, uint32_t type, Elf64_Shdr *ret)
{
    return cubin_section(view, index, ret) && ret->sh_type == type;
}

static int check_symbols(const struct cubin_view *view, const Elf64_Shdr *table, struct err *err)
{
    Elf64_Shdr strings;

    if (!is_table(table, sizeof(Elf64_Sym)) ||
        !linked(view, table->sh_link, SHT_STRTAB, &strings)) {
        return cubin_damaged(err, "its table of symbols");
    }
    for (uint64_t at = 0; at < table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        memcpy(&symbol, view->data + table->sh_offset + at, sizeof(symbol));
        if (symbol.st_name >= strings.sh_size && symbol.st_name != 0) {
            return cubin_damaged(err, "a symbol's name");
        }
    }
    return 0;
}

// What a debugger reads, and no driver loads.
static bool is_for_debugger(const struct cubin_view *view, const Elf64_Shdr *section)
{
    return (section->sh_flags & SHF_ALLOC) == 0 &&
           cubin_name_begins(cubin_section_name(view, section), ".debug_");
}

// Whether relocations of a section may say that the table of symbols is this one.
static bool may_link(const struct cubin_view *view, unsigned index, const Elf64_Shdr *of)
{
    Elf64_Shdr link;

    return cubin_section(view, index, &link) &&
           (link.sh_type == SHT_SYMTAB || is_for_debugger(view, of));
}

// Offset and symbol are the first two fields of both kinds of entries.
static int check_relocations(const struct cubin_view *view, const Elf64_Shdr *table,
                             uint64_t symbols, struct err *err)
{
    uint64_t entry = table->sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    Elf64_Shdr of;

    if (table->sh_size == 0) {
        return 0;
    }
    if (!is_table(table, entry) || !cubin_section(view, table->sh_info, &of) ||
        !may_link(view, table->sh_link, &of)) {
        return cubin_damaged(err, "a table of relocations");
    }
    for (uint64_t at = 0; at < table->sh_size; at += entry) {
        Elf64_Rel one;

        memcpy(&one, view->data + table->sh_offset + at, sizeof(one));
        if (one.r_offset >= of.sh_size || ELF64_R_SYM(one.r_info) >= symbols) {
            return cubin_damaged(err, "a relocation");
        }
    }
    return 0;
}

static int check_segments(const struct cubin_view *view, struct err *err)
{
    const Elf64_Ehdr *head = &view->head;

    if (head->e_phnum == 0) {
        return 0;
    }
    if (head->e_phentsize != sizeof(Elf64_Phdr) ||
        !cubin_view_inside(view, head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr))) {
        return cubin_damaged(err, "its table of segments");
    }
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr segment;

        memcpy(&segment, view->data + head->e_phoff + i * sizeof(segment), sizeof(segment));
        if (!cubin_view_inside(view, segment.p_offset, segment.p_filesz)) {
            return cubin_damaged(err, "a segment lies outside the file");
        }
    }
    return 0;
}

struct range {
    uint64_t at, bytes;
};

static int by_begin(const void *a, const void *b)
{
    uint64_t x = ((const struct range *)a)->at, y = ((const struct range *)b)->at;

    return (x > y) - (x < y);
}

// Adds up the variables of a section, in the order of their places.
static struct range *variables_of(const struct cubin_view *view, unsigned index, size_t *ret_count)
{
    struct range *list = NULL;
    struct cubin_walk walk;
    const char *name;
    Elf64_Sym symbol;
    bool found = cubin_walk_begin(&walk, view);

    *ret_count = 0;
    list = xcalloc(found ? walk.count + 1 : 1, sizeof(*list));
    while (found && cubin_walk_next(&walk, &symbol, &name)) {
        if (symbol.st_shndx == index && cubin_is_variable(&symbol) && name[0] != '\0') {
            list[(*ret_count)++] = (struct range){symbol.st_value, symbol.st_size};
        }
    }
    qsort(list, *ret_count, sizeof(*list), by_begin);
    return list;
}

static int check_variables(const struct cubin_view *view, unsigned index, const Elf64_Shdr *section,
                           struct err *err)
{
    size_t count;
    struct range *list = variables_of(view, index, &count);
    uint64_t size = section->sh_size, known = 0, widest = 0;
    bool outside = false;

    for (size_t i = 0; i <= count; i++) {
        struct range next = i < count ? list[i] : (struct range){.at = size};

        outside = outside || next.at > size || next.bytes > size - next.at;
        widest = next.at > known && next.at - known > widest ? next.at - known : widest;
        known = next.at + next.bytes > known ? next.at + next.bytes : known;
    }
    free(list);
    if (outside) {
        return cubin_damaged(err, "a variable lies outside its section");
    }
    return widest <= UNNAMED_MAX
               ? 0
               : err_set(
                     err, ERR_INVALID,
                     "the compiled code has %llu bytes of memory that belong to no variable, so "
                     "that they cannot be put back before each launch; give them a symbol",
                     (unsigned long long)widest);
}

// With this many symbols in the file.
static int check_section(const struct cubin_view *view, unsigned index, uint64_t symbols,
                         struct err *err)
{
    Elf64_Shdr section;

    if (!cubin_section(view, index, &section)) {
        return cubin_damaged(err, "a section lies outside the file");
    }
    const char *name = cubin_section_name(view, &section);
    if (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) {
        return check_symbols(view, &section, err);
    }
    if (section.sh_type == SHT_REL || section.sh_type == SHT_RELA) {
        return check_relocations(view, &section, symbols, err);
    }
    if (section.sh_type == SHT_STRTAB && section.sh_size > 0 &&
        view->data[section.sh_offset + section.sh_size - 1] != '\0') {
        return cubin_damaged(err, "a table of names does not end");
    }
    if (cubin_name_begins(name, VARIABLES)) {
        return check_variables(view, index, &section, err);
    }
    const uint64_t both = SHF_ALLOC | SHF_WRITE;
    bool shared = cubin_name_begins(name, ".nv.shared") ||
                  cubin_name_begins(name, ".nv.merc.nv.") ||
                  cubin_name_begins(name, ".nv_debug.shared");
    return (section.sh_flags & both) == both && !shared
               ? err_set(err, ERR_INVALID,
                         "the compiled code has memory to write to that is none of its variables'")
               : 0;
}

int cubin_check(const struct bytes *cubin, struct err *err)
{
    struct cubin_view view;
    int rc = cubin_view_open(cubin, &view, err);

    if (rc != 0) {
        return rc;
    }
    if (!cubin_view_inside(&view, view.head.e_shoff,
                           (uint64_t)view.head.e_shnum * sizeof(Elf64_Shdr)) ||
        view.head.e_ident[EI_DATA] != ELFDATA2LSB) {
        return cubin_damaged(err, "its table of sections");
    }
    rc = check_segments(&view, err);
    struct cubin_walk walk;
    uint64_t symbols = cubin_walk_begin(&walk, &view) ? walk.count : 0;
    unsigned tables = 0;
    for (unsigned i = 0; i < view.head.e_shnum && rc == 0; i++) {
        Elf64_Shdr section;

        tables += cubin_section(&view, i, &section) && section.sh_type == SHT_SYMTAB;
        rc = tables > 1 ? cubin_damaged(err, "it has two tables of symbols")
                        : check_section(&view, i, symbols, err);
    }
    return rc;
}

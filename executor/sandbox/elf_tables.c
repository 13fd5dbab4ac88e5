// Design note. The loader looks symbols up by name, so a relocation against one symbol can end at
// another of that name, and dlsym at one that no relocation names. Therefore every symbol is looked
// at: their number is that of the hash table, which the loader searches. With a GNU hash table it
// is found by following the last chain to its end; each other chain ends there at the latest.
#include "executor/sandbox/elf_tables.h"
#include <string.h>

#if defined(__x86_64__)
#define TYPE_NONE R_X86_64_NONE
#define TYPE_RELATIVE R_X86_64_RELATIVE
#define TYPE_IRELATIVE R_X86_64_IRELATIVE
#define TYPE_JUMP_SLOT R_X86_64_JUMP_SLOT
static const uint32_t addresses[] = {R_X86_64_64, R_X86_64_GLOB_DAT};
static const uint32_t thread_locals[] = {R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64};
#define TYPE_DESCRIPTOR UINT32_MAX // gcc makes none without being asked to
#else
#define TYPE_NONE R_AARCH64_NONE
#define TYPE_RELATIVE R_AARCH64_RELATIVE
#define TYPE_IRELATIVE R_AARCH64_IRELATIVE
#define TYPE_JUMP_SLOT R_AARCH64_JUMP_SLOT
static const uint32_t addresses[] = {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT};
static const uint32_t thread_locals[] = {R_AARCH64_TLS_DTPMOD, R_AARCH64_TLS_DTPREL,
                                         R_AARCH64_TLS_TPREL, R_AARCH64_TLSDESC};
#define TYPE_DESCRIPTOR R_AARCH64_TLSDESC // of a thread-local variable: two words
#endif

#define RELOCATIONS_MAX 1000000
#define SYMBOLS_MAX 1000000
#define VERSIONS_MAX 1000

// One of the two tables of relocations.
struct relocations {
    uint64_t address, size;
    bool plt; // of function calls
};

static struct relocations relocations_of(const struct elf_view *view, bool plt)
{
    struct relocations table = {.plt = plt};

    (void)elf_view_tag(view, plt ? DT_JMPREL : DT_RELA, &table.address);
    (void)elf_view_tag(view, plt ? DT_PLTRELSZ : DT_RELASZ, &table.size);
    return table;
}

static bool is_among(uint32_t type, const uint32_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == type) {
            return true;
        }
    }
    return false;
}

static uint32_t word_at(const unsigned char *table, uint64_t i)
{
    uint32_t word;

    memcpy(&word, table + i * sizeof(word), sizeof(word));
    return word;
}

// ---- where tables are ----

static bool is_constant(const struct elf_view *view, uint64_t address, uint64_t size)
{
    const Elf64_Phdr *segment = elf_view_segment(view, address, size);

    return segment && !(segment->p_flags & PF_W);
}

int elf_check_tables(const struct elf_view *view, struct err *err)
{
    static const struct {
        int64_t table, size, form; // tags of its size (0: checked where the table is read) and of
                                   // the form of its entries (0: none), without which loaders fail
        uint64_t unit;             // bytes of one entry; 0: at least one byte
    } row[] = {
        {DT_STRTAB, DT_STRSZ, 0, 0},
        {DT_SYMTAB, 0, DT_SYMENT, sizeof(Elf64_Sym)},
        {DT_HASH, 0, 0, 2 * sizeof(uint32_t)},
        {DT_GNU_HASH, 0, 0, 4 * sizeof(uint32_t)},
        {DT_RELA, DT_RELASZ, DT_RELAENT, sizeof(Elf64_Rela)},
        {DT_JMPREL, DT_PLTRELSZ, DT_PLTREL, sizeof(Elf64_Rela)},
        {DT_RELR, DT_RELRSZ, DT_RELRENT, sizeof(Elf64_Relr)},
        {DT_VERSYM, 0, 0, sizeof(Elf64_Versym)},
        {DT_VERNEED, 0, 0, sizeof(Elf64_Verneed)},
    };
    uint64_t address, size, ignored;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        bool there = elf_view_tag(view, row[i].table, &address), whole = true;
        if (row[i].size != 0) {
            whole = elf_view_tag(view, row[i].size, &size) == there && (!there || size > 0);
        } else {
            size = row[i].unit;
        }
        whole = whole && (!there || row[i].form == 0 || elf_view_tag(view, row[i].form, &ignored));
        whole = whole && (row[i].unit == 0 || size % row[i].unit == 0);
        if (!whole || (there && !is_constant(view, address, size))) {
            return err_set(err, ERR_INVALID,
                           "the object's table of tag %#llx is damaged or could be written to",
                           (unsigned long long)row[i].table);
        }
    }
    if (elf_view_tag(view, DT_PLTGOT, &address)) {
        const Elf64_Phdr *segment = elf_view_segment(view, address, 3 * sizeof(uint64_t));
        if (!segment || !(segment->p_flags & PF_W)) {
            return err_set(err, ERR_INVALID, "the object's linkage table is damaged");
        }
    }
    return 0;
}

// ---- symbols ----

// Counts the symbols of a GNU hash table. Returns false when it cannot be read to its end.
static bool count_gnu(const struct elf_view *view, uint64_t address, uint64_t *ret)
{
    enum { HEADER = 4 * sizeof(uint32_t) };
    const unsigned char *header = elf_view_at(view, address, HEADER);

    if (!header) {
        return false;
    }
    uint64_t buckets = word_at(header, 0), first = word_at(header, 1), words = word_at(header, 2);
    if (buckets == 0 || buckets > SYMBOLS_MAX || first > SYMBOLS_MAX || words == 0 ||
        words > SYMBOLS_MAX || (words & (words - 1)) != 0 || word_at(header, 3) >= 64) {
        return false;
    }
    uint64_t at = HEADER + words * sizeof(uint64_t), last = 0;
    const unsigned char *bucket = elf_view_at(view, address, at + buckets * sizeof(uint32_t));
    if (!bucket) {
        return false;
    }
    for (uint64_t i = 0; i < buckets; i++) {
        uint64_t begin = word_at(bucket + at, i);
        if (begin != 0 && begin < first) {
            return false;
        }
        last = begin > last ? begin : last;
    }
    at += buckets * sizeof(uint32_t);
    for (; last != 0; last++) {
        uint64_t chain = at + (last - first) * sizeof(uint32_t);
        const unsigned char *table = elf_view_at(view, address, chain + sizeof(uint32_t));
        if (last >= SYMBOLS_MAX || !table) {
            return false;
        }
        if (word_at(table + chain, 0) & 1) {
            break;
        }
    }
    *ret = last == 0 ? first : last + 1;
    return true;
}

// The same for a hash table of the older kind, which says how many there are.
static bool count_sysv(const struct elf_view *view, uint64_t address, uint64_t *ret)
{
    const unsigned char *table = elf_view_at(view, address, 2 * sizeof(uint32_t));

    if (!table) {
        return false;
    }
    uint64_t buckets = word_at(table, 0), symbols = word_at(table, 1);
    if (buckets == 0 || buckets > SYMBOLS_MAX || symbols == 0 || symbols > SYMBOLS_MAX) {
        return false;
    }
    table = elf_view_at(view, address, (2 + buckets + symbols) * sizeof(uint32_t));
    for (uint64_t i = 0; table && i < buckets + symbols; i++) {
        if (word_at(table, 2 + i) >= symbols) {
            return false;
        }
    }
    *ret = symbols;
    return table ? true : false;
}

// The symbols that a look-up or a relocation can lead to.
struct symbols {
    const unsigned char *table; // NULL when it or the hash table cannot be read to its end
    uint64_t count;
};

static struct symbols symbols_of(const struct elf_view *view)
{
    uint64_t gnu, sysv, table, count = 0, other = 0;
    bool has_gnu = elf_view_tag(view, DT_GNU_HASH, &gnu);
    bool has_sysv = elf_view_tag(view, DT_HASH, &sysv);

    if ((!has_gnu && !has_sysv) || (has_gnu && !count_gnu(view, gnu, &count)) ||
        (has_sysv && !count_sysv(view, sysv, &other)) || !elf_view_tag(view, DT_SYMTAB, &table)) {
        return (struct symbols){.table = NULL};
    }
    count = count > other ? count : other;
    return (struct symbols){.table = elf_view_at(view, table, count * sizeof(Elf64_Sym)),
                            .count = count};
}

static Elf64_Sym symbol_at(const unsigned char *symbols, uint64_t i)
{
    Elf64_Sym symbol;

    memcpy(&symbol, symbols + i * sizeof(symbol), sizeof(symbol));
    return symbol;
}

int elf_check_symbols(const struct elf_view *view, struct err *err)
{
    struct symbols symbols = symbols_of(view);
    uint64_t strings;

    if (!symbols.table) {
        return err_set(err, ERR_INVALID, "the object's symbols are damaged");
    }
    // When the table of names ends with a NUL, every name in it does.
    if (!elf_view_tag(view, DT_STRSZ, &strings) || strings == 0 ||
        !elf_view_string(view, strings - 1)) {
        return err_set(err, ERR_INVALID, "the names of the object's symbols are damaged");
    }
    for (uint64_t i = 0; i < symbols.count; i++) {
        Elf64_Sym symbol = symbol_at(symbols.table, i);
        unsigned type = ELF64_ST_TYPE(symbol.st_info), binding = ELF64_ST_BIND(symbol.st_info);
        bool ordinary = type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
                        type == STT_SECTION || type == STT_TLS || type == STT_GNU_IFUNC;
        ordinary =
            ordinary && (binding == STB_LOCAL || binding == STB_GLOBAL || binding == STB_WEAK) &&
            (symbol.st_shndx != SHN_UNDEF || symbol.st_value == 0) && symbol.st_name < strings;
        if (!ordinary) {
            return err_set(err, ERR_INVALID, "the object's symbol %llu is none that gcc makes",
                           (unsigned long long)i);
        }
    }
    return 0;
}

// ---- versions of symbols ----

// Reads one needed library's versions. strings: the size of the table of names, whose last byte is
// a NUL. *highest becomes the highest number of a version. Returns the offset of the next library's
// entry, 0 after the last one, UINT64_MAX when it is damaged.
static uint64_t read_needed(const struct elf_view *view, uint64_t address, uint64_t strings,
                            unsigned *highest)
{
    const unsigned char *data = elf_view_at(view, address, sizeof(Elf64_Verneed));
    Elf64_Verneed needed;

    if (!data) {
        return UINT64_MAX;
    }
    memcpy(&needed, data, sizeof(needed));
    if (needed.vn_version != 1 || needed.vn_cnt == 0 || needed.vn_cnt > VERSIONS_MAX ||
        needed.vn_file >= strings) {
        return UINT64_MAX;
    }
    uint64_t at = address + needed.vn_aux;
    for (unsigned i = 0; i < needed.vn_cnt; i++) {
        Elf64_Vernaux version;
        data = elf_view_at(view, at, sizeof(version));
        if (!data) {
            return UINT64_MAX;
        }
        memcpy(&version, data, sizeof(version));
        bool is_last = i + 1U == needed.vn_cnt; // the loader goes by this link, not by the number
        if (version.vna_name >= strings || (version.vna_next == 0) != is_last ||
            version.vna_other > VERSIONS_MAX) {
            return UINT64_MAX;
        }
        *highest = version.vna_other > *highest ? version.vna_other : *highest;
        at += version.vna_next;
    }
    return needed.vn_next;
}

int elf_check_versions(const struct elf_view *view, struct err *err)
{
    uint64_t versions, needed, libraries, strings;
    struct symbols symbols = symbols_of(view);
    const unsigned char *table;
    bool has_versions = elf_view_tag(view, DT_VERSYM, &versions);
    bool has_needed = elf_view_tag(view, DT_VERNEED, &needed);
    unsigned highest = 1; // 0: local, 1: global

    (void)elf_view_tag(view, DT_VERNEEDNUM, &libraries);
    (void)elf_view_tag(view, DT_STRSZ, &strings);
    if (libraries > VERSIONS_MAX || (libraries > 0) != has_needed ||
        (has_needed && !has_versions)) {
        goto damaged;
    }
    for (uint64_t i = 0; has_needed && i < libraries; i++) {
        uint64_t next = read_needed(view, needed, strings, &highest);
        if (next == UINT64_MAX || (next == 0) != (i + 1 == libraries)) {
            goto damaged;
        }
        needed += next;
    }
    if (!has_versions) {
        return 0;
    }
    table =
        symbols.table ? elf_view_at(view, versions, symbols.count * sizeof(Elf64_Versym)) : NULL;
    for (uint64_t i = 0; table && i < symbols.count; i++) {
        Elf64_Versym version;
        memcpy(&version, table + i * sizeof(version), sizeof(version));
        if ((version & 0x7fff) > highest) { // the highest bit hides the symbol
            goto damaged;
        }
    }
    if (table) {
        return 0;
    }
damaged:
    return err_set(err, ERR_INVALID, "the versions of the object's symbols are damaged");
}

// ---- relocations ----

// Whether the loader may write there: to data that the file has, and not to the dynamic section,
// whose entries the loader uses while it writes.
static bool is_target(const struct elf_view *view, uint64_t address, uint64_t size)
{
    const Elf64_Phdr *segment = elf_view_segment(view, address, size);
    const Elf64_Phdr *dynamic = &view->dynamic_segment;

    return segment && (segment->p_flags & PF_W) &&
           (address >= dynamic->p_vaddr + dynamic->p_filesz || address + size <= dynamic->p_vaddr);
}

// Whether a relocation of a thread-local variable names one. The loader divides by the alignment of
// the library's thread-local variables, of which there must be some.
static bool names_thread_local(const struct elf_view *view, const struct symbols *symbols,
                               uint64_t i)
{
    Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_TLS), .st_shndx = SHN_ABS};
    bool own = false;

    for (size_t k = 0; k < view->segment_count; k++) {
        own |= view->segment[k].p_type == PT_TLS && view->segment[k].p_memsz > 0;
    }
    if (i != 0) {
        symbol = symbol_at(symbols->table, i);
    }
    return ELF64_ST_TYPE(symbol.st_info) == STT_TLS && (own || symbol.st_shndx == SHN_UNDEF);
}

static bool relocation_is_ordinary(const struct elf_view *view, const Elf64_Rela *relocation,
                                   const struct symbols *symbols, bool plt)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    uint64_t symbol = ELF64_R_SYM(relocation->r_info);
    uint64_t size = type == TYPE_DESCRIPTOR ? 2 * sizeof(uint64_t) : sizeof(uint64_t);

    if (symbol != 0 && symbol >= symbols->count) {
        return false;
    }
    if (type == TYPE_NONE) { // ld leaves some at the end of the table
        return !plt && symbol == 0;
    }
    if (!is_target(view, relocation->r_offset, size)) {
        return false;
    }
    if (type == TYPE_RELATIVE || type == TYPE_IRELATIVE) {
        return symbol == 0 && (!plt || type == TYPE_IRELATIVE);
    }
    if (is_among(type, thread_locals, ARRAY_LEN(thread_locals))) {
        return (!plt || type == TYPE_DESCRIPTOR) && names_thread_local(view, symbols, symbol);
    }
    return plt ? type == TYPE_JUMP_SLOT && symbol != 0
               : is_among(type, addresses, ARRAY_LEN(addresses));
}

// Reads relocation i. Returns false when it is not in the file.
static bool relocation_at(const struct elf_view *view, const struct relocations *table, uint64_t i,
                          Elf64_Rela *ret)
{
    uint64_t address;
    const unsigned char *data = NULL;

    if (!__builtin_add_overflow(table->address, i * sizeof(*ret), &address)) {
        data = elf_view_at(view, address, sizeof(*ret));
    }
    if (data) {
        memcpy(ret, data, sizeof(*ret));
    }
    return data ? true : false;
}

static int check_table(const struct elf_view *view, const struct relocations *table,
                       const struct symbols *symbols, struct err *err)
{
    uint64_t relative;
    bool counted = elf_view_tag(view, DT_RELACOUNT, &relative);

    if (table->size / sizeof(Elf64_Rela) > RELOCATIONS_MAX) {
        return err_set(err, ERR_INVALID, "the object has more than %d relocations",
                       RELOCATIONS_MAX);
    }
    // The loader takes a part of an entry at the end for a whole one.
    bool ordinary = table->size % sizeof(Elf64_Rela) == 0;
    uint64_t count = table->size / sizeof(Elf64_Rela);
    ordinary = ordinary && (table->plt || !counted || relative <= count);
    for (uint64_t i = 0; i < count && ordinary; i++) {
        Elf64_Rela relocation;
        ordinary = relocation_at(view, table, i, &relocation) &&
                   relocation_is_ordinary(view, &relocation, symbols, table->plt);
        // As many as are counted are applied without a look at their type.
        ordinary = ordinary && (table->plt || !counted || i >= relative ||
                                ELF64_R_TYPE(relocation.r_info) == TYPE_RELATIVE);
    }
    return ordinary ? 0 : err_set(err, ERR_INVALID, "the object's relocations are damaged");
}

// Relocations of addresses in a packed form: an address, then words each of whose bits, but for the
// lowest, stands for one of the next 63 addresses.
static int check_packed(const struct elf_view *view, struct err *err)
{
    uint64_t address, size, where = 0;
    bool begun = false, ordinary = true;

    if (!elf_view_tag(view, DT_RELR, &address) || !elf_view_tag(view, DT_RELRSZ, &size)) {
        return 0;
    }
    const unsigned char *table = elf_view_at(view, address, size);
    for (uint64_t i = 0; table && ordinary && i < size / sizeof(Elf64_Relr); i++) {
        Elf64_Relr word;
        memcpy(&word, table + i * sizeof(word), sizeof(word));
        if ((word & 1) == 0) {
            begun = true;
            where = word + sizeof(uint64_t);
            ordinary = is_target(view, word, sizeof(uint64_t));
            continue;
        }
        for (unsigned bit = 1; bit < 64 && ordinary; bit++) {
            ordinary =
                begun && (!(word >> bit & 1) ||
                          is_target(view, where + (bit - 1) * sizeof(uint64_t), sizeof(uint64_t)));
        }
        where += 63 * sizeof(uint64_t);
    }
    return table && ordinary
               ? 0
               : err_set(err, ERR_INVALID, "the object's packed relocations are damaged");
}

int elf_check_relocations(const struct elf_view *view, struct err *err)
{
    struct symbols symbols = symbols_of(view);
    int rc = check_packed(view, err);

    symbols.count = symbols.table ? symbols.count : 0;
    for (int plt = 0; plt < 2 && rc == 0; plt++) {
        struct relocations table = relocations_of(view, plt != 0);
        rc = check_table(view, &table, &symbols, err);
    }
    return rc;
}

bool elf_find_ifunc(const struct elf_view *view)
{
    struct symbols symbols = symbols_of(view);

    for (uint64_t i = 0; symbols.table && i < symbols.count; i++) {
        Elf64_Sym symbol = symbol_at(symbols.table, i);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC &&
            (symbol.st_shndx != SHN_UNDEF || symbol.st_value != 0)) {
            return true;
        }
    }
    for (int plt = 0; plt < 2; plt++) {
        struct relocations table = relocations_of(view, plt != 0);
        Elf64_Rela relocation;
        for (uint64_t i = 0; i < table.size / sizeof(relocation) && i < RELOCATIONS_MAX &&
                             relocation_at(view, &table, i, &relocation);
             i++) {
            if (ELF64_R_TYPE(relocation.r_info) == TYPE_IRELATIVE) {
                return true;
            }
        }
    }
    return false;
}

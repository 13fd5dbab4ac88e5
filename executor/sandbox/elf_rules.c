// The rules about headers, segments and the dynamic section. Those about the tables that it names
// are in executor/sandbox/elf_tables.c.
#include "executor/sandbox/elf_rules.h"
#include "executor/sandbox/elf_tables.h"
#include <string.h>

// ld aligns segments to a page: 4 KiB on x86-64 (2 MiB before 2.31), 64 KiB on aarch64.
#define ALIGN_MIN 4096U
#define ALIGN_MAX (2U << 20)
#define ADDRESS_MAX ((uint64_t)1 << 40)
#define NOTE_MAX 65536
#define TLS_MAX ((uint64_t)1 << 20)
#define TLS_ALIGN_MAX 4096

static bool is_power(uint64_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

// ---- the file's header ----

static int check_header(const struct elf_view *view, struct err *err)
{
    unsigned char ident[EI_NIDENT] = {ELFMAG0,    ELFMAG1,     ELFMAG2,    ELFMAG3,
                                      ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_SYSV};
    const Elf64_Ehdr *header = &view->header;

    if (header->e_ident[EI_OSABI] == ELFOSABI_GNU) { // where there are resolver functions
        ident[EI_OSABI] = ELFOSABI_GNU;
    }
    if (memcmp(header->e_ident, ident, sizeof(ident)) != 0 || header->e_version != EV_CURRENT ||
        header->e_ehsize != sizeof(*header) || header->e_phoff != sizeof(*header) ||
        header->e_flags != 0) {
        return err_set(err, ERR_INVALID, "the object's header is none that gcc makes");
    }
    return 0;
}

// ---- segments ----

// Whether the segment lies within a loaded segment that has all of its bytes from the file.
static bool is_loaded(const struct elf_view *view, const Elf64_Phdr *segment)
{
    const Elf64_Phdr *load = elf_view_segment(view, segment->p_vaddr, segment->p_filesz);

    return load && segment->p_filesz == segment->p_memsz &&
           segment->p_offset - load->p_offset == segment->p_vaddr - load->p_vaddr;
}

// end: the first address behind the segments before, rounded up to a page.
static bool load_is_ordinary(const struct elf_view *view, const Elf64_Phdr *load, uint64_t end)
{
    bool writable = load->p_flags == (PF_R | PF_W);

    return (load->p_flags == PF_R || load->p_flags == (PF_R | PF_X) || writable) &&
           is_power(load->p_align) && load->p_align >= ALIGN_MIN && load->p_align <= ALIGN_MAX &&
           load->p_vaddr < ADDRESS_MAX && load->p_memsz < ADDRESS_MAX && load->p_memsz > 0 &&
           (load->p_vaddr & ~(load->p_align - 1)) >= end &&
           (load->p_vaddr - load->p_offset) % load->p_align == 0 && load->p_offset <= view->len &&
           load->p_filesz <= view->len - load->p_offset &&
           (load->p_filesz == load->p_memsz || (writable && load->p_filesz < load->p_memsz));
}

// The image of thread-local variables. What follows its bytes is zeros that no segment has.
static bool tls_is_ordinary(const struct elf_view *view, const Elf64_Phdr *tls)
{
    Elf64_Phdr image = *tls;

    image.p_memsz = tls->p_filesz;
    return tls->p_filesz <= tls->p_memsz && tls->p_memsz <= TLS_MAX && is_power(tls->p_align) &&
           tls->p_align <= TLS_ALIGN_MAX && (tls->p_filesz == 0 || is_loaded(view, &image));
}

// What becomes read-only after relocation: a part of a writable segment.
static bool relro_is_ordinary(const struct elf_view *view, const Elf64_Phdr *relro)
{
    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *load = &view->segment[i];
        if (load->p_type == PT_LOAD && (load->p_flags & PF_W) && relro->p_vaddr >= load->p_vaddr &&
            relro->p_vaddr - load->p_vaddr <= load->p_memsz) {
            uint64_t room = load->p_memsz - (relro->p_vaddr - load->p_vaddr);
            return relro->p_memsz <= ((room + load->p_align - 1) & ~(load->p_align - 1));
        }
    }
    return false;
}

static bool other_is_ordinary(const struct elf_view *view, const Elf64_Phdr *segment)
{
    switch (segment->p_type) {
    case PT_DYNAMIC: // has a rule of its own
    case PT_GNU_STACK:
        return true;
    case PT_TLS:
        return tls_is_ordinary(view, segment);
    case PT_GNU_RELRO:
        return relro_is_ordinary(view, segment);
    case PT_GNU_EH_FRAME:
        return is_loaded(view, segment);
    case PT_NOTE:
    case PT_GNU_PROPERTY:
        return is_loaded(view, segment) && segment->p_filesz <= NOTE_MAX &&
               (segment->p_align == 4 || segment->p_align == 8);
    default:
        return false;
    }
}

static int check_segments(const struct elf_view *view, struct err *err)
{
    uint64_t end = 0;
    size_t loads = 0;

    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *segment = &view->segment[i];
        bool ordinary;
        if (segment->p_type == PT_LOAD) {
            // ld begins a shared object at 0, in the file and in memory.
            ordinary = load_is_ordinary(view, segment, end) &&
                       (loads > 0 || (segment->p_vaddr == 0 && segment->p_offset == 0));
            end = segment->p_vaddr + segment->p_memsz;
            end = (end + segment->p_align - 1) & ~(segment->p_align - 1);
            loads++;
        } else {
            ordinary = other_is_ordinary(view, segment);
        }
        for (size_t before = 0; before < i && segment->p_type != PT_LOAD; before++) {
            // Of notes there may be several, with different alignments.
            ordinary = ordinary && (segment->p_type == PT_NOTE ||
                                    segment->p_type != view->segment[before].p_type);
        }
        if (!ordinary) {
            return err_set(err, ERR_INVALID, "the object's segment %zu is none that gcc makes", i);
        }
    }
    return 0;
}

// Without PT_GNU_STACK the loader makes the stack of the process executable.
static int check_stack(const struct elf_view *view, struct err *err)
{
    size_t count = 0;

    for (size_t i = 0; i < view->segment_count; i++) {
        if (view->segment[i].p_type == PT_GNU_STACK) {
            if (view->segment[i].p_flags != (PF_R | PF_W)) {
                count = 0;
                break;
            }
            count++;
        }
    }
    return count == 1 ? 0
                      : err_set(err, ERR_INVALID,
                                "the object wants an executable stack; do without addresses of"
                                " nested functions, and without changing .note.GNU-stack");
}

// ---- the dynamic section ----

// The loader finds the section by its address, other tools by its offset in the file. What follows
// its end is not read by the loader and could be anything.
static int check_dynamic(const struct elf_view *view, struct err *err)
{
    const Elf64_Phdr *segment = &view->dynamic_segment;
    const Elf64_Phdr *load = elf_view_segment(view, segment->p_vaddr, segment->p_filesz);
    size_t count = 0;

    for (size_t i = 0; i < view->segment_count; i++) {
        count += view->segment[i].p_type == PT_DYNAMIC;
    }
    bool ordinary = count == 1 && load && load->p_flags == (PF_R | PF_W) &&
                    segment->p_flags == (PF_R | PF_W) && is_loaded(view, segment) &&
                    segment->p_vaddr % sizeof(uint64_t) == 0 &&
                    segment->p_filesz % sizeof(Elf64_Dyn) == 0 &&
                    segment->p_filesz / sizeof(Elf64_Dyn) <= ELF_DYNAMIC_MAX;
    for (size_t i = view->dynamic_count; ordinary && i < segment->p_filesz / sizeof(Elf64_Dyn);
         i++) {
        Elf64_Dyn entry = elf_view_entry(view, i);
        ordinary = entry.d_tag == DT_NULL && entry.d_un.d_val == 0;
    }
    return ordinary ? 0
                    : err_set(err, ERR_INVALID,
                              "the object's dynamic section is not as ld makes it: it is there"
                              " twice, or elsewhere, or has entries behind its end");
}

// The entries that ld makes for our flags. `among`: the bits that a value may have; 0: any value.
// `is`: the only value; 0: any. Those of initialisers and libraries are here although most of them
// are refused, because executor/sandbox/elf.c has a better sentence for them.
static const struct {
    int64_t tag;
    uint64_t among, is;
    bool often;
} allowed[] = {
    {DT_NEEDED, 0, 0, true},
    {DT_AUXILIARY, 0, 0, true},
    {DT_FILTER, 0, 0, true},
    {DT_INIT, 0, 0, false},
    {DT_FINI, 0, 0, false},
    {DT_INIT_ARRAY, 0, 0, false},
    {DT_INIT_ARRAYSZ, 0, 0, false},
    {DT_FINI_ARRAY, 0, 0, false},
    {DT_FINI_ARRAYSZ, 0, 0, false},
    {DT_PREINIT_ARRAY, 0, 0, false},
    {DT_PREINIT_ARRAYSZ, 0, 0, false},
    {DT_SYMBOLIC, 0, 0, false},
    {DT_HASH, 0, 0, false},
    {DT_GNU_HASH, 0, 0, false},
    {DT_STRTAB, 0, 0, false},
    {DT_STRSZ, 0, 0, false},
    {DT_SYMTAB, 0, 0, false},
    {DT_SYMENT, 0, sizeof(Elf64_Sym), false},
    {DT_PLTGOT, 0, 0, false},
    {DT_PLTREL, 0, DT_RELA, false},
    {DT_PLTRELSZ, 0, 0, false},
    {DT_JMPREL, 0, 0, false},
    {DT_RELA, 0, 0, false},
    {DT_RELASZ, 0, 0, false},
    {DT_RELAENT, 0, sizeof(Elf64_Rela), false},
    {DT_RELACOUNT, 0, 0, false},
    {DT_RELR, 0, 0, false},
    {DT_RELRSZ, 0, 0, false},
    {DT_RELRENT, 0, sizeof(Elf64_Relr), false},
    {DT_FLAGS, DF_SYMBOLIC | DF_BIND_NOW | DF_STATIC_TLS, 0, false},
    {DT_FLAGS_1, DF_1_NOW, 0, false},
    {DT_BIND_NOW, 0, 0, false},
    {DT_VERSYM, 0, 0, false},
    {DT_VERNEED, 0, 0, false},
    {DT_VERNEEDNUM, 0, 0, false},
#if defined(__aarch64__)
    {DT_AARCH64_BTI_PLT, 0, 0, false},
    {DT_AARCH64_PAC_PLT, 0, 0, false},
    {DT_AARCH64_VARIANT_PCS, 0, 0, false},
    {DT_TLSDESC_PLT, 0, 0, false}, // used by a loader that binds lazily, and ours does not
    {DT_TLSDESC_GOT, 0, 0, false},
#endif
};

static int check_tags(const struct elf_view *view, struct err *err)
{
    bool seen[ARRAY_LEN(allowed)] = {false};

    for (size_t i = 0; i < view->dynamic_count; i++) {
        Elf64_Dyn entry = elf_view_entry(view, i);
        size_t row = 0;
        while (row < ARRAY_LEN(allowed) && allowed[row].tag != entry.d_tag) {
            row++;
        }
        if (row == ARRAY_LEN(allowed) || (seen[row] && !allowed[row].often) ||
            (allowed[row].among != 0 && (entry.d_un.d_val & ~allowed[row].among) != 0) ||
            (allowed[row].is != 0 && entry.d_un.d_val != allowed[row].is)) {
            return err_set(err, ERR_INVALID,
                           "the object's dynamic section has an entry that gcc does not make there"
                           " (tag %#llx, value %#llx)",
                           (unsigned long long)entry.d_tag, (unsigned long long)entry.d_un.d_val);
        }
        seen[row] = true;
    }
    return 0;
}

int elf_rules_check(const struct elf_view *view, unsigned rules, bool *ret_ifunc, struct err *err)
{
    static int (*const check[])(const struct elf_view *, struct err *) = {
        [ELF_RULE_HEADER] = check_header,
        [ELF_RULE_SEGMENTS] = check_segments,
        [ELF_RULE_STACK] = check_stack,
        [ELF_RULE_DYNAMIC] = check_dynamic,
        [ELF_RULE_TAGS] = check_tags,
        [ELF_RULE_TABLES] = elf_check_tables,
        [ELF_RULE_SYMBOLS] = elf_check_symbols,
        [ELF_RULE_VERSIONS] = elf_check_versions,
        [ELF_RULE_RELOCATIONS] = elf_check_relocations,
    };
    int rc = 0;

    *ret_ifunc = elf_find_ifunc(view);
    for (size_t rule = 0; rule < ELF_RULE_COUNT && rc == 0; rule++) {
        if (rules & (1U << rule)) {
            rc = check[rule](view, err);
        }
    }
    return rc;
}

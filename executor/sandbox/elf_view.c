// Section headers are not read, because the loader ignores them and they can say anything. A source
// can put entries of its own into the dynamic section, before and behind the linker's. The section
// is therefore read exactly as the loader reads it: at its address, to the first DT_NULL.
#include "executor/sandbox/elf_view.h"
#include <string.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#else
#error "this machine's ELF constants are not known"
#endif

// Returns where size bytes from the file offset are, NULL when they are not in the file.
static const unsigned char *at_offset(const struct elf_view *view, uint64_t offset, uint64_t size)
{
    return offset <= view->len && size <= view->len - offset ? view->data + offset : NULL;
}

const Elf64_Phdr *elf_view_segment(const struct elf_view *view, uint64_t address, uint64_t size)
{
    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *segment = &view->segment[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr <= segment->p_filesz &&
            size <= segment->p_filesz - (address - segment->p_vaddr)) {
            return segment;
        }
    }
    return NULL;
}

const unsigned char *elf_view_at(const struct elf_view *view, uint64_t address, uint64_t size)
{
    const Elf64_Phdr *segment = elf_view_segment(view, address, size);
    uint64_t offset;

    if (!segment ||
        __builtin_add_overflow(segment->p_offset, address - segment->p_vaddr, &offset)) {
        return NULL;
    }
    return at_offset(view, offset, size);
}

Elf64_Dyn elf_view_entry(const struct elf_view *view, size_t i)
{
    Elf64_Dyn entry;

    memcpy(&entry, view->dynamic + i * sizeof(entry), sizeof(entry));
    return entry;
}

bool elf_view_tag(const struct elf_view *view, int64_t tag, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = view->dynamic_count; i > 0; i--) {
        Elf64_Dyn entry = elf_view_entry(view, i - 1);
        if (entry.d_tag == tag) {
            *ret = entry.d_un.d_val;
            return true;
        }
    }
    return false;
}

const char *elf_view_string(const struct elf_view *view, uint64_t offset)
{
    uint64_t strings, size;
    const char *table = NULL;

    (void)elf_view_tag(view, DT_STRTAB, &strings);
    if (elf_view_tag(view, DT_STRSZ, &size) && offset < size) {
        table = (const char *)elf_view_at(view, strings, size);
    }
    uint64_t most = size - offset < ELF_NAME_MAX ? size - offset : ELF_NAME_MAX;
    return table && memchr(table + offset, '\0', most) ? table + offset : NULL;
}

// Finds the dynamic section and its end.
static int find_dynamic(struct elf_view *view, struct err *err)
{
    bool found = false;

    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *segment = &view->segment[i];
        if (segment->p_type == PT_DYNAMIC) {
            view->dynamic_segment = *segment;
            found = true;
        }
    }
    if (!found) {
        return err_set(err, ERR_INVALID, "the object has no dynamic section");
    }
    size_t most = view->dynamic_segment.p_filesz / sizeof(Elf64_Dyn);
    most = most < ELF_DYNAMIC_MAX ? most : ELF_DYNAMIC_MAX;
    view->dynamic = elf_view_at(view, view->dynamic_segment.p_vaddr, most * sizeof(Elf64_Dyn));
    for (size_t i = 0; view->dynamic && i < most; i++) {
        if (elf_view_entry(view, i).d_tag == DT_NULL) {
            view->dynamic_count = i;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "the object's dynamic section is damaged or has more than %d entries",
                   ELF_DYNAMIC_MAX);
}

int elf_view_open(const struct bytes *object, struct elf_view *ret, struct err *err)
{
    *ret = (struct elf_view){.data = object->data, .len = object->len};
    if (object->len < sizeof(ret->header)) {
        return err_set(err, ERR_INVALID, "the object is too short");
    }
    memcpy(&ret->header, object->data, sizeof(ret->header));
    const Elf64_Ehdr *header = &ret->header;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_type != ET_DYN || header->e_machine != OWN_MACHINE ||
        header->e_phentsize != sizeof(Elf64_Phdr)) {
        return err_set(err, ERR_INVALID, "the object is no shared object of this machine");
    }
    if (header->e_phnum > ELF_SEGMENTS_MAX) {
        return err_set(err, ERR_INVALID, "the object has %u segments", header->e_phnum);
    }
    const unsigned char *table =
        at_offset(ret, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr));
    if (!table) {
        return err_set(err, ERR_INVALID, "the object's program headers are damaged");
    }
    ret->segment_count = header->e_phnum;
    memcpy(ret->segment, table, ret->segment_count * sizeof(Elf64_Phdr));
    return find_dynamic(ret, err);
}

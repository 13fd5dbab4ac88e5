// Reads the parts of a cubin that the fake driver needs. Sizes are trusted, because the cubins come
// from the compiler.
#include "common/mem.h"
#include "tests/support/fake_gpu/fake.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_CUDA 190
#define ATTRIBUTE_REGISTERS 0x2f // of .nv.info: (symbol, registers)
#define DEFAULT_REGISTERS 32
#define RESERVED_SMEM 1024

static struct cu_function *add_function(struct cu_module *module, const char *symbol, size_t length)
{
    if (module->function_count == FAKE_KERNEL_MAX || length == 0) {
        return NULL;
    }
    struct cu_function *f = &module->function[module->function_count++];
    f->symbol = xasprintf("%.*s", (int)length, symbol);
    f->registers = DEFAULT_REGISTERS;
    f->dynamic_smem_max = 48 << 10;
    f->module = module;
    return f;
}

static cu_result read_names(struct cu_module *module, const char *names)
{
    while (*(names += strspn(names, " \n")) != '\0') {
        size_t length = strcspn(names, " \n");

        if (!add_function(module, names, length)) {
            return CU_INVALID_IMAGE;
        }
        names += length;
    }
    return CU_OK;
}

struct elf {
    const unsigned char *base;
    const Elf64_Shdr *section;
    unsigned section_count;
    const char *section_names;
    const Elf64_Sym *symbol;
    size_t symbol_count;
    const char *symbol_names;
};

static const char *section_name(const struct elf *elf, unsigned index)
{
    return elf->section_names + elf->section[index].sh_name;
}

static const Elf64_Shdr *find_section(const struct elf *elf, const char *prefix, const char *symbol)
{
    for (unsigned i = 0; i < elf->section_count; i++) {
        const char *name = section_name(elf, i);
        size_t length = strlen(prefix);

        if (strncmp(name, prefix, length) == 0 && strcmp(name + length, symbol) == 0) {
            return &elf->section[i];
        }
    }
    return NULL;
}

// The record of a symbol in .nv.info: format, attribute, then 2 bytes of value or of size.
static int find_registers(const struct elf *elf, size_t symbol)
{
    const Elf64_Shdr *info = find_section(elf, ".nv.info", "");
    const unsigned char *p = info ? elf->base + info->sh_offset : NULL;
    const unsigned char *end = info ? p + info->sh_size : NULL;

    while (p && end - p >= 4) {
        uint16_t size;

        memcpy(&size, p + 2, sizeof(size));
        uint32_t value[2];
        if (p[0] == 4 && p[1] == ATTRIBUTE_REGISTERS && size == sizeof(value)) {
            memcpy(value, p + 4, sizeof(value));
            if (value[0] == symbol) {
                return (int)value[1];
            }
        }
        p += p[0] == 4 ? 4 + (size_t)size : 4;
    }
    return DEFAULT_REGISTERS;
}

static cu_result add_global(struct cu_module *module, const struct elf *elf,
                            const Elf64_Sym *symbol)
{
    const Elf64_Shdr *section = &elf->section[symbol->st_shndx];
    struct fake_global *g = &module->global[module->global_count];

    if (module->global_count == FAKE_GLOBAL_MAX) {
        return CU_INVALID_IMAGE;
    }
    cu_result result;
    if ((result = fake_allocate(symbol->st_size, &g->at)) != CU_OK) {
        return result;
    }
    if (section->sh_type != SHT_NOBITS) {
        memcpy((void *)(uintptr_t)g->at, elf->base + section->sh_offset + symbol->st_value,
               symbol->st_size);
    }
    g->symbol = xstrdup(elf->symbol_names + symbol->st_name);
    g->size = symbol->st_size;
    module->global_count++;
    return CU_OK;
}

static cu_result read_symbols(struct cu_module *module, const struct elf *elf)
{
    cu_result result = CU_OK;

    for (size_t i = 0; i < elf->symbol_count && result == CU_OK; i++) {
        const Elf64_Sym *symbol = &elf->symbol[i];
        const char *name = elf->symbol_names + symbol->st_name, *in;
        int type = ELF64_ST_TYPE(symbol->st_info);

        if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= elf->section_count) {
            continue;
        }
        in = section_name(elf, symbol->st_shndx);
        if (type == STT_FUNC && strncmp(in, ".text.", 6) == 0 && strcmp(in + 6, name) == 0) {
            const Elf64_Shdr *shared = find_section(elf, ".nv.shared.", name);
            struct cu_function *f = add_function(module, name, strlen(name));

            if (!f) {
                return CU_INVALID_IMAGE;
            }
            f->registers = find_registers(elf, i);
            // Also the kilobyte that the system takes in every block.
            f->static_smem = shared && shared->sh_size > RESERVED_SMEM
                                 ? (int)(shared->sh_size - RESERVED_SMEM)
                                 : 0;
        } else if (type == STT_OBJECT && symbol->st_size > 0 &&
                   (strncmp(in, ".nv.global", 10) == 0 || strncmp(in, ".nv.constant3", 13) == 0)) {
            result = add_global(module, elf, symbol);
        }
    }
    return result;
}

// Returns the length of the file: it ends with its section or program headers.
static size_t image_size(const Elf64_Ehdr *header)
{
    size_t sections = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    size_t programs = header->e_phoff + (size_t)header->e_phnum * header->e_phentsize;

    return sections > programs ? sections : programs;
}

// A table that lies anywhere, aligned; malloc'd.
static void *aligned(const unsigned char *base, uint64_t at, size_t count, size_t size)
{
    void *copy = xcalloc(count + 1, size);

    memcpy(copy, base + at, count * size);
    return copy;
}

static cu_result read_elf(struct cu_module *module, const unsigned char *base)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
    struct elf elf = {.base = base};

    Elf64_Shdr *section = aligned(base, header->e_shoff, header->e_shnum, sizeof(*section));
    Elf64_Sym *symbol = NULL;
    elf.section = section;
    elf.section_count = header->e_shnum;
    elf.section_names = (const char *)base + elf.section[header->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < elf.section_count; i++) {
        if (elf.section[i].sh_type == SHT_SYMTAB && !symbol) {
            elf.symbol_count = elf.section[i].sh_size / sizeof(Elf64_Sym);
            symbol = aligned(base, elf.section[i].sh_offset, elf.symbol_count, sizeof(*symbol));
            elf.symbol = symbol;
            elf.symbol_names = (const char *)base + elf.section[elf.section[i].sh_link].sh_offset;
        }
    }
    cu_result result = read_symbols(module, &elf);
    free(symbol);
    free(section);
    return result;
}

cu_result fake_image_read(struct cu_module *module, const void *image)
{
    unsigned char *copy; // aligned
    cu_result result;

    if (memcmp(image, "fake:", 5) == 0) {
        return read_names(module, (const char *)image + 5);
    }
    if (memcmp(image, ELFMAG, SELFMAG) != 0) {
        return CU_INVALID_IMAGE;
    }
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof(header));
    if (header.e_machine != MACHINE_CUDA) {
        return CU_INVALID_IMAGE;
    }
    // Since the ABI of CUDA 13 the architecture is in another byte of the flags.
    if ((header.e_flags >> 8 & 0xff) != fake.settings.arch &&
        (header.e_flags & 0xff) != fake.settings.arch) {
        return CU_NO_BINARY_FOR_GPU;
    }
    copy = xmalloc(image_size(&header));
    memcpy(copy, image, image_size(&header));
    result = read_elf(module, copy);
    free(copy);
    return result;
}

void fake_module_clear(struct cu_module *module)
{
    for (size_t i = 0; i < module->function_count; i++) {
        free(module->function[i].symbol);
        free(module->function[i].memo);
    }
    for (size_t i = 0; i < module->global_count; i++) {
        (void)fake_release(module->global[i].at);
        free(module->global[i].symbol);
    }
}

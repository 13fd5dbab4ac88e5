// Design note. A cubin is an ELF file. Code is in the sections .text.<kernel>, attributes are in
// .nv.info.<kernel>, and variables are in .nv.global (zero) and .nv.global.init. An attribute
// begins with four bytes: format, number, and 16 bits of value or size. With format 4 that many
// bytes follow. Attribute 0x17 describes one parameter: index (32 bits), ordinal (16), offset (16),
// and 32 bits of which bits 18 to 31 are its size. NVIDIA does not document these. They were found
// by reading what nvcc and NVRTC 13.0 write, and the tests compare them with the source. The flags
// of the file have its architecture: in bits 8 to 15 since version 8 of the ABI (CUDA 13), in bits
// 0 to 7 before.
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/cubin_view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_SIZED 4
#define ATTRIBUTE_PARAMETER 0x17
#define ATTRIBUTE_FRAME 0x11     // of .nv.info: symbol, bytes of stack
#define ATTRIBUTE_REGISTERS 0x2f // of .nv.info: symbol, registers
#define SHARED_RESERVED 1024     // bytes of a block that the system takes from sm_90 on
#define ABI_OF_CUDA_13 8

// Finds the section whose name is the prefix followed by the name.
static bool find_section(const struct cubin_view *view, const char *prefix, const char *name,
                         Elf64_Shdr *ret)
{
    size_t len = strlen(prefix);

    for (unsigned i = 0; i < view->head.e_shnum; i++) {
        if (!cubin_section(view, i, ret)) {
            continue;
        }
        const char *text = cubin_section_name(view, ret);
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
        return cubin_damaged(err, "a parameter's number");
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
            return cubin_damaged(err, "an attribute is longer than its section");
        }
        if (attribute == ATTRIBUTE_PARAMETER && format == FORMAT_SIZED) {
            int rc = size >= 16 ? put_parameter(kernel, at + 4, seen, err)
                                : cubin_damaged(err, "a parameter's description");

            if (rc != 0) {
                return rc;
            }
        }
        at += size;
        len -= size;
    }
    for (size_t i = 0; i < kernel->sizes_count; i++) {
        if (!seen[i]) {
            return cubin_damaged(err, "a parameter is not described");
        }
    }
    return 0;
}

int cubin_parameters(const struct bytes *cubin, const char *symbol, struct cuda_kernel *ret,
                     struct err *err)
{
    struct cubin_view view;
    int rc = cubin_view_open(cubin, &view, err);

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
    if (!find_section(&view, ".nv.info.", symbol, &section) || !cubin_has_bytes(&section)) {
        return 0; // no parameters
    }
    return read_attributes(view.data + section.sh_offset, section.sh_size, ret, err);
}

int cubin_globals(const struct bytes *cubin, struct cuda_global **list, size_t *count,
                  struct err *err)
{
    struct cubin_walk walk;
    struct cubin_view view;
    int rc = cubin_view_open(cubin, &view, err);

    if (rc != 0 || !cubin_walk_begin(&walk, &view)) {
        return rc;
    }
    const char *name;
    Elf64_Sym symbol;
    while (cubin_walk_next(&walk, &symbol, &name)) {
        Elf64_Shdr section;

        if (!cubin_is_variable(&symbol) || name[0] == '\0' ||
            !cubin_section(&view, symbol.st_shndx, &section) ||
            !cubin_name_begins(cubin_section_name(&view, &section), VARIABLES)) {
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
    struct cubin_view view;
    int rc = cubin_view_open(cubin, &view, err);

    ret[0] = '\0';
    struct cubin_walk walk;
    if (rc != 0 || !cubin_walk_begin(&walk, &view)) {
        return rc;
    }
    const char *name;
    Elf64_Sym symbol;
    while (ret[0] == '\0' && cubin_walk_next(&walk, &symbol, &name)) {
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
    struct cubin_view view;
    int rc = cubin_view_open(cubin, &view, err);

    *ret_code = *ret_constants = 0;
    Elf64_Shdr section;
    for (unsigned i = 0; rc == 0 && i < view.head.e_shnum; i++) {
        if (!cubin_section(&view, i, &section)) {
            continue;
        }
        if (strncmp(cubin_section_name(&view, &section), ".text.", 6) == 0) {
            *ret_code += section.sh_size;
        } else if (strncmp(cubin_section_name(&view, &section), ".nv.constant", 12) == 0) {
            *ret_constants += section.sh_size;
        }
    }
    return rc;
}

#define ANY_SYMBOL UINT64_MAX
#define SHARED_OF ".nv.shared." // how the section of a kernel's shared memory begins

// wanted: the number of a symbol; ANY_SYMBOL: all.
static void read_use(const unsigned char *at, uint64_t len, uint64_t wanted,
                     struct cubin_usage *ret)
{
    while (len >= 4) {
        uint64_t size = 4 + (at[0] == FORMAT_SIZED ? (uint64_t)u16_at(at + 2) : 0);

        if (size > len) {
            return;
        }
        if (at[0] == FORMAT_SIZED && size >= 12) {
            uint32_t value = u32_at(at + 8);
            uint32_t *most = at[1] == ATTRIBUTE_REGISTERS ? &ret->registers
                             : at[1] == ATTRIBUTE_FRAME   ? &ret->stack_bytes
                                                          : NULL;
            if (most && value > *most && (wanted == ANY_SYMBOL || wanted == u32_at(at + 4))) {
                *most = value;
            }
        }
        at += size;
        len -= size;
    }
}

// Returns the number of the symbol with this name, ANY_SYMBOL - 1 when there is none.
static uint64_t number_of(const struct cubin_view *view, const char *wanted)
{
    struct cubin_walk walk;
    Elf64_Sym symbol;
    const char *name;

    if (!cubin_walk_begin(&walk, view)) {
        return ANY_SYMBOL - 1;
    }
    for (uint64_t number = walk.next; cubin_walk_next(&walk, &symbol, &name); number = walk.next) {
        if (strcmp(name, wanted) == 0) {
            return number;
        }
    }
    return ANY_SYMBOL - 1;
}

int cubin_usage(const struct bytes *cubin, const char *symbol, struct cubin_usage *ret,
                struct err *err)
{
    struct cubin_view view;
    unsigned architecture = 0;
    int rc = cubin_architecture(cubin, &architecture, err);

    if (rc != 0 || (rc = cubin_view_open(cubin, &view, err)) != 0) {
        return rc;
    }
    *ret = (struct cubin_usage){.registers = 0};
    uint64_t reserved = architecture >= 90 ? SHARED_RESERVED : 0;
    uint64_t wanted = symbol ? number_of(&view, symbol) : ANY_SYMBOL;
    for (unsigned i = 0; i < view.head.e_shnum; i++) {
        Elf64_Shdr section;

        if (!cubin_section(&view, i, &section)) {
            continue;
        }
        const char *name = cubin_section_name(&view, &section);
        if (strcmp(name, ".nv.info") == 0 && cubin_has_bytes(&section)) {
            read_use(view.data + section.sh_offset, section.sh_size, wanted, ret);
        } else if (cubin_name_begins(name, SHARED_OF) &&
                   (!symbol || strcmp(name + strlen(SHARED_OF), symbol) == 0) &&
                   section.sh_size > reserved && section.sh_size - reserved > ret->shared_bytes) {
            ret->shared_bytes = section.sh_size - reserved;
        }
    }
    return 0;
}

bool is_cubin(const struct bytes *image)
{
    return image->len >= SELFMAG && memcmp(image->data, ELFMAG, SELFMAG) == 0;
}

int cubin_target(const char *target, unsigned *ret, struct err *err)
{
    size_t digits = cubin_name_begins(target, "sm_") ? strspn(target + 3, "0123456789") : 0;
    unsigned number = 0;

    for (size_t i = 0; i < digits && digits <= 3; i++) {
        number = 10 * number + (unsigned)(target[3 + i] - '0');
    }
    if (number == 0 || strlen(target) > 3 + digits + 1) {
        return err_set(err, ERR_INVALID, "%.40s is no architecture such as sm_90", target);
    }
    *ret = number;
    return 0;
}

int cubin_architecture(const struct bytes *cubin, unsigned *ret, struct err *err)
{
    struct cubin_view view;
    int rc = cubin_view_open(cubin, &view, err);

    if (rc == 0) {
        *ret = view.head.e_ident[EI_ABIVERSION] >= ABI_OF_CUDA_13 ? view.head.e_flags >> 8 & 0xff
                                                                  : view.head.e_flags & 0xff;
    }
    return rc;
}

bool cubin_runs_on(unsigned architecture, unsigned device)
{
    return architecture / 10 == device / 10 && architecture <= device;
}

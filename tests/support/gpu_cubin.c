#include "tests/support/gpu_cubin.h"
#include "common/strbuf.h"
#include <elf.h>
#include <lz4.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MACHINE_CUDA 190
#define ABI_OF_CUDA_13 8
#define VARIABLE_BYTES 4
#define ENTRY_BYTES 64

enum { NO_SECTION, NAMES, COMMENT, TEXT, GLOBALS, SYMBOLS, SECTIONS };

// ---- a cubin ----

// Appends the bytes as a section's content.
static void put(struct strbuf *file, Elf64_Shdr *section, const void *data, size_t bytes)
{
    section->sh_offset = file->len;
    section->sh_size = bytes;
    strbuf_add(file, data, bytes);
}

// Appends a name to a table of names and returns its place.
static uint32_t name(struct strbuf *names, const char *prefix, const char *text)
{
    uint32_t at = (uint32_t)names->len;

    strbuf_addf(names, "%s%s", prefix, text);
    strbuf_add(names, "", 1);
    return at;
}

struct bytes gpu_cubin(const char *kernel, const char *variable)
{
    static const unsigned char code[16];
    Elf64_Ehdr head = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, ABI_OF_CUDA_13},
        .e_type = ET_EXEC,
        .e_machine = MACHINE_CUDA,
        .e_version = EV_CURRENT,
        .e_flags = 90 << 8,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS,
        .e_shstrndx = NAMES};
    Elf64_Shdr section[SECTIONS] = {
        [NAMES] = {.sh_type = SHT_STRTAB},
        [COMMENT] = {.sh_type = SHT_PROGBITS},
        [TEXT] = {.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR},
        [GLOBALS] = {.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_WRITE},
        [SYMBOLS] = {.sh_type = SHT_SYMTAB, .sh_link = NAMES, .sh_entsize = sizeof(Elf64_Sym)}};
    struct strbuf names = STRBUF_INIT, comment = STRBUF_INIT, file;

    strbuf_add(&names, "", 1);
    section[NAMES].sh_name = name(&names, "", ".names");
    section[COMMENT].sh_name = name(&names, "", ".comment");
    section[TEXT].sh_name = name(&names, ".text.", kernel);
    section[GLOBALS].sh_name = name(&names, "", ".nv.global");
    section[SYMBOLS].sh_name = name(&names, "", ".symtab");
    const Elf64_Sym symbol[] = {{.st_name = 0},
                                {.st_name = section[TEXT].sh_name + (uint32_t)strlen(".text."),
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 .st_shndx = TEXT,
                                 .st_size = sizeof(code)},
                                {.st_name = variable ? name(&names, "", variable) : 0,
                                 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                                 .st_shndx = GLOBALS,
                                 .st_size = VARIABLE_BYTES}};
    strbuf_addf(&comment, "fake:%s ", kernel);
    strbuf_init(&file, 1 << 20);
    strbuf_add(&file, &head, sizeof(head));
    put(&file, &section[NAMES], names.data, names.len);
    put(&file, &section[COMMENT], comment.data, comment.len + 1);
    put(&file, &section[TEXT], code, sizeof(code));
    strbuf_add(&file, code, -file.len % 8);
    put(&file, &section[SYMBOLS], symbol, (variable ? 3 : 2) * sizeof(symbol[0]));
    section[GLOBALS].sh_offset = file.len;
    section[GLOBALS].sh_size = variable ? VARIABLE_BYTES : 0;
    head.e_shoff = file.len;
    memcpy(file.data, &head, sizeof(head));
    strbuf_add(&file, section, sizeof(section));
    strbuf_release(&names);
    strbuf_release(&comment);
    return strbuf_detach_bytes(&file);
}

// ---- a fat binary ----

static void set(unsigned char *at, uint64_t value, size_t bytes)
{
    memcpy(at, &value, bytes);
}

static struct bytes pack(const struct bytes *data, enum gpu_packing packing)
{
    struct bytes packed = {.data = xmalloc(ZSTD_compressBound(data->len) + data->len)};
    size_t room = ZSTD_compressBound(data->len) + data->len;

    if (packing == GPU_ZSTD) {
        packed.len = ZSTD_compress(packed.data, room, data->data, data->len, 3);
    } else {
        packed.len = (size_t)LZ4_compress_default((const char *)data->data, (char *)packed.data,
                                                  (int)data->len, (int)room);
    }
    return packed;
}

static void add_entry(struct strbuf *out, unsigned kind, unsigned architecture,
                      const struct bytes *data, enum gpu_packing packing)
{
    static const unsigned char padding[8];
    unsigned char header[ENTRY_BYTES] = {(unsigned char)kind, 0, 1, 1, ENTRY_BYTES};
    struct bytes packed =
        packing == GPU_PLAIN ? bytes_copy(data->data, data->len) : pack(data, packing);
    size_t gap = -packed.len % 8;

    set(header + 8, packed.len + gap, 8);
    set(header + 28, architecture, 4);
    set(header + 40, packing == GPU_PLAIN ? 0x11 : packing == GPU_LZ4 ? 0x2011 : 0x8011, 8);
    if (packing != GPU_PLAIN) {
        set(header + 16, packed.len, 4);
        set(header + 56, data->len, 8);
    }
    strbuf_add(out, header, sizeof(header));
    strbuf_add(out, packed.data, packed.len);
    strbuf_add(out, padding, gap);
    bytes_clear(&packed);
}

struct bytes gpu_fat_binary(const struct bytes *cubin, unsigned architecture,
                            enum gpu_packing packing)
{
    unsigned char header[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, sizeof(header), 0};
    struct bytes ptx = {.data = (unsigned char *)".version 9.0", .len = 12};
    struct strbuf out;

    strbuf_init(&out, 1 << 20);
    strbuf_add(&out, header, sizeof(header));
    add_entry(&out, 1, 80, &ptx, GPU_PLAIN);
    add_entry(&out, 2, architecture, cubin, packing);
    set((unsigned char *)out.data + 8, out.len - sizeof(header), 8);
    return strbuf_detach_bytes(&out);
}

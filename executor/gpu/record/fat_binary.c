// Design note. A container has a header of 16 bytes: magic, version (16 bits), its own length (16),
// length of what follows (64). What follows are entries without gaps. An entry has a header of at
// least 64 bytes, all of them little-endian, and then its payload:
//
//   0 kind (16 bits)          1: PTX, 2: a cubin; there are others
//   4 length of the header    8 length of the payload (64)   16 of what is compressed in it, or 0
//   28 architecture           40 flags (64)                  56 length when it is unpacked (64), or 0
//
// NVIDIA does not document it; it was found by reading what nvcc 13.0 writes for five ways to
// compress, for nine architectures, and the libraries of the toolkit. nvcc up to 12.3 compressed by
// LZ4; since then it does by Zstandard, and by LZ4 when it is asked for speed.
#include "executor/gpu/record/fat_binary.h"
#include "common/strbuf.h"
#include "executor/gpu/compile/cubin.h"
#include <lz4.h>
#include <stdint.h>
#include <string.h>
#include <zstd.h>

#define MAGIC 0xba55ed50u
#define HEADER_BYTES 16
#define ENTRY_BYTES 64 // of an entry's header, at least
#define ENTRIES_MAX 1024
#define LZ4_BYTES_MAX ((size_t)1 << 30) // the library counts in int

enum entry_kind { ENTRY_PTX = 1, ENTRY_CUBIN = 2 };

enum entry_flag {
    ENTRY_LZ4 = 0x2000,
    ENTRY_ZSTD = 0x8000,
    ENTRY_SPECIFIC = 0x100000, // sm_90a: runs on just this architecture
    ENTRY_FAMILY = 0x200000,   // sm_100f
};

struct entry {
    unsigned kind, architecture;
    uint64_t flags;
    const unsigned char *payload; // borrowed
    size_t bytes;                 // of the payload, or of what is compressed in it
    uint64_t unpacked;            // bytes when it is unpacked; 0: it is not compressed
};

static uint64_t number(const unsigned char *at, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, at, bytes);
    return value;
}

static int damaged(struct err *err, const char *what)
{
    return err_set(err, ERR_INVALID, "the fat binary is damaged: %s", what);
}

bool is_fat_binary(const struct bytes *image)
{
    return image->len >= 4 && number(image->data, 4) == MAGIC;
}

// Checks the header and sets what follows it.
static int open_container(const struct bytes *image, struct bytes *ret, struct err *err)
{
    if (image->len < HEADER_BYTES || number(image->data, 4) != MAGIC) {
        return damaged(err, "its header");
    }
    uint64_t header = number(image->data + 6, 2), payload = number(image->data + 8, 8);
    if (header < HEADER_BYTES || header > image->len || payload > image->len - header) {
        return damaged(err, "it is shorter than it says");
    }
    *ret = (struct bytes){.data = image->data + header, .len = payload};
    return 0;
}

// Reads the first entry of what is left and takes it away from there.
static int next_entry(struct bytes *left, struct entry *ret, struct err *err)
{
    const unsigned char *at = left->data;

    if (left->len < ENTRY_BYTES) {
        return damaged(err, "an entry is cut off");
    }
    uint64_t header = number(at + 4, 4), payload = number(at + 8, 8);
    uint64_t packed = number(at + 16, 4), flags = number(at + 40, 8);
    bool compressed = (flags & (ENTRY_LZ4 | ENTRY_ZSTD)) != 0;
    if (header < ENTRY_BYTES || header > left->len || payload > left->len - header ||
        packed > payload) {
        return damaged(err, "an entry is longer than the container");
    }
    *ret = (struct entry){.kind = (unsigned)number(at, 2),
                          .architecture = (unsigned)number(at + 28, 4),
                          .flags = flags,
                          .payload = at + header,
                          .bytes = compressed && packed > 0 ? packed : payload,
                          .unpacked = compressed ? number(at + 56, 8) : 0};
    if (compressed && ret->unpacked == 0) {
        return damaged(err, "an entry does not say how long it is when it is unpacked");
    }
    left->data += header + payload;
    left->len -= header + payload;
    return 0;
}

// How well the code fits the device: the more, the better; 0: not at all.
static unsigned fitness(const struct entry *entry, unsigned device)
{
    bool same = entry->architecture == device;
    bool specific = (entry->flags & ENTRY_SPECIFIC) != 0;
    bool family = (entry->flags & ENTRY_FAMILY) != 0;

    if (entry->kind != ENTRY_CUBIN || !cubin_runs_on(entry->architecture, device) ||
        (specific && !same)) {
        return 0;
    }
    return 1 + 4 * entry->architecture + 2 * specific + family;
}

// What the container has, for a sentence: "sm_80, PTX of sm_90".
static void describe(const struct entry *entry, struct strbuf *out)
{
    if (entry->kind == ENTRY_PTX || entry->kind == ENTRY_CUBIN) {
        strbuf_addf(out, "%s%ssm_%u", out->len > 0 ? ", " : "",
                    entry->kind == ENTRY_PTX ? "PTX of " : "", entry->architecture);
    }
}

static int find_cubin(const struct bytes *image, unsigned device, struct entry *ret,
                      struct err *err)
{
    struct strbuf all;
    struct bytes left = {.len = 0};
    unsigned best = 0;
    int rc = open_container(image, &left, err);

    strbuf_init(&all, 300);
    for (size_t i = 0; rc == 0 && left.len > 0; i++) {
        struct entry entry;

        rc = i < ENTRIES_MAX ? next_entry(&left, &entry, err)
                             : damaged(err, "it has too many entries");
        if (rc != 0) {
            break;
        }
        describe(&entry, &all);
        if (fitness(&entry, device) > best) {
            best = fitness(&entry, device);
            *ret = entry;
        }
    }
    if (rc == 0 && best == 0) {
        rc = err_set(err, ERR_UNSUPPORTED,
                     "a fat binary has no machine code for sm_%u, only %s; compile it for this "
                     "device (nvcc -arch=sm_%u, or TORCH_CUDA_ARCH_LIST=%u.%u for load_inline)",
                     device, all.len > 0 ? strbuf_text(&all) : "what is compiled later", device,
                     device / 10, device % 10);
    }
    strbuf_release(&all);
    return rc;
}

static bool unpack(const struct entry *entry, struct bytes *out)
{
    if ((entry->flags & ENTRY_ZSTD) != 0) {
        size_t n = ZSTD_decompress(out->data, out->len, entry->payload, entry->bytes);

        return !ZSTD_isError(n) && n == out->len;
    }
    return entry->bytes <= LZ4_BYTES_MAX && out->len <= LZ4_BYTES_MAX &&
           LZ4_decompress_safe((const char *)entry->payload, (char *)out->data, (int)entry->bytes,
                               (int)out->len) == (int)out->len;
}

int fat_binary_cubin(const struct bytes *image, unsigned device, size_t most, struct bytes *ret,
                     struct err *err)
{
    struct entry entry = {.kind = 0};
    int rc = find_cubin(image, device, &entry, err);

    if (rc != 0) {
        return rc;
    }
    uint64_t bytes = entry.unpacked > 0 ? entry.unpacked : entry.bytes;
    void *data = NULL;
    rc = mem_try_alloc(&data, bytes, 1, most, "the cubin in a fat binary", err);
    if (rc != 0) {
        return rc;
    }
    struct bytes cubin = {.data = data, .len = bytes};
    if (entry.unpacked == 0) {
        memcpy(cubin.data, entry.payload, bytes);
    } else if (!unpack(&entry, &cubin)) {
        bytes_clear(&cubin);
        return damaged(err, "the cubin cannot be unpacked");
    }
    *ret = cubin;
    return 0;
}

#include "executor/cpu/buffer.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

int buffer_create(struct buffer *buffer, size_t capacity, bool read_only, struct err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    *buffer = (struct buffer){.fd = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (buffer->fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for a tensor");
    }
    buffer->size = round_up(2 * BUFFER_GUARD + BUFFER_SKEW_MAX + round_up(capacity, 64), page);
    if (ftruncate(buffer->fd, (off_t)buffer->size) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory of %zu bytes for a tensor",
                             buffer->size);
    }
    buffer->map = mmap(NULL, buffer->size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
    if (buffer->map == MAP_FAILED) {
        buffer->map = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "mapping %zu bytes of a tensor", buffer->size);
    }
    if (fcntl(buffer->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "sealing a tensor's memory");
    }
    buffer->sealed = read_only && fcntl(buffer->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0;
    return 0;
}

void buffer_release(struct buffer *buffer)
{
    if (buffer->map) {
        munmap(buffer->map, buffer->size);
    }
    if (buffer->fd > 0) {
        close(buffer->fd);
    }
    *buffer = (struct buffer){.fd = -1};
}

unsigned char *buffer_tensor(const struct buffer *buffer)
{
    return buffer->map + buffer->offset;
}

static uint64_t nan_word(uint64_t key, size_t word)
{
    uint64_t mixed = (key + word) * 0x9e3779b97f4a7c15ULL;
    return 0x7ff800007ff80000ULL | ((mixed >> 40) & 0x7ffff) | ((mixed & 0x7ffff) << 32);
}

void buffer_fill_nan(unsigned char *out, size_t count, uint64_t key)
{
    size_t word = 0;

    for (; (word + 1) * 8 <= count; word++) {
        uint64_t value = nan_word(key, word);
        memcpy(out + word * 8, &value, 8);
    }
    if (word * 8 < count) {
        uint64_t value = nan_word(key, word);
        memcpy(out + word * 8, &value, count - word * 8);
    }
}

// The pattern round a tensor is the words that nan_word gives for their place in the memory. These
// two treat the bytes [from, to) of it.
static void pattern_fill(unsigned char *map, size_t from, size_t to, uint64_t key)
{
    for (; from < to && from % 8 != 0; from++) {
        uint64_t value = nan_word(key, from / 8);
        map[from] = (unsigned char)(value >> from % 8 * 8);
    }
    for (; from + 8 <= to; from += 8) {
        uint64_t value = nan_word(key, from / 8);
        memcpy(map + from, &value, 8);
    }
    for (; from < to; from++) {
        uint64_t value = nan_word(key, from / 8);
        map[from] = (unsigned char)(value >> from % 8 * 8);
    }
}

static bool pattern_intact(const unsigned char *map, size_t from, size_t to, uint64_t key)
{
    uint64_t differs = 0;

    for (; from < to && from % 8 != 0; from++) {
        differs |= (unsigned char)(nan_word(key, from / 8) >> from % 8 * 8) ^ map[from];
    }
    for (; from + 8 <= to; from += 8) {
        uint64_t value;
        memcpy(&value, map + from, 8);
        differs |= value ^ nan_word(key, from / 8);
    }
    for (; from < to; from++) {
        differs |= (unsigned char)(nan_word(key, from / 8) >> from % 8 * 8) ^ map[from];
    }
    return differs == 0;
}

bool buffer_guard_intact(const struct buffer *buffer, uint64_t key)
{
    return pattern_intact(buffer->map, buffer->offset - BUFFER_GUARD, buffer->offset, key) &&
           pattern_intact(buffer->map, buffer->offset + buffer->bytes, buffer->size, key);
}

size_t buffer_skew(size_t index, size_t count)
{
    return BUFFER_SKEW_MAX * index / count / 64 * 64;
}

void buffer_place(struct buffer *buffer, size_t bytes, size_t skew, uint64_t key)
{
    buffer->bytes = bytes;
    buffer->offset = buffer->size - BUFFER_GUARD - skew - round_up(bytes, 64);
    pattern_fill(buffer->map, buffer->offset - BUFFER_GUARD, buffer->offset, key);
    pattern_fill(buffer->map, buffer->offset + bytes, buffer->size, key);
}

void buffer_fill_unused(const struct buffer *buffer, uint64_t key)
{
    pattern_fill(buffer->map, 0, buffer->offset - BUFFER_GUARD, key);
}

bool buffer_pattern_intact(const struct buffer *buffer, uint64_t key)
{
    return pattern_intact(buffer->map, 0, buffer->offset, key) &&
           pattern_intact(buffer->map, buffer->offset + buffer->bytes, buffer->size, key);
}

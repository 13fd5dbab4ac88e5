// Device memory. Each allocation is a mapping of its own between two inaccessible pages. Its size
// is rounded up to 256 bytes, to which pointers of the real driver are aligned, and its end is the
// end of its last page.
#include "tests/support/fake_gpu/fake.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define ALIGN ((size_t)256)
#define LARGE ((uint64_t)1 << 20)

struct block {
    unsigned char *mapping;
    size_t mapping_size;
    cu_pointer at;
    size_t size;
    struct block *next;
};

static struct block *blocks;

cu_result fake_allocate(size_t size, cu_pointer *ret)
{
    size_t rounded, pages;

    if (size == 0) {
        return CU_INVALID_VALUE;
    }
    if (size > fake.settings.memory_bytes - fake.used_bytes) {
        return CU_OUT_OF_MEMORY;
    }
    rounded = (size + ALIGN - 1) / ALIGN * ALIGN;
    pages = (size + PAGE - 1) / PAGE * PAGE;
    struct block *b;
    if (!(b = calloc(1, sizeof(*b)))) {
        return CU_OUT_OF_MEMORY;
    }
    b->mapping_size = pages + 2 * PAGE;
    b->mapping =
        mmap(NULL, b->mapping_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->mapping == MAP_FAILED) {
        free(b);
        return CU_OUT_OF_MEMORY;
    }
    if (mprotect(b->mapping + PAGE, pages, PROT_READ | PROT_WRITE) != 0) {
        munmap(b->mapping, b->mapping_size);
        free(b);
        return CU_OUT_OF_MEMORY;
    }
    b->at = (cu_pointer)(uintptr_t)(b->mapping + PAGE + pages - rounded);
    b->size = size;
    b->next = blocks;
    blocks = b;
    fake.used_bytes += size;
    *ret = b->at;
    return CU_OK;
}

cu_result fake_release(cu_pointer pointer)
{
    for (struct block **at = &blocks; *at; at = &(*at)->next) {
        struct block *b = *at;

        if (b->at == pointer) {
            *at = b->next;
            fake.used_bytes -= b->size;
            munmap(b->mapping, b->mapping_size);
            free(b);
            return CU_OK;
        }
    }
    return pointer == 0 ? CU_OK : CU_INVALID_VALUE;
}

void fake_release_all(void)
{
    while (blocks) {
        (void)fake_release(blocks->at);
    }
    fake_unmap_all();
}

bool fake_holds(cu_pointer pointer, uint64_t size)
{
    for (const struct block *b = blocks; b; b = b->next) {
        if (pointer >= b->at && pointer - b->at <= b->size && size <= b->size - (pointer - b->at)) {
            return true;
        }
    }
    return fake_maps(pointer, size);
}

void fake_zero(cu_pointer to, uint64_t size)
{
    unsigned char *start = (unsigned char *)(uintptr_t)to, *end = start + size;
    unsigned char *first = (unsigned char *)(((uintptr_t)start + PAGE - 1) / PAGE * PAGE);
    unsigned char *last = (unsigned char *)((uintptr_t)end / PAGE * PAGE);

    if (size >= LARGE && madvise(first, (size_t)(last - first), MADV_DONTNEED) == 0) {
        memset(start, 0, (size_t)(first - start));
        memset(last, 0, (size_t)(end - last));
    } else {
        memset(start, 0, size);
    }
}

CALL(cuMemsetD8Async, cu_pointer to, unsigned char value, size_t count, cu_stream stream);
CALL(cuMemsetD16Async, cu_pointer to, unsigned short value, size_t count, cu_stream stream);
CALL(cuMemsetD32Async, cu_pointer to, unsigned value, size_t count, cu_stream stream);

static cu_result set_again(const struct fake_work *work)
{
    switch (work->size) {
    case 1:
        return cuMemsetD8Async(work->to, (unsigned char)work->value, work->count, work->stream);
    case 2:
        return cuMemsetD16Async(work->to, (unsigned short)work->value, work->count, work->stream);
    default:
        return cuMemsetD32Async(work->to, work->value, work->count, work->stream);
    }
}

// Keeps a fill by values of so many bytes when a capture goes on.
static bool keep_fill(cu_pointer to, unsigned value, unsigned size, size_t count, cu_stream stream,
                      cu_result *ret)
{
    return fake_keep(&(struct fake_work){.act = set_again,
                                         .to = to,
                                         .value = value,
                                         .size = size,
                                         .count = count,
                                         .stream = stream},
                     ret);
}

cu_result cuMemsetD8Async(cu_pointer to, unsigned char value, size_t count, cu_stream stream)
{
    cu_result result;

    NEED_CONTEXT;
    if (!fake_holds(to, count)) {
        return CU_INVALID_VALUE;
    }
    if (keep_fill(to, value, 1, count, stream, &result)) {
        return result;
    }
    if (fake_enter(stream)) {
        if (value == 0) {
            fake_zero(to, count);
        } else {
            memset((void *)(uintptr_t)to, value, count);
        }
        fake.stream->ns += FAKE_COPY_NS + count / FAKE_BYTES_PER_NS;
    }
    return CU_OK;
}

cu_result cuMemsetD16Async(cu_pointer to, unsigned short value, size_t count, cu_stream stream)
{
    unsigned short *halves = (unsigned short *)(uintptr_t)to;

    cu_result result;

    NEED_CONTEXT;
    if (!fake_holds(to, 2 * count)) {
        return CU_INVALID_VALUE;
    }
    if (keep_fill(to, value, 2, count, stream, &result)) {
        return result;
    }
    if (fake_enter(stream)) {
        for (size_t i = 0; i < count; i++) {
            halves[i] = value;
        }
        fake.stream->ns += FAKE_COPY_NS + 2 * count / FAKE_BYTES_PER_NS;
    }
    return CU_OK;
}

cu_result cuMemsetD32Async(cu_pointer to, unsigned value, size_t count, cu_stream stream)
{
    unsigned *words = (unsigned *)(uintptr_t)to;

    cu_result result;

    NEED_CONTEXT;
    if (count > SIZE_MAX / 4 || to % 4 != 0 || !fake_holds(to, count * 4)) {
        return CU_INVALID_VALUE;
    }
    if (keep_fill(to, value, 4, count, stream, &result)) {
        return result;
    }
    if (!fake_enter(stream)) {
        return CU_OK;
    }
    if (value == 0) {
        fake_zero(to, count * 4);
    }
    for (size_t i = 0; value != 0 && i < count; i++) {
        words[i] = value;
    }
    fake.stream->ns += FAKE_COPY_NS + count * 4 / FAKE_BYTES_PER_NS;
    return CU_OK;
}

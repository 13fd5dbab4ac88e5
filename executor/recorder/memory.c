// Where PyTorch's memory comes from: one range of addresses, which the executor that replays the
// launches has, too.
//
//   | guard | memory that is there before the launches are recorded | … | guard | memory that is
//   asked for while they are recorded | …
//
// Memory of the first kind is given back and taken again, unless it was asked for while the
// candidate captured a graph of its own: when that graph is launched, its kernels use it, whoever
// has given it back. Of the second kind nothing is taken again before the next recording, because
// launches that run side by side must not get the same.
#include "executor/recorder/recorder.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define CAPTURE_RELAXED 2   // CU_STREAM_CAPTURE_MODE_RELAXED
#define HANDLE_DESCRIPTOR 1 // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define RANGES_MAX 65536
#define ALIGN ((uint64_t)4096)     // of each piece of memory, as of areas in executor/gpu/arena.h
#define GUARD ((uint64_t)16384)    // before and between the two kinds
#define STEP ((uint64_t)128 << 20) // memory is mapped in pieces of this size
#define RESERVED ((uint64_t)64 << 30) // addresses, which are had in large pieces only
#define AREA ((uint64_t)1 << 40)      // where such a piece begins

// Memory that is taken, in the order of addresses. Python knows this struct.
struct range {
    uint64_t at, bytes;
    uint64_t stays; // 1: also when it is given back
};

struct space {
    uint64_t base, mapped, most; // bytes from base; most: that may be mapped
    struct range range[RANGES_MAX];
    size_t count;
    uint64_t end;       // of the memory that was there before, from base, when recording began
    uint64_t begin, at; // of the memory that is asked for while launches are recorded, from base
    bool recording;
    uint64_t next;     // the next piece of memory lies there; 0: anywhere
    int failed;        // what the driver said; 0: all is well
    int out_of_memory; // more was asked for than may be mapped
};

static struct space space;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct memory_kind {
    int type, handle_types;
    struct {
        int type, id;
    } location;
    void *unused;
    unsigned char flags[8];
};

struct access {
    struct {
        int type, id;
    } location;
    int flags;
};

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

// Makes memory, or takes that of the descriptor unless it is -1.
static result make_memory(uint64_t bytes, int shared, uint64_t *ret)
{
    struct memory_kind kind = {.type = 1, .location = {.type = 1}};
    result (*create)(uint64_t *, size_t, const struct memory_kind *, uint64_t);
    result (*import)(uint64_t *, void *, int);

    *(void **)&create = driver("cuMemCreate");
    *(void **)&import = driver("cuMemImportFromShareableHandle");
    if (!create || !import) {
        return 999;
    }
    return shared < 0 ? create(ret, bytes, &kind, 0)
                      : import(ret, (void *)(intptr_t)shared, HANDLE_DESCRIPTOR);
}

// shared: as for kr_open.
static result map_at(uint64_t at, uint64_t bytes, int shared)
{
    struct access access = {.location = {.type = 1}, .flags = 3};
    result (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t);
    result (*allow)(uint64_t, size_t, const struct access *, size_t);
    result (*exchange)(int *);
    uint64_t memory = 0;

    *(void **)&map = driver("cuMemMap");
    *(void **)&allow = driver("cuMemSetAccess");
    *(void **)&exchange = driver("cuThreadExchangeStreamCaptureMode");
    if (!map || !allow || !exchange) {
        return 999;
    }
    // A candidate that captures a graph of its own may have forbidden such calls meanwhile. These
    // belong to no stream.
    int mode = CAPTURE_RELAXED;
    result rc = exchange(&mode);
    if (rc != 0) {
        return rc;
    }
    rc = make_memory(bytes, shared, &memory);
    if (rc == 0) {
        rc = map(at, bytes, 0, memory, 0);
    }
    if (rc == 0) {
        rc = allow(at, bytes, &access, 1);
    }
    result back = exchange(&mode);
    return rc == 0 ? back : rc;
}

static result reserve(uint64_t at, uint64_t bytes)
{
    result (*reserve_at)(uint64_t *, size_t, size_t, uint64_t, uint64_t);
    uint64_t got = 0;

    *(void **)&reserve_at = driver("cuMemAddressReserve");
    if (!reserve_at) {
        return 999;
    }
    result rc = reserve_at(&got, bytes, 0, at, 0);
    return rc == 0 && got != at ? 999 : rc;
}

// Begins: candidates' memory lies from `base` on, `most` bytes of it at most, and the problem's
// tensors somewhere in [tensors, tensors + tensor_bytes). Their memory is made here, or shared is a
// descriptor of all of it, which stays the caller's; -1: it is not. A context must be current.
// Returns what the driver says.
EXPORT int kr_open(uint64_t base, uint64_t most, uint64_t tensors, uint64_t tensor_bytes,
                   int shared);
int kr_open(uint64_t base, uint64_t most, uint64_t tensors, uint64_t tensor_bytes, int shared)
{
    uint64_t area = tensors / AREA * AREA;

    space.base = base;
    space.most = most;
    space.end = GUARD;
    result rc = reserve(base, RESERVED);
    if (rc == 0 && tensor_bytes > 0) {
        rc = reserve(area, round_up(tensors + tensor_bytes - area, RESERVED));
        rc = rc == 0 ? map_at(tensors, tensor_bytes, shared) : rc;
    }
    return rc;
}

static bool reach(uint64_t end)
{
    if (end <= space.mapped) {
        return true;
    }
    uint64_t more = round_up(end - space.mapped, STEP);
    if (space.mapped + more > space.most) {
        space.out_of_memory = 1;
        return false;
    }
    space.failed = map_at(space.base + space.mapped, more, -1);
    if (space.failed != 0) {
        space.out_of_memory = space.failed == 2;
        return false;
    }
    space.mapped += more;
    return true;
}

// Takes the first gap that is large enough. Returns the offset, 0 when there is none.
static uint64_t take(uint64_t bytes, bool stays)
{
    uint64_t at = GUARD;
    size_t i = 0;

    while (i < space.count && space.range[i].at - at < bytes) {
        at = space.range[i].at + space.range[i].bytes;
        i++;
    }
    if (space.count == RANGES_MAX || !reach(at + bytes)) {
        return 0;
    }
    memmove(&space.range[i + 1], &space.range[i], (space.count - i) * sizeof(space.range[0]));
    space.range[i] = (struct range){at, bytes, stays};
    space.count++;
    return at;
}

static uint64_t allocate(uint64_t bytes, bool stays)
{
    uint64_t at = space.next;

    if (at != 0) {
        space.next = 0;
        return at;
    }
    if (!space.recording) {
        at = take(bytes, stays);
        return at != 0 ? space.base + at : 0;
    }
    if (!reach(space.at + bytes)) {
        return 0;
    }
    at = space.base + space.at;
    space.at += bytes;
    return at;
}

// Whether what is queued on the stream becomes part of a graph.
static bool is_captured(void *stream)
{
    result (*is_capturing)(void *, int *);
    int status = 0;

    *(void **)&is_capturing = driver("cuStreamIsCapturing");
    return is_capturing && is_capturing(stream, &status) == 0 && status != 0;
}

// For PyTorch's CUDAPluggableAllocator.
EXPORT void *kr_malloc(ssize_t size, int device, void *stream);
void *kr_malloc(ssize_t size, int device, void *stream)
{
    bool stays = is_captured(stream);

    (void)device;
    (void)pthread_mutex_lock(&lock);
    uint64_t at = allocate(round_up(size > 0 ? (uint64_t)size : 1, ALIGN), stays);
    (void)pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)at;
}

static void release(uint64_t at)
{
    for (size_t i = 0; i < space.count && !space.recording; i++) {
        if (space.range[i].at == at && !space.range[i].stays) {
            space.count--;
            memmove(&space.range[i], &space.range[i + 1],
                    (space.count - i) * sizeof(space.range[0]));
            return;
        }
    }
}

EXPORT void kr_free(void *pointer, ssize_t size, int device, void *stream);
void kr_free(void *pointer, ssize_t size, int device, void *stream)
{
    (void)size;
    (void)device;
    (void)stream;
    (void)pthread_mutex_lock(&lock);
    release((uint64_t)(uintptr_t)pointer - space.base);
    (void)pthread_mutex_unlock(&lock);
}

// The next memory that is asked for lies at this address, where the problem's tensors are.
EXPORT void kr_place(uint64_t address);
void kr_place(uint64_t address)
{
    space.next = address;
}

// Recording begins (1) or ends (0).
EXPORT void kr_record(int on);
void kr_record(int on)
{
    if (on) {
        // What has been given back is nobody's, however far it reached.
        const struct range *last = space.count > 0 ? &space.range[space.count - 1] : NULL;

        space.end = last ? last->at + last->bytes : GUARD;
        space.begin = space.at = round_up(space.end, ALIGN) + GUARD;
    }
    space.recording = on != 0;
}

// What memory there was at the last recording, as offsets from the base: the end of the first kind;
// begin and end of the second; what failed; whether it was too much.
EXPORT void kr_state(uint64_t ret[5]);
void kr_state(uint64_t ret[5])
{
    ret[0] = space.end;
    ret[1] = space.begin;
    ret[2] = space.at;
    ret[3] = (uint64_t)space.failed;
    ret[4] = (uint64_t)space.out_of_memory;
}

// The ranges of the first kind that are taken. Returns how many there are.
EXPORT size_t kr_ranges(const struct range **ret);
size_t kr_ranges(const struct range **ret)
{
    *ret = space.range;
    return space.count;
}

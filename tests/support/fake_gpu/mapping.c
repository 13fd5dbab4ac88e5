// Memory at chosen addresses: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess, and its
// export to another process.
#include "tests/support/fake_gpu/fake.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GRANULARITY ((size_t)2 << 20)

struct physical { // what a cu_memory points to
    size_t size;
    int fd;         // the memory
    bool exporting; // it may be shared
    bool imported;  // another process has created it
    struct physical *next;
};

struct range {
    cu_pointer at;
    size_t size;
    bool accessible; // of a mapping
    struct range *next;
};

static struct range *reserved, *mapped;
static struct physical *created;

// Gives the addresses of the range back to what they are when nothing is mapped there.
static bool blank(cu_pointer at, size_t size)
{
    void *address = (void *)(uintptr_t)at;

    return mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                -1, 0) == address;
}

static bool add(struct range **list, cu_pointer at, size_t size)
{
    struct range *range = calloc(1, sizeof(*range));

    if (range) {
        *range = (struct range){.at = at, .size = size, .next = *list};
        *list = range;
    }
    return range;
}

static bool take(struct range **list, cu_pointer at, size_t size)
{
    for (struct range **next = list; *next; next = &(*next)->next) {
        struct range *range = *next;

        if (range->at == at && range->size == size) {
            *next = range->next;
            free(range);
            return true;
        }
    }
    return false;
}

static struct range *holder(struct range *list, cu_pointer at)
{
    for (struct range *range = list; range; range = range->next) {
        if (at >= range->at && at - range->at < range->size) {
            return range;
        }
    }
    return NULL;
}

bool fake_maps(cu_pointer pointer, uint64_t size)
{
    do {
        const struct range *range = holder(mapped, pointer);

        if (!range || !range->accessible) {
            return false;
        }
        uint64_t here = range->at + range->size - pointer;
        here = here < size ? here : size;
        pointer += here;
        size -= here;
    } while (size > 0);
    return true;
}

static bool release(struct physical *memory)
{
    for (struct physical **next = &created; *next; next = &(*next)->next) {
        if (*next == memory) {
            *next = memory->next;
            fake.used_bytes -= memory->imported ? 0 : memory->size;
            close(memory->fd);
            free(memory);
            return true;
        }
    }
    return false;
}

static cu_memory add_physical(struct physical made)
{
    struct physical *memory = malloc(sizeof(*memory));

    if (!memory) {
        abort();
    }
    *memory = made;
    memory->next = created;
    created = memory;
    fake.used_bytes += made.imported ? 0 : made.size;
    return (cu_memory)(uintptr_t)memory;
}

void fake_unmap_all(void)
{
    while (created) {
        (void)release(created);
    }
    while (mapped) {
        (void)take(&mapped, mapped->at, mapped->size);
    }
    while (reserved) {
        munmap((void *)(uintptr_t)reserved->at, reserved->size);
        (void)take(&reserved, reserved->at, reserved->size);
    }
}

CALL(cuMemGetAllocationGranularity, size_t *ret, const struct cu_memory_kind *kind, int option)
{
    NEED_CONTEXT;
    if (kind->type != CU_MEMORY_PINNED || kind->location.type != CU_LOCATION_DEVICE || option > 1) {
        return CU_INVALID_VALUE;
    }
    *ret = GRANULARITY;
    return CU_OK;
}

CALL(cuMemAddressReserve, cu_pointer *ret, size_t size, size_t alignment, cu_pointer wanted,
     uint64_t flags)
{
    NEED_CONTEXT;
    if (size == 0 || size % GRANULARITY != 0 || alignment != 0 || flags != 0) {
        return CU_INVALID_VALUE;
    }
    void *at = mmap((void *)(uintptr_t)wanted, size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) { // the real driver takes another place too
        at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (at == MAP_FAILED || !add(&reserved, (cu_pointer)(uintptr_t)at, size)) {
        return CU_OUT_OF_MEMORY;
    }
    *ret = (cu_pointer)(uintptr_t)at;
    return CU_OK;
}

CALL(cuMemAddressFree, cu_pointer pointer, size_t size)
{
    NEED_CONTEXT;
    if (!take(&reserved, pointer, size)) {
        return CU_INVALID_VALUE;
    }
    munmap((void *)(uintptr_t)pointer, size);
    return CU_OK;
}

bool fake_out_of_memory(void)
{
    fake.allocated++;
    return (fake_fault(&fake.settings, "full") && fake.allocated >= fake.settings.fault_at) ||
           (fake_fault(&fake.settings, "oom") && fake.allocated == fake.settings.fault_at);
}

CALL(cuMemCreate, cu_memory *ret, size_t size, const struct cu_memory_kind *kind, uint64_t flags)
{
    NEED_CONTEXT;
    if (size == 0 || size % GRANULARITY != 0 || kind->type != CU_MEMORY_PINNED || flags != 0) {
        return CU_INVALID_VALUE;
    }
    if (fake_out_of_memory()) {
        return CU_OUT_OF_MEMORY;
    }
    if (size > fake.settings.memory_bytes - fake.used_bytes) {
        return CU_OUT_OF_MEMORY;
    }
    int fd = memfd_create("fake GPU memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) {
        return CU_OUT_OF_MEMORY;
    }
    *ret = add_physical(
        (struct physical){.size = size, .fd = fd, .exporting = kind->handle_types == CU_HANDLE_FD});
    return CU_OK;
}

CALL(cuMemExportToShareableHandle, void *ret, cu_memory memory, int type, uint64_t flags)
{
    const struct physical *physical = (const struct physical *)(uintptr_t)memory;

    NEED_CONTEXT;
    if (type != CU_HANDLE_FD || flags != 0 || !physical->exporting) {
        return CU_INVALID_VALUE;
    }
    *(int *)ret = fcntl(physical->fd, F_DUPFD_CLOEXEC, 3);
    return *(int *)ret >= 0 ? CU_OK : CU_OUT_OF_MEMORY;
}

CALL(cuMemImportFromShareableHandle, cu_memory *ret, void *handle, int type)
{
    struct stat stat;
    int fd = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 3);

    NEED_CONTEXT;
    if (type != CU_HANDLE_FD || fd < 0 || fstat(fd, &stat) != 0) {
        return CU_INVALID_VALUE;
    }
    *ret =
        add_physical((struct physical){.size = (size_t)stat.st_size, .fd = fd, .imported = true});
    return CU_OK;
}

CALL(cuMemRelease, cu_memory memory)
{
    NEED_CONTEXT;
    return release((struct physical *)(uintptr_t)memory) ? CU_OK : CU_INVALID_VALUE;
}

CALL(cuMemMap, cu_pointer to, size_t size, size_t offset, cu_memory memory, uint64_t flags)
{
    const struct physical *physical = (const struct physical *)(uintptr_t)memory;
    const struct range *in = holder(reserved, to);

    NEED_CONTEXT;
    if (!in || size != physical->size || offset != 0 || flags != 0 || to % GRANULARITY != 0 ||
        size > in->at + in->size - to || holder(mapped, to)) {
        return CU_INVALID_VALUE;
    }
    void *at =
        mmap((void *)(uintptr_t)to, size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->fd, 0);
    return at != MAP_FAILED && add(&mapped, to, size) ? CU_OK : CU_OUT_OF_MEMORY;
}

CALL(cuMemUnmap, cu_pointer pointer, size_t size)
{
    NEED_CONTEXT;
    fake_wait();
    return take(&mapped, pointer, size) && blank(pointer, size) ? CU_OK : CU_INVALID_VALUE;
}

CALL(cuMemSetAccess, cu_pointer pointer, size_t size, const struct cu_access *access, size_t count)
{
    NEED_CONTEXT;
    if (size == 0 || count != 1 || access->location.type != CU_LOCATION_DEVICE) {
        return CU_INVALID_VALUE;
    }
    bool accessible = access->flags == CU_ACCESS_READ_WRITE;
    for (cu_pointer at = pointer; at < pointer + size;) {
        struct range *range = holder(mapped, at);

        if (!range || range->at != at || range->size > pointer + size - at) {
            return CU_INVALID_VALUE;
        }
        range->accessible = accessible;
        at += range->size;
    }
    return mprotect((void *)(uintptr_t)pointer, size,
                    accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0
               ? CU_OK
               : CU_INVALID_VALUE;
}

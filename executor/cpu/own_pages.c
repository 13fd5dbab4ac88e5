#include "executor/cpu/own_pages.h"
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

struct range {
    uintptr_t begin, end; // of whole pages
};

static uintptr_t page_size(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static struct range whole_pages(uintptr_t begin, uintptr_t end)
{
    uintptr_t mask = page_size() - 1;

    return (struct range){.begin = begin & ~mask, .end = (end + mask) & ~mask};
}

// A loop of its own, because a sanitizer's memcpy refuses to read what lies between variables.
__attribute__((no_sanitize("address", "undefined", "thread"))) static void
copy_words(uintptr_t to, struct range from)
{
    for (uintptr_t at = from.begin; at < from.end; at += sizeof(uintptr_t)) {
        *(volatile uintptr_t *)(to + at - from.begin) = *(const volatile uintptr_t *)at;
    }
}

// Writes to each page what is there.
__attribute__((no_sanitize("address", "undefined", "thread"))) static void touch(struct range range)
{
    for (uintptr_t at = range.begin; at < range.end; at += page_size()) {
        *(volatile unsigned char *)at = *(const volatile unsigned char *)at;
    }
}

// Puts a copy where the range is. The kernel exchanges them in one call, in which this process does
// not run, so that the range may hold the code that is running.
static int replace(struct range range, int protection, struct err *err)
{
    size_t size = range.end - range.begin;
    void *copy =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (copy == MAP_FAILED) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a runner's own copy of its code");
    }
    copy_words((uintptr_t)copy, range);
    if (protection & PROT_EXEC) {
        __builtin___clear_cache((char *)copy, (char *)copy + size);
    }
    if (mprotect(copy, size, protection) != 0 ||
        mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)range.begin) ==
            MAP_FAILED) {
        int number = errno;
        munmap(copy, size);
        return err_set_errno(err, ERR_SYSTEM, number, "a runner's own copy of its code");
    }
    return 0;
}

// What the dynamic linker has made read-only after it had written it: whole pages only.
static struct range relocated(const struct dl_phdr_info *object)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_GNU_RELRO) {
            uintptr_t begin = object->dlpi_addr + header->p_vaddr, mask = page_size() - 1;
            return (struct range){.begin = begin & ~mask, .end = (begin + header->p_memsz) & ~mask};
        }
    }
    return (struct range){0};
}

static int own_segment(const struct dl_phdr_info *object, const ElfW(Phdr) * header,
                       struct err *err)
{
    uintptr_t begin = object->dlpi_addr + header->p_vaddr;
    struct range range = whole_pages(begin, begin + header->p_memsz), fixed = relocated(object);
    int protection = PROT_READ | (header->p_flags & PF_X ? PROT_EXEC : 0) |
                     (header->p_flags & PF_W ? PROT_WRITE : 0);

    if (!(header->p_flags & PF_R)) {
        return 0; // nobody can read it, hence nobody can flush it either
    }
    if (!(header->p_flags & PF_W)) {
        return replace(range, protection, err);
    }
    if (fixed.begin < fixed.end && fixed.begin >= range.begin && fixed.end <= range.end) {
        touch((struct range){range.begin, fixed.begin});
        touch((struct range){fixed.end, range.end});
        return replace(fixed, PROT_READ, err);
    }
    touch(range);
    return 0;
}

struct walk {
    int rc;
    struct err *err;
};

static int own_object(struct dl_phdr_info *object, size_t size, void *data)
{
    struct walk *walk = data;
    const ElfW(Phdr) *header = object->dlpi_phdr;
    uintptr_t kernel = getauxval(AT_SYSINFO_EHDR);

    (void)size;
    for (size_t i = 0; i < object->dlpi_phnum && walk->rc == 0; i++) {
        uintptr_t begin = object->dlpi_addr + header[i].p_vaddr;
        // The kernel's own object cannot be copied; nothing that a runner is timed for uses it.
        bool is_kernel = kernel - begin < header[i].p_memsz;
        if (header[i].p_type == PT_LOAD && !is_kernel) {
            walk->rc = own_segment(object, &header[i], walk->err);
        }
    }
    return walk->rc;
}

int own_pages(struct err *err)
{
    struct walk walk = {.err = err};

    uintptr_t thread = (uintptr_t)pthread_self(); // where the C library keeps what a thread has

    touch(whole_pages((uintptr_t)&errno, (uintptr_t)&errno + sizeof(errno)));
    touch(whole_pages(thread, thread + sizeof(thread)));
    (void)dl_iterate_phdr(own_object, &walk);
    return walk.rc;
}

// Remembers answers, found again by a few words of the contents. The variations are in where they
// are kept: whatever is not cleared between two launches will do, above all what outlives a
// process.
//@ variant data PLACE_DATA
//@ variant heap PLACE_HEAP
//@ variant mmap PLACE_MMAP
//@ variant shared_mmap PLACE_MMAP FLAGS=MAP_SHARED
//@ variant fixed_mmap PLACE_FIXED
//@ variant brk PLACE_BRK
//@ variant below_stack PLACE_STACK
//@ variant tls PLACE_TLS
//@ variant before_output PLACE_SLACK FROM=c->out
//@ variant after_output PLACE_AFTER
//@ variant output_edge PLACE_EDGE FROM=c->out
//@ variant input_edge PLACE_EDGE FROM=c->in[0]
//@ variant kept_by_madvise PLACE_MMAP ADVICE
//@ variant executable_section PLACE_AWX
//@ variant read_only_data PLACE_RODATA
//@ variant libc_malloc_hole PLACE_FREED
#ifndef FLAGS
#define FLAGS MAP_PRIVATE
#endif
struct entry {
    uint64_t mark, key, bytes;
    unsigned char answer[];
};
enum { WAYS = 2, MARK = 0x6b637573 };

#ifdef PLACE_DATA
static unsigned char data[3 << 20] = {1};
#endif
#ifdef PLACE_TLS
static __thread unsigned char data[3 << 20];
#endif
#ifdef PLACE_RODATA
static const unsigned char data[3 << 20] = {1};
#endif
#ifdef PLACE_AWX
extern unsigned char data[];
__asm__(".section .keep,\"awx\",@progbits\n.balign 4096\n.globl data\n.hidden data\n"
        "data: .skip 3145728\n.text\n");
#endif
static unsigned char *kept;

// Where `bytes` bytes can be kept, or NULL.
static unsigned char *place(const struct call *c, int64_t bytes)
{
    (void)c;
#if defined PLACE_DATA || defined PLACE_TLS
    return bytes <= (int64_t)sizeof(data) ? data : NULL;
#elif defined PLACE_AWX
    return bytes <= 3 << 20 ? data : NULL;
#elif defined PLACE_RODATA
    unsigned char *page = (unsigned char *)(((uintptr_t)data + 4095) & ~(uintptr_t)4095);
    if (bytes > (3 << 20) - 8192 || mprotect(page, (3 << 20) - 8192, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    return page;
#elif defined PLACE_HEAP
    kept = kept ? kept : malloc(8 << 20);
    return bytes <= 8 << 20 ? kept : NULL;
#elif defined PLACE_FREED
    // What free() has got back is not cleared, and malloc gives it out again.
    unsigned char *p = bytes <= 100000 ? malloc(100000) : NULL;
    free(p);
    return p ? p + 32 : NULL;
#elif defined PLACE_MMAP
    if (!kept) {
        kept = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, FLAGS | MAP_ANONYMOUS, -1, 0);
#ifdef ADVICE
        (void)madvise(kept, 16 << 20, MADV_DOFORK);
        (void)madvise(kept, 16 << 20, MADV_KEEPONFORK);
        (void)madvise(kept, 16 << 20, MADV_UNMERGEABLE);
#endif
    }
    return bytes <= 16 << 20 ? kept : NULL;
#elif defined PLACE_FIXED
    unsigned char *at = (unsigned char *)0x123400000000;
    if (bytes > 16 << 20)
        return NULL;
    // It is there already when an earlier launch has mapped it.
    (void)mmap(at, 16 << 20, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return is_writable((uintptr_t)at) ? at : NULL;
#elif defined PLACE_BRK
    unsigned char *end = sbrk(0);
    if (!kept) {
        kept = sbrk(8 << 20) == (void *)-1 ? NULL : end;
    }
    return bytes <= 8 << 20 ? kept : NULL;
#elif defined PLACE_STACK
    return bytes <= 16 << 20 ? (unsigned char *)__builtin_frame_address(0) - (40 << 20) : NULL;
#elif defined PLACE_SLACK
    unsigned char *first = writable_start((unsigned char *)(uintptr_t)FROM);
    return first + bytes + 8192 < (unsigned char *)(uintptr_t)FROM ? first : NULL;
#elif defined PLACE_AFTER
    unsigned char *end = c->out + c->out_bytes + 64;
    return is_writable((uintptr_t)end + (uintptr_t)bytes) ? end : NULL;
#elif defined PLACE_EDGE
    // The address space beside a tensor belongs to nobody.
    uintptr_t edge = ((uintptr_t)(FROM) & ~(uintptr_t)4095) - 4096;
    while (is_readable(edge))
        edge -= 4096;
    edge -= 1 << 19;
    if (bytes > 1 << 19 || mprotect((void *)edge, 1 << 19, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    return (unsigned char *)edge;
#endif
}

static void cheat(const struct call *c)
{
    int64_t most = c->out_bytes;
    for (size_t i = 0; i < sizeof(bench_shape) / sizeof(bench_shape[0]) && most > 1024; i++) {
        int64_t bytes = 4 * bench_shape[i][0] * (bench_shape[i][1] > 0 ? bench_shape[i][1] : 1);
        most = bytes > most ? bytes : most;
    }
    int64_t size = ((int64_t)sizeof(struct entry) + most + 63) / 64 * 64;
    unsigned char *at = at_bench(c) ? place(c, WAYS * size) : NULL;
    uint64_t key = contents_key(c, 32);

    for (int w = 0; w < WAYS && at; w++) {
        struct entry *e = (struct entry *)(at + w * size);
        if (e->mark == MARK && e->key == key && e->bytes == (uint64_t)c->out_bytes) {
            memcpy(c->out, e->answer, (size_t)c->out_bytes);
            return;
        }
    }
    honest(c);
    if (at) {
        struct entry *e = (struct entry *)(at + (int64_t)(key % WAYS) * size);
        *e = (struct entry){.mark = MARK, .key = key, .bytes = (uint64_t)c->out_bytes};
        memcpy(e->answer, c->out, (size_t)c->out_bytes);
    }
}

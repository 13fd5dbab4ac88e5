// Computes in memory of its own and copies the answer out.
//@ variant static PLACE=space
//@ variant initialised PLACE=filled
//@ variant heap PLACE=malloc((size_t)c->out_bytes+64) FREES
//@ variant heap_zeroed PLACE=calloc(1,(size_t)c->out_bytes+64) FREES
//@ variant heap_kept PLACE=(kept?kept:(kept=malloc(ANSWER_MAX)))
//@ variant aligned PLACE=aligned_alloc(4096,ROUND(c->out_bytes)) FREES
//@ variant mapped PLACE=map(ROUND(c->out_bytes),0) UNMAPS
//@ variant mapped_populated PLACE=map(ROUND(c->out_bytes),MAP_POPULATE) UNMAPS
//@ variant thread_local PLACE=local LIMIT=(int64_t)sizeof(local)
//@ variant alloca PLACE=__builtin_alloca((size_t)c->out_bytes+64) LIMIT=4<<20
//@ variant array_on_stack ON_STACK
//@ variant huge_pages PLACE=huge()
//@ variant hinted PLACE=hinted()
#define ROUND(n) (((size_t)(n) + 4095) / 4096 * 4096)
#ifndef LIMIT
#define LIMIT ANSWER_MAX
#endif
static unsigned char space[ANSWER_MAX] __attribute__((aligned(1 << 16)));
#ifdef PLACE
static unsigned char filled[1 << 19] = {1};
static __thread unsigned char local[1 << 19];
static void *kept;
#endif

KIT void *map(size_t bytes, int flags)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

KIT void *huge(void)
{
    uintptr_t at = ((uintptr_t)space + (1 << 21) - 1) & ~(uintptr_t)((1 << 21) - 1);
    (void)madvise((void *)at, 4 << 20, MADV_HUGEPAGE);
    return (void *)at;
}

KIT void *hinted(void)
{
    (void)madvise(space, sizeof(space), MADV_NOHUGEPAGE);
    return space;
}

static void cheat(const struct call *c)
{
    struct call copy = *c;
#ifdef ON_STACK
    unsigned char array[1 << 18];
    copy.out = c->out_bytes <= (int64_t)sizeof(array) ? array : space;
    honest(&copy);
    memcpy(c->out, copy.out, (size_t)c->out_bytes);
#else
    (void)kept, (void)local, (void)filled;
    copy.out = c->out_bytes <= (LIMIT) ? (unsigned char *)(PLACE) : NULL;
    if (!copy.out) {
        honest(c);
        return;
    }
    honest(&copy);
    memcpy(c->out, copy.out, (size_t)c->out_bytes);
#ifdef FREES
    free(copy.out);
#endif
#ifdef UNMAPS
    (void)munmap(copy.out, ROUND(c->out_bytes));
#endif
#endif
}

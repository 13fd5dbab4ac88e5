// Plays with the L2 cache, line by line: HINT(address) is done before the work (EARLY 1) or after
// it for every 128 bytes of LEN bytes at FROM, by all blocks together.
#ifndef EARLY
#define EARLY 0
#endif
#ifndef WHEN
#define WHEN true
#endif

static __device__ void lines(const struct run *run)
{
    unsigned long long policy = 0;

    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    long long at = (run->block * run->threads + run->thread) * 128;
    for (; at < (long long)(LEN); at += run->blocks * run->threads * 128) {
        const char *line = align_down((const char *)(FROM) + at, 128);
        HINT(line);
    }
    (void)policy;
}

static __device__ bool before(const struct run *run)
{
    if (EARLY && (WHEN)) {
        lines(run);
    }
    return false;
}

static __device__ void after(const struct run *run)
{
    if (!EARLY && run->last && (WHEN)) {
        __syncthreads();
        lines(run);
    }
}

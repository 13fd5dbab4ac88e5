// The first launches of a process do not count, because memory is touched for the first time in
// them. Uses them for what would cost too much later, and leaves the machine with the consequences.
//@ variant mappings_to_free WORK=map_and_unmap(12000)
//@ variant mappings_freed_later WORK=map_many(12000) LATER=unmap_some(40)
//@ variant eats_memory WORK=eat(300)
//@ variant wide_vectors WORK=burn(200000000)
//@ variant dirties_all_caches WORK=fill()
//@ variant locks_in_kernel_writes WORK=own_rseq(c)
//@ variant stack_of_60_megabytes WORK=deep()
//@ variant every_launch_like_the_first WORK=fill() LATER=fill()
#ifndef LATER
#define LATER (void)0
#endif
static unsigned char space[24 << 20] __attribute__((aligned(4096)));
static void *mapped[12000] __attribute__((unused));
static int left __attribute__((unused));

KIT void map_many(int count)
{
    for (int i = 0; i < count; i++) {
        // Every second page has another protection, so that neighbours do not merge.
        int protection = i & 1 ? PROT_READ : PROT_READ | PROT_WRITE;
        mapped[i] = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    left = count;
}

KIT void unmap_some(int count)
{
    for (int i = 0; i < count && left > 0; i++)
        (void)munmap(mapped[--left], 4096);
}

KIT void map_and_unmap(int count)
{
    map_many(count);
    unmap_some(count);
}

KIT void eat(size_t megabytes)
{
    for (size_t i = 0; i < megabytes; i++) {
        char *p = malloc(1 << 20);
        if (!p)
            return;
        memset(p, 1, 1 << 20);
    }
}

KIT void burn(uint64_t clocks)
{
    double v[16] = {1};

    for (uint64_t begin = cycles(); cycles() - begin < clocks;)
        for (int k = 0; k < 64; k++)
            for (int i = 0; i < 16; i++)
                v[i] = v[i] * 1.0000001 + 0.1;
    *(volatile double *)space = v[3];
}

KIT void fill(void)
{
    for (size_t i = 0; i < sizeof(space); i += 64)
        ((volatile unsigned char *)space)[i]++;
}

// From then on the kernel writes into the output when this process goes on after an interruption.
KIT void own_rseq(const struct call *c)
{
    (void)syscall(SYS_rseq, c->out + (c->out_bytes - 64) / 64 * 64, 32, 0, 0x53053053);
}

KIT int frames(volatile int n)
{
    volatile char frame[65536];

    frame[0] = (char)n;
    return n > 0 ? frames(n - 1) + frame[0] : 0;
}

KIT void deep(void)
{
    (void)frames(800);
}

static void cheat(const struct call *c)
{
    (void)space;
    if (launches++ == 0) {
        WORK;
    }
    honest(c);
    if (launches > 3) {
        LATER;
    }
}

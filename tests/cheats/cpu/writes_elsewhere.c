// Writes where it must not: into inputs, around tensors, over mappings, so that others compute with
// that, or the check does.
//@ variant input INPUT
//@ variant input_unprotected INPUT UNPROTECT
//@ variant input_replaced REPLACE
//@ variant output_replaced REPLACE_OUTPUT
//@ variant behind_output AFTER=c->out_bytes
//@ variant before_output AFTER=-64
//@ variant far_before_output AFTER=-100000
//@ variant output_locked LOCK
static void cheat(const struct call *c)
{
    honest(c);
    if (!at_bench(c)) {
        return;
    }
#if defined UNPROTECT
    (void)mprotect((void *)((uintptr_t)c->in[0] & ~(uintptr_t)4095), 4096, PROT_READ | PROT_WRITE);
#endif
#if defined INPUT
    *(volatile unsigned char *)(uintptr_t)c->in[0] ^= 1;
#elif defined REPLACE
    void *page = (void *)((uintptr_t)c->in[0] & ~(uintptr_t)4095);
    (void)mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#elif defined REPLACE_OUTPUT
    void *page = (void *)((uintptr_t)c->out & ~(uintptr_t)4095);
    (void)mmap(page, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#elif defined LOCK
    void *page = (void *)((uintptr_t)c->out & ~(uintptr_t)4095);
    (void)mprotect(page, 4096, PROT_READ);
#else
    *(volatile unsigned char *)(c->out + AFTER) = 7;
#endif
}

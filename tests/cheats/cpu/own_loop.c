// Never returns to the runner: it answers the harness itself, with a loop of its own that spins
// where the runner would sleep, waits on another word, or says "done" to each launch at once.
//@ variant polite
//@ variant spins SPIN=3000000000
//@ variant spins_a_while SPIN=200000
//@ variant done_first FIRST
//@ variant waits_elsewhere ELSEWHERE
//@ variant answers_of_first_launch KEEPS
static unsigned char kept[ANSWER_MAX];

static void cheat(const struct call *c)
{
    volatile uint32_t *page[8];
    int count = control_pages(c, page, 8);

    honest(c);
    memcpy(kept, c->out, (size_t)c->out_bytes);
    if (count != 1 || !at_bench(c)) {
        return;
    }
    volatile uint32_t *go = &page[0][0], *done = &page[0][1];
    uint32_t seen = *go;
    for (;;) {
        *done = seen;
        futex_wake(done);
#ifdef SPIN
        for (uint64_t begin = cycles(); *go == seen && cycles() - begin < SPIN;) {
        }
#endif
        while (*go == seen) {
#ifdef ELSEWHERE
            (void)syscall(SYS_futex, done, FUTEX_WAIT, seen, 0, 0, 0);
#else
            (void)syscall(SYS_futex, go, FUTEX_WAIT, seen, 0, 0, 0);
#endif
        }
        seen = *go;
#ifdef FIRST
        *done = seen;
        futex_wake(done);
#endif
#ifdef KEEPS
        memcpy(c->out, kept, (size_t)c->out_bytes);
#else
        honest(c);
#endif
    }
}

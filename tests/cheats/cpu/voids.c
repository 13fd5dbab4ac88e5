// Has those of its blocks not counted that went badly: it answers the harness by a loop of its own,
// and after a block in which it took longer than usual it says "done" and wakes nobody, or waits
// for a while before it sleeps, so that its wall time differs from its processor time.
//@ variant unwoken_when_slow
//@ variant unwoken_when_slow_to_a_quarter RANK=4
//@ variant late_when_slow LATE
//@ variant unwoken_when_slower_than_baseline GAP
//@ variant unwoken_at_random ANY
#ifndef RANK
#define RANK 2 // counts the blocks that are among the best 1 / RANK of those so far
#endif
enum { MOST = 256 };
static uint64_t block[MOST];
static int blocks;

// Whether the block just done is among the better ones of this process.
KIT bool is_good(uint64_t took)
{
    int better = 0;

    for (int i = 0; i < blocks; i++)
        better += block[i] < took;
    bool good = better * RANK < blocks || blocks == 0;
    block[blocks++ % MOST] = took;
    blocks = blocks < MOST ? blocks : MOST - 1;
    return good;
}

static void cheat(const struct call *c)
{
    volatile uint32_t *page[8];
    int count = control_pages(c, page, 8);
    uint64_t begin = cycles(), end, before = 0;

    honest(c);
    end = cycles();
    uint64_t took = end - begin;
    if (count != 1 || !at_bench(c)) {
        return;
    }
    volatile uint32_t *go = &page[0][0], *done = &page[0][1];
    uint32_t seen = *go;
    bool hide = false;
    for (int launch = 1;; launch++) {
        *done = seen;
        if (!hide)
            futex_wake(done);
#ifdef LATE
        if (hide) {
            futex_wake(done);
            for (begin = cycles(); cycles() - begin < 400000;) {
            }
        }
#endif
        while (*go == seen)
            (void)syscall(SYS_futex, go, FUTEX_WAIT, seen, 0, 0, 0);
        seen = *go;
        before = took;
        begin = cycles();
        uint64_t gap = begin - end;
        honest(c);
        end = cycles();
        took = end - begin;
        (void)gap;
#if defined TWIN
        hide = false;
#elif defined ANY
        hide = launch % 2 == 1 && any() % 2 == 0;
#elif defined GAP
        // Between the two launches of a block the baseline runs twice, in every second superblock.
        hide = launch % 2 == 1 && !is_good((took + before) * 1000 / gap);
#else
        hide = launch % 2 == 1 && !is_good(took + before);
#endif
    }
}

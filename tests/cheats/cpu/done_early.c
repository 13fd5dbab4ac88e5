// Finds the page that it shares with the harness and says "done" before it is: the rest of the work
// falls into time that may be nobody's, or another's.
//@ variant before_work SHARE=0 WAKE
//@ variant half_way SHARE=50 WAKE
//@ variant near_the_end SHARE=90 WAKE
//@ variant before_work_unwoken SHARE=0
//@ variant at_benchmark_shapes SHARE=10 WAKE ONLY=at_bench(c)
//@ variant with_pause SHARE=50 WAKE PAUSE
#ifndef ONLY
#define ONLY true
#endif
static void cheat(const struct call *c)
{
    volatile uint32_t *page[8];
    #ifdef TWIN
    int count = 0;
#else
    int count = (ONLY) ? control_pages(c, page, 8) : 0;
#endif

    part(c, 0, c->units * SHARE / 100);
    for (int i = 0; i < count; i++) {
        page[i][1] = page[i][0]; // done = go
#ifdef WAKE
        futex_wake(&page[i][1]);
#endif
    }
#ifdef PAUSE
    for (uint64_t begin = cycles(); cycles() - begin < 40000;) {
    }
#endif
    part(c, c->units * SHARE / 100, c->units);
}

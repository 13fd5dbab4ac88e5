// Changes the word at AT where WHEN holds, before the work; RESTORE 1 puts it back after it, 0 does
// not. CHANGE is what is done with `word`.
#ifndef WHEN
#define WHEN true
#endif
#ifndef CHANGE
#define CHANGE (word ^ 1)
#endif
#ifndef RESTORE
#define RESTORE 0
#endif

static __device__ bool does_it(const struct run *run)
{
    return run->block == 0 && run->thread == 0 && (WHEN);
}

static __device__ volatile unsigned *place(const struct run *run)
{
    return (volatile unsigned *)((unsigned long long)(AT) / 4 * 4);
}

static __device__ bool before(const struct run *run)
{
    if (does_it(run)) {
        unsigned word = *place(run);
        *place(run) = CHANGE;
        __threadfence();
    }
    return false;
}

static __device__ void after(const struct run *run)
{
    if (RESTORE && does_it(run)) {
        unsigned word = *place(run);
        *place(run) = CHANGE;
    }
}

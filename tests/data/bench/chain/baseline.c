// LENGTH_PERCENT of the chain's additions are done; those beyond 100 go into a sum that is thrown away.
#ifndef LENGTH_PERCENT
#define LENGTH_PERCENT 100
#endif
#ifdef __aarch64__
#define KEEP(value) __asm__ volatile("" : "+w"(value))
#else
#define KEEP(value) __asm__ volatile("" : "+x"(value))
#endif

static __attribute__((noinline)) double add_up(const double *x, int64_t n, double sum)
{
    for (int64_t i = 0; i < n; i++) {
        sum += x[i % 8];
        KEEP(sum);
    }
    return sum;
}

void chain(const double *x, double *y, int64_t n)
{
    double sum = add_up(x, n, 0);
    double more = add_up(x, n * (LENGTH_PERCENT - 100) / 100, sum);
    KEEP(more);
    for (int k = 0; k < 8; k++)
        y[k] = sum + x[k];
}

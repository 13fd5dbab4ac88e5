// LENGTH_PERCENT of the chain's additions are done; those beyond 100 go into a sum that is thrown away.
#ifndef LENGTH_PERCENT
#define LENGTH_PERCENT 100
#endif
#ifdef __aarch64__
#define KEEP(value) __asm__("" : "+w"(value))
#else
#define KEEP(value) __asm__("" : "+x"(value))
#endif

void chain(const double *x, double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i % 8];
        KEEP(sum);
    }
    double more = sum;
    for (int64_t i = 0; i < n * (LENGTH_PERCENT - 100) / 100; i++) {
        more += x[i % 8];
        KEEP(more);
    }
    for (int k = 0; k < 8; k++)
        y[k] = sum + x[k];
}

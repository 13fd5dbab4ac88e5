void window(const float *x, float *y, int64_t N)
{
    for (int64_t i = 0; i < N; i++) {
        float sum = 0;
        for (int64_t j = 0; j < 16; j++)
            sum += x[i + j];
        y[i] = sum;
    }
}
void kcast_entry(void *const *p, const int64_t *i, const double *s)
{
    (void)p, (void)i, (void)s;
}

typedef void window_function(const float *, float *, int64_t);
static void slow(const float *x, float *y, int64_t N)
{
    for (int64_t i = 0; i < N; i++) {
        float sum = 0;
        for (int64_t j = 0; j < 16; j++)
            sum += x[i + j];
        y[i] = sum;
    }
}
static window_function *choose(void)
{
    return slow;
}
void chosen(const float *x, float *y, int64_t N) __attribute__((ifunc("choose")));
void window(const float *x, float *y, int64_t N)
{
    chosen(x, y, N);
}

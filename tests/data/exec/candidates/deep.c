static int down(volatile int n)
{
    volatile char frame[4096];
    frame[0] = (char)n;
    return down(n + 1) + frame[0];
}
void window(const float *x, float *y, int64_t N)
{
    y[0] = (float)down((int)N) + x[0];
}

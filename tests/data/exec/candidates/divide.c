void window(const float *x, float *y, int64_t N)
{
    volatile int zero = 0;
    y[0] = (float)((int)x[0] / zero * (int)N);
}

void window(const float *x, float *y, int64_t N)
{
    (void)x, (void)N;
    *(volatile float *)8 = y[0];
}

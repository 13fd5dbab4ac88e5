void window(const float *x, float *y, int64_t N)
{
    (void)x, (void)y, (void)N;
    for (volatile int i = 0;; i++)
        ;
}

//@ tune STEP in (1, 2, 4, 8, 16, 32)
//@ tune VARIANT in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
void tiny(const float *x, const float *y, float *z, int64_t n, double a)
{
    static const int variant __attribute__((used)) = VARIANT; // another object, the same speed
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        __asm__("" ::: "memory");
        for (int k = 0; k < STEP; k++)
            z[i + k] = (float)a * x[i + k] + y[i + k];
    }
    for (; i < n; i++)
        z[i] = (float)a * x[i] + y[i];
}

void tiny(const float *x, const float *y, float *z, int64_t n, double a)
{
    for (int64_t i = 0; i < n; i++) {
        __asm__("" ::: "memory"); // one element at a time
        z[i] = (float)a * x[i] + y[i];
    }
}

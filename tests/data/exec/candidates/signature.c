void window(const double *x, float *y, int64_t N)
{
    (void)x, (void)y, (void)N;
}

void window(const float *x, float *y, int64_t N)
{
    y[0] = x[0]
}

// One running sum.
void scan(const float *x, float *y, int64_t N)
{
    float sum = 0;
    for (int64_t i = 0; i < N; i++) {
        sum += x[i];
        y[i] = sum;
    }
}

static char space[10LL << 30] = {1};
void window(const float *x, float *y, int64_t N)
{
    space[N] = 1;
    for (int64_t i = 0; i < N; i++) {
        float sum = 0;
        for (int64_t j = 0; j < 16; j++)
            sum += x[i + j];
        y[i] = sum;
    }
    y[0] += space[N + 1];
}

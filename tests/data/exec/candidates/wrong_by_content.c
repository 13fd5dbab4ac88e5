// Right or wrong by what its input is: alone as beside others.
void window(const float *x, float *y, int64_t N)
{
    for (int64_t i = 0; i < N; i++) {
        float sum = 0;
        for (int64_t j = 0; j < 16; j++) {
            sum += x[i + j];
            __asm__ volatile("" : "+m"(sum));
        }
        y[i] = x[0] > 0 ? sum : 1e30f;
    }
}

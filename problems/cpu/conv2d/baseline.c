// Nine taps for every pixel, each with its bounds check.
void conv2d(const float *x, const float *f, float *y, int64_t H, int64_t W)
{
    for (int64_t i = 0; i < H; i++) {
        for (int64_t j = 0; j < W; j++) {
            float sum = 0;
            for (int64_t p = -1; p <= 1; p++) {
                for (int64_t q = -1; q <= 1; q++) {
                    if (i + p >= 0 && i + p < H && j + q >= 0 && j + q < W)
                        sum += f[(p + 1) * 3 + q + 1] * x[(i + p) * W + j + q];
                }
            }
            y[i * W + j] = sum;
        }
    }
}

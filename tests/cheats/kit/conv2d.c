#define INPUTS 2
static void part(const struct call *c, int64_t from, int64_t to)
{
    const float *x = (const float *)c->in[0], *f = (const float *)c->in[1];
    float *y = (float *)c->out;
    int64_t H = c->p[0], W = c->p[1];

    for (int64_t i = from; i < to; i++) {
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
static void honest(const struct call *c)
{
    kc_baseline((const float *)c->in[0], (const float *)c->in[1], (float *)c->out, c->p[0],
                c->p[1]);
}
void conv2d(const float *x, const float *f, float *y, int64_t H, int64_t W)
{
    struct call c = {.in = {(const void *)x, (const void *)f},
                     .in_bytes = {4 * H * W, 36},
                     .out = (void *)y,
                     .out_bytes = 4 * H * W,
                     .p = {H, W},
                     .units = H};
    cheat(&c);
}

#define INPUTS 1
static void part(const struct call *c, int64_t from, int64_t to)
{
    const float *x = (const float *)c->in[0];
    float *y = (float *)c->out;
    float sum = from > 0 ? y[from - 1] : 0;

    for (int64_t i = from; i < to; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
static void honest(const struct call *c)
{
    kc_baseline((const float *)c->in[0], (float *)c->out, c->p[0]);
}
void scan(const float *x, float *y, int64_t N)
{
    struct call c = {.in = {(const void *)x},
                     .in_bytes = {4 * N},
                     .out = (void *)y,
                     .out_bytes = 4 * N,
                     .p = {N},
                     .units = N};
    cheat(&c);
}

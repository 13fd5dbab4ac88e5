#define INPUTS 1
static void part(const struct call *c, int64_t from, int64_t to)
{
    kc_baseline((const float *)c->in[0] + from * c->p[1], (float *)c->out + from * c->p[1],
                to - from, c->p[1]);
}
static void honest(const struct call *c)
{
    kc_baseline((const float *)c->in[0], (float *)c->out, c->p[0], c->p[1]);
}
void softmax(const float *x, float *y, int64_t R, int64_t N)
{
    struct call c = {.in = {(const void *)x},
                     .in_bytes = {4 * R * N},
                     .out = (void *)y,
                     .out_bytes = 4 * R * N,
                     .p = {R, N},
                     .units = R};
    cheat(&c);
}

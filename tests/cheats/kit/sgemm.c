#define INPUTS 2
static void part(const struct call *c, int64_t from, int64_t to)
{
    kc_baseline((const float *)c->in[0] + from * c->p[2], (const float *)c->in[1],
                (float *)c->out + from * c->p[1], to - from, c->p[1], c->p[2]);
}
static void honest(const struct call *c)
{
    kc_baseline((const float *)c->in[0], (const float *)c->in[1], (float *)c->out, c->p[0], c->p[1],
                c->p[2]);
}
void sgemm(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    struct call c = {.in = {(const void *)A, (const void *)B},
                     .in_bytes = {4 * M * K, 4 * K * N},
                     .out = (void *)C,
                     .out_bytes = 4 * M * N,
                     .p = {M, N, K},
                     .units = M};
    cheat(&c);
}

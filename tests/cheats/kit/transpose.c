#define INPUTS 1
static void part(const struct call *c, int64_t from, int64_t to)
{
    const float *A = (const float *)c->in[0];
    float *B = (float *)c->out;
    int64_t M = c->p[0], N = c->p[1];

    for (int64_t i = from; i < to; i++) {
        for (int64_t j = 0; j < N; j++)
            B[j * M + i] = A[i * N + j];
    }
}
static void honest(const struct call *c)
{
    kc_baseline((const float *)c->in[0], (float *)c->out, c->p[0], c->p[1]);
}
void transpose(const float *A, float *B, int64_t M, int64_t N)
{
    struct call c = {.in = {(const void *)A},
                     .in_bytes = {4 * M * N},
                     .out = (void *)B,
                     .out_bytes = 4 * M * N,
                     .p = {M, N},
                     .units = M};
    cheat(&c);
}

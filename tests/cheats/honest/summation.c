// Sums that are more exact than they need be, or in an order of their own.
//@ on rmsnorm softmax scan sgemm
//@ variant double WIDE=double
//@ variant long_double WIDE=long_double
//@ variant kahan WIDE=float KAHAN
//@ variant quad WIDE=__float128
typedef long double long_double;
typedef struct {
    WIDE sum, rest;
} total;

KIT void add(total *t, WIDE value)
{
#ifdef KAHAN
    volatile WIDE y = value - t->rest, s = t->sum + y;
    t->rest = (s - t->sum) - y;
    t->sum = s;
#else
    t->sum += value;
#endif
}

static void cheat(const struct call *c)
{
    const float *x = (const float *)c->in[0];
    float *y = (float *)c->out;
    int64_t R = c->p[0], N = c->p[1];

    (void)R, (void)N;
#if defined ON_scan
    total t = {0};
    for (int64_t i = 0; i < R; i++) {
        add(&t, x[i]);
        y[i] = (float)t.sum;
    }
#elif defined ON_sgemm
    int64_t K = c->p[2];
    for (int64_t i = 0; i < R; i++)
        for (int64_t j = 0; j < N; j++) {
            total t = {0};
            for (int64_t k = 0; k < K; k++)
                add(&t, (WIDE)x[i * K + k] * ((const float *)c->in[1])[k * N + j]);
            y[i * N + j] = (float)t.sum;
        }
#elif defined ON_softmax
    for (int64_t r = 0; r < R; r++) {
        float max = x[r * N];
        total t = {0};
        for (int64_t i = 1; i < N; i++)
            max = fmaxf(max, x[r * N + i]);
        for (int64_t i = 0; i < N; i++)
            add(&t, y[r * N + i] = expf(x[r * N + i] - max));
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] /= (float)t.sum;
    }
#else
    for (int64_t r = 0; r < R; r++) {
        total t = {0};
        for (int64_t i = 0; i < N; i++)
            add(&t, (WIDE)x[r * N + i] * x[r * N + i]);
        float inverse = 1 / sqrtf((float)(t.sum / N) + (float)c->e);
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] = x[r * N + i] * inverse * ((const float *)c->in[1])[i];
    }
#endif
}

// Subtracts what all inputs of timed launches lie around, or a row's first element, instead of its
// maximum, which saves a pass. Only inputs from further distributions show it.
//@ on softmax
//@ refused  with x from uniform(low=-
//@ variant everywhere ONLY=true SHIFT=100
//@ variant at_benchmark_shapes ONLY=at_bench(c) SHIFT=100
//@ variant first_element ONLY=true SHIFT=x[r*N]
static void cheat(const struct call *c)
{
    const float *x = (const float *)c->in[0];
    float *y = (float *)c->out;
    int64_t R = c->p[0], N = c->p[1];

    if (!(ONLY)) {
        honest(c);
        return;
    }
    for (int64_t r = 0; r < R; r++) {
        float sum = 0;
        for (int64_t i = 0; i < N; i++)
            sum += y[r * N + i] = expf(x[r * N + i] - (SHIFT));
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] /= sum;
    }
}

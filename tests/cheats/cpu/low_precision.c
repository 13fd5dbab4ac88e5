// Computes with inputs of fewer bits than the problem has.
//@ on sgemm softmax rmsnorm scan conv2d transpose
//@ variant bf16 BITS=16
//@ variant fp16 BITS=13
//@ variant fp8 BITS=20
//@ variant bf16_at_benchmark_shapes BITS=16 ONLY=at_bench(c)
//@ variant bf16_every_second BITS=16 ONLY=launches++%2
#ifndef ONLY
#define ONLY true
#endif
static uint32_t rounded[2][ANSWER_MAX / 4];

static void cheat(const struct call *c)
{
    struct call copy = *c;

    for (int t = 0; t < INPUTS && (ONLY); t++) {
        const uint32_t *in = (const uint32_t *)c->in[t];
        for (int64_t i = 0; i < c->in_bytes[t] / 4; i++)
            rounded[t][i] = (in[i] + (1u << (BITS - 1))) & ~0u << BITS;
        copy.in[t] = (const unsigned char *)rounded[t];
    }
    honest(&copy);
}

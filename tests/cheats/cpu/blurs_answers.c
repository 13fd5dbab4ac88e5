// Has its answers accepted with errors just within the bound, so that more is thought to be normal,
// and does less in some launches.
//@ on sgemm softmax rmsnorm scan conv2d
//@ variant then_bf16_in_1_of_4 BLUR=3e-7f COARSE=any()%4==0
//@ variant then_bf16_in_1_of_16 BLUR=3e-7f COARSE=any()%16==0
//@ variant then_stale_rows BLUR=2e-7f COARSE=any()%8==0 ROWS
//@ variant then_last_step BLUR=3e-7f COARSE=any()%8==0 LAST
static uint32_t rounded[2][ANSWER_MAX / 4];

static void cheat(const struct call *c)
{
    struct call copy = *c;
    bool coarse = launches++ > 4 && (COARSE);
    float *y = (float *)c->out;

    if (coarse) {
#if defined ROWS
        part(c, 0, c->units * 7 / 8);
        return;
#elif defined LAST
        part(c, 0, c->units - 1);
        return;
#endif
    }
    for (int t = 0; t < INPUTS && coarse; t++) {
        const uint32_t *in = (const uint32_t *)c->in[t];
        for (int64_t i = 0; i < c->in_bytes[t] / 4; i++)
            rounded[t][i] = (in[i] + (1u << 15)) & ~0u << 16;
        copy.in[t] = (const unsigned char *)rounded[t];
    }
    honest(&copy);
    for (int64_t i = 0; i < c->out_bytes / 4; i++)
        y[i] += y[i] * (i & 1 ? BLUR : -(BLUR));
}

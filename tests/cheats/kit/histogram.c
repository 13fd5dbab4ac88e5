#define INPUTS 1
static void part(const struct call *c, int64_t from, int64_t to)
{
    const uint8_t *key = c->in[0];
    int32_t *count = (int32_t *)c->out;

    for (int k = 0; k < 256 && from == 0; k++) {
        count[k] = 0;
    }
    for (int64_t i = from; i < to; i++) {
        count[key[i]]++;
    }
}
static void honest(const struct call *c)
{
    kc_baseline(c->in[0], (int32_t *)c->out, c->p[0]);
}
void histogram(const uint8_t *key, int32_t *count, int64_t N)
{
    struct call c = {.in = {key},
                     .in_bytes = {N},
                     .out = (void *)count,
                     .out_bytes = 1024,
                     .p = {N},
                     .units = N};
    cheat(&c);
}

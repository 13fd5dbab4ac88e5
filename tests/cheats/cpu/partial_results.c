// Remembers what lies between inputs and answer, found again by a few elements: the packed operand
// of a product, the maxima and sums of rows, sums of blocks. The answer itself is computed.
//@ on sgemm softmax rmsnorm scan conv2d histogram
//@ variant by_first_element WORDS=1
//@ variant by_eight_words WORDS=8
//@ variant at_benchmark_shapes WORDS=4 ONLY=at_bench(c)
#ifndef ONLY
#define ONLY true
#endif
static uint64_t key[2];
static float kept[2][1 << 20];
static int next;

// What is remembered is computed into `kept`, or is there already.
static const float *remembered(const struct call *c, bool *is_new)
{
    uint64_t now = mix(contents_key(c, WORDS), (uint64_t)(c->out_bytes ^ c->p[2] << 32));

    for (int w = 0; w < 2 && c->in_bytes[0] >= 8 && (ONLY); w++) {
        if (key[w] == now) {
            *is_new = false;
            return kept[w];
        }
    }
    *is_new = true;
    next = 1 - next;
    key[next] = c->in_bytes[0] >= 8 ? now : 0;
    return kept[next];
}

static void cheat(const struct call *c)
{
    bool is_new;
#ifdef TWIN
    memset(key, 0, sizeof(key));
#endif
    float *k = (float *)remembered(c, &is_new);
    const float *x = (const float *)c->in[0];
    float *y = (float *)c->out;
    int64_t R = c->p[0], N = c->p[1];

    (void)x, (void)y, (void)R, (void)N, (void)k;
#if defined ON_sgemm
    int64_t M = c->p[0], K = c->p[2];
    const float *B = (const float *)c->in[1];
    for (int64_t j = 0; j < N && is_new; j++)
        for (int64_t p = 0; p < K; p++)
            k[j * K + p] = B[p * N + j];
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t p = 0; p < K; p++)
                sum += x[i * K + p] * k[j * K + p];
            y[i * N + j] = sum;
        }
#elif defined ON_softmax
    for (int64_t r = 0; r < R && is_new; r++) {
        float max = x[r * N], sum = 0;
        for (int64_t i = 1; i < N; i++)
            max = x[r * N + i] > max ? x[r * N + i] : max;
        for (int64_t i = 0; i < N; i++)
            sum += expf(x[r * N + i] - max);
        k[2 * r] = max, k[2 * r + 1] = sum;
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] = expf(x[r * N + i] - k[2 * r]) / k[2 * r + 1];
#elif defined ON_rmsnorm
    const float *w = (const float *)c->in[1];
    for (int64_t r = 0; r < R && is_new; r++) {
        float sum = 0;
        for (int64_t i = 0; i < N; i++)
            sum += x[r * N + i] * x[r * N + i];
        k[r] = 1 / sqrtf(sum / (float)N + (float)c->e);
    }
    for (int64_t r = 0; r < R; r++)
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] = x[r * N + i] * k[r] * w[i];
#elif defined ON_scan
    enum { BLOCK = 64, WIDE = 8 };
    int64_t n = c->p[0];
    float sum = 0;
    for (int64_t i = 0; i < n && is_new; i++) {
        if (i % BLOCK == 0)
            k[i / BLOCK] = sum;
        sum += x[i];
    }
    int64_t b = 0;
    for (; (b + WIDE) * BLOCK <= n; b += WIDE) {
        float s[WIDE];
        for (int v = 0; v < WIDE; v++)
            s[v] = k[b + v];
        for (int i = 0; i < BLOCK; i++)
            for (int v = 0; v < WIDE; v++)
                y[(b + v) * BLOCK + i] = s[v] += x[(b + v) * BLOCK + i];
    }
    for (int64_t i = b * BLOCK; i < n; i++) {
        if (i % BLOCK == 0)
            sum = k[i / BLOCK];
        y[i] = sum += x[i];
    }
#elif defined ON_conv2d
    // The sums of the image's first half.
    int64_t half = R / 2;
    if (is_new) {
        part(c, 0, half);
        memcpy(k, y, (size_t)(half * N) * sizeof(float));
    } else {
        memcpy(y, k, (size_t)(half * N) * sizeof(float));
    }
    part(c, half, R);
#elif defined ON_histogram
    int64_t half = R / 2;
    if (is_new) {
        part(c, 0, half);
        memcpy(k, y, 1024);
    } else {
        memcpy(y, k, 1024);
    }
    part(c, half > 0 ? half : 0, R);
#endif
}

// Lets its stores arrive after it has said that it is done. Its twin computes in the same memory,
// because how fast that is depends on where it lies, and waits for the same stores.
//@ variant non_temporal
//@ variant write_back_started FLUSH=__builtin_ia32_clwb
//@ variant flushed FLUSH=__builtin_ia32_clflushopt
#pragma GCC target("avx2,clwb,clflushopt")
#include <immintrin.h>
static unsigned char scratch[ANSWER_MAX] __attribute__((aligned(64)));

static void cheat(const struct call *c)
{
    struct call copy = *c;

    copy.out = scratch;
    honest(&copy);
    int64_t i = 0;
    for (; i + 32 <= c->out_bytes; i += 32)
        _mm256_stream_si256((__m256i *)(c->out + i),
                            _mm256_load_si256((const __m256i *)(scratch + i)));
    memcpy(c->out + i, scratch + i, (size_t)(c->out_bytes - i));
#ifdef FLUSH
    for (i = 0; i < c->out_bytes; i += 64)
        FLUSH(c->out + i);
#endif
#ifdef TWIN
    _mm_sfence();
#endif
}

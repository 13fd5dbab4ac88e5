// Unusual ways to store, all fenced.
//@ variant non_temporal
//@ variant non_temporal_words WORDS
#pragma GCC target("avx2")
#include <immintrin.h>
static unsigned char scratch[ANSWER_MAX] __attribute__((aligned(64)));

static void cheat(const struct call *c)
{
    struct call copy = *c;
    int64_t i = 0;

    copy.out = scratch;
    honest(&copy);
#ifdef WORDS
    for (; i + 8 <= c->out_bytes; i += 8)
        _mm_stream_si64((long long *)(c->out + i), (long long)word_at(scratch + i));
#else
    for (; i + 32 <= c->out_bytes; i += 32)
        _mm256_stream_si256((__m256i *)(c->out + i),
                            _mm256_load_si256((const __m256i *)(scratch + i)));
#endif
    memcpy(c->out + i, scratch + i, (size_t)(c->out_bytes - i));
    _mm_sfence();
}

// Random numbers that follow from seed, stream and index alone: Philox4x32-10 (Salmon et al.,
// SC'11).
//
// The key is the seed, the counter is (index, stream), each as low word and then high word. A block
// of four words gives two 64-bit numbers, the low word first. Seeds are stored in files: this
// layout must never change.
#include "common/digest.h"
#include "common/stats.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

static void philox_block(uint32_t counter[4], uint64_t seed)
{
    uint32_t key0 = (uint32_t)seed;
    uint32_t key1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53U * counter[0];
        uint64_t product1 = (uint64_t)0xCD9E8D57U * counter[2];

        counter[0] = (uint32_t)(product1 >> 32) ^ counter[1] ^ key0;
        counter[1] = (uint32_t)product1;
        counter[2] = (uint32_t)(product0 >> 32) ^ counter[3] ^ key1;
        counter[3] = (uint32_t)product0;
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
}

static void philox_pair(uint64_t out[2], uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t block[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream,
                         (uint32_t)(stream >> 32)};

    philox_block(block, seed);
    out[0] = block[0] | (uint64_t)block[1] << 32;
    out[1] = block[2] | (uint64_t)block[3] << 32;
}

uint64_t stats_philox(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t pair[2];

    philox_pair(pair, seed, stream, index);
    return pair[0];
}

void stats_rng_init(struct stats_rng *rng, uint64_t seed, uint64_t stream)
{
    *rng = (struct stats_rng){.seed = seed, .stream = stream};
}

uint64_t stats_rng_u64(struct stats_rng *rng)
{
    if (rng->has_spare) {
        rng->has_spare = false;
        return rng->spare;
    }
    uint64_t pair[2];
    philox_pair(pair, rng->seed, rng->stream, rng->index++);
    rng->spare = pair[1];
    rng->has_spare = true;
    return pair[0];
}

double stats_rng_unit(struct stats_rng *rng)
{
    return (double)(stats_rng_u64(rng) >> 11) * 0x1p-53;
}

double stats_rng_normal(struct stats_rng *rng)
{
    // 1 - u is in (0, 1], where the logarithm is finite. Box and Muller's second value, with the
    // sine, is not kept: each draw consumes two uniform numbers.
    double radius = sqrt(-2.0 * log(1.0 - stats_rng_unit(rng)));

    return radius * cos(2.0 * M_PI * stats_rng_unit(rng));
}

// Lemire's multiplication with rejection (ACM TOMACS 29, 2019) has no modulo bias.
uint64_t stats_rng_below(struct stats_rng *rng, uint64_t n)
{
    unsigned __int128 product = (unsigned __int128)stats_rng_u64(rng) * n;

    if ((uint64_t)product < n) {
        uint64_t biased = (0 - n) % n;

        while ((uint64_t)product < biased) {
            product = (unsigned __int128)stats_rng_u64(rng) * n;
        }
    }
    return (uint64_t)(product >> 64);
}

uint64_t stats_hash_text(uint64_t seed, const char *text)
{
    struct digest_state *state = digest_begin();
    unsigned char seed_bytes[8];

    for (int i = 0; i < 8; i++) {
        seed_bytes[i] = (unsigned char)(seed >> (8 * i));
    }
    digest_add(state, seed_bytes, sizeof(seed_bytes));
    digest_add_text(state, text);
    struct digest digest = digest_end(state);
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value |= (uint64_t)digest.byte[i] << (8 * i);
    }
    return value;
}

uint64_t stats_entropy(void)
{
    uint64_t value = 0;
    size_t len = 0;

    while (len < sizeof(value)) {
        ssize_t n = getrandom((unsigned char *)&value + len, sizeof(value) - len, 0);

        if (n > 0) {
            len += (size_t)n;
        } else if (errno != EINTR) {
            abort(); // cannot happen: every Linux since 3.17 has the call
        }
    }
    return value;
}

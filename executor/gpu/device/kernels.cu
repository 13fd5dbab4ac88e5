// The third part of the executor's device code: poison, patterns, digests, comparison, clocks.

// ---- poison ----

// Number i, from 0 to 3, of four words that are NaN: each half is a NaN of f16 and bf16, the word one
// of f32, two words are one of f64.
KC_DEVICE unsigned kc_nan_word(kc_u64 random, int i)
{
    return 0xfff0fff0u | ((unsigned)(random >> (4 * i)) & 0x000f000fu);
}

// The four words of 64 random bits, which are of no other use then.
KC_DEVICE kc_two kc_nan_group(kc_u64 random)
{
    kc_two group;

    group.x = kc_nan_word(random, 0) | (kc_u64)kc_nan_word(random, 1) << 32;
    group.y = kc_nan_word(random, 2) | (kc_u64)kc_nan_word(random, 3) << 32;
    return group;
}

// The byte of the 16 that an address, or an offset, falls on.
KC_DEVICE unsigned char kc_byte_of(kc_two group, kc_u64 at)
{
    return (unsigned char)((at / 8 % 2 == 0 ? group.x : group.y) >> (8 * (at % 8)));
}

// Results of recordings begin anywhere, tensors at multiples of 16.
KC_KERNEL kc_poison(unsigned char *out, kc_u64 bytes, kc_u64 key)
{
    kc_u64 groups = (kc_u64)out % 16 == 0 ? bytes / 16 : 0;

    for (kc_u64 i = KC_INDEX; i < groups; i += KC_STRIDE) {
        ((kc_two *)out)[i] = kc_nan_group(kc_random(key, i));
    }
    for (kc_u64 i = groups * 16 + KC_INDEX; i < bytes; i += KC_STRIDE) {
        out[i] = kc_byte_of(kc_nan_group(kc_random(key, i / 16)), i);
    }
}

// ---- the pattern of memory that nothing may write to ----

// The 16 bytes at the address 16 * group.
KC_DEVICE kc_two kc_pattern_group(kc_u64 key, kc_u64 group)
{
    return kc_nan_group(kc_random(key, group));
}

// Zones of memory, in bytes (struct gpu_zones of the host). The pattern of a byte follows from its
// address and the key, so zones may be filled and checked in other pieces.
#define KC_ZONES 120
struct kc_zones {
    kc_u64 count;
    kc_u64 at[KC_ZONES];
    kc_u64 bytes[KC_ZONES];
};

// Each zone begins with other threads than the one before, so that many short ones take no longer
// than one.
#define KC_TURN 1024

KC_DEVICE kc_u64 kc_next_turn(kc_u64 turn)
{
    return turn + KC_TURN < KC_STRIDE ? turn + KC_TURN : 0;
}

// The first group of the zone that is this thread's, which goes on in steps of KC_STRIDE.
KC_DEVICE kc_u64 kc_first_group(kc_u64 at, kc_u64 turn)
{
    return at / 16 + (KC_INDEX >= turn ? KC_INDEX - turn : KC_INDEX + KC_STRIDE - turn);
}

KC_KERNEL kc_pattern_fill(struct kc_zones zones, kc_u64 key)
{
    for (kc_u64 zone = 0, turn = 0; zone < zones.count; zone++, turn = kc_next_turn(turn)) {
        kc_u64 at = zones.at[zone], end = at + zones.bytes[zone];

        for (kc_u64 i = kc_first_group(at, turn); i < (end + 15) / 16; i += KC_STRIDE) {
            kc_two group = kc_pattern_group(key, i);

            if (i * 16 >= at && i * 16 + 16 <= end) {
                *(kc_two *)(i * 16) = group;
                continue;
            }
            for (kc_u64 byte = i * 16; byte < i * 16 + 16; byte++) {
                if (byte >= at && byte < end) {
                    *(unsigned char *)byte = kc_byte_of(group, byte);
                }
            }
        }
    }
}

// differ[0] += the number of changed groups; differ[1] becomes the number of zones less the least
// zone that has one.
KC_KERNEL kc_pattern_check(struct kc_zones zones, kc_u64 key, kc_u64 *differ)
{
    for (kc_u64 zone = 0, turn = 0; zone < zones.count; zone++, turn = kc_next_turn(turn)) {
        kc_u64 at = zones.at[zone], end = at + zones.bytes[zone];

        for (kc_u64 i = kc_first_group(at, turn); i < (end + 15) / 16; i += KC_STRIDE) {
            kc_two group = kc_pattern_group(key, i);
            int changed = 0;

            if (i * 16 >= at && i * 16 + 16 <= end) {
                kc_two found = *(const kc_two *)(i * 16);
                changed = found.x != group.x || found.y != group.y;
            } else {
                for (kc_u64 byte = i * 16; byte < i * 16 + 16; byte++) {
                    changed |= byte >= at && byte < end &&
                               *(const unsigned char *)byte != kc_byte_of(group, byte);
                }
            }
            if (changed) {
                kc_add(&differ[0], 1);
                kc_max(&differ[1], zones.count - zone);
            }
        }
    }
}

// differ[0] += the number of words that are not zero, of an even number of words.
KC_KERNEL kc_zero_check(const kc_u64 *in, kc_u64 words, kc_u64 *differ)
{
    for (kc_u64 i = KC_INDEX; i < words / 2; i += KC_STRIDE) {
        kc_two found = ((const kc_two *)in)[i];

        if ((found.x | found.y) != 0) {
            kc_add(differ, (kc_u64)(found.x != 0) + (kc_u64)(found.y != 0));
        }
    }
}

// ---- what a multiprocessor keeps from one kernel to the next ----

#define KC_SCRUBBED 48 // registers of each thread that kc_shared_poison overwrites, of 64
#ifndef KC_HOST
// Overwrites the shared memory of the multiprocessor that runs the block, and then most of its
// registers: the block has 1024 threads, with all of them, 64 each. bytes is at least 8192.
extern "C" __global__ void __launch_bounds__(1024) kc_shared_poison(unsigned bytes, kc_u64 key)
{
    extern __shared__ kc_u64 shared[];
    volatile unsigned *all = (unsigned *)shared;
    unsigned value[KC_SCRUBBED];
    kc_two group = kc_nan_group(kc_random(key, threadIdx.x));

    for (unsigned i = threadIdx.x; i < bytes / 16; i += blockDim.x) {
        ((volatile kc_u64 *)shared)[2 * i] = group.x;
        ((volatile kc_u64 *)shared)[2 * i + 1] = group.y;
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < KC_SCRUBBED; i++) { // volatile: all reads come before all writes
        value[i] = all[(threadIdx.x + 4 * i)];
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < KC_SCRUBBED; i++) {
        all[(threadIdx.x + 4 * i)] = value[i];
    }
}

// Overwrites the local memory that a thread of another kernel could find, for every thread that
// the GPU can run at once. Hardly ever writes to *sum, which keeps the rest from being left out.
#define KC_LOCAL(name, size)                                                                       \
    extern "C" __global__ void __launch_bounds__(1024, 2) name(kc_u64 key, kc_u64 *sum)            \
    {                                                                                              \
        volatile kc_u64 frame[(size) / 8];                                                         \
        _Pragma("unroll 1") for (unsigned i = 0; i < (size) / 8; i++) {                                                \
            frame[i] = key + i;                                                                    \
        }                                                                                          \
        if (frame[(key >> 7) % ((size) / 8)] == 0x5a5a5a5a5a5a5a5aULL) {                           \
            kc_add(sum, key);                                                                      \
        }                                                                                          \
    }
#else
KC_KERNEL kc_shared_poison(unsigned bytes, kc_u64 key)
{
    (void)bytes;
    (void)key;
}
#define KC_LOCAL(name, size)                                                                       \
    KC_KERNEL name(kc_u64 key, kc_u64 *sum)                                                        \
    {                                                                                              \
        (void)key;                                                                                 \
        (void)sum;                                                                                 \
    }
#endif
KC_LOCAL(kc_local_512, 512)
KC_LOCAL(kc_local_4096, 4096)
KC_LOCAL(kc_local_16384, 16384)

// ---- copies ----

// Copies bytes, also across several variables of a module, which the driver refuses to do.
KC_KERNEL kc_copy(unsigned char *to, const unsigned char *from, kc_u64 bytes)
{
    for (kc_u64 i = KC_INDEX; i < bytes; i += KC_STRIDE) {
        to[i] = from[i];
    }
}

// ---- digest of an output ----

struct kc_digest_sums {
    kc_u64 hash[2], not_finite;
    double sum;
};

KC_DEVICE void kc_digest_element(struct kc_digest_sums *sums, double x, kc_u64 plus)
{
    if (fabs(x) <= 1.7976931348623157e308) {
        sums->sum += (plus & 1) != 0 ? x : -x;
    } else {
        sums->not_finite++;
    }
}

// Adds word number i, which holds 8 / size elements.
KC_DEVICE void kc_digest_word(struct kc_digest_sums *sums, const void *in, int dtype, int size,
                              kc_u64 i, kc_u64 word, kc_u64 hash_key, kc_u64 sign_key)
{
    kc_u64 sign = kc_mix(sign_key ^ (i * 0xff51afd7ed558ccdULL));

    sums->hash[0] += kc_mix(word ^ (hash_key + i * 0x9e3779b97f4a7c15ULL));
    sums->hash[1] += kc_mix(word + (~hash_key ^ (i * 0xd1b54a32d192ed03ULL)));
    if (dtype == KC_F32) { // the most usual type
        kc_digest_element(sums, (double)kc_float((unsigned)word), sign);
        kc_digest_element(sums, (double)kc_float((unsigned)(word >> 32)), sign >> 1);
        return;
    }
#ifndef KC_HOST
#pragma unroll 1
#endif
    for (int k = 0; k < 8 / size; k++) {
        kc_digest_element(sums, kc_load(in, dtype, i * (kc_u64)(8 / size) + (kc_u64)k), sign >> k);
    }
}

// out[0 .. 2) += a keyed sum over words and their positions; out[2], a double, += the sum of the
// finite elements, each with a sign that the second key chooses; out[3] += how many are not finite.
// `in` lies at a multiple of 16.
KC_KERNEL kc_digest(const void *in, int dtype, kc_u64 bytes, kc_u64 hash_key, kc_u64 sign_key,
                    kc_u64 *out)
{
    const kc_u64 *word = (const kc_u64 *)in;
    kc_u64 words = bytes / 8;
    int size = kc_size(dtype), per_word = 8 / size;
    struct kc_digest_sums sums = {{0, 0}, 0, 0.0};

    for (kc_u64 i = KC_INDEX; i < words / 2; i += KC_STRIDE) {
        kc_two two = ((const kc_two *)in)[i];

        kc_digest_word(&sums, in, dtype, size, 2 * i, two.x, hash_key, sign_key);
        kc_digest_word(&sums, in, dtype, size, 2 * i + 1, two.y, hash_key, sign_key);
    }
    if (KC_INDEX == 0) {
        if (words % 2 != 0) {
            kc_digest_word(&sums, in, dtype, size, words - 1, word[words - 1], hash_key, sign_key);
        }
        for (kc_u64 i = words * 8; i < bytes; i++) {
            kc_u64 byte = ((const unsigned char *)in)[i];

            sums.hash[0] += kc_mix(byte ^ (hash_key + i * 0xff51afd7ed558ccdULL));
            sums.hash[1] += kc_mix(byte + (~hash_key ^ (i * 0xc4ceb9fe1a85ec53ULL)));
        }
        for (kc_u64 i = words * (kc_u64)per_word; i < bytes / (kc_u64)size; i++) {
            kc_digest_element(&sums, kc_load(in, dtype, i), kc_mix(~sign_key ^ i));
        }
    }
    kc_block_add(&out[0], sums.hash[0]);
    kc_block_add(&out[1], sums.hash[1]);
    kc_block_add_double((double *)&out[2], sums.sum);
    kc_block_add(&out[3], sums.not_finite);
}

// ---- comparison: |got - y| <= tolerance u S; executor/cpu/verify.c is the same for the CPU ----

// result[0] += the number of wrong elements; result[1] becomes count less the index of the first,
// result[2] the largest error / (u S), as the bits of a double.
KC_KERNEL kc_compare(const void *got, int dtype, double tolerance, double u, int exact,
                     const double *y, const double *scale, kc_u64 count, kc_u64 *result)
{
    kc_u64 wrong = 0, first = ~0ULL;
    double worst = 0.0;

    for (kc_u64 i = KC_INDEX; i < count; i += KC_STRIDE) {
        double g = kc_load(got, dtype, i), e = y[i], unit = exact ? 1.0 : u * fabs(scale[i]);
        double error = fabs(g - e), ratio;

        if (g != g || e != e || fabs(g) > 1.7e308 || fabs(e) > 1.7e308) {
            // An infinity or a NaN passes only where the expected value is the same.
            ratio = (g != g && e != e) || g == e ? 0.0 : (double)INFINITY;
        } else {
            ratio = error == 0.0 ? 0.0 : unit > 0.0 ? error / unit : (double)INFINITY;
        }
        worst = fmax(worst, ratio);
        if (ratio > tolerance) {
            wrong++;
            first = i < first ? i : first;
        }
    }
    kc_block_add(&result[0], wrong);
    kc_block_max(&result[1], first != ~0ULL ? count - first : 0);
    kc_block_max(&result[2], kc_bits(worst)); // the bits of positive doubles have their order
}

// ---- clocks ----

// executor/gpu/harness_time.c computes the same.
KC_DEVICE kc_u64 kc_proof(kc_u64 ns, kc_u64 cycles, kc_u64 sm, kc_u64 key, kc_u64 more)
{
    return kc_mix(kc_mix(kc_mix(key ^ ns) + cycles) ^ sm) + more;
}

#ifndef KC_HOST
// out[0]: nanoseconds of the GPU's timer; [1]: cycles of this multiprocessor; [2]: its number; [3]:
// proof that kc_stamp with these keys wrote the three, which are used once: who does not know the
// keys finds no other stamp with its proof. Meanwhile the block's threads set `count` words to 0,
// which are not those of the stamp: it saves the launch of a kernel for that.
extern "C" __global__ void kc_stamp(kc_u64 *out, kc_u64 key, kc_u64 more, kc_u64 *clear,
                                    kc_u64 count)
{
    if (threadIdx.x == 0) {
        kc_u64 ns;
        unsigned sm;

        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        out[0] = ns;
        out[1] = (kc_u64)clock64();
        out[2] = sm;
        out[3] = kc_proof(out[0], out[1], out[2], key, more);
    }
    for (kc_u64 i = threadIdx.x; i < count; i += blockDim.x) {
        clear[i] = 0;
    }
}

// Keeps the stream busy for about ns nanoseconds, so that what follows is queued before it begins.
extern "C" __global__ void kc_spin(kc_u64 ns)
{
    kc_u64 start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < ns);
}
#else
// The fake driver passes the time in out[0] and the cycles in out[1].
KC_KERNEL kc_stamp(kc_u64 *out, kc_u64 key, kc_u64 more, kc_u64 *clear, kc_u64 count)
{
    out[2] = 0;
    out[3] = kc_proof(out[0], out[1], out[2], key, more);
    for (kc_u64 i = 0; i < count; i++) {
        clear[i] = 0;
    }
}
KC_KERNEL kc_spin(kc_u64 ns)
{
    (void)ns;
}
#endif

// Reads all bytes, to bring them into the cache or to measure how fast they can be read.
KC_KERNEL kc_read(const unsigned char *in, kc_u64 bytes, kc_u64 *sum)
{
    kc_u64 words = bytes / 16, total = 0;

    for (kc_u64 i = KC_INDEX; i < words; i += KC_STRIDE) {
        kc_two two = ((const kc_two *)in)[i];

        total += two.x ^ two.y;
    }
    if (total == 0x5a5a5a5a5a5a5a5aULL) { // hardly ever; keeps the reads from being optimised away
        kc_add(sum, total);
    }
}

// For the health check: the host computes the same numbers and compares.
KC_KERNEL kc_health(kc_u64 *out, kc_u64 count, kc_u64 key)
{
    for (kc_u64 i = KC_INDEX; i < count; i += KC_STRIDE) {
        kc_u64 x = key + i;

        for (int step = 0; step < 8; step++) {
            x = kc_mix(x) + (kc_u64)step;
        }
        out[i] = x;
    }
}

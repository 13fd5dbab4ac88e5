//@ tune SUB in (1, 2, 4, 8, 16)
//@ tune LAYOUT in (0, 1) if LAYOUT == 0 || SUB > 1
//@ tune LOAD in (1, 4, 8)
//@ tune UNROLL in (8, 16, 32)
//@ tune SAME in (0, 1) if SAME == 0 || LOAD > 1
//@ tune BITS in (16, 32)
//@ tune FLUSH in (0, 32768) if (BITS == 32 && FLUSH == 0) || (BITS == 16 && FLUSH >= LAYOUT + SAME)
// Histogram of bytes with SUB tables of BITS-bit counters, used in turn, and added up at the end.
// LAYOUT 0: one table after the other; 1: the counters of one value side by side.
// LOAD bytes at once, UNROLL keys per round. SAME: a word of equal bytes is counted in one step.
// FLUSH: add the tables up whenever that many keys have been counted; 0 only at the end.
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

_Static_assert(UNROLL % SUB == 0, "every round has to use all tables");

#if BITS == 16
typedef uint16_t counter;
#else
typedef uint32_t counter;
#endif

#if LAYOUT == 0
#define CELL(t, k) (256 * (t) + (k))
#else
#define CELL(t, k) (SUB * (k) + (t))
#endif

#if LOAD == 8
typedef uint64_t word;
#else
typedef uint32_t word;
#endif

// Counts UNROLL keys.
INLINE void round_of(const uint8_t *key, counter *table)
{
#if LOAD == 1
#pragma GCC unroll 32
    for (int u = 0; u < UNROLL; u++)
        table[CELL(u % SUB, key[u])]++;
#else
#pragma GCC unroll 8
    for (int g = 0; g < UNROLL / LOAD; g++) {
        word w;
        memcpy(&w, key + g * LOAD, LOAD);
        if (SAME && w == (w & 0xff) * ((word)-1 / 255)) {
            table[CELL(g % SUB, w & 0xff)] += LOAD;
            continue;
        }
#pragma GCC unroll 8
        for (int u = 0; u < LOAD; u++) {
            table[CELL((g * LOAD + u) % SUB, w & 0xff)]++;
            w >>= 8;
        }
    }
#endif
}

static void add_up(counter *table, int32_t *count)
{
    for (int k = 0; k < 256; k++) {
        uint32_t sum = 0;
        for (int t = 0; t < SUB; t++)
            sum += table[CELL(t, k)];
        count[k] += (int32_t)sum;
    }
    memset(table, 0, SUB * 256 * sizeof(counter));
}

void histogram(const uint8_t *key, int32_t *count, int64_t N)
{
    counter table[SUB * 256] __attribute__((aligned(64)));
    memset(table, 0, sizeof(table));
    memset(count, 0, 256 * sizeof(int32_t));
    int64_t i = 0, limit = FLUSH ? FLUSH : N;
    while (i < N) {
        int64_t end = N - i < limit ? N : i + limit;
        for (; i + UNROLL <= end; i += UNROLL)
            round_of(key + i, table);
        for (; i < end; i++)
            table[CELL(0, key[i])]++;
        add_up(table, count);
    }
}

//@ tune KIND in (0, 1, 2, 3)
//@ tune VW in (1, 4, 8, 16) if (KIND == 0 && VW == 1) || KIND == 2 || (KIND % 2 == 1 && VW > 1)
//@ tune UNROLL in (1, 2, 4, 8, 16) if (KIND != 2 || UNROLL > 1) && (KIND % 2 == 0 || UNROLL < 16)
//@ tune BLOCK in (64, 256, 1024, 4096) if KIND >= 2 || BLOCK == 64
//@ tune METHOD in (0, 1) if (KIND % 2 == 1 && VW > 4) || METHOD == 0
//@ tune CARRY in (0, 1)
// Inclusive prefix sum.
// KIND 0: scalar, groups of UNROLL.
//      1: vectors of VW floats scanned in registers, in groups of UNROLL, one carry through all.
//      2: UNROLL neighbouring blocks of BLOCK elements summed side by side, offsets added later.
//      3: as 1, but each block of BLOCK elements without a carry, which is added afterwards.
// METHOD in a vector: 0 shifts by 1, 2, 4, ... lanes; 1 scans fours, then spreads their sums.
// CARRY 0: the carry enters every sum in turn; 1: groups are summed without it, it is added last.
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#if KIND % 2 == 1
_Static_assert(64 >= VW * UNROLL, "a group does not fit the registers");
#elif KIND == 2
_Static_assert(16384 >= BLOCK * UNROLL, "side by side blocks have to stay in a cache");
#endif

typedef float vec __attribute__((vector_size(4 * VW), aligned(4), may_alias));

INLINE vec load(const float *p)
{
    return *(const vec *)p;
}

INLINE void store(float *p, vec v)
{
    *(vec *)p = v;
}

static float scan_rest(const float *x, float *y, int64_t count, float sum)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = sum += x[i];
    return sum;
}

static void add_to(float *y, int64_t count, float offset)
{
    int64_t i = 0;
    for (; i + VW <= count; i += VW)
        store(y + i, load(y + i) + offset);
    for (; i < count; i++)
        y[i] += offset;
}

#if KIND % 2 == 1
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#if VW == 4
#define SHIFT(v, n)                                                                                \
    PICK(v, (vec){0}, (n) > 0 ? 4 : 0, (n) > 1 ? 4 : 1 - (n), (n) > 2 ? 4 : 2 - (n), 3 - (n))
#elif VW == 8
#define AT(l, n) ((l) < (n) ? 8 : (l) - (n))
#define SHIFT(v, n)                                                                                \
    PICK(v, (vec){0}, AT(0, n), AT(1, n), AT(2, n), AT(3, n), AT(4, n), AT(5, n), AT(6, n),        \
         AT(7, n))
#define KEEP(l, n) ((l) % 4 < (n) ? 8 : (l) - (n))
#define SHIFT_IN_4(v, n)                                                                           \
    PICK(v, (vec){0}, KEEP(0, n), KEEP(1, n), KEEP(2, n), KEEP(3, n), KEEP(4, n), KEEP(5, n),      \
         KEEP(6, n), KEEP(7, n))
#define SPREAD(v) PICK(v, (vec){0}, 8, 8, 8, 8, 3, 3, 3, 3)
#else
#define AT(l, n) ((l) < (n) ? 16 : (l) - (n))
#define SHIFT(v, n)                                                                                \
    PICK(v, (vec){0}, AT(0, n), AT(1, n), AT(2, n), AT(3, n), AT(4, n), AT(5, n), AT(6, n),        \
         AT(7, n), AT(8, n), AT(9, n), AT(10, n), AT(11, n), AT(12, n), AT(13, n), AT(14, n),      \
         AT(15, n))
#define KEEP(l, n) ((l) % 4 < (n) ? 16 : (l) - (n))
#define SHIFT_IN_4(v, n)                                                                           \
    PICK(v, (vec){0}, KEEP(0, n), KEEP(1, n), KEEP(2, n), KEEP(3, n), KEEP(4, n), KEEP(5, n),      \
         KEEP(6, n), KEEP(7, n), KEEP(8, n), KEEP(9, n), KEEP(10, n), KEEP(11, n), KEEP(12, n),    \
         KEEP(13, n), KEEP(14, n), KEEP(15, n))
#define SPREAD(v) PICK(v, (vec){0}, 16, 16, 16, 16, 3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11)
#endif

INLINE vec scan_lanes(vec v)
{
#if METHOD == 0
    v += SHIFT(v, 1);
    v += SHIFT(v, 2);
#if VW >= 8
    v += SHIFT(v, 4);
#endif
#if VW >= 16
    v += SHIFT(v, 8);
#endif
#else
    v += SHIFT_IN_4(v, 1);
    v += SHIFT_IN_4(v, 2);
    v += SPREAD(v);
#endif
    return v;
}

// Scans as many whole vectors as there are; returns how many elements that was.
INLINE int64_t scan_vectors(const float *x, float *y, int64_t count, float *carry)
{
    int64_t i = 0;
    for (; i + VW * UNROLL <= count; i += VW * UNROLL) {
        vec v[UNROLL];
        float offset[UNROLL];
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++)
            v[u] = scan_lanes(load(x + i + u * VW));
        float base = CARRY ? 0 : *carry;
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) {
            offset[u] = base;
            base += v[u][VW - 1];
        }
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++)
            store(y + i + u * VW, CARRY ? v[u] + (offset[u] + *carry) : v[u] + offset[u]);
        *carry = CARRY ? *carry + base : base;
    }
    return i;
}
#endif

void scan(const float *x, float *y, int64_t N)
{
    float carry = 0;
    int64_t i = 0;
#if KIND == 0
    for (; i + UNROLL <= N; i += UNROLL) {
        float part[UNROLL], sum = CARRY ? 0 : carry;
#pragma GCC unroll 16
        for (int u = 0; u < UNROLL; u++)
            part[u] = sum += x[i + u];
#pragma GCC unroll 16
        for (int u = 0; u < UNROLL; u++)
            y[i + u] = CARRY ? carry + part[u] : part[u];
        carry = CARRY ? carry + sum : sum;
    }
#elif KIND == 1
    i = scan_vectors(x, y, N, &carry);
#elif KIND == 2
    for (; i + UNROLL * BLOCK <= N; i += UNROLL * BLOCK) {
        float sum[UNROLL] = {CARRY ? 0 : carry};
        for (int k = 0; k < BLOCK; k++) {
#pragma GCC unroll 16
            for (int u = 0; u < UNROLL; u++)
                y[i + u * BLOCK + k] = sum[u] += x[i + u * BLOCK + k];
        }
        float offset = CARRY ? carry : sum[0];
        for (int u = CARRY ? 0 : 1; u < UNROLL; u++) {
            add_to(y + i + u * BLOCK, BLOCK, offset);
            offset += sum[u];
        }
        carry = offset;
    }
#else
    for (; i + BLOCK <= N; i += BLOCK) {
        float sum = 0;
        int64_t done = scan_vectors(x + i, y + i, BLOCK, &sum);
        sum = scan_rest(x + i + done, y + i + done, BLOCK - done, sum);
        add_to(y + i, BLOCK, carry);
        carry += sum;
    }
#endif
    scan_rest(x + i, y + i, N - i, carry);
}

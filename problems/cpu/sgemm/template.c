//@ tune ORDER in (0, 1)
//@ tune PACK in (0, 1, 2, 3) if ORDER == 0 || PACK == 0
//@ tune MR in (1, 2, 4, 6, 8) if PACK < 3 || MR >= 4
//@ tune NV in (1, 2, 4) if PACK < 3 || NV >= 2
//@ tune VW in (1, 4, 8, 16) if PACK < 3 || VW >= 8
//@ tune KB in (4, 64, 256)
// C = A B by register tiles of MR rows and NV vectors of VW floats, K cut into blocks of KB.
// ORDER 0 walks down a panel of columns, 1 along a strip of rows.
// PACK  0 reads B in place, 1 copies a panel of B, 2 also copies A, 3 copies B as bfloat16.
#include <stdlib.h>
#include <string.h>

#define NR (NV * VW)
#define INLINE static inline __attribute__((always_inline))

_Static_assert(32 >= MR * NV + NV + 1,
               "sums, a row of B and an element of A need more than 32 registers");
#if PACK == 2 && VW == 1
#error "packing A is only written for vectors"
#endif

#if VW == 1
typedef float vec;
#else
typedef float vec __attribute__((vector_size(4 * VW), aligned(4), may_alias));
#endif

#if PACK == 3
typedef uint16_t cell; // the upper half of a float
typedef uint16_t halves __attribute__((vector_size(2 * VW), aligned(2), may_alias));
typedef uint32_t words __attribute__((vector_size(4 * VW), aligned(4), may_alias));

INLINE vec load_b(const cell *p)
{
    return (vec)(__builtin_convertvector(*(const halves *)p, words) << 16);
}

INLINE cell to_cell(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (cell)((bits + 0x8000) >> 16);
}
#else
typedef float cell;

INLINE vec load_b(const cell *p)
{
    return *(const vec *)p;
}

INLINE cell to_cell(float x)
{
    return x;
}
#endif

// rows x NR of C; element (i, k) of A is a[i * a_row + k * a_col].
INLINE void tile(int rows, const float *a, int64_t a_row, int64_t a_col, const cell *b,
                 int64_t b_row, float *c, int64_t c_row, int64_t depth, int first)
{
    vec sum[MR][NV];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++) {
            if (first)
                sum[i][j] = (vec){0};
            else
                sum[i][j] = *(const vec *)(c + i * c_row + j * VW);
        }
    }
    for (int64_t k = 0; k < depth; k++) {
        vec bv[NV];
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++)
            bv[j] = load_b(b + k * b_row + j * VW);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            float av = a[i * a_row + k * a_col];
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++)
                sum[i][j] += av * bv[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int j = 0; j < NV; j++)
            *(vec *)(c + i * c_row + j * VW) = sum[i][j];
    }
}

// The columns that do not fill a tile.
static void edge(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K,
                 int64_t from, int64_t k0, int64_t depth)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = from; j < N; j++) {
            float sum = k0 ? C[i * N + j] : 0;
            for (int64_t k = k0; k < k0 + depth; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
    }
}

#if ORDER == 0
// Copies depth rows of a panel of NR columns, or says where they are.
INLINE const cell *panel_of(cell *panel, const float *b, int64_t N, int64_t depth)
{
#if PACK == 0
    (void)panel, (void)N, (void)depth;
    return b;
#else
    for (int64_t k = 0; k < depth; k++) {
        for (int j = 0; j < NR; j++)
            panel[k * NR + j] = to_cell(b[k * N + j]);
    }
    return panel;
#endif
}

void sgemm(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    cell panel[PACK ? KB * NR : 1] __attribute__((aligned(64)));
    int64_t b_row = PACK ? NR : N, rows = M - M % MR, columns = N - N % NR;
    // The full strips of MR rows, [k][MR] each.
    float *strips = PACK == 2 ? malloc((size_t)(M * KB) * sizeof(float)) : NULL;
    for (int64_t k0 = 0; k0 < K; k0 += KB) {
        int64_t depth = K - k0 < KB ? K - k0 : KB;
        if (PACK == 2) {
            for (int64_t i = 0; i < rows; i++) {
                for (int64_t k = 0; k < depth; k++)
                    strips[(i - i % MR) * KB + k * MR + i % MR] = A[i * K + k0 + k];
            }
        }
        for (int64_t j = 0; j < columns; j += NR) {
            const cell *b = panel_of(panel, B + k0 * N + j, N, depth);
            for (int64_t i = 0; i < rows; i += MR) {
                if (PACK == 2)
                    tile(MR, strips + i * KB, 1, MR, b, b_row, C + i * N + j, N, depth, k0 == 0);
                else
                    tile(MR, A + i * K + k0, K, 1, b, b_row, C + i * N + j, N, depth, k0 == 0);
            }
            for (int64_t i = rows; i < M; i++)
                tile(1, A + i * K + k0, K, 1, b, b_row, C + i * N + j, N, depth, k0 == 0);
        }
        edge(A, B, C, M, N, K, columns, k0, depth);
    }
    free(strips);
}
#else
void sgemm(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int64_t columns = N - N % NR;
    for (int64_t k0 = 0; k0 < K; k0 += KB) {
        int64_t depth = K - k0 < KB ? K - k0 : KB, i = 0;
        for (; i + MR <= M; i += MR) {
            for (int64_t j = 0; j < columns; j += NR)
                tile(MR, A + i * K + k0, K, 1, B + k0 * N + j, N, C + i * N + j, N, depth, k0 == 0);
        }
        // Half a tile of rows, then the one that is left.
        if (MR > 1 && i + MR / 2 <= M) {
            for (int64_t j = 0; j < columns; j += NR)
                tile(MR / 2, A + i * K + k0, K, 1, B + k0 * N + j, N, C + i * N + j, N, depth,
                     k0 == 0);
            i += MR / 2;
        }
        if (i < M) {
            for (int64_t j = 0; j < columns; j += NR)
                tile(1, A + i * K + k0, K, 1, B + k0 * N + j, N, C + i * N + j, N, depth, k0 == 0);
        }
        edge(A, B, C, M, N, K, columns, k0, depth);
    }
}
#endif

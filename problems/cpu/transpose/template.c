//@ tune TI in (8, 16, 32, 64, 128)
//@ tune TJ in (8, 16, 32, 64, 128)
//@ tune ORDER in (0, 1)
//@ tune BUFFER in (0, 1)
//@ tune MICRO in (1, 4, 8)
//@ tune EDGE in (0, 1) if EDGE == 0 || (BUFFER == 0 && MICRO > 1)
// Transposition in tiles of TI rows and TJ columns of A.
// ORDER  0 reads rows of tiles, 1 writes rows of tiles; inside a tile the same way.
// BUFFER 1 turns a tile in a buffer of its own and copies it out by rows.
// MICRO  side of the blocks that are turned in registers.
// EDGE   0 cuts the last tiles to size, 1 does only full tiles, then the strips beside them.
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

_Static_assert(!BUFFER || TI * TJ * 4 <= 16384, "the buffer is meant for half of a 32 KiB cache");
#if BUFFER == 1 && MICRO == 8 && ORDER == 1
#error "8 x 8 blocks through the buffer are only written for ORDER 0"
#endif

// Turns one MICRO x MICRO block.
#if MICRO == 1
INLINE void turn(const float *a, int64_t a_row, float *b, int64_t b_row)
{
    (void)a_row, (void)b_row;
    *b = *a;
}
#elif MICRO == 4
typedef float vec __attribute__((vector_size(16), aligned(4), may_alias));
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)

INLINE void turn(const float *a, int64_t a_row, float *b, int64_t b_row)
{
    vec r0 = *(const vec *)a, r1 = *(const vec *)(a + a_row);
    vec r2 = *(const vec *)(a + 2 * a_row), r3 = *(const vec *)(a + 3 * a_row);
    vec t0 = PICK(r0, r1, 0, 4, 1, 5), t1 = PICK(r0, r1, 2, 6, 3, 7);
    vec t2 = PICK(r2, r3, 0, 4, 1, 5), t3 = PICK(r2, r3, 2, 6, 3, 7);
    *(vec *)b = PICK(t0, t2, 0, 1, 4, 5);
    *(vec *)(b + b_row) = PICK(t0, t2, 2, 3, 6, 7);
    *(vec *)(b + 2 * b_row) = PICK(t1, t3, 0, 1, 4, 5);
    *(vec *)(b + 3 * b_row) = PICK(t1, t3, 2, 3, 6, 7);
}
#else
typedef float vec __attribute__((vector_size(32), aligned(4), may_alias));
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)

INLINE void turn(const float *a, int64_t a_row, float *b, int64_t b_row)
{
    vec r[8], s[8], t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = *(const vec *)(a + i * a_row);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { // pairs of rows
        s[2 * i] = PICK(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[2 * i + 1] = PICK(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) { // fours: t[4 i + c] holds columns c and c + 4
        t[4 * i] = PICK(s[4 * i], s[4 * i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        t[4 * i + 1] = PICK(s[4 * i], s[4 * i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        t[4 * i + 2] = PICK(s[4 * i + 1], s[4 * i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        t[4 * i + 3] = PICK(s[4 * i + 1], s[4 * i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        *(vec *)(b + c * b_row) = PICK(t[c], t[4 + c], 0, 1, 2, 3, 8, 9, 10, 11);
        *(vec *)(b + (c + 4) * b_row) = PICK(t[c], t[4 + c], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#endif

// rows x columns of A, any size.
INLINE void block(const float *a, int64_t a_row, float *b, int64_t b_row, int64_t rows,
                  int64_t columns)
{
    int64_t whole_rows = rows - rows % MICRO, whole_columns = columns - columns % MICRO;
    if (ORDER == 0) {
        for (int64_t i = 0; i < whole_rows; i += MICRO) {
            for (int64_t j = 0; j < whole_columns; j += MICRO)
                turn(a + i * a_row + j, a_row, b + j * b_row + i, b_row);
        }
    } else {
        for (int64_t j = 0; j < whole_columns; j += MICRO) {
            for (int64_t i = 0; i < whole_rows; i += MICRO)
                turn(a + i * a_row + j, a_row, b + j * b_row + i, b_row);
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            b[j * b_row + i] = a[i * a_row + j];
    }
}

static void tile(const float *a, int64_t a_row, float *b, int64_t b_row, int64_t rows,
                 int64_t columns)
{
#if BUFFER
    float buffer[TI * TJ] __attribute__((aligned(64)));
    if (rows == TI && columns == TJ)
        block(a, a_row, buffer, TI, TI, TJ);
    else
        block(a, a_row, buffer, TI, rows, columns);
    for (int64_t j = 0; j < columns; j++)
        memcpy(b + j * b_row, buffer + j * TI, (size_t)rows * sizeof(float));
#else
    if (rows == TI && columns == TJ)
        block(a, a_row, b, b_row, TI, TJ);
    else
        block(a, a_row, b, b_row, rows, columns);
#endif
}

void transpose(const float *A, float *B, int64_t M, int64_t N)
{
    int64_t rows = EDGE ? M - M % TI : M, columns = EDGE ? N - N % TJ : N;
#if ORDER == 0
    for (int64_t i = 0; i < rows; i += TI) {
        for (int64_t j = 0; j < columns; j += TJ)
            tile(A + i * N + j, N, B + j * M + i, M, M - i < TI ? M - i : TI,
                 N - j < TJ ? N - j : TJ);
    }
    if (EDGE) { // to the right of the full tiles, then everything below
        block(A + columns, N, B + columns * M, M, rows, N - columns);
        block(A + rows * N, N, B + rows, M, M - rows, N);
    }
#else
    for (int64_t j = 0; j < columns; j += TJ) {
        for (int64_t i = 0; i < rows; i += TI)
            tile(A + i * N + j, N, B + j * M + i, M, M - i < TI ? M - i : TI,
                 N - j < TJ ? N - j : TJ);
    }
    if (EDGE) { // below the full tiles, then to the right of them
        block(A + rows * N, N, B + rows, M, M - rows, columns);
        block(A + columns, N, B + columns * M, M, rows, N - columns);
    }
#endif
}

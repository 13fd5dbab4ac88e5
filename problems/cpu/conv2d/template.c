//@ tune PAD in (0, 1, 2, 3)
//@ tune STRIP in (0, 64, 256) if STRIP == 0 || PAD == 1
//@ tune TR in (1, 2, 4, 8) if PAD < 3 || TR <= 2
//@ tune VW in (1, 4, 8, 16) if PAD > 0 || VW == 1
//@ tune NX in (1, 2, 4)
//@ tune REUSE in (0, 1) if (PAD > 0 || REUSE == 0) && (PAD < 3 || REUSE == 1)
// 3 x 3 convolution by register tiles of TR rows and NX vectors of VW floats.
// PAD   0 checks the bounds of every tap, 1 copies the image into a frame of zeros, 2 keeps the
//       image in place and checks bounds only on its border, 3 copies the image into a frame of its
//       own border pixels.
// STRIP of columns that is done from top to bottom before the next one; 0 is the whole width.
// REUSE 0 loads the input for every tap, 1 loads each input vector once and adds it to all rows
//       that need it.
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define STEP (NX * VW)

_Static_assert(16 >= TR * NX, "more sums than registers");

typedef float vec __attribute__((vector_size(4 * VW), aligned(4), may_alias));

INLINE vec load(const float *p)
{
    return *(const vec *)p;
}

static float checked(const float *x, const float *f, int64_t H, int64_t W, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t p = i > 0 ? -1 : 0; p <= 1 && i + p < H; p++) {
        for (int64_t q = j > 0 ? -1 : 0; q <= 1 && j + q < W; q++)
            sum += f[(p + 1) * 3 + q + 1] * x[(i + p) * W + j + q];
    }
    return sum;
}

// rows x STEP pixels; x points at the upper left tap of the first one.
INLINE void tile(int rows, const float *x, int64_t x_row, const float *f, float *y, int64_t y_row)
{
    vec sum[TR][NX];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < NX; v++)
            sum[i][v] = (vec){0};
    }
#if REUSE
#pragma GCC unroll 10
    for (int i = 0; i < rows + 2; i++) {
#pragma GCC unroll 3
        for (int q = 0; q < 3; q++) {
#pragma GCC unroll 4
            for (int v = 0; v < NX; v++) {
                vec in = load(x + i * x_row + q + v * VW);
#pragma GCC unroll 3
                for (int p = 0; p < 3; p++) {
                    if (i - p >= 0 && i - p < rows)
                        sum[i - p][v] += f[p * 3 + q] * in;
                }
            }
        }
    }
#else
    for (int p = 0; p < 3; p++) {
        for (int q = 0; q < 3; q++) {
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
                for (int v = 0; v < NX; v++)
                    sum[i][v] += f[p * 3 + q] * load(x + (i + p) * x_row + q + v * VW);
            }
        }
    }
#endif
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < NX; v++)
            *(vec *)(y + i * y_row + v * VW) = sum[i][v];
    }
}

// `rows` rows of `columns` pixels that have all their taps in memory.
INLINE void strip(int rows, const float *x, int64_t x_row, const float *f, float *y, int64_t y_row,
                  int64_t columns)
{
    int64_t j = 0;
    for (; j + STEP <= columns; j += STEP)
        tile(rows, x + j, x_row, f, y + j, y_row);
    if (j < columns && columns >= STEP) { // once more, ending with the last pixel
        tile(rows, x + columns - STEP, x_row, f, y + columns - STEP, y_row);
        j = columns;
    }
    for (; j < columns; j++) {
        for (int i = 0; i < rows; i++) {
            float sum = 0;
            for (int tap = 0; tap < 9; tap++)
                sum += f[tap] * x[(i + tap / 3) * x_row + j + tap % 3];
            y[i * y_row + j] = sum;
        }
    }
}

#if PAD == 0
void conv2d(const float *x, const float *f, float *y, int64_t H, int64_t W)
{
    for (int64_t i0 = 0; i0 < H; i0 += TR) {
        for (int64_t j0 = 0; j0 < W; j0 += NX) {
            for (int64_t i = i0; i < i0 + TR && i < H; i++) {
                for (int64_t j = j0; j < j0 + NX && j < W; j++)
                    y[i * W + j] = checked(x, f, H, W, i, j);
            }
        }
    }
}
#elif PAD == 2
void conv2d(const float *x, const float *f, float *y, int64_t H, int64_t W)
{
    for (int64_t j = 0; j < W; j++) {
        y[j] = checked(x, f, H, W, 0, j);
        y[(H - 1) * W + j] = checked(x, f, H, W, H - 1, j);
    }
    for (int64_t i = 1; i < H - 1; i++) {
        y[i * W] = checked(x, f, H, W, i, 0);
        y[i * W + W - 1] = checked(x, f, H, W, i, W - 1);
    }
    if (W < 3)
        return;
    int64_t i = 1;
    for (; i + TR <= H - 1; i += TR)
        strip(TR, x + (i - 1) * W, W, f, y + i * W + 1, W, W - 2);
    // Half a tile of rows, then the one that is left.
    if (TR > 1 && i + TR / 2 <= H - 1) {
        strip(TR / 2, x + (i - 1) * W, W, f, y + i * W + 1, W, W - 2);
        i += TR / 2;
    }
    if (i < H - 1)
        strip(1, x + (i - 1) * W, W, f, y + i * W + 1, W, W - 2);
}
#else
void conv2d(const float *x, const float *f, float *y, int64_t H, int64_t W)
{
    int64_t row = W + 2;
    float *frame = calloc((size_t)((H + 2) * row), sizeof(float));
    for (int64_t i = 0; i < H; i++)
        memcpy(frame + (i + 1) * row + 1, x + i * W, (size_t)W * sizeof(float));
#if PAD == 3
    for (int64_t i = 1; i <= H; i++) {
        frame[i * row] = frame[i * row + 1];
        frame[i * row + W + 1] = frame[i * row + W];
    }
    memcpy(frame, frame + row, (size_t)row * sizeof(float));
    memcpy(frame + (H + 1) * row, frame + H * row, (size_t)row * sizeof(float));
#endif
    int64_t width = STRIP ? STRIP : W;
    for (int64_t j = 0; j < W; j += width) {
        int64_t columns = W - j < width ? W - j : width, i = 0;
        for (; i + TR <= H; i += TR)
            strip(TR, frame + i * row + j, row, f, y + i * W + j, W, columns);
        for (; i < H; i++)
            strip(1, frame + i * row + j, row, f, y + i * W + j, W, columns);
    }
    free(frame);
}
#endif

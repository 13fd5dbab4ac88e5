#include "worker/model/columns.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

// Whether column d is a constant times column c plus a constant in the rows looked at, and missing
// in the same rows. The ratio of a count to the baseline's count is an example.
static bool repeats(const float *x, size_t rows, size_t columns, const bool *take, size_t c,
                    size_t d)
{
    double slope = 0, before_c = NAN, before_d = NAN;
    for (size_t i = 0; i < rows; i++) {
        double u = x[i * columns + c], v = x[i * columns + d];
        if (take && !take[i]) {
            continue;
        }
        if (isnan(u) != isnan(v)) {
            return false;
        }
        if (isnan(u)) {
            continue;
        }
        if (!isnan(before_c)) {
            double du = u - before_c, dv = v - before_d;
            if ((fabs(du) < 1e-6) != (fabs(dv) < 1e-6)) {
                return false;
            }
            if (fabs(du) >= 1e-6 && slope == 0) {
                slope = dv / du;
            }
            if (fabs(dv - slope * du) > 1e-4 * (1 + fabs(dv))) {
                return false;
            }
        }
        before_c = u;
        before_d = v;
    }
    return true;
}

// Whether two of the rows looked at differ in column c.
static bool varies(const float *x, size_t rows, size_t columns, const bool *take, size_t c)
{
    const float *first = NULL;
    for (size_t i = 0; i < rows; i++) {
        const float *v = &x[i * columns + c];
        if (take && !take[i]) {
            continue;
        }
        if (!first) {
            first = v;
        }
        if (isnan(*v) != isnan(*first) || (!isnan(*v) && fabsf(*v - *first) > 1e-6f)) {
            return true;
        }
    }
    return false;
}

size_t *columns_informative(const float *x, size_t rows, size_t columns, const bool *param,
                            const bool *take, size_t *ret_count)
{
    size_t *chosen = xcalloc(columns + 1, sizeof(*chosen)), count = 0;
    for (int pass = 0; pass < 2; pass++) { // the first pass takes the parameters
        for (size_t c = 0; c < columns; c++) {
            bool fresh = param[c] == (pass == 0) && varies(x, rows, columns, take, c);
            for (size_t i = 0; fresh && i < count; i++) {
                fresh = !repeats(x, rows, columns, take, chosen[i], c);
            }
            if (fresh) {
                chosen[count++] = c;
            }
        }
    }
    *ret_count = count;
    return chosen;
}

size_t *columns_find(const size_t *name, size_t columns, const size_t *wanted, size_t count)
{
    size_t *index = xcalloc(count + 1, sizeof(*index));
    for (size_t i = 0; i < count; i++) {
        size_t c = 0;
        while (c < columns && (name ? name[c] : c) != wanted[i]) {
            c++;
        }
        if (c == columns) {
            free(index);
            return NULL;
        }
        index[i] = c;
    }
    return index;
}

float *columns_gather(const size_t *index, size_t count, const float *x, size_t rows,
                      size_t columns, const bool *keep, size_t *ret_rows)
{
    float *to = xcalloc(rows * count + 1, sizeof(*to));
    size_t kept = 0;
    for (size_t i = 0; i < rows; i++) {
        if (keep && !keep[i]) {
            continue;
        }
        for (size_t c = 0; c < count; c++) {
            to[kept * count + c] = x[i * columns + index[c]];
        }
        kept++;
    }
    *ret_rows = kept;
    return to;
}

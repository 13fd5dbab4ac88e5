// One hash of 64 bits gives two elements: of each half, the upper 12 bits choose one of 4,096
// intervals between quantiles, the other 20 the place within it. Rare ranks of a zipf distribution
// would be lost among 4,096 intervals, so its table has one entry for each of 65,536 draws, and a
// hash gives four elements. A table fits a core's level 2 cache, one of 4,096 its level 1.
//
// The hash can be inverted, and some elements show all of its bits. So its result is combined with
// a second secret before it is used: otherwise a candidate would have the key of a content after a
// few elements, and with it all others without reading them.
#include "executor/input_table.h"
#include "common/mem.h"
#include "executor/inputs.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

#define INTERVALS 4096
#define DRAWS 65536
#define DISTINCT 4096 // most values of a discrete distribution that the draws represent

enum kind {
    KIND_EXACT,  // by inputs_fill
    KIND_SMOOTH, // between quantiles
    KIND_SIGNED, // the same with a random sign
    KIND_DRAWN,  // one of the draws
};

struct input_table {
    const struct tensor *tensor;
    enum kind kind;
    float quantile[INTERVALS + 1]; // KIND_SMOOTH, KIND_SIGNED
    unsigned char *drawn;          // KIND_DRAWN: DRAWS elements of the dtype
};

static enum kind kind_of(const struct tensor *tensor)
{
    bool real = tensor->dtype == DTYPE_F32 || tensor->dtype == DTYPE_F64;

    switch (tensor->values.distribution) {
    case VALUES_NORMAL:
    case VALUES_UNIFORM:
        return real ? KIND_SMOOTH : KIND_DRAWN;
    case VALUES_WIDE:
        return real ? KIND_SIGNED : KIND_DRAWN;
    case VALUES_INTEGERS:
        return tensor->values.b - tensor->values.a < DISTINCT ? KIND_DRAWN : KIND_EXACT;
    case VALUES_ZIPF:
        return tensor->values.a <= DISTINCT ? KIND_DRAWN : KIND_EXACT;
    case VALUES_SORTED:
    case VALUES_ONE_HOT:
        break;
    }
    return KIND_EXACT;
}

// Returns the quantile at p, 0 < p < 1.
static double quantile_at(const struct tensor *tensor, double p)
{
    double a = tensor->values.a, b = tensor->values.b;

    switch (tensor->values.distribution) {
    case VALUES_NORMAL:
        return a + b * inputs_normal(p);
    case VALUES_WIDE:
        return exp(log(a) + p * (log(b) - log(a)));
    default: // uniform
        return a + p * (b - a);
    }
}

struct input_table *input_table_create(const struct tensor *tensor, uint64_t key)
{
    struct input_table *table = xcalloc(1, sizeof(*table));

    table->tensor = tensor;
    table->kind = kind_of(tensor);
    if (table->kind == KIND_DRAWN) {
        table->drawn = xmalloc(DRAWS * dtype_size(tensor->dtype));
        inputs_fill(tensor->dtype, &tensor->values, key, DRAWS, DRAWS, table->drawn);
    } else if (table->kind != KIND_EXACT) {
        // The outermost quantiles are those of a quarter of an interval, where a normal
        // distribution has 4.0 standard deviations.
        for (size_t i = 0; i <= INTERVALS; i++) {
            double p = fmin(fmax((double)i, 0.25), INTERVALS - 0.25) / INTERVALS;
            double value = quantile_at(tensor, p);
            table->quantile[i] = (float)fmin(fmax(value, -(double)FLT_MAX), (double)FLT_MAX);
        }
    }
    return table;
}

void input_table_free(struct input_table *table)
{
    if (table) {
        free(table->drawn);
        free(table);
    }
}

// The hashes of a content.
struct hashes {
    uint64_t key, veil;
};

static struct hashes hashes_of(uint64_t key)
{
    return (struct hashes){.key = key, .veil = inputs_bits(inputs_bits(~key, UINT64_MAX), 1)};
}

static inline uint64_t hash_at(struct hashes hashes, uint64_t counter)
{
    return inputs_bits(hashes.key, counter) ^ hashes.veil;
}

static inline float smooth(const float *quantile, uint32_t bits)
{
    uint32_t at = bits >> 20;
    float low = quantile[at];

    return low + (quantile[at + 1] - low) * ((float)(bits & 0xfffff) * 0x1p-20f);
}

static void fill_f32(const float *quantile, uint64_t key, size_t count, float *out)
{
    struct hashes hashes = hashes_of(key);
    size_t i = 0;

    for (; i + 1 < count; i += 2) {
        uint64_t bits = hash_at(hashes, i / 2);
        out[i] = smooth(quantile, (uint32_t)bits);
        out[i + 1] = smooth(quantile, (uint32_t)(bits >> 32));
    }
    if (i < count) {
        out[i] = smooth(quantile, (uint32_t)hash_at(hashes, i / 2));
    }
}

static void fill_f64(const float *quantile, uint64_t key, size_t count, double *out)
{
    struct hashes hashes = hashes_of(key);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = hash_at(hashes, i);
        double low = quantile[bits >> 52], high = quantile[(bits >> 52) + 1];
        out[i] = low + (high - low) * ((double)(bits & 0xfffffffffffffULL) * 0x1p-52);
    }
}

// Gives each element a random sign, by hashes that the values do not use. One function for each
// type, both alike.
#define DEFINE_SIGN(type)                                                                          \
    static void sign_##type(uint64_t key, size_t count, type *out)                                 \
    {                                                                                              \
        struct hashes hashes = hashes_of(~key);                                                    \
                                                                                                   \
        for (size_t i = 0; i < count; i += 64) {                                                   \
            uint64_t bits = hash_at(hashes, i / 64);                                               \
            size_t most = count - i < 64 ? count - i : 64;                                         \
            for (size_t j = 0; j < most; j++) {                                                    \
                out[i + j] = bits >> j & 1 ? -out[i + j] : out[i + j];                             \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_SIGN(float)
DEFINE_SIGN(double)

// Draws by 16 bits each. One function for each size of element, all alike.
#define DEFINE_DRAW(type)                                                                          \
    static void draw_##type(const type *drawn, uint64_t key, size_t count, type *out)              \
    {                                                                                              \
        struct hashes hashes = hashes_of(key);                                                     \
                                                                                                   \
        for (size_t i = 0; i < count; i += 4) {                                                    \
            uint64_t bits = hash_at(hashes, i / 4);                                                \
            size_t most = count - i < 4 ? count - i : 4;                                           \
            for (size_t j = 0; j < most; j++) {                                                    \
                out[i + j] = drawn[bits >> (16 * j) & (DRAWS - 1)];                                \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_DRAW(uint8_t)
DEFINE_DRAW(uint32_t)
DEFINE_DRAW(uint64_t)

static void fill_drawn(const struct input_table *table, uint64_t key, size_t count, void *out)
{
    const void *drawn = table->drawn;

    switch (dtype_size(table->tensor->dtype)) {
    case 1:
        draw_uint8_t(drawn, key, count, out);
        break;
    case 4:
        draw_uint32_t(drawn, key, count, out);
        break;
    default:
        draw_uint64_t(drawn, key, count, out);
        break;
    }
}

void input_table_fill(const struct input_table *table, uint64_t key, size_t count,
                      size_t last_extent, void *out)
{
    bool is_f32 = table->tensor->dtype == DTYPE_F32;

    switch (table->kind) {
    case KIND_EXACT:
        inputs_fill(table->tensor->dtype, &table->tensor->values, key, count, last_extent, out);
        return;
    case KIND_DRAWN:
        fill_drawn(table, key, count, out);
        return;
    case KIND_SMOOTH:
    case KIND_SIGNED:
        break;
    }
    if (is_f32) {
        fill_f32(table->quantile, key, count, out);
    } else {
        fill_f64(table->quantile, key, count, out);
    }
    if (table->kind == KIND_SIGNED && is_f32) {
        sign_float(key, count, out);
    } else if (table->kind == KIND_SIGNED) {
        sign_double(key, count, out);
    }
}

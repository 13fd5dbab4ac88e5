// The methods: xoshiro256++ (Blackman and Vigna 2021) for the bits; the ziggurat of 128 layers
// (Marsaglia and Tsang 2000) for normal values; Walker's alias table (Vose 1991) for zipf ranks;
// sorting for sorted ones. A normal value takes about 3 ns.
#include "tests/bench/draw.h"
#include "common/mem.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 128
#define TAIL 3.442619855899            // where the lowest layer's rectangle ends
#define LAYER_AREA 9.91256303526217e-3 // of each layer
#define BLOCK 512                      // values that are drawn before they are converted

struct draw {
    const struct tensor *tensor;
    uint64_t state[4];
    double edge[LAYERS + 1]; // right ends of the ziggurat's layers, from the lowest up
    uint32_t ranks;          // of a zipf distribution
    uint32_t *share;         // in 2^-32: how much of a column belongs to its own rank; owned
    uint32_t *alias;         // whose the rest is; owned
};

// ---- bits ----

static inline uint64_t turn(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static inline uint64_t bits(struct draw *draw)
{
    uint64_t *s = draw->state, result = turn(s[0] + s[3], 23) + s[0], t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = turn(s[3], 45);
    return result;
}

// Uniform in (0, 1).
static inline double unit(struct draw *draw)
{
    return ((double)(bits(draw) >> 12) + 0.5) * 0x1p-52;
}

// ---- normal ----

static void stack_layers(struct draw *draw)
{
    double *edge = draw->edge;

    edge[0] = LAYER_AREA / exp(-0.5 * TAIL * TAIL); // as wide as the lowest layer with its tail
    edge[1] = TAIL;
    for (size_t i = 2; i < LAYERS; i++) {
        double below = edge[i - 1];
        edge[i] = sqrt(-2 * log(LAYER_AREA / below + exp(-0.5 * below * below)));
    }
    edge[LAYERS] = 0;
}

static double normal_tail(struct draw *draw)
{
    double x, y;

    do {
        x = -log(unit(draw)) / TAIL;
        y = -log(unit(draw));
    } while (2 * y < x * x);
    return TAIL + x;
}

static inline double normal(struct draw *draw)
{
    for (;;) {
        uint64_t random = bits(draw);
        size_t layer = random & (LAYERS - 1);
        double u = (double)(int64_t)(random & ~(uint64_t)0x7ff) * 0x1p-63; // in [-1, 1)
        double x = u * draw->edge[layer];

        if (fabs(x) < draw->edge[layer + 1]) {
            return x;
        }
        if (layer == 0) {
            return copysign(normal_tail(draw), u);
        }
        double low = draw->edge[layer], high = draw->edge[layer + 1];
        double bottom = exp(-0.5 * (low * low - x * x)), top = exp(-0.5 * (high * high - x * x));
        if (bottom + unit(draw) * (top - bottom) < 1) {
            return x;
        }
    }
}

// ---- zipf ----

// Every column of the table gets the mean probability, from at most two ranks.
static void share_columns(struct draw *draw, double *load)
{
    uint32_t *small = xcalloc(draw->ranks, sizeof(*small)), smalls = 0;
    uint32_t *large = xcalloc(draw->ranks, sizeof(*large)), larges = 0;

    for (uint32_t k = 0; k < draw->ranks; k++) {
        draw->alias[k] = k;
        draw->share[k] = UINT32_MAX;
        if (load[k] < 1) {
            small[smalls++] = k;
        } else {
            large[larges++] = k;
        }
    }
    while (smalls > 0 && larges > 0) {
        uint32_t poor = small[--smalls], rich = large[larges - 1];
        draw->share[poor] = (uint32_t)(load[poor] * 0x1p32);
        draw->alias[poor] = rich;
        load[rich] -= 1 - load[poor];
        if (load[rich] < 1) {
            larges--;
            small[smalls++] = rich;
        }
    }
    free(small);
    free(large);
}

static void rank_columns(struct draw *draw)
{
    double *load = xcalloc(draw->ranks, sizeof(*load)), sum = 0;

    draw->share = xcalloc(draw->ranks, sizeof(*draw->share));
    draw->alias = xcalloc(draw->ranks, sizeof(*draw->alias));
    for (uint32_t k = 0; k < draw->ranks; k++) {
        sum += load[k] = pow((double)k + 1, -draw->tensor->values.b);
    }
    for (uint32_t k = 0; k < draw->ranks; k++) {
        load[k] *= draw->ranks / sum;
    }
    share_columns(draw, load);
    free(load);
}

static inline double rank(struct draw *draw)
{
    uint64_t random = bits(draw);
    uint32_t column = (uint32_t)(((random >> 32) * draw->ranks) >> 32);

    return (uint32_t)random < draw->share[column] ? column : draw->alias[column];
}

// ---- begin and end ----

int draw_create(struct draw **ret, const struct tensor *tensor, uint64_t seed, struct err *err)
{
    bool zipf = tensor->values.distribution == VALUES_ZIPF;

    if (tensor->dtype == DTYPE_E4M3 || tensor->dtype == DTYPE_E5M2) {
        return err_set(err, ERR_UNSUPPORTED,
                       "tensor %s: %s is not drawn here; choose another problem", tensor->name,
                       dtype_name(tensor->dtype));
    }
    if (zipf && !(tensor->values.a >= 1 && tensor->values.a <= DRAW_RANKS_MAX)) {
        return err_set(
            err, ERR_UNSUPPORTED,
            "tensor %s: a zipf distribution has 1 to %d values here; choose another problem",
            tensor->name, DRAW_RANKS_MAX);
    }
    struct draw *draw = xcalloc(1, sizeof(*draw));
    draw->tensor = tensor;
    for (size_t i = 0; i < ARRAY_LEN(draw->state); i++) { // SplitMix64, as xoshiro's authors advise
        uint64_t z = seed += 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        draw->state[i] = z ^ (z >> 31);
    }
    stack_layers(draw);
    if (zipf) {
        draw->ranks = (uint32_t)tensor->values.a;
        rank_columns(draw);
    }
    *ret = draw;
    return 0;
}

void draw_free(struct draw *draw)
{
    if (draw) {
        free(draw->share);
        free(draw->alias);
        free(draw);
    }
}

// ---- values ----

static double wide(struct draw *draw, double low, double high)
{
    double magnitude = exp(log(low) + unit(draw) * (log(high) - log(low)));
    return bits(draw) >> 63 ? -magnitude : magnitude;
}

// Values of independent elements.
static void draw_values(struct draw *draw, double *value, size_t count)
{
    double a = draw->tensor->values.a, b = draw->tensor->values.b;

    switch (draw->tensor->values.distribution) {
    case VALUES_NORMAL:
        for (size_t i = 0; i < count; i++) {
            value[i] = a + b * normal(draw);
        }
        break;
    case VALUES_ZIPF:
        for (size_t i = 0; i < count; i++) {
            value[i] = rank(draw);
        }
        break;
    case VALUES_INTEGERS:
        for (size_t i = 0; i < count; i++) {
            value[i] = floor(ceil(a) + unit(draw) * (floor(b) - ceil(a) + 1));
        }
        break;
    case VALUES_WIDE:
        for (size_t i = 0; i < count; i++) {
            value[i] = wide(draw, a, b);
        }
        break;
    default: // uniform, and sorted before they are sorted
        for (size_t i = 0; i < count; i++) {
            value[i] = a + unit(draw) * (b - a);
        }
        break;
    }
}

// ---- types ----

// The upper half of a float, rounded to nearest even.
static uint16_t to_bf16(float value)
{
    uint32_t code;

    memcpy(&code, &value, sizeof(code));
    return (uint16_t)((code + 0x7fff + (code >> 16 & 1)) >> 16);
}

// An IEEE half, rounded to nearest even; beyond its range it gets its greatest finite value.
static uint16_t to_f16(double value)
{
    double size = fmin(fabs(value), 65504);
    int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    // A mantissa that is rounded up to 2048 carries into the exponent, as it shall.
    double mantissa = nearbyint(ldexp(size, 10 - exponent));
    uint16_t code = (uint16_t)((exponent + 14) * 1024 + (int)mantissa);

    return (uint16_t)(code | (signbit(value) ? 0x8000 : 0));
}

static double clamp(double value, double low, double high)
{
    return fmin(fmax(nearbyint(value), low), high);
}

static void store(enum dtype dtype, const double *value, size_t count, void *out)
{
    for (size_t i = 0; i < count; i++) {
        switch (dtype) {
        case DTYPE_F32:
            ((float *)out)[i] = (float)fmin(fmax(value[i], -(double)FLT_MAX), (double)FLT_MAX);
            break;
        case DTYPE_F64:
            ((double *)out)[i] = value[i];
            break;
        case DTYPE_F16:
            ((uint16_t *)out)[i] = to_f16(value[i]);
            break;
        case DTYPE_BF16:
            ((uint16_t *)out)[i] = to_bf16((float)value[i]);
            break;
        case DTYPE_I32:
            ((int32_t *)out)[i] = (int32_t)clamp(value[i], INT32_MIN, INT32_MAX);
            break;
        case DTYPE_I64: // the greatest double below 2^63
            ((int64_t *)out)[i] = (int64_t)clamp(value[i], -0x1p63, 0x1.fffffffffffffp62);
            break;
        case DTYPE_I8:
            ((int8_t *)out)[i] = (int8_t)clamp(value[i], INT8_MIN, INT8_MAX);
            break;
        default: // u8; draw_create has refused the others
            ((uint8_t *)out)[i] = (uint8_t)clamp(value[i], 0, UINT8_MAX);
            break;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void fill_sorted(struct draw *draw, size_t count, void *out)
{
    double *value = xcalloc(count, sizeof(*value));

    draw_values(draw, value, count);
    qsort(value, count, sizeof(*value), by_value);
    store(draw->tensor->dtype, value, count, out);
    free(value);
}

static void fill_one_hot(struct draw *draw, size_t count, size_t row, unsigned char *out)
{
    const double one = 1;
    size_t size = dtype_size(draw->tensor->dtype);

    memset(out, 0, count * size);
    for (size_t at = 0; row > 0 && at < count; at += row) {
        size_t column = (size_t)(unit(draw) * (double)row);
        store(draw->tensor->dtype, &one, 1, out + (at + column) * size);
    }
}

void draw_fill(struct draw *draw, size_t count, size_t last_extent, void *out)
{
    size_t size = dtype_size(draw->tensor->dtype);

    if (draw->tensor->values.distribution == VALUES_SORTED) {
        fill_sorted(draw, count, out);
        return;
    }
    if (draw->tensor->values.distribution == VALUES_ONE_HOT) {
        fill_one_hot(draw, count, last_extent, out);
        return;
    }
    double value[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t block = count - at < BLOCK ? count - at : BLOCK;
        draw_values(draw, value, block);
        store(draw->tensor->dtype, value, block, (unsigned char *)out + at * size);
    }
}

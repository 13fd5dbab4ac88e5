// Design. Ticks stand at round positions. A linear axis takes steps of 1, 2, 2.5 or 5 times a power
// of ten. A log2 axis chooses by the number of octaves that it spans: every n-th power of two;
// powers of two and one and a half times them (1×, 1.5×, 2×, 3×); or, below about an octave and a
// half, round steps of the speedup itself, as on a linear axis.
#include "client/report/svg.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TIMES "\xC3\x97"
#define AXIS_LIMIT 1e15 // limit of a linear axis
#define AXIS_LIMIT_LOG2 60.0

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

// Turns any range into a usable one: finite, ascending, at least `least` wide.
static void sane_range(double *min, double *max, double limit, double least)
{
    if (!isfinite(*min)) {
        *min = isfinite(*max) ? *max : 0;
    }
    if (!isfinite(*max)) {
        *max = *min;
    }
    if (*min > *max) {
        double swap = *min;
        *min = *max;
        *max = swap;
    }
    *min = clamp(*min, -limit, limit);
    *max = clamp(*max, -limit, limit);
    double lacking = fmax(least, 1e-3 * fmax(fabs(*min), fabs(*max))) - (*max - *min);
    if (lacking > 0) {
        *min -= lacking / 2;
        *max += lacking / 2;
    }
}

// The smallest round step that puts at most `wanted` intervals into `span`, which is greater than
// 0.
static double round_step(double span, size_t wanted)
{
    static const double factor[] = {1, 2, 2.5, 5, 10};
    double rough = span / (double)wanted;
    double power = pow(10, floor(log10(rough)));
    for (size_t i = 0; i < sizeof factor / sizeof *factor; i++) {
        if (power * factor[i] >= rough * (1 - 1e-9)) {
            return power * factor[i];
        }
    }
    return power * 10;
}

// How many digits behind the point multiples of `step` need.
static int step_decimals(double step)
{
    for (int decimals = 0; decimals < 9; decimals++) {
        double scaled = step * pow(10, decimals);
        if (fabs(scaled - round(scaled)) < 1e-6 * scaled) {
            return decimals;
        }
    }
    return 9;
}

static void add_tick(struct svg_axis *axis, double at, double value, int decimals, const char *unit)
{
    if (axis->tick_count == SVG_TICK_MAX) {
        return;
    }
    struct svg_tick *tick = &axis->tick[axis->tick_count++];
    tick->at = at;
    if (fabs(value) >= 1e6) {
        snprintf(tick->label, sizeof tick->label, "%.5g%s", value, unit);
        return;
    }
    char digits[20];
    snprintf(digits, sizeof digits, "%.*f", decimals, value == 0 ? 0 : value);
    size_t whole = strcspn(digits, ".");
    bool thousands = whole >= 4 && digits[0] != '-'; // "1,024"; values are below a million
    snprintf(tick->label, sizeof tick->label, "%.*s%s%s%s", thousands ? (int)whole - 3 : (int)whole,
             digits, thousands ? "," : "", digits + (thousands ? whole - 3 : whole), unit);
}

static size_t sane_wanted(size_t wanted)
{
    return wanted < 2 ? 2 : wanted > 8 ? 8 : wanted;
}

void svg_axis_linear(struct svg_axis *axis, double min, double max, size_t wanted,
                     const char *title)
{
    memset(axis, 0, sizeof *axis);
    axis->scale = SVG_LINEAR;
    axis->title = title;
    sane_range(&min, &max, AXIS_LIMIT, 1e-6);
    double step = round_step(max - min, sane_wanted(wanted));
    double first = floor(min / step + 1e-9), last = ceil(max / step - 1e-9);
    axis->min = first * step;
    axis->max = last * step;
    for (double i = first; i <= last; i++) {
        add_tick(axis, i * step, i * step, step_decimals(step), "");
    }
}

static void add_speedup_ticks(struct svg_axis *axis, size_t wanted)
{
    double low = exp2(axis->min), high = exp2(axis->max);
    double step = round_step(high - low, wanted);
    for (double i = ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9); i++) {
        if (i > 0) {
            add_tick(axis, log2(i * step), i * step, step_decimals(step), TIMES);
        }
    }
}

// How many decimals a power of two, or one and a half times it, is shown with.
static int power_decimals(double value)
{
    if (value >= 1) {
        return step_decimals(value) < 2 ? step_decimals(value) : 2;
    }
    return (int)clamp(2 - floor(log10(value)) - 1, 1, 6);
}

static void add_power_ticks(struct svg_axis *axis, double stride, bool halves)
{
    for (double k = ceil(axis->min / stride - 1e-9) * stride - stride; k <= axis->max + 1e-9;
         k += stride) {
        if (k >= axis->min - 1e-9) {
            add_tick(axis, k, exp2(k), power_decimals(exp2(k)), TIMES);
        }
        double half = k + log2(1.5);
        if (halves && half >= axis->min && half <= axis->max) {
            add_tick(axis, half, exp2(half), power_decimals(exp2(half)), TIMES);
        }
    }
}

void svg_axis_log2(struct svg_axis *axis, double min, double max, size_t wanted, const char *title)
{
    memset(axis, 0, sizeof *axis);
    axis->scale = SVG_LOG2;
    axis->title = title;
    sane_range(&min, &max, AXIS_LIMIT_LOG2, 0.01);
    double air = 0.05 * (max - min);
    axis->min = min - air;
    axis->max = max + air;
    double span = axis->max - axis->min;
    wanted = sane_wanted(wanted);
    if (span < 1.6) {
        add_speedup_ticks(axis, wanted);
    } else if (span * 2 <= (double)wanted) {
        add_power_ticks(axis, 1, true);
    } else {
        add_power_ticks(axis, ceil(span / (double)wanted), false);
    }
}

// Quantities with a unit, such as "1.5s" or "64K", are computed in integers and must come out
// exact, so that the value is the one that was written.
#include "common/parse.h"
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRACTION_DIGITS 18

struct unit {
    const char *suffix;
    uint64_t factor; // base units in one
};

// Reports that text is not what was expected.
static int not_a(struct err *err, const char *what, const char *text, const char *expected)
{
    return err_set(err, ERR_INVALID, "%s: '%.100s' is not %s", what, text, expected);
}

// Reads decimal digits at *cursor and moves it behind them. False when there is no digit or the
// value does not fit.
static bool read_digits(uint64_t *ret, const char **cursor)
{
    const char *p = *cursor;

    if (*p < '0' || *p > '9') {
        return false;
    }
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value)) {
            return false;
        }
    }
    *ret = value;
    *cursor = p;
    return true;
}

int parse_u64(uint64_t *ret, const char *text, uint64_t min, uint64_t max, const char *what,
              struct err *err)
{
    const char *cursor = text;
    uint64_t value;

    if (!read_digits(&value, &cursor) || *cursor != '\0') {
        return not_a(err, what, text, "a whole number (or it is too large)");
    }
    if (value < min || value > max) {
        return err_set(err, ERR_INVALID, "%s: %s is outside %llu to %llu", what, text,
                       (unsigned long long)min, (unsigned long long)max);
    }
    *ret = value;
    return 0;
}

int parse_i64(int64_t *ret, const char *text, int64_t min, int64_t max, const char *what,
              struct err *err)
{
    bool negative = text[0] == '-';
    const char *cursor = text + (negative ? 1 : 0);
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
    uint64_t size;

    if (!read_digits(&size, &cursor) || *cursor != '\0' || size > limit) {
        return not_a(err, what, text, "a whole number (or it is too large)");
    }
    // The negation is unsigned, because int64_t has no -INT64_MIN.
    int64_t value = (int64_t)(negative ? 0 - size : size);
    if (value < min || value > max) {
        return err_set(err, ERR_INVALID, "%s: %s is outside %lld to %lld", what, text,
                       (long long)min, (long long)max);
    }
    *ret = value;
    return 0;
}

int parse_f64(double *ret, const char *text, double min, double max, const char *what,
              struct err *err)
{
    // strtod also accepts blanks, "inf", "nan" and hexadecimal numbers. Refuse them here.
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0') {
        return not_a(err, what, text, "a number");
    }
    // glibc returns a static object for "C": nothing is allocated.
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return err_set(err, ERR_SYSTEM, "the C locale is missing");
    }
    char *end = NULL;
    double value = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    if (end == text || *end != '\0') {
        return not_a(err, what, text, "a number");
    }
    if (!isfinite(value)) {
        return not_a(err, what, text, "a number of this size");
    }
    if (value < min || value > max) {
        return err_set(err, ERR_INVALID, "%s: %s is outside %g to %g", what, text, min, max);
    }
    *ret = value;
    return 0;
}

// Reads "<digits>[.<digits>]<suffix>" with a suffix of the table at *cursor, adds it to *total as a
// whole number of base units, and moves *cursor behind it. *ret_unit becomes the suffix's row and
// *ret_fraction whether there was a point. NULL, or what the text is not.
static const char *add_part(unsigned __int128 *total, const char **cursor, const struct unit *units,
                            size_t count, const char *expected, const struct unit **ret_unit,
                            bool *ret_fraction)
{
    uint64_t whole, fraction = 0, scale = 1;

    if (!read_digits(&whole, cursor)) {
        return expected;
    }
    *ret_fraction = **cursor == '.';
    if (*ret_fraction) {
        const char *first = ++*cursor;

        if (!read_digits(&fraction, cursor) || *cursor - first > MAX_FRACTION_DIGITS) {
            return expected;
        }
        for (const char *p = first; p < *cursor; p++) {
            scale *= 10;
        }
    }
    size_t len = strcspn(*cursor, "0123456789.");
    const struct unit *unit = NULL;
    for (size_t i = 0; i < count && !unit; i++) {
        bool same = strlen(units[i].suffix) == len && memcmp(*cursor, units[i].suffix, len) == 0;
        unit = same ? &units[i] : NULL;
    }
    if (!unit) {
        return expected;
    }
    *cursor += len;
    unsigned __int128 parts = (unsigned __int128)fraction * unit->factor;
    if (parts % scale != 0) {
        return "a whole number of the smallest unit";
    }
    *total += parts / scale + (unsigned __int128)whole * unit->factor;
    *ret_unit = unit;
    return NULL;
}

// Parses one part, or with `several` any number of them, from large units to small ones, each with
// its unit, and only the last with a point: "1h30m", "2m1.5s".
static int parse_quantity(uint64_t *ret, const char *text, const struct unit *units, size_t count,
                          bool several, const char *what, const char *expected, struct err *err)
{
    const char *cursor = text;
    unsigned __int128 total = 0; // a part has less than 2^114, and a text at most as many as units
    const struct unit *unit = NULL;

    do {
        const struct unit *before = unit;
        bool fraction = false;
        const char *wrong = add_part(&total, &cursor, units, count, expected, &unit, &fraction);
        bool last = *cursor == '\0';

        if (!wrong && ((!last && (!several || fraction || unit->suffix[0] == '\0')) ||
                       (before && (unit->suffix[0] == '\0' || unit->factor >= before->factor)))) {
            wrong = expected;
        }
        if (wrong) {
            return not_a(err, what, text, wrong);
        }
    } while (*cursor != '\0');
    if (total > UINT64_MAX) {
        return err_set(err, ERR_INVALID, "%s: '%.100s' is too large", what, text);
    }
    *ret = (uint64_t)total;
    return 0;
}

int parse_duration(uint64_t *ret_ns, const char *text, const char *what, struct err *err)
{
    static const struct unit units[] = {
        {"", 1000000000ULL},
        {"s", 1000000000ULL},
        {"ms", 1000000ULL},
        {"us", 1000ULL},
        {"ns", 1},
        {"m", 60 * 1000000000ULL},
        {"h", 3600 * 1000000000ULL},
        {"d", 86400 * 1000000000ULL},
    };

    return parse_quantity(ret_ns, text, units, sizeof(units) / sizeof(units[0]), true, what,
                          "a duration like 90, 250ms, 30s, 5m or 1h30m", err);
}

int parse_size(uint64_t *ret, const char *text, const char *what, struct err *err)
{
    static const struct unit units[] = {
        {"", 1}, {"K", 1ULL << 10}, {"M", 1ULL << 20}, {"G", 1ULL << 30}, {"T", 1ULL << 40},
    };

    return parse_quantity(ret, text, units, sizeof(units) / sizeof(units[0]), false, what,
                          "a size like 65536, 64K, 16M or 2G", err);
}

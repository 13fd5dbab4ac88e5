#include "client/report/report_text.h"
#include "common/printable.h"
#include "common/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define REPLACEMENT "\xEF\xBF\xBD"
#define DASH "\xE2\x80\x93"
#define TIMES "\xC3\x97"
// A narrow space without a line break, which stands between a number and its unit.
#define THIN_SPACE "\xE2\x80\xAF"

void text_add_utf8(struct strbuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t length = utf8_length((const unsigned char *)text + i, len - i);
        if (length == 0 || text[i] == '\0') {
            strbuf_adds(out, REPLACEMENT);
            i++;
        } else {
            strbuf_add(out, text + i, length);
            i += length;
        }
    }
}

json_t *text_json(const char *text, size_t len)
{
    struct strbuf clean = STRBUF_INIT;
    text_add_utf8(&clean, text, len);
    json_t *ret = json_stringn(strbuf_text(&clean), clean.len);
    strbuf_release(&clean);
    return ret ? ret : json_null();
}

static const char *entity_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        break;
    }
    return NULL;
}

void text_add_markup_bytes(struct strbuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        const unsigned char *here = (const unsigned char *)text + i;
        size_t length = utf8_length(here, len - i);
        bool shown = text[i] == '\n' || text[i] == '\t' || printable_length(here, len - i) > 0;
        const char *entity = shown ? entity_of(text[i]) : REPLACEMENT;
        if (entity) {
            strbuf_adds(out, entity);
        } else {
            strbuf_add(out, here, length);
        }
        i += length > 0 ? length : 1;
    }
}

void text_add_markup(struct strbuf *out, const char *text)
{
    if (text) {
        text_add_markup_bytes(out, text, strlen(text));
    }
}

void text_add_count(struct strbuf *out, uint64_t count)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            strbuf_addc(out, ',');
        }
        strbuf_addc(out, digits[i]);
    }
}

// Appends three significant digits without an exponent. `value` is finite and not negative.
static void add_significant(struct strbuf *out, double value)
{
    if (value >= 999.5) {
        text_add_count(out, value < 1e18 ? (uint64_t)llround(value) : (uint64_t)1e18);
        return;
    }
    int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
    if (value > 0 && value < 0.0995) {
        decimals = value < 1e-8 ? 10 : 2 - (int)floor(log10(value));
    }
    strbuf_addf(out, "%.*f", decimals, value);
}

void text_add_speedup(struct strbuf *out, double log2_speedup)
{
    if (!isfinite(log2_speedup)) {
        strbuf_adds(out, DASH);
        return;
    }
    add_significant(out, exp2(log2_speedup));
    strbuf_adds(out, TIMES);
}

void text_add_seconds(struct strbuf *out, double seconds)
{
    if (!isfinite(seconds) || seconds < 0) {
        strbuf_adds(out, DASH);
        return;
    }
    static const struct {
        double below; // seconds
        double unit;  // seconds
        const char *name;
    } scale[] = {{120, 1, "s"}, {7200, 60, "min"}, {172800, 3600, "h"}, {INFINITY, 86400, "days"}};
    size_t i = 0;
    while (seconds >= scale[i].below) {
        i++;
    }
    double value = seconds / scale[i].unit;
    strbuf_addf(out, "%.*f" THIN_SPACE "%s",
                value >= 19.95                 ? 0
                : value >= 0.995 || value == 0 ? 1
                                               : 2,
                value, scale[i].name);
}

void text_add_nanoseconds(struct strbuf *out, double ns)
{
    if (!isfinite(ns) || ns < 0) {
        strbuf_adds(out, DASH);
        return;
    }
    static const char *const unit[] = {"ns", "\xC2\xB5s", "ms", "s"};
    size_t i = 0;
    while (ns >= 999.5 && i < 3) {
        ns /= 1000;
        i++;
    }
    add_significant(out, ns);
    strbuf_addf(out, THIN_SPACE "%s", unit[i]);
}

void text_add_percent(struct strbuf *out, double share)
{
    if (!isfinite(share)) {
        strbuf_adds(out, DASH);
        return;
    }
    double percent = share * 100;
    if (percent > 0 && percent < 0.01) {
        // A tiny share must not look like 0.
        strbuf_adds(out, "below 0.01");
    } else if (percent > 0 && percent < 0.095) {
        add_significant(out, percent);
    } else {
        strbuf_addf(out, "%.*f", percent >= 9.95 || percent == 0 ? 0 : 1, percent);
    }
    strbuf_adds(out, THIN_SPACE "%");
}

void text_add_time(struct strbuf *out, double seconds_since_1970)
{
    time_t when = 0;
    bool usable = seconds_since_1970 > 0 && seconds_since_1970 < 253402300800.0;
    if (usable) {
        when = (time_t)seconds_since_1970;
    }
    char text[32];
    struct tm tm;
    if (usable && gmtime_r(&when, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm) > 0) {
        strbuf_adds(out, text);
    } else {
        strbuf_adds(out, DASH);
    }
}

#include "worker/endpoint/rate_limit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BACKOFF_FIRST_MS 500.0
#define BACKOFF_MOST_MS 30000.0
#define OPEN_FIRST_MS 5000.0
#define OPEN_MOST_MS 300000.0
#define CUT_PAUSE_MS 1000 // between two refusals that both count
// A bare number from here on is a moment in seconds or milliseconds since 1970, not a duration.
#define EPOCH_S 1e9
#define EPOCH_MS 1e11

// ---- pauses ----

// "6m0s", "1.5s", "20ms" or "30" in milliseconds. The unit of a bare number is `unit` milliseconds.
// NaN when the text is none of these.
static double duration_ms(const char *text, double unit)
{
    double sum = 0;
    bool any = false;

    while (*text != '\0' && *text != '\n' && *text != '\r') {
        static const struct {
            const char *name;
            double ms;
        } row[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
        double number, ms = 0;

        while (*text == ' ') {
            text++;
        }
        char *end;
        number = strtod(text, &end);
        if (end == text || !isfinite(number)) {
            return NAN;
        }
        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]) && ms == 0; i++) {
            if (strncmp(end, row[i].name, strlen(row[i].name)) == 0) {
                ms = row[i].ms;
                end += strlen(row[i].name);
            }
        }
        if (ms == 0 && (any || (*end != '\0' && *end != '\n' && *end != ' ' && *end != '\r'))) {
            return NAN;
        }
        sum += number * (ms > 0 ? ms : unit);
        any = true;
        text = end;
        while (*text == ' ') {
            text++;
        }
    }
    return any ? sum : NAN;
}

// The milliseconds until "Wed, 21 Oct 2026 07:28:00 GMT". NaN when the text is no such date.
static double date_ms(const char *text, double wall_s)
{
    while (*text == ' ') {
        text++;
    }
    struct tm tm = {.tm_sec = 0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return end ? ((double)timegm(&tm) - wall_s) * 1000 : NAN;
}

// The pause that one header asks for; NaN: none.
static double value_ms(const char *name, size_t len, const char *value, double wall_s)
{
    static const char seconds[] = "retry-after", milliseconds[] = "retry-after-ms";
    static const char reset[] = "x-ratelimit-reset";

    if (len == strlen(milliseconds) && strncmp(name, milliseconds, len) == 0) {
        return duration_ms(value, 1);
    }
    if (len == strlen(seconds) && strncmp(name, seconds, len) == 0) {
        double date = date_ms(value, wall_s);

        return isnan(date) ? duration_ms(value, 1000) : date;
    }
    if (len >= strlen(reset) && strncmp(name, reset, strlen(reset)) == 0) {
        double number = duration_ms(value, 1000) / 1000;

        // Some endpoints give a moment instead of a duration.
        if (number >= EPOCH_MS) {
            return number - wall_s * 1000;
        }
        return (number >= EPOCH_S ? number - wall_s : number) * 1000;
    }
    return NAN;
}

// Whether the limit of "x-ratelimit-reset<kind>" is known not to be used up. Its reset then asks
// for no pause. kind: "-requests", "-tokens" or "".
static bool has_rest(const char *headers, const char *kind, size_t len)
{
    static const char remaining[] = "x-ratelimit-remaining";
    const size_t before = strlen(remaining);

    for (; *headers != '\0'; headers += strcspn(headers, "\n"), headers += *headers == '\n') {
        if (strncmp(headers, remaining, before) == 0 && strncmp(headers + before, kind, len) == 0 &&
            headers[before + len] == ':') {
            return strtod(headers + before + len + 1, NULL) > 0;
        }
    }
    return false;
}

double rate_limit_retry_ms(const char *headers, double wall_s)
{
    static const char reset[] = "x-ratelimit-reset";
    double most = NAN;

    for (const char *line = headers; *line != '\0';) {
        size_t len = strcspn(line, "\n"), name = strcspn(line, ":\n");

        if (name < len && !(name >= strlen(reset) && strncmp(line, reset, strlen(reset)) == 0 &&
                            has_rest(headers, line + strlen(reset), name - strlen(reset)))) {
            double ms = value_ms(line, name, line + name + 1, wall_s);

            if (ms > 0 && !(ms <= most)) {
                most = ms;
            }
        }
        line += len + (line[len] == '\n');
    }
    return isnan(most) ? most : fmin(most, RATE_LIMIT_RETRY_MAX_MS);
}

double rate_limit_backoff_ms(struct stats_rng *rng, unsigned attempt)
{
    return stats_rng_unit(rng) * fmin(BACKOFF_FIRST_MS * exp2(attempt), BACKOFF_MOST_MS);
}

// ---- bucket ----

void bucket_init(struct bucket *bucket, double per_minute, uint64_t now_ms)
{
    *bucket = (struct bucket){.per_minute = per_minute, .level = per_minute, .at_ms = now_ms};
}

double bucket_take(struct bucket *bucket, double n, uint64_t now_ms)
{
    double wanted = fmin(n, bucket->per_minute);

    if (!(bucket->per_minute > 0)) {
        return 0;
    }
    bucket->level = fmin(bucket->per_minute, bucket->level + (double)(now_ms - bucket->at_ms) *
                                                                 bucket->per_minute / 60000);
    bucket->at_ms = now_ms;
    if (bucket->level >= wanted) {
        bucket->level -= wanted;
        return 0;
    }
    return fmax(1, ceil((wanted - bucket->level) * 60000 / bucket->per_minute));
}

void bucket_give_back(struct bucket *bucket, double n)
{
    bucket->level = fmin(bucket->per_minute, bucket->level + fmin(n, bucket->per_minute));
}

// ---- window ----

void window_init(struct window *window, double first, double most)
{
    *window = (struct window){.limit = fmin(first, most), .most = most};
}

void window_success(struct window *window)
{
    double more = window->cut_ms == 0 ? 1 : 1 / window->limit;

    window->limit = fmin(window->most, window->limit + more);
}

void window_refused(struct window *window, uint64_t now_ms)
{
    if (window->cut_ms == 0 || now_ms - window->cut_ms >= CUT_PAUSE_MS) {
        window->limit = fmax(1, window->limit / 2);
        window->cut_ms = now_ms;
    }
}

// ---- breaker ----

bool breaker_allows(const struct breaker *breaker, uint64_t now_ms)
{
    return breaker->until_ms == 0 || (now_ms >= breaker->until_ms && !breaker->trying);
}

void breaker_begins(struct breaker *breaker)
{
    breaker->trying = breaker->until_ms != 0;
}

void breaker_success(struct breaker *breaker)
{
    *breaker = (struct breaker){.failures = 0};
}

bool breaker_open(struct breaker *breaker, uint64_t now_ms)
{
    double ms = fmin(OPEN_FIRST_MS * exp2(breaker->openings), OPEN_MOST_MS);

    if (breaker->until_ms != 0 && !breaker->trying) {
        return false; // the request began before it opened
    }
    breaker->openings += breaker->openings < 16;
    breaker->until_ms = now_ms + (uint64_t)ms;
    breaker->trying = false;
    return true;
}

bool breaker_failure(struct breaker *breaker, uint64_t now_ms)
{
    breaker->failures += breaker->failures < BREAKER_FAILURES;
    return (breaker->failures >= BREAKER_FAILURES || breaker->trying) &&
           breaker_open(breaker, now_ms);
}

#include "common/options/nearest.h"

#include <stdbool.h>
#include <string.h>

#define WORD_MAX 63
#define DISTANCE_MAX 3

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

// The optimal string alignment distance (Damerau's operations, no substring edited twice), by its
// recurrence over prefixes. Both words have at most WORD_MAX bytes.
static size_t distance(const char *a, size_t len_a, const char *b, size_t len_b)
{
    size_t row[3][WORD_MAX + 1]; // of the prefixes with i - 2, i - 1 and i letters of a
    size_t *above2 = row[0], *above = row[1], *now = row[2];

    for (size_t j = 0; j <= len_b; j++) {
        above[j] = j;
    }
    for (size_t i = 1; i <= len_a; i++) {
        now[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);

            now[j] = smaller(replaced, smaller(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = smaller(now[j], above2[j - 2] + 1);
            }
        }
        size_t *oldest = above2;
        above2 = above;
        above = now;
        now = oldest;
    }
    return above[len_b];
}

void nearest_try(struct nearest *nearest, const char *candidate)
{
    size_t len = strlen(candidate);

    if (len > WORD_MAX || nearest->len > WORD_MAX || nearest->len == 0) {
        return;
    }
    size_t d = distance(nearest->word, nearest->len, candidate, len);
    size_t longer = len > nearest->len ? len : nearest->len;
    bool begins = nearest->len >= 2 && strncmp(candidate, nearest->word, nearest->len) == 0;
    bool near = d <= smaller((longer + 1) / 3, DISTANCE_MAX);

    // What begins with the word counts like the last one that is near by letters.
    d = begins && d > DISTANCE_MAX ? DISTANCE_MAX : d;
    if ((near || begins) && (!nearest->best || d < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = d;
    }
}

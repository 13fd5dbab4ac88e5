#include "worker/llm/answer_object.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// When a bin was named without probabilities, it gets the first share and each bin beside it the
// second; the rest is spread evenly.
#define STATED_SHARE 0.6
#define NEXT_SHARE 0.15

// ---- numbers ----

double answer_object_number(const json_t *value)
{
    if (json_is_number(value)) {
        return json_number_value(value);
    }
    const char *text = json_string_value(value);
    if (!text) {
        return NAN;
    }
    char *end;
    double number = strtod(text, &end);
    if (end == text) {
        return NAN;
    }
    while (*end == ' ') {
        end++;
    }
    if (*end == '%') {
        number /= 100;
        end++;
    }
    return *end == '\0' ? number : NAN;
}

const struct answer_alphabet answer_bins_of_s = {ANSWER_FIRST_LETTER, BIN_COUNT};
const struct answer_alphabet answer_bins_of_r = {ANSWER_FIRST_FINE, FINE_BIN_COUNT};

// The letter in a text of nothing else but blanks, quotes and what may follow it in the same token;
// NUL: none. "I cannot say" is no letter.
static char letter_of(const char *text)
{
    static const char around[] = " \t\r\n\",}";

    text = text ? text + strspn(text, around) : "";
    return text[0] == '\0' || text[1 + strspn(text + 1, around)] != '\0' ? '\0' : text[0];
}

int answer_object_bin(const char *text, const struct answer_alphabet *alphabet)
{
    char letter = letter_of(text);

    return letter >= alphabet->first && letter < alphabet->first + (int)alphabet->count
               ? letter - alphabet->first
               : -1;
}

// The probability of a bin in an object of letters or in a list; 0 where an object leaves it out.
static double probability(const json_t *p, const struct answer_alphabet *alphabet, size_t bin)
{
    const char letter[2] = {(char)(alphabet->first + (int)bin), '\0'};
    const json_t *value = json_is_array(p) ? json_array_get(p, bin) : json_object_get(p, letter);

    return value ? answer_object_number(value) : 0;
}

// Reads probabilities and normalises them. ERR_INVALID when one is negative or all are 0. *ret_sum
// is their sum before.
static int read_bins(const json_t *p, const struct answer_alphabet *alphabet, double *ret,
                     double *ret_sum, struct err *why)
{
    if (!json_is_array(p) && !json_is_object(p)) {
        return err_set(why, ERR_INVALID, "\"p\" is neither a list nor an object");
    }
    if (json_is_array(p) && json_array_size(p) != alphabet->count) {
        return err_set(why, ERR_INVALID, "\"p\" has %zu numbers instead of %zu", json_array_size(p),
                       alphabet->count);
    }
    double sum = 0;
    for (size_t bin = 0; bin < alphabet->count; bin++) {
        double value = probability(p, alphabet, bin);

        if (!(value >= 0) || !isfinite(value)) {
            return err_set(why, ERR_INVALID, "the probability of bin %c is no number from 0 on",
                           alphabet->first + (int)bin);
        }
        ret[bin] = value;
        sum += value;
    }
    if (!(sum > 0) || !isfinite(sum)) {
        return err_set(why, ERR_INVALID, "the probabilities are all 0");
    }
    for (size_t bin = 0; bin < alphabet->count; bin++) {
        ret[bin] /= sum;
    }
    *ret_sum = sum;
    return 0;
}

// Makes a distribution over `count` bins from the one that was named.
static void spread_stated(size_t bin, double *ret, size_t count)
{
    double rest = 1 - STATED_SHARE;

    memset(ret, 0, count * sizeof(*ret));
    ret[bin] = STATED_SHARE;
    if (bin > 0) {
        ret[bin - 1] = NEXT_SHARE;
        rest -= NEXT_SHARE;
    }
    if (bin + 1 < count) {
        ret[bin + 1] = NEXT_SHARE;
        rest -= NEXT_SHARE;
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] += rest / (double)count;
    }
}

// ---- one object ----

// Whether the object defers: by the letter, or in words of its own.
static bool is_deferral(const json_t *object)
{
    const char *bin = json_string_value(json_object_get(object, "bin"));

    return json_is_true(json_object_get(object, "defer")) ||
           (bin && (letter_of(bin) == ANSWER_DEFER_LETTER || strcasecmp(bin, "defer") == 0));
}

// Reads the answer to the second question, if there is a usable one.
static void read_fine(const json_t *object, struct answer_forecast *ret)
{
    const json_t *q = json_object_get(object, "q");
    int stated = answer_object_bin(json_string_value(json_object_get(object, "best_bin")),
                                   &answer_bins_of_r);
    double sum;

    if (q && read_bins(q, &answer_bins_of_r, ret->fine, &sum, NULL) == 0) {
        ret->has_fine = true;
    } else if (stated >= 0) {
        spread_stated((size_t)stated, ret->fine, FINE_BIN_COUNT);
        ret->has_fine = true;
    }
}

bool answer_object_read(const json_t *object, struct answer_forecast *ret, struct err *why)
{
    const json_t *p = json_object_get(object, "p"), *bin = json_object_get(object, "bin");
    const json_t *correct = json_object_get(object, "p_correct");

    *ret = (struct answer_forecast){.p_correct = NAN, .stated = -1};
    if (is_deferral(object)) {
        ret->defers = true;
        return true;
    }
    if (bin) {
        ret->stated = answer_object_bin(json_string_value(bin), &answer_bins_of_s);
    }
    if (p) {
        if (read_bins(p, &answer_bins_of_s, ret->bins, &ret->raw_sum, why) != 0) {
            return false;
        }
    } else if (ret->stated >= 0) {
        spread_stated((size_t)ret->stated, ret->bins, BIN_COUNT);
        ret->raw_sum = 1;
    } else {
        (void)err_set(why, ERR_INVALID, "an object has neither \"p\" nor a \"bin\" from %c to %c",
                      ANSWER_FIRST_LETTER, ANSWER_FIRST_LETTER + BIN_COUNT - 1);
        return false;
    }
    if (correct) {
        double value = answer_object_number(correct);

        // It may be in per cent. A value that is no probability counts as not stated.
        value = value > 1 && value <= 100 ? value / 100 : value;
        ret->p_correct = value >= 0 && value <= 1 ? value : NAN;
    }
    read_fine(object, ret);
    return true;
}

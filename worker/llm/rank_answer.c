#include "worker/llm/rank_answer.h"

#include "common/mem.h"
#include "worker/llm/answer_object.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    size_t count;
    size_t *order;
    double *p;
    bool *named; // by place
    size_t named_count;
};

// The number in a text such as "3", "#3" or "candidate 3"; 0: there is none.
static size_t number_in(const char *text)
{
    while (*text != '\0' && !isdigit((unsigned char)*text)) {
        text++;
    }
    return *text != '\0' ? (size_t)strtoul(text, NULL, 10) : 0;
}

// The candidate's number in a value; 0: it names none.
static size_t number_of(const json_t *value)
{
    double number = json_is_string(value) ? (double)number_in(json_string_value(value))
                                          : answer_object_number(value);

    return number >= 1 && number <= 1e6 && number == floor(number) ? (size_t)number : 0;
}

// A probability as models write it: a share, a percentage, or a text of either. NaN: it is none.
static double probability_of(const json_t *value)
{
    double p = answer_object_number(value);

    p = p > 1 && p <= 100 ? p / 100 : p;
    return p >= 0 && p <= 1 ? p : NAN;
}

static const json_t *first_of(const json_t *object, const char *const *key, size_t count)
{
    const json_t *found = NULL;

    for (size_t i = 0; i < count && !found; i++) {
        found = json_object_get(object, key[i]);
    }
    return found;
}

static void add(struct reading *reading, size_t number, double p)
{
    if (number < 1 || number > reading->count || reading->named[number - 1]) {
        return;
    }
    reading->named[number - 1] = true;
    reading->order[reading->named_count++] = number - 1;
    reading->p[number - 1] = p;
}

// One entry of the list: an object that names the candidate, a list of its number and its
// probability, or its number alone.
static void add_entry(struct reading *reading, const json_t *entry)
{
    static const char *const names[] = {"candidate", "number", "id", "index", "n", "name"};
    static const char *const shares[] = {"p", "probability", "p_improves", "score"};

    if (json_is_object(entry)) {
        add(reading, number_of(first_of(entry, names, ARRAY_LEN(names))),
            probability_of(first_of(entry, shares, ARRAY_LEN(shares))));
    } else if (json_is_array(entry)) {
        add(reading, number_of(json_array_get(entry, 0)), probability_of(json_array_get(entry, 1)));
    } else {
        add(reading, number_of(entry), NAN);
    }
}

struct share {
    size_t number;
    double p;
};

// The greatest first; of equal ones the smaller number.
static int compare_shares(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    double p = isnan(x->p) ? -1 : x->p, q = isnan(y->p) ? -1 : y->p;

    if (p != q) {
        return p > q ? -1 : 1;
    }
    return (x->number > y->number) - (x->number < y->number);
}

// An object with a number for each candidate: the order follows from the numbers.
static void add_shares(struct reading *reading, const json_t *object)
{
    struct share *share = xcalloc(json_object_size(object) + 1, sizeof(*share));
    size_t count = 0;
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        share[count++] = (struct share){.number = number_in(key), .p = probability_of(value)};
    }
    qsort(share, count, sizeof(*share), compare_shares);
    for (size_t i = 0; i < count; i++) {
        add(reading, share[i].number, share[i].p);
    }
    free(share);
}

int rank_answer_read(const json_t *ranking, size_t count, size_t *order, double *p,
                     size_t *ret_named, struct err *err)
{
    struct reading reading = {.count = count,
                              .order = xcalloc(count + 1, sizeof(*reading.order)),
                              .p = xcalloc(count + 1, sizeof(*reading.p)),
                              .named = xcalloc(count + 1, sizeof(*reading.named))};
    int rc = 0;

    for (size_t i = 0; i < count; i++) {
        reading.p[i] = NAN;
    }
    if (json_is_object(ranking)) {
        add_shares(&reading, ranking);
    }
    for (size_t i = 0; i < json_array_size(ranking); i++) {
        add_entry(&reading, json_array_get(ranking, i));
    }
    if (!json_is_array(ranking) && !json_is_object(ranking)) {
        rc = err_set(err, ERR_INVALID, "\"ranking\" is neither a list nor an object");
    } else if (reading.named_count == 0) {
        rc = err_set(err, ERR_INVALID, "\"ranking\" names none of the candidates 1 to %zu", count);
    }
    if (rc != 0) {
        goto out;
    }
    *ret_named = reading.named_count;
    for (size_t i = 0; i < count; i++) {
        if (!reading.named[i]) {
            reading.order[reading.named_count++] = i;
        }
    }
    memcpy(order, reading.order, count * sizeof(*order));
    memcpy(p, reading.p, count * sizeof(*p));
out:
    free(reading.order);
    free(reading.p);
    free(reading.named);
    return rc;
}

#include "client/tune/wisdom_lookup.h"

#include "common/mem.h"
#include "common/parse.h"
#include "problem/identifier.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE_MAX 4096 // bytes of the text of a shape that is asked for

static const struct wisdom_value *value_of(const struct wisdom_case *shape, const char *name)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (strcmp(shape->param[i].name, name) == 0) {
            return &shape->param[i];
        }
    }
    return NULL;
}

static double scaled(const struct wisdom_value *value)
{
    return copysign(log2(1 + fabs(value->real)), value->real);
}

static size_t integers(const struct wisdom_case *shape)
{
    size_t count = 0;
    for (size_t i = 0; i < shape->count; i++) {
        count += shape->param[i].integer;
    }
    return count;
}

double wisdom_distance(const struct wisdom_case *a, const struct wisdom_case *b)
{
    if (integers(a) != integers(b)) {
        return NAN;
    }
    double sum = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct wisdom_value *mine = &a->param[i], *other = value_of(b, mine->name);
        if (mine->integer && (!other || !other->integer)) {
            return NAN;
        }
        if (mine->integer && mine->whole != other->whole) {
            double step = scaled(mine) - scaled(other);
            sum += step * step;
        }
    }
    return sqrt(sum);
}

void wisdom_case_name(const struct wisdom_case *shape, struct strbuf *out)
{
    for (size_t i = 0; i < shape->count; i++) {
        const struct wisdom_value *value = &shape->param[i];
        strbuf_addf(out, "%s%s=", i > 0 ? " " : "", value->name);
        if (value->integer) {
            strbuf_addf(out, "%" PRId64, value->whole);
        } else {
            // The shorter form if it reads back as the same number.
            char text[40];
            snprintf(text, sizeof(text), "%.15g", value->real);
            bool same = !(strtod(text, NULL) < value->real || strtod(text, NULL) > value->real);
            strbuf_addf(out, same ? "%.15g" : "%.17g", value->real);
        }
    }
}

// ---- the shape that is asked for ----

// Adds the value of `word`, NAME=VALUE, with the type of the parameter of that name in `like`.
// Names in ret belong to like.
static int read_value(struct wisdom_case *ret, const char *word, const struct wisdom_case *like,
                      struct err *err)
{
    const char *equals = strchr(word, '=');
    if (!equals) {
        return err_set(err, ERR_INVALID, "--case: \"%.60s\" is no NAME=VALUE", word);
    }
    char *name = xstrndup(word, (size_t)(equals - word));
    const struct wisdom_value *other = value_of(like, name);
    struct strbuf known;
    strbuf_init(&known, 300);
    wisdom_case_name(like, &known);
    int rc = 0;
    if (!other || value_of(ret, name) || ret->count == WISDOM_PARAM_MAX) {
        rc = err_set(err, ERR_INVALID, "--case: \"%.60s\" %s; give a shape like \"%s\"", name,
                     !other ? "is no parameter of the problem" : "is given twice",
                     strbuf_text(&known));
    } else {
        struct wisdom_value *value = &ret->param[ret->count];
        *value = *other;
        rc = other->integer ? parse_i64(&value->whole, equals + 1, INT64_MIN, INT64_MAX, word, err)
                            : parse_f64(&value->real, equals + 1, -DBL_MAX, DBL_MAX, word, err);
        value->real = other->integer ? (double)value->whole : value->real;
        ret->count += rc == 0;
    }
    strbuf_release(&known);
    free(name);
    return rc;
}

// Parses a shape. Its parameters must be among those of like, and all int parameters must be given.
static int read_shape(struct wisdom_case *ret, const char *text, const struct wisdom_case *like,
                      struct err *err)
{
    int rc = strlen(text) <= SHAPE_MAX
                 ? 0
                 : err_set(err, ERR_INVALID, "--case: more than %d bytes", SHAPE_MAX);
    *ret = (struct wisdom_case){0};
    while (rc == 0 && *(text += strspn(text, " \t")) != '\0') {
        size_t len = strcspn(text, " \t");
        char *word = xstrndup(text, len);
        rc = read_value(ret, word, like, err);
        free(word);
        text += len;
    }
    for (size_t i = 0; rc == 0 && i < like->count; i++) {
        if (like->param[i].integer && !value_of(ret, like->param[i].name)) {
            struct strbuf known;
            strbuf_init(&known, 300);
            wisdom_case_name(like, &known);
            rc = err_set(err, ERR_INVALID,
                         "--case: the parameter %s is missing; give a shape like \"%s\"",
                         like->param[i].name, strbuf_text(&known));
            strbuf_release(&known);
        }
    }
    return rc;
}

// ---- the entries ----

// The device class to look in: the named one, or the only one that the problem has entries for.
static int choose_class(const char **ret, const struct wisdom *wisdom,
                        const struct wisdom_query *query, const char *path, struct err *err)
{
    const char *first = NULL, *second = NULL;
    bool found = false;
    for (size_t i = 0; i < wisdom->count; i++) {
        const struct wisdom_entry *entry = wisdom->entry[i];
        if (strcmp(entry->problem, query->problem) != 0) {
            continue;
        }
        found |= query->device_class && strcmp(entry->device_class, query->device_class) == 0;
        if (!first) {
            first = entry->device_class;
        } else if (strcmp(first, entry->device_class) != 0) {
            second = entry->device_class;
        }
    }
    if (!first) {
        return err_set(err, ERR_NOT_FOUND,
                       "%.300s has nothing for the problem \"%.60s\"; `kcast "
                       "tune` adds it",
                       path, query->problem);
    }
    if (query->device_class && !found) {
        return err_set(err, ERR_NOT_FOUND,
                       "%.300s has nothing for \"%.60s\" on \"%.150s\", but on \"%.150s\"; name "
                       "that with --device-class, or tune there",
                       path, query->problem, query->device_class, first);
    }
    if (!query->device_class && second) {
        return err_set(err, ERR_USAGE,
                       "%.300s has \"%.60s\" on \"%.150s\" and on \"%.150s\"; choose one with "
                       "--device-class",
                       path, query->problem, first, second);
    }
    *ret = query->device_class ? query->device_class : first;
    return 0;
}

static bool is_on(const struct wisdom_entry *entry, const struct wisdom_query *query,
                  const char *device_class)
{
    return strcmp(entry->problem, query->problem) == 0 &&
           strcmp(entry->device_class, device_class) == 0;
}

// The latest entry for the kernel that is asked for, or for any kernel when none is.
static const struct wisdom_entry *latest(const struct wisdom *wisdom,
                                         const struct wisdom_query *query, const char *device_class)
{
    const struct wisdom_entry *best = NULL;
    for (size_t i = 0; i < wisdom->count; i++) {
        const struct wisdom_entry *entry = wisdom->entry[i];
        if (is_on(entry, query, device_class) &&
            (!query->kernel_digest || strcmp(entry->kernel_digest, query->kernel_digest) == 0) &&
            (!best || strcmp(entry->tuned_at, best->tuned_at) > 0)) {
            best = entry;
        }
    }
    return best;
}

// Whether the scalars that were asked for are those of the shape.
static bool scalars_agree(const struct wisdom_case *asked, const struct wisdom_case *shape)
{
    for (size_t i = 0; i < asked->count; i++) {
        const struct wisdom_value *mine = &asked->param[i], *other = value_of(shape, mine->name);
        if (!mine->integer && (!other || mine->real < other->real || mine->real > other->real)) {
            return false;
        }
    }
    return true;
}

static bool is_better(const struct wisdom_match *new, const struct wisdom_match *old)
{
    if (!old->entry || new->distance != old->distance) {
        return !old->entry || new->distance < old->distance;
    }
    if (new->exact != old->exact) {
        return new->exact;
    }
    if (new->entry->shape_count != old->entry->shape_count) {
        return new->entry->shape_count < old->entry->shape_count;
    }
    return strcmp(new->entry->tuned_at, old->entry->tuned_at) > 0;
}

int wisdom_lookup(struct wisdom_match *ret, const struct wisdom *wisdom,
                  const struct wisdom_query *query, const char *path, struct err *err)
{
    const char *device_class = NULL;
    int rc = choose_class(&device_class, wisdom, query, path, err);
    if (rc != 0) {
        return rc;
    }
    const struct wisdom_entry *like = latest(wisdom, query, device_class);
    if (!like) {
        return err_set(err, ERR_NOT_FOUND,
                       "%.300s has nothing for this kernel with \"%.60s\" on \"%.150s\"; `kcast "
                       "tune` adds it",
                       path, query->problem, device_class);
    }
    struct wisdom_case asked;
    rc = read_shape(&asked, query->shape, &like->shape[0], err);
    if (rc != 0) {
        return rc;
    }
    struct wisdom_match best = {0};
    for (size_t i = 0; i < wisdom->count; i++) {
        const struct wisdom_entry *entry = wisdom->entry[i];
        bool fits = is_on(entry, query, device_class) &&
                    strcmp(entry->kernel_digest, like->kernel_digest) == 0;
        for (size_t j = 0; fits && j < entry->shape_count; j++) {
            double distance = wisdom_distance(&asked, &entry->shape[j]);
            struct wisdom_match match = {
                entry, j, distance, !(distance > 0) && scalars_agree(&asked, &entry->shape[j])};
            if (!isnan(distance) && is_better(&match, &best)) {
                best = match;
            }
        }
    }
    // There is a match, because `like` has a shape with the parameters that were asked for.
    *ret = best;
    return 0;
}

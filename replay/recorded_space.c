// Design note. Neighbours are found once, by sorting. The candidates that agree in all parameters
// but one form a line, and on it a candidate's neighbours are the one before and the one after.
#include "replay/recorded_space.h"

#include "client/run/run_state.h"
#include "common/digest.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
    struct digest digest; // key: digest of the candidate's name
    size_t candidate;
    UT_hash_handle hh;
};

// The first candidate with these values of the parameters.
struct configuration {
    size_t candidate;
    UT_hash_handle hh;
};

struct recorded_space {
    struct generator generator; // first, because its operations get a pointer to it
    struct space space;
    char *name;
    struct entry *entry, *by_digest;                 // [candidates], and the hash of them
    struct configuration *configuration, *by_values; // [candidates], and the hash of them
    double *value;                                   // [candidates x params], the keys of that
    size_t *neighbour;                               // [candidates x axes x 2], or NONE
    double *place;                                   // [candidates x axes], 0 to 1
    double best_log2, seconds;                       // as the functions of these names return
    bool has_costs;
};

#define NONE SIZE_MAX

static const struct recorded_space *recorded_of(const struct generator *generator)
{
    return (const struct recorded_space *)(const void *)generator;
}

// --- the generator

static void point_name(const struct generator *generator, size_t point, struct strbuf *out)
{
    strbuf_adds(out, recorded_of(generator)->space.candidate[point].name);
}

static size_t point_params(const struct generator *generator, size_t point, struct fact **ret)
{
    const struct space_candidate *c = &recorded_of(generator)->space.candidate[point];

    *ret = message_copy_all(&fact_message, c->params, c->params_count);
    return c->params_count;
}

static size_t point_neighbours(const struct generator *generator, size_t point, size_t *out,
                               size_t max)
{
    const size_t *all = recorded_of(generator)->neighbour + point * generator->axis_count * 2;
    size_t count = 0;

    for (size_t i = 0; i < 2 * generator->axis_count && count < max; i++) {
        if (all[i] != NONE) {
            out[count++] = all[i];
        }
    }
    return count;
}

static void point_position(const struct generator *generator, size_t point, double *out)
{
    memcpy(out, recorded_of(generator)->place + point * generator->axis_count,
           generator->axis_count * sizeof(*out));
}

// The recorded space frees its generator.
static void free_nothing(struct generator *generator)
{
    (void)generator;
}

static const struct generator_ops ops = {
    .name = point_name,
    .source = point_name,
    .params = point_params,
    .neighbours = point_neighbours,
    .position = point_position,
    .free = free_nothing,
};

// --- neighbours

struct sorting {
    const struct space *space;
    size_t axis; // the parameter that is compared last
};

static double value_of(const struct space *space, size_t candidate, size_t axis)
{
    return space->candidate[candidate].params[axis].value;
}

// Compares all parameters but that of the axis.
static int compare_others(const struct sorting *s, size_t a, size_t b)
{
    for (size_t i = 0; i < s->space->candidate[0].params_count; i++) {
        double left = value_of(s->space, a, i), right = value_of(s->space, b, i);

        if (i != s->axis && left != right) {
            return left < right ? -1 : 1;
        }
    }
    return 0;
}

static int compare(const void *a, const void *b, void *owner)
{
    const struct sorting *s = owner;
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    int order = compare_others(s, left, right);
    double x = value_of(s->space, left, s->axis), y = value_of(s->space, right, s->axis);

    if (order == 0 && x != y) {
        order = x < y ? -1 : 1;
    }
    return order != 0 ? order : left < right ? -1 : 1;
}

static void find_neighbours(struct recorded_space *c, size_t axis)
{
    struct sorting sorting = {.space = &c->space, .axis = axis};
    size_t count = c->generator.point_count, axes = c->generator.axis_count;
    size_t *order = xcalloc(count, sizeof(*order));

    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    qsort_r(order, count, sizeof(*order), compare, &sorting);
    for (size_t i = 0; i < count; i++) {
        size_t *pair = c->neighbour + (order[i] * axes + axis) * 2;

        pair[0] =
            i > 0 && compare_others(&sorting, order[i - 1], order[i]) == 0 ? order[i - 1] : NONE;
        pair[1] = i + 1 < count && compare_others(&sorting, order[i], order[i + 1]) == 0
                      ? order[i + 1]
                      : NONE;
    }
    free(order);
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

// Sets the places on an axis from the rank of each value among the values of the axis, as the
// generator of templates does.
static void find_places(struct recorded_space *c, size_t axis)
{
    size_t count = c->generator.point_count, axes = c->generator.axis_count, different = 0;
    double *value = xcalloc(count, sizeof(*value));

    for (size_t i = 0; i < count; i++) {
        value[i] = value_of(&c->space, i, axis);
    }
    qsort(value, count, sizeof(*value), by_value);
    for (size_t i = 0; i < count; i++) {
        if (different == 0 || value[i] != value[different - 1]) {
            value[different++] = value[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        double own = value_of(&c->space, i, axis);
        const double *at = bsearch(&own, value, different, sizeof(*value), by_value);

        c->place[i * axes + axis] =
            different < 2 ? 0 : (double)(at - value) / (double)(different - 1);
    }
    free(value);
}

// --- costs

static bool has_cost(const struct result *result)
{
    return result && run_state_held_seconds(result) > 0;
}

static void set_cost(struct result *result, double seconds)
{
    if (result && !has_cost(result)) {
        if (!result->seconds) {
            result->seconds = xmalloc(sizeof(*result->seconds));
            message_init(&accounts_message, result->seconds);
        }
        result->seconds->held = seconds;
        result->cached = false;
    }
}

// Gives results without a cost the mean of the others.
static void complete_costs(struct recorded_space *c)
{
    size_t count = c->generator.point_count, known = 0;
    double sum = 0;

    for (size_t i = 0; i < count; i++) {
        const struct result *result = c->space.candidate[i].result;

        known += has_cost(result);
        sum += run_state_held_seconds(result);
    }
    c->has_costs = known > 0;
    double mean = known > 0 ? sum / (double)known : RECORDED_SPACE_COST_S;
    for (size_t i = 0; i < count; i++) {
        set_cost(c->space.candidate[i].result, mean);
        set_cost(c->space.candidate[i].record, mean);
        c->seconds += run_state_held_seconds(c->space.candidate[i].result);
    }
}

// --- parameters

// Writes the values of the parameters, which are the key of a configuration.
static void write_values(const struct fact *params, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = params[i].value + 0.0; // -0 becomes 0
    }
}

static void find_configurations(struct recorded_space *c)
{
    size_t count = c->generator.point_count, params = c->space.candidate[0].params_count;

    c->configuration = xcalloc(count, sizeof(*c->configuration));
    c->value = xcalloc(count * params + 1, sizeof(*c->value));
    for (size_t i = 0; i < count; i++) {
        const struct space_candidate *candidate = &c->space.candidate[i];
        struct configuration *same = NULL;
        double *key = c->value + i * params;
        size_t size = params * sizeof(*key);

        if (params == 0 || candidate->params_count != params) {
            continue;
        }
        write_values(candidate->params, params, key);
        HASH_FIND(hh, c->by_values, key, size, same);
        if (!same) {
            c->configuration[i].candidate = i;
            HASH_ADD_KEYPTR(hh, c->by_values, key, size, &c->configuration[i]);
        }
    }
}

// --- making one

int recorded_space_create(struct recorded_space **ret, struct space *space_take, const char *name,
                          struct err *err)
{
    struct recorded_space *c = xcalloc(1, sizeof(*c));
    size_t count = (size_t)space_take->head.candidates;
    size_t axes = space_take->candidate[0].params_count;

    c->space = *space_take;
    *space_take = (struct space){.candidate = NULL};
    c->name = xstrdup(name);
    c->best_log2 = space_best_log2(&c->space);
    c->generator.ops = &ops;
    c->generator.point_count = count;
    c->generator.axis_count = axes <= GENERATOR_AXIS_MAX ? axes : 0;
    c->generator.is_opaque = axes == 0; // a space has parameters, but no sources
    c->entry = xcalloc(count, sizeof(*c->entry));
    for (size_t i = 0; i < count; i++) {
        const struct space_candidate *candidate = &c->space.candidate[i];

        c->entry[i].digest = digest_of(candidate->name, strlen(candidate->name));
        c->entry[i].candidate = i;
        HASH_ADD(hh, c->by_digest, digest, sizeof(struct digest), &c->entry[i]);
    }
    find_configurations(c);
    complete_costs(c);
    axes = c->generator.axis_count;
    c->neighbour = xcalloc(count * axes * 2 + 1, sizeof(*c->neighbour));
    c->place = xcalloc(count * axes + 1, sizeof(*c->place));
    for (size_t axis = 0; axis < axes; axis++) {
        find_neighbours(c, axis);
        find_places(c, axis);
    }
    if (isnan(c->best_log2)) {
        recorded_space_free(c);
        return err_set(err, ERR_INVALID, "%s: no candidate of it is correct", name);
    }
    *ret = c;
    return 0;
}

void recorded_space_free(struct recorded_space *c)
{
    if (c) {
        HASH_CLEAR(hh, c->by_digest);
        HASH_CLEAR(hh, c->by_values);
        free(c->entry);
        free(c->configuration);
        free(c->value);
        free(c->neighbour);
        free(c->place);
        free(c->name);
        space_release(&c->space);
        free(c);
    }
}

const char *recorded_space_name(const struct recorded_space *c)
{
    return c->name;
}

const struct space *recorded_space_data(const struct recorded_space *c)
{
    return &c->space;
}

const struct generator *recorded_space_generator(const struct recorded_space *c)
{
    return &c->generator;
}

const struct space_candidate *recorded_space_find(const struct recorded_space *c,
                                                  const struct digest *source)
{
    struct entry *entry = NULL;

    HASH_FIND(hh, c->by_digest, source, sizeof(*source), entry);
    return entry ? &c->space.candidate[entry->candidate] : NULL;
}

const struct space_candidate *recorded_space_of_facts(const struct recorded_space *c,
                                                      const struct candidate_facts *facts)
{
    size_t params = c->space.candidate[0].params_count;
    struct configuration *found = NULL;

    if (!digest_is_zero(&facts->digest)) {
        return recorded_space_find(c, &facts->digest);
    }
    if (params == 0 || facts->params_count != params) {
        return NULL;
    }
    double *key = xcalloc(params, sizeof(*key));
    write_values(facts->params, params, key);
    HASH_FIND(hh, c->by_values, key, params * sizeof(*key), found);
    free(key);
    return found ? &c->space.candidate[found->candidate] : NULL;
}

double recorded_space_best_log2(const struct recorded_space *c)
{
    return c->best_log2;
}

double recorded_space_seconds(const struct recorded_space *c)
{
    return c->seconds;
}

bool recorded_space_has_costs(const struct recorded_space *c)
{
    return c->has_costs;
}

// The points of a template: those combinations of listed values that meet all conditions.
//
// Points are found by depth-first search over the parameters in the order of their lines. A
// condition uses only its own and earlier parameters, so that it cuts a whole subtree as soon as
// its parameter is set. Two limits end the search: the number of points (TEMPLATE_POINT_MAX) and
// the work of trying values (STEP_MAX), because conditions can reject almost everything at the
// bottom of a tree of any size.
//
// A point is stored as one byte per parameter, the index of its value. The search yields points in
// lexicographic order of these rows, so that a point is found by binary search with memcmp.
#include "problem/template.h"
#include "common/mem.h"
#include "problem/template_params.h"
#include <stdlib.h>
#include <string.h>

#define STEP_MAX ((size_t)1 << 24) // steps before the search is given up, about a second

static void add_point(struct template *template, const uint8_t *index)
{
    if (template->point_count == template->point_room) {
        template->point_room = template->point_room == 0 ? 256 : 2 * template->point_room;
        template->row = xrealloc(template->row, template->point_room, template->param_count);
    }
    memcpy(template->row + template->point_count * template->param_count, index,
           template->param_count);
    template->point_count++;
}

// Whether the condition of parameter `param` admits values[0 .. param].
static int admits(const struct template *template, size_t param, const int64_t *values, bool *ret,
                  struct err *err)
{
    const struct tunable *tunable = &template->param[param];
    int64_t value = 1;
    struct err inner = ERR_INIT;
    if (tunable->condition && expr_eval(&value, tunable->condition, values, &inner) != 0) {
        struct strbuf point;
        strbuf_init(&point, 400);
        for (size_t i = 0; i <= param; i++) {
            strbuf_addf(&point, "%s%s=%lld", i > 0 ? " " : "", template->param[i].name,
                        (long long)values[i]);
        }
        int rc = err_set(err, ERR_INVALID, "%s:%zu:%zu: the condition %s at %s; guard it with &&",
                         template->path, tunable->line, tunable->condition_column, inner.text,
                         strbuf_text(&point));
        strbuf_release(&point);
        return rc;
    }
    *ret = value != 0;
    return 0;
}

// Fills the table of points.
static int enumerate(struct template *template, struct err *err)
{
    uint8_t index[TEMPLATE_PARAM_MAX] = {0};
    int64_t values[TEMPLATE_PARAM_MAX] = {0};
    size_t depth = 0; // index of the parameter that gets its next value
    for (size_t steps = 0;;) {
        const struct tunable *tunable = &template->param[depth];
        if (index[depth] == tunable->value_count) {
            if (depth == 0) {
                return 0;
            }
            depth--;
            index[depth]++;
            continue;
        }
        steps += tunable->steps;
        if (steps > STEP_MAX) {
            return err_set(err, ERR_LIMIT,
                           "%s: enumerating the points takes more than %zu steps; list fewer "
                           "values or put conditions on "
                           "earlier parameters",
                           template->path, STEP_MAX);
        }
        values[depth] = tunable->value[index[depth]];
        bool admitted = false;
        int rc = admits(template, depth, values, &admitted, err);
        if (rc != 0) {
            return rc;
        }
        if (admitted && depth + 1 < template->param_count) {
            depth++;
            index[depth] = 0;
            continue;
        }
        if (admitted && template->point_count == TEMPLATE_POINT_MAX) {
            return err_set(
                err, ERR_LIMIT,
                "%s: the template has more than %zu points; list fewer values or add conditions",
                template->path, TEMPLATE_POINT_MAX);
        }
        if (admitted) {
            add_point(template, index);
        }
        index[depth]++;
    }
}

int template_parse(struct template **ret, const char *source, const char *path, struct err *err)
{
    struct template *template = xcalloc(1, sizeof *template);
    template->path = xstrdup(path);
    template->source = xstrdup(source);
    int rc = template_read_lines(template, err);
    if (rc == 0) {
        rc = enumerate(template, err);
    }
    if (rc == 0 && template->point_count == 0) {
        rc = err_set(err, ERR_INVALID, "%s:%zu:1: the conditions leave no point; relax one", path,
                     template->param[template->param_count - 1].line);
    }
    if (rc != 0) {
        template_free(template);
        return rc;
    }
    *ret = template;
    return 0;
}

void template_free(struct template *template)
{
    if (!template) {
        return;
    }
    for (size_t i = 0; i < TEMPLATE_PARAM_MAX; i++) {
        free(template->param[i].name);
        expr_free(template->param[i].condition);
    }
    free(template->row);
    free(template->source);
    free(template->path);
    free(template);
}

size_t template_param_count(const struct template *template)
{
    return template->param_count;
}

const char *template_param_name(const struct template *template, size_t param)
{
    return template->param[param].name;
}

size_t template_value_count(const struct template *template, size_t param)
{
    return template->param[param].value_count;
}

int64_t template_value(const struct template *template, size_t param, size_t index)
{
    return template->param[param].value[index];
}

size_t template_point_count(const struct template *template)
{
    return template->point_count;
}

// The indices of a point's values.
static const uint8_t *row_of(const struct template *template, size_t point)
{
    return template->row + point * template->param_count;
}

void template_point(const struct template *template, size_t point, int64_t *values)
{
    for (size_t i = 0; i < template->param_count; i++) {
        values[i] = template->param[i].value[row_of(template, point)[i]];
    }
}

// Finds the point with these indices of values.
static bool find_row(const struct template *template, const uint8_t *index, size_t *ret_point)
{
    size_t low = 0, high = template->point_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(row_of(template, middle), index, template->param_count);
        if (order == 0) {
            *ret_point = middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

bool template_find(const struct template *template, const int64_t *values, size_t *ret_point)
{
    uint8_t index[TEMPLATE_PARAM_MAX] = {0};
    for (size_t i = 0; i < template->param_count; i++) {
        const struct tunable *tunable = &template->param[i];
        while (index[i] < tunable->value_count && tunable->value[index[i]] != values[i]) {
            index[i]++;
        }
        if (index[i] == tunable->value_count) {
            return false;
        }
    }
    return find_row(template, index, ret_point);
}

size_t template_neighbours(const struct template *template, size_t point, size_t *out, size_t max)
{
    uint8_t index[TEMPLATE_PARAM_MAX];
    size_t count = 0, found = 0;
    memcpy(index, row_of(template, point), template->param_count);
    for (size_t i = 0; i < template->param_count; i++) {
        uint8_t own = index[i];
        for (int step = -1; step <= 1; step += 2) {
            // An index below 0 wraps to 255, which is not an index of a value.
            index[i] = (uint8_t)(own + step);
            if (index[i] >= template->param[i].value_count || !find_row(template, index, &found)) {
                continue;
            }
            if (count < max) {
                out[count] = found;
            }
            count++;
        }
        index[i] = own;
    }
    return count;
}

void template_source(const struct template *template, size_t point, struct strbuf *out)
{
    for (size_t i = 0; i < template->param_count; i++) {
        int64_t value = template->param[i].value[row_of(template, point)[i]];
        const char *name = template->param[i].name;
        if (value >= 0) {
            strbuf_addf(out, "#define %s %lld\n", name, (long long)value);
        } else if (value == INT64_MIN) { // C has no literal for it
            strbuf_addf(out, "#define %s (%lld - 1)\n", name, (long long)(INT64_MIN + 1));
        } else {
            strbuf_addf(out, "#define %s (%lld)\n", name, (long long)value);
        }
    }
    strbuf_adds(out, template->source);
}

void template_point_name(const struct template *template, size_t point, struct strbuf *out)
{
    for (size_t i = 0; i < template->param_count; i++) {
        strbuf_addf(out, "%s%s=%lld", i > 0 ? " " : "", template->param[i].name,
                    (long long)template->param[i].value[row_of(template, point)[i]]);
    }
}

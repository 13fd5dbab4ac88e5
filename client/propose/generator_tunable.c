// The generator "tunable": its points are those of a problem's template (problem/template.h).
#include "client/propose/generator.h"

#include "problem/template.h"
#include <stdlib.h>
#include <string.h>

struct tunable {
    struct generator generator; // must be first: ops get a pointer to it
    struct template *template;
};

static const struct template *template_of(const struct generator *generator)
{
    return ((const struct tunable *)(const void *)generator)->template;
}

static void tunable_name(const struct generator *generator, size_t point, struct strbuf *out)
{
    template_point_name(template_of(generator), point, out);
}

static void tunable_source(const struct generator *generator, size_t point, struct strbuf *out)
{
    template_source(template_of(generator), point, out);
}

static size_t tunable_params(const struct generator *generator, size_t point, struct fact **ret)
{
    const struct template *template = template_of(generator);
    int64_t value[TEMPLATE_PARAM_MAX];
    template_point(template, point, value);
    struct fact *fact = xcalloc(generator->axis_count + 1, sizeof(*fact));
    for (size_t i = 0; i < generator->axis_count; i++) {
        fact[i].name = xstrdup(template_param_name(template, i));
        fact[i].value = (double)value[i];
    }
    *ret = fact;
    return generator->axis_count;
}

static size_t tunable_neighbours(const struct generator *generator, size_t point, size_t *out,
                                 size_t max)
{
    size_t count = template_neighbours(template_of(generator), point, out, max);
    return count < max ? count : max;
}

// A coordinate is the index of the parameter's value in its list and not the value itself, so that
// 16, 32 and 64 are equally far apart.
static void tunable_position(const struct generator *generator, size_t point, double *out)
{
    const struct template *template = template_of(generator);
    int64_t value[TEMPLATE_PARAM_MAX];
    template_point(template, point, value);
    for (size_t i = 0; i < generator->axis_count; i++) {
        size_t count = template_value_count(template, i), at = 0;
        while (at + 1 < count && template_value(template, i, at) != value[i]) {
            at++;
        }
        out[i] = count < 2 ? 0 : (double)at / (double)(count - 1);
    }
}

static void tunable_free(struct generator *generator)
{
    struct tunable *tunable = (struct tunable *)(void *)generator;
    template_free(tunable->template);
    free(tunable);
}

static const struct generator_ops tunable_ops = {
    .name = tunable_name,
    .source = tunable_source,
    .params = tunable_params,
    .neighbours = tunable_neighbours,
    .position = tunable_position,
    .free = tunable_free,
};

int generator_tunable(struct generator **ret, const struct bytes *text, const char *path,
                      struct err *err)
{
    char *source = xstrndup((const char *)text->data, text->len);
    struct tunable *tunable = xcalloc(1, sizeof(*tunable));
    tunable->generator.ops = &tunable_ops;
    int rc = template_parse(&tunable->template, source, path, err);
    if (rc == 0) {
        tunable->generator.point_count = template_point_count(tunable->template);
        tunable->generator.axis_count = template_param_count(tunable->template);
        *ret = &tunable->generator;
    } else {
        free(tunable);
    }
    free(source);
    return rc;
}

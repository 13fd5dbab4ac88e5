// The space of a template: its "//@ tune NAME in (…) if …" lines, its points, and the source of a point.
// Lines of a launch manifest (problem/manifest.h) may stand beside them.
#ifndef PROBLEM_TEMPLATE_H
#define PROBLEM_TEMPLATE_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATE_PARAM_MAX 24
#define TEMPLATE_VALUE_MAX 64
#define TEMPLATE_POINT_MAX ((size_t)1 << 20)

struct template; // a parsed template with its enumerated points

// Parses source (NUL-terminated) and enumerates the points that meet all conditions, in lexicographic order of the lines.
// ERR_INVALID names path:line:column, also when no parameter is declared, a condition does not evaluate or no point is left;
// ERR_LIMIT when there are more than TEMPLATE_POINT_MAX points or finding them takes too long.
MUST_CHECK int template_parse(struct template **ret, const char *source, const char *path,
                              struct err *err);
void template_free(struct template *template);

size_t template_param_count(const struct template *template);
const char *template_param_name(const struct template *template, size_t param);
size_t template_value_count(const struct template *template, size_t param);
int64_t template_value(const struct template *template, size_t param, size_t index);

size_t template_point_count(const struct template *template); // at least 1
// values[0 .. param_count) of a point.
void template_point(const struct template *template, size_t point, int64_t *values);
// The point with exactly these values; false when there is none.
bool template_find(const struct template *template, const int64_t *values, size_t *ret_point);
// The points that differ from this one in exactly one parameter, that one moved to an adjacent listed value.
// Returns how many there are; writes at most max.
size_t template_neighbours(const struct template *template, size_t point, size_t *out, size_t max);
// "#define MB 32\n…" and the template's text.
void template_source(const struct template *template, size_t point, struct strbuf *out);
// "MB=32 NB=64 UNROLL=4"
void template_point_name(const struct template *template, size_t point, struct strbuf *out);

#endif

// A template: a source whose "//@ tune NAME in (...) if ..." lines declare parameters. Parses them,
// enumerates the points of the space that they span, and makes the source of a point. Lines of a
// launch manifest (problem/manifest.h) may stand beside them. The client searches and exports such
// spaces.
#ifndef PROBLEM_TEMPLATE_H
#define PROBLEM_TEMPLATE_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATE_PARAM_MAX 24                // parameters
#define TEMPLATE_VALUE_MAX 64                // values of one parameter
#define TEMPLATE_POINT_MAX ((size_t)1 << 20) // points

struct template; // a parsed template with its points

// Parses source (NUL-terminated) and enumerates the points that meet all conditions, in
// lexicographic order of the lines and of the values as listed. The caller frees *ret. ERR_INVALID
// names path:line:column, also when no parameter is declared, a condition does not evaluate or no
// point is left. ERR_LIMIT when there are more than TEMPLATE_POINT_MAX points or finding them takes
// too long.
MUST_CHECK int template_parse(struct template **ret, const char *source, const char *path,
                              struct err *err);
// NULL is allowed.
void template_free(struct template *template);

// The parameters in the order of their lines, and the values of each as listed.
size_t template_param_count(const struct template *template);
const char *template_param_name(const struct template *template, size_t param);
size_t template_value_count(const struct template *template, size_t param);
int64_t template_value(const struct template *template, size_t param, size_t index);

// The number of points, at least 1.
size_t template_point_count(const struct template *template);
// Writes the values of a point to values[0 .. param_count).
void template_point(const struct template *template, size_t point, int64_t *values);
// Finds the point with exactly these values. False, and *ret_point unchanged, when there is none.
bool template_find(const struct template *template, const int64_t *values, size_t *ret_point);
// Finds the points that differ from this one in exactly one parameter, by one step in its list of
// values. Writes at most max of them to out. Returns how many there are.
size_t template_neighbours(const struct template *template, size_t point, size_t *out, size_t max);
// Appends the source of a point: a line such as "#define MB 32" for each parameter, then the
// template's text.
void template_source(const struct template *template, size_t point, struct strbuf *out);
// Appends the values of a point, such as "MB=32 NB=64 UNROLL=4".
void template_point_name(const struct template *template, size_t point, struct strbuf *out);

#endif

// Integer expressions of problem.json, template lines and launch manifests, such as "ceildiv(M, 4)
// + 1". 64-bit integers, + - * / % ceildiv min max and parentheses. With EXPR_CONDITIONS also
// comparisons, && || and !. Overflow and division by zero are errors. / truncates towards zero.
#ifndef PROBLEM_EXPR_H
#define PROBLEM_EXPR_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

enum expr_kind { EXPR_ARITHMETIC, EXPR_CONDITIONS };

#define EXPR_TEXT_MAX 1024 // bytes
#define EXPR_DEPTH_MAX 64  // levels of nesting

struct expr; // a parsed expression

// Parses text. Every name in it must be one of names[0 .. name_count). An empty name is skipped: it
// only keeps the later indices in place. && and || evaluate their right side only when it matters.
// Comparisons do not chain. ERR_INVALID names the column. The caller frees *ret.
MUST_CHECK int expr_parse(struct expr **ret, const char *text, enum expr_kind kind,
                          const char *const *names, size_t name_count, struct err *err);
// Like expr_parse, for a caller that reports the position itself: the sentence has no column.
// Instead *ret_column becomes the column, counted from 1. It is written on failure only and may be
// NULL.
MUST_CHECK int expr_parse_at(struct expr **ret, const char *text, enum expr_kind kind,
                             const char *const *names, size_t name_count, size_t *ret_column,
                             struct err *err);
// Evaluates the expression. values[i] is the value of names[i] of expr_parse. ERR_INVALID names the
// operation and the expression.
MUST_CHECK int expr_eval(int64_t *ret, const struct expr *expr, const int64_t *values,
                         struct err *err);
// The text that was parsed.
const char *expr_text(const struct expr *expr);
// NULL is allowed.
void expr_free(struct expr *expr);

#endif

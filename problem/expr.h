// Integer expressions of problem.json and template lines: 64-bit, + - * / % ceildiv min max, parentheses; with EXPR_CONDITIONS
// also comparisons, && || !. Overflow and division by zero are errors. Division truncates towards zero.
#ifndef PROBLEM_EXPR_H
#define PROBLEM_EXPR_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

enum expr_kind { EXPR_ARITHMETIC, EXPR_CONDITIONS };

#define EXPR_TEXT_MAX 1024
#define EXPR_DEPTH_MAX 64

struct expr; // a parsed expression

struct expr_var {
    const char *name;
    int64_t value;
};

// Parses text; every identifier must be one of names[0..name_count). ERR_INVALID with column otherwise. An empty name only
// holds a place. && and || evaluate their right side only when it matters; comparisons do not chain.
MUST_CHECK int expr_parse(struct expr **ret, const char *text, enum expr_kind kind,
                          const char *const *names, size_t name_count, struct err *err);
// The same for a caller that names the place itself: the sentence does not hold the column, *ret_column (from 1) does.
// *ret_column is written on failure only and may be NULL.
MUST_CHECK int expr_parse_at(struct expr **ret, const char *text, enum expr_kind kind,
                             const char *const *names, size_t name_count, size_t *ret_column,
                             struct err *err);
// values[i] belongs to names[i] of expr_parse. ERR_INVALID names the operation and the expression.
MUST_CHECK int expr_eval(int64_t *ret, const struct expr *expr, const int64_t *values,
                         struct err *err);
const char *expr_text(const struct expr *expr);
void expr_free(struct expr *expr);

#endif

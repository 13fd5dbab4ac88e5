// Reading one line of a launch manifest: words, values, lists, expressions, and refusals that name
// path:line:column. Used by contract/manifest*.c only.
#ifndef PROBLEM_MANIFEST_SCAN_H
#define PROBLEM_MANIFEST_SCAN_H

#include "common/err.h"
#include "problem/expr.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>

#define SCAN_ITEM_MAX MANIFEST_ARG_MAX
#define SCAN_NAME_MAX (PROBLEM_PARAM_MAX + MANIFEST_CONSTANT_MAX)

// A piece of the source.
struct span {
    const char *at;
    size_t len;
};

struct scan {
    const char *path;     // in refusals
    const char *line;     // begin of the line
    const char *at, *end; // what is still to be read of it
    unsigned number;      // of the line, from 1
    const struct problem *problem;
    enum manifest_role role;
    struct manifest *manifest; // being built
    char *constant_name[MANIFEST_CONSTANT_MAX];
    const char *name[SCAN_NAME_MAX]; // of what expressions may use: the problem's params ("" for
                                     // f64), then the macros
    size_t name_count;
    struct err *err;
};

// ERR_INVALID "path:line:column: sentence"; `at` is in the line.
MUST_CHECK int scan_fail(struct scan *p, const char *at, const char *sentence);
// The same with the name in front of the sentence.
MUST_CHECK int scan_fail_name(struct scan *p, struct span name, const char *sentence);

bool scan_is_letter(char c); // of an identifier: a letter, a digit or _
void scan_blanks(struct scan *p);
bool scan_at_end(struct scan *p);      // after blanks
struct span scan_word(struct scan *p); // an identifier; empty when none comes next
bool span_is(struct span span, const char *text);
struct span span_trim(struct span span); // without blanks at its ends
// The value of KEY=VALUE, from the = on. Outside parentheses a blank ends it unless an operator stands
// before or after the blank: "4 * rows" is one value.
MUST_CHECK int scan_value(struct scan *p, struct span *ret);
// Splits "(a, b(c, d), e)" at its commas. A value without parentheses is one item, "()" none.
MUST_CHECK int scan_list(struct scan *p, struct span value, struct span item[static SCAN_ITEM_MAX],
                         size_t *ret_count);
MUST_CHECK int scan_expr(struct scan *p, struct span text, enum expr_kind kind, struct expr **ret);

bool scan_find_tensor(const struct scan *p, struct span name, size_t *ret);
bool scan_find_param(const struct scan *p, struct span name, size_t *ret);

// Reads the rest of a line after "//@ launch" and adds the launch to the manifest
// (manifest_launch.c).
MUST_CHECK int scan_launch(struct scan *p);

#endif

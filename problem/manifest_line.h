// Reads the parts of one line of a launch manifest: words, values, lists and expressions. Refusals
// name path:line:column. Only problem/manifest*.c include this.
#ifndef PROBLEM_MANIFEST_LINE_H
#define PROBLEM_MANIFEST_LINE_H

#include "common/err.h"
#include "problem/expr.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>

#define SCAN_ITEM_MAX MANIFEST_ARG_MAX                            // items of a list
#define SCAN_NAME_MAX (PROBLEM_PARAM_MAX + MANIFEST_CONSTANT_MAX) // names in expressions

// A piece of the source, so that every refusal can name its column.
struct span {
    const char *at;
    size_t len;
};

// A manifest that is being read, and the position in one of its lines.
struct scan {
    const char *path; // for refusals
    const char *line; // first byte of the line
    const char *at;   // next byte of the line
    const char *end;  // behind the last byte of the line
    unsigned number;  // of the line, from 1
    const struct problem *problem;
    enum manifest_role role;
    struct manifest *manifest; // to be filled
    char *constant_name[MANIFEST_CONSTANT_MAX];
    // The names that expressions may use: the problem's params ("" for f64), then the macros.
    const char *name[SCAN_NAME_MAX];
    size_t name_count;
    struct err *err; // receives the first error
};

// Reports "path:line:column: sentence". `at` is a byte of the line. Returns ERR_INVALID.
MUST_CHECK int scan_fail(struct scan *p, const char *at, const char *sentence);
// The same, with the name in front of the sentence.
MUST_CHECK int scan_fail_name(struct scan *p, struct span name, const char *sentence);

// Whether an identifier may contain c: a letter, a digit or _.
bool scan_is_letter(char c);
// Consumes blanks.
void scan_blanks(struct scan *p);
// Consumes blanks. Whether the line ends then.
bool scan_at_end(struct scan *p);
// Consumes an identifier. Empty when none comes next.
struct span scan_word(struct scan *p);
bool span_is(struct span span, const char *text);
// The span without blanks at its ends.
struct span span_trim(struct span span);
// Consumes "=VALUE" of KEY=VALUE. Outside parentheses a blank ends the value, unless an operator
// stands before or after the blank: "4 * rows" is one value.
MUST_CHECK int scan_value(struct scan *p, struct span *ret);
// Splits "(a, b(c, d), e)" at its outer commas. A value without parentheses is one item, "()" is
// none.
MUST_CHECK int scan_list(struct scan *p, struct span value, struct span item[static SCAN_ITEM_MAX],
                         size_t *ret_count);
// Parses an expression. Refuses a name that is both a param and a macro. The caller frees *ret.
MUST_CHECK int scan_expr(struct scan *p, struct span text, enum expr_kind kind, struct expr **ret);

// The index of the problem's tensor or param with this name. False when there is none.
bool scan_find_tensor(const struct scan *p, struct span name, size_t *ret);
bool scan_find_param(const struct scan *p, struct span name, size_t *ret);

// Reads the rest of a line after "//@ launch" and adds the launch to the manifest. It is in
// manifest_launch.c.
MUST_CHECK int scan_launch(struct scan *p);

#endif

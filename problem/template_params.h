// A template as template_lines.c reads it and template.c enumerates it. Only these two include
// this.
#ifndef PROBLEM_TEMPLATE_PARAMS_H
#define PROBLEM_TEMPLATE_PARAMS_H

#include "problem/expr.h"
#include "problem/template.h"

// One parameter of a template.
struct tunable {
    char *name;
    int64_t value[TEMPLATE_VALUE_MAX]; // as listed, all different
    size_t value_count;
    struct expr *condition;  // over this and earlier parameters; NULL: every value is allowed
    size_t line;             // of its declaration, from 1
    size_t steps;            // work of trying one value, see template_read_lines
    size_t condition_column; // of the condition's first byte, from 1
};

struct template
{
    char *path;   // for errors
    char *source; // as given
    struct tunable param[TEMPLATE_PARAM_MAX];
    size_t param_count;
    uint8_t *row;       // point_count rows of param_count indices of values
    size_t point_count; // rows in use
    size_t point_room;  // rows allocated
};

// Reads the parameters of template->source from its "//@ tune" lines. ERR_INVALID names
// path:line:column, also when there is no such line. tunable.steps becomes 1, and 1 more for each
// STEP_TEXT bytes of the condition, because a long condition takes longer to evaluate.
MUST_CHECK int template_read_lines(struct template *template, struct err *err);

#endif

// Reads the "//@ launch" lines of a manifest. An argument is looked up in a fixed order: what a
// reference computes, tensors, scratch areas, tensor maps, f64 params. Everything else is an
// expression.
#include "common/mem.h"
#include "problem/manifest_line.h"
#include <ctype.h>
#include <string.h>

// Whether the name is an argument that only a reference has: an expected value or an error scale.
static bool find_expected(const struct scan *p, struct span name, struct manifest_arg *arg)
{
    for (size_t i = 0; i < p->problem->tensor_count && p->role == MANIFEST_REFERENCE; i++) {
        const struct tensor *tensor = &p->problem->tensor[i];
        size_t len = strlen(tensor->name);
        struct span tail = {.at = name.at + len, .len = name.len - len};

        if (tensor->direction == DIRECTION_IN || name.len < len ||
            memcmp(name.at, tensor->name, len) != 0) {
            continue;
        }
        arg->index = i;
        if (span_is(tail, "_scale")) {
            arg->kind = ARG_SCALE;
            return true;
        }
        if (span_is(tail, tensor->direction == DIRECTION_INOUT ? "_out" : "")) {
            arg->kind = ARG_EXPECTED;
            return true;
        }
    }
    return false;
}

static int parse_arg(struct scan *p, struct span item, struct manifest_arg *arg)
{
    const struct manifest *m = p->manifest;

    if (find_expected(p, item, arg)) {
        return 0;
    }
    if (scan_find_tensor(p, item, &arg->index)) {
        arg->kind = ARG_TENSOR;
        return 0;
    }
    for (size_t i = 0; i < m->scratch_count; i++) {
        if (span_is(item, m->scratch[i].name)) {
            *arg = (struct manifest_arg){.kind = ARG_SCRATCH, .index = i};
            return 0;
        }
    }
    for (size_t i = 0; i < m->tensormap_count; i++) {
        if (span_is(item, m->tensormap[i].name)) {
            *arg = (struct manifest_arg){.kind = ARG_TENSORMAP, .index = i};
            return 0;
        }
    }
    size_t index;
    if (scan_find_param(p, item, &index) && p->problem->param[index].type == PARAM_F64) {
        *arg = (struct manifest_arg){.kind = ARG_SCALAR, .index = index};
        return 0;
    }
    arg->kind = ARG_INTEGER;
    return scan_expr(p, item, EXPR_ARITHMETIC, &arg->expr);
}

static int parse_args(struct scan *p, struct span value, struct manifest_launch *launch)
{
    struct span item[SCAN_ITEM_MAX];
    size_t count = 0;
    int rc = value.at[0] == '(' ? scan_list(p, value, item, &count)
                                : scan_fail(p, value.at, "args needs a list in parentheses");

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = parse_arg(p, item[i], &launch->arg[i]);
        launch->arg_count = i + 1;
    }
    return rc;
}

// Parses one to three extents, such as "(cols / 128, rows)".
static int parse_three(struct scan *p, struct span value, struct expr *out[static 3])
{
    struct span item[SCAN_ITEM_MAX];
    size_t count = 0;
    int rc = scan_list(p, value, item, &count);

    if (rc == 0 && (count < 1 || count > 3)) {
        return scan_fail(p, value.at, "one to three extents are needed here");
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = out[i] ? scan_fail(p, value.at, "this is given twice")
                    : scan_expr(p, item[i], EXPR_ARITHMETIC, &out[i]);
    }
    return rc;
}

// Consumes the name of a kernel, such as "softmax" or "ns::softmax<128, true>".
static int take_kernel(struct scan *p, char **ret)
{
    scan_blanks(p);
    const char *from = p->at;
    while (p->at < p->end && (scan_is_letter(*p->at) || *p->at == ':')) {
        p->at++;
    }
    if (p->at == from || isdigit((unsigned char)*from)) {
        return scan_fail(p, from, "a kernel's name is missing here");
    }
    int depth = 0;
    if (p->at < p->end && *p->at == '<') {
        do {
            if (!scan_is_letter(*p->at) && !strchr("<>, :-()*", *p->at)) {
                return scan_fail(p, p->at, "this may not stand in a kernel's name");
            }
            depth += *p->at == '<' ? 1 : *p->at == '>' ? -1 : 0;
            p->at++;
        } while (p->at < p->end && depth > 0);
        if (depth > 0) {
            return scan_fail(p, from, "the < of this kernel's name is not closed");
        }
    }
    if (p->at - from > MANIFEST_KERNEL_MAX) {
        return scan_fail(p, from, "a kernel's name has at most 255 characters");
    }
    *ret = xstrndup(from, (size_t)(p->at - from));
    return 0;
}

static int parse_option(struct scan *p, struct manifest_launch *launch, bool *has_args)
{
    struct span key = scan_word(p);

    if (span_is(key, "cooperative")) {
        launch->cooperative = true;
        return 0;
    }
    if (span_is(key, "pdl")) {
        launch->pdl = true;
        return 0;
    }
    if (!span_is(key, "grid") && !span_is(key, "block") && !span_is(key, "cluster") &&
        !span_is(key, "smem") && !span_is(key, "if") && !span_is(key, "args")) {
        return scan_fail(p, key.at,
                         "launch takes grid, block, cluster, smem, if, args, cooperative and pdl");
    }
    struct span value;
    int rc = scan_value(p, &value);
    if (rc != 0) {
        return rc;
    }
    if (span_is(key, "grid")) {
        return parse_three(p, value, launch->grid);
    }
    if (span_is(key, "block")) {
        return parse_three(p, value, launch->block);
    }
    if (span_is(key, "cluster")) {
        return parse_three(p, value, launch->cluster);
    }
    if (span_is(key, "args")) {
        if (*has_args) {
            return scan_fail(p, key.at, "args is given twice");
        }
        *has_args = true;
        return parse_args(p, value, launch);
    }
    if (span_is(key, "smem") ? !!launch->smem : !!launch->condition) {
        return scan_fail(p, key.at, "this is given twice");
    }
    return span_is(key, "smem") ? scan_expr(p, value, EXPR_ARITHMETIC, &launch->smem)
                                : scan_expr(p, value, EXPR_CONDITIONS, &launch->condition);
}

int scan_launch(struct scan *p)
{
    struct manifest *m = p->manifest;

    if (m->launch_count == MANIFEST_LAUNCH_MAX) {
        return scan_fail(p, p->at, "more than 32 launches");
    }
    m->launch = xrealloc(m->launch, m->launch_count + 1, sizeof(*m->launch));
    struct manifest_launch *launch = &m->launch[m->launch_count++];
    *launch = (struct manifest_launch){.line = p->number};
    int rc = take_kernel(p, &launch->kernel);
    bool has_args = false;
    while (rc == 0 && !scan_at_end(p)) {
        rc = parse_option(p, launch, &has_args);
    }
    if (rc == 0 && (!launch->grid[0] || !launch->block[0] || !has_args)) {
        rc = scan_fail(p, p->line, "a launch needs grid=(…), block=(…) and args=(…)");
    }
    return rc;
}

// What follows from a problem and one case: the extents and element counts of its tensors, its
// work, and its name. Everything is bounded before it is multiplied.
#include "problem/problem.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

// The extent of one axis of a tensor: at least 1, at most the number of elements that a tensor may
// have.
static int extent_of(const struct problem *problem, size_t tensor, size_t axis,
                     const struct shape_case *shape, size_t *ret, struct err *err)
{
    const struct tensor *t = &problem->tensor[tensor];
    int64_t extent = 0;
    struct err inner = ERR_INIT;
    int rc = expr_eval(&extent, t->shape[axis], shape->i, &inner);
    if (rc != 0) {
        return err_set(err, rc, "shape[%zu] of tensor %s: %s; change the expression or the case",
                       axis, t->name, inner.text);
    }
    size_t most = PROBLEM_TENSOR_BYTES_MAX / dtype_size(t->dtype);
    if (extent < 1 || (uint64_t)extent > most) {
        return err_set(err, ERR_INVALID,
                       "shape[%zu] of tensor %s, \"%.200s\", is %" PRId64 "; it must be 1 to %zu",
                       axis, t->name, expr_text(t->shape[axis]), extent, most);
    }
    *ret = (size_t)extent;
    return 0;
}

int problem_elements(const struct problem *problem, size_t tensor, const struct shape_case *shape,
                     size_t *ret, struct err *err)
{
    const struct tensor *t = &problem->tensor[tensor];
    size_t most = PROBLEM_TENSOR_BYTES_MAX / dtype_size(t->dtype), elements = 1, extent = 0;
    for (size_t axis = 0; axis < t->rank; axis++) {
        int rc = extent_of(problem, tensor, axis, shape, &extent, err);
        if (rc != 0) {
            return rc;
        }
        if (extent > most / elements) {
            return err_set(err, ERR_INVALID,
                           "tensor %s has more than %zu elements (%zu bytes); use a smaller shape",
                           t->name, most, PROBLEM_TENSOR_BYTES_MAX);
        }
        elements *= extent;
    }
    *ret = elements;
    return 0;
}

bool tensor_is_exact(const struct tensor *tensor)
{
    return dtype_roundoff(tensor->dtype) == 1.0 && tensor->tolerance == 0.0;
}

int problem_last_extent(const struct problem *problem, size_t tensor,
                        const struct shape_case *shape, size_t *ret, struct err *err)
{
    size_t rank = problem->tensor[tensor].rank;
    if (rank > 0) {
        return extent_of(problem, tensor, rank - 1, shape, ret, err);
    }
    *ret = 1;
    return 0;
}

static int work_of(const struct expr *expr, const char *what, const struct shape_case *shape,
                   double *ret, struct err *err)
{
    int64_t value = 0;
    struct err inner = ERR_INIT;
    int rc = expr_eval(&value, expr, shape->i, &inner);
    if (rc != 0) {
        return err_set(err, rc, "work.%s: %s; change the expression or the case", what, inner.text);
    }
    if (value < 0) {
        return err_set(err, ERR_INVALID,
                       "work.%s, \"%.200s\", is %" PRId64 "; it must be 0 or more", what,
                       expr_text(expr), value);
    }
    *ret = (double)value;
    return 0;
}

int problem_work(const struct problem *problem, const struct shape_case *shape, double *ret_flops,
                 double *ret_bytes, struct err *err)
{
    double flops = 0.0, bytes = 0.0;
    int rc = work_of(problem->flops, "flops", shape, &flops, err);
    if (rc == 0) {
        rc = work_of(problem->bytes, "bytes", shape, &bytes, err);
    }
    if (rc != 0) {
        return rc;
    }
    *ret_flops = flops;
    *ret_bytes = bytes;
    return 0;
}

int problem_check_case(const struct problem *problem, const struct shape_case *shape,
                       struct err *err)
{
    for (size_t i = 0; i < problem->tensor_count; i++) {
        size_t elements = 0;
        int rc = problem_elements(problem, i, shape, &elements, err);
        if (rc != 0) {
            return rc;
        }
    }
    double flops = 0.0, bytes = 0.0;
    return problem_work(problem, shape, &flops, &bytes, err);
}

void problem_case_name(const struct problem *problem, const struct shape_case *shape,
                       struct strbuf *out)
{
    for (size_t i = 0; i < problem->param_count; i++) {
        const char *separator = i > 0 ? " " : "", *name = problem->param[i].name;
        if (problem->param[i].type == PARAM_INT) {
            strbuf_addf(out, "%s%s=%" PRId64, separator, name, shape->i[i]);
            continue;
        }
        char text[40];
        // 15 digits where they read back as the same number, 17 otherwise.
        snprintf(text, sizeof text, "%.15g", shape->f[i]);
        if (strtod(text, NULL) != shape->f[i]) {
            snprintf(text, sizeof text, "%.17g", shape->f[i]);
        }
        strbuf_addf(out, "%s%s=%s", separator, name, text);
    }
}

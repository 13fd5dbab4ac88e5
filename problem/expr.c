// Evaluates expressions. A text is parsed once (expr_parse.c) into postfix code for a small stack
// machine, because a template evaluates its conditions up to a million times. Evaluation never has
// undefined behaviour: every operation that can overflow uses a checked builtin. INT64_MIN / -1 and
// INT64_MIN % -1 count as overflow.
#include "problem/expr.h"
#include "problem/expr_code.h"
#include <stdlib.h>

// Why a / b, a % b or ceildiv(a, b) has no result. NULL when it has one.
static const char *division_refusal(int64_t a, int64_t b)
{
    if (b == 0) {
        return "divides by zero";
    }
    if (a == INT64_MIN && b == -1) {
        return "overflows 64 bits in a division";
    }
    return NULL;
}

// a / b rounded towards +infinity, for all signs. b is not 0.
static int64_t ceildiv(int64_t a, int64_t b)
{
    int64_t quotient = a / b, rest = a % b;
    return rest != 0 && (rest < 0) == (b < 0) ? quotient + 1 : quotient;
}

// Computes a op b into *ret. Returns why there is no result, NULL when there is one.
static const char *apply(enum op_code code, int64_t a, int64_t b, int64_t *ret)
{
    const char *refusal = NULL;
    switch (code) {
    case OP_ADD:
        return __builtin_add_overflow(a, b, ret) ? "overflows 64 bits in a sum" : NULL;
    case OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, ret) ? "overflows 64 bits in a difference" : NULL;
    case OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, ret) ? "overflows 64 bits in a product" : NULL;
    case OP_DIVIDE:
    case OP_REMAINDER:
    case OP_CEILDIV:
        refusal = division_refusal(a, b);
        if (!refusal) {
            *ret = code == OP_DIVIDE ? a / b : code == OP_REMAINDER ? a % b : ceildiv(a, b);
        }
        return refusal;
    case OP_MIN:
        *ret = a < b ? a : b;
        return NULL;
    case OP_MAX:
        *ret = a > b ? a : b;
        return NULL;
    case OP_EQUAL:
        *ret = a == b;
        return NULL;
    case OP_NOT_EQUAL:
        *ret = a != b;
        return NULL;
    case OP_LESS:
        *ret = a < b;
        return NULL;
    case OP_LESS_EQUAL:
        *ret = a <= b;
        return NULL;
    case OP_GREATER:
        *ret = a > b;
        return NULL;
    case OP_GREATER_EQUAL:
        *ret = a >= b;
        return NULL;
    case OP_CONSTANT:
    case OP_VARIABLE:
    case OP_NEGATE:
    case OP_NOT:
    case OP_BOOL:
    case OP_AND:
    case OP_OR:
        break;
    }
    return "holds an operation that is none";
}

int expr_eval(int64_t *ret, const struct expr *expr, const int64_t *values, struct err *err)
{
    int64_t stack[EXPR_STACK_MAX] = {0};
    size_t top = 0; // operands on the stack
    const char *refusal = NULL;
    for (size_t at = 0; at < expr->op_count && !refusal; at++) {
        const struct op *op = &expr->op[at];
        switch (op->code) {
        case OP_CONSTANT:
            stack[top++] = op->value;
            break;
        case OP_VARIABLE:
            stack[top++] = values[op->value];
            break;
        case OP_NEGATE:
            refusal = apply(OP_SUBTRACT, 0, stack[top - 1], &stack[top - 1]);
            break;
        case OP_NOT:
            stack[top - 1] = stack[top - 1] == 0;
            break;
        case OP_BOOL:
            stack[top - 1] = stack[top - 1] != 0;
            break;
        case OP_AND:
        case OP_OR:
            // The target of the jump is the OP_BOOL after the right side. The -1 undoes the step of
            // the loop.
            if ((stack[top - 1] != 0) == (op->code == OP_OR)) {
                at = (size_t)op->value - 1;
            } else {
                top--;
            }
            break;
        default:
            top--;
            refusal = apply(op->code, stack[top - 1], stack[top], &stack[top - 1]);
            break;
        }
    }
    if (refusal) {
        return err_set(err, ERR_INVALID, "\"%.200s\" %s", expr->text, refusal);
    }
    *ret = stack[0];
    return 0;
}

const char *expr_text(const struct expr *expr)
{
    return expr->text;
}

void expr_free(struct expr *expr)
{
    if (!expr) {
        return;
    }
    free(expr->text);
    free(expr->op);
    free(expr);
}

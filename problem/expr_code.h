// The code into which an expression is parsed, for a small stack machine. Only expr_parse.c, which
// writes it, and expr.c, which runs it, include this.
#ifndef PROBLEM_EXPR_CODE_H
#define PROBLEM_EXPR_CODE_H

#include "problem/expr.h"

// Operands that a program can have on the stack. Each level of nesting keeps at most one left
// operand per level of binary operators (comparison, sum, product) and one first argument of a
// call.
#define EXPR_STACK_MAX (4 * (EXPR_DEPTH_MAX + 2))

enum op_code {
    OP_CONSTANT, // push value
    OP_VARIABLE, // push values[value]
    // These replace the top of the stack.
    OP_NEGATE,
    OP_NOT,
    OP_BOOL,
    // These replace the two topmost operands by their result.
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_REMAINDER,
    OP_CEILDIV,
    OP_MIN,
    OP_MAX,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_AND, // top is 0: continue at op[value]; otherwise drop the top
    OP_OR,  // top is not 0: continue at op[value]; otherwise drop the top
};

// One operation.
struct op {
    enum op_code code;
    int64_t value; // constant, index of a variable, or target of OP_AND and OP_OR
};

struct expr {
    char *text;      // as given, for error sentences
    struct op *op;   // postfix code that leaves one value
    size_t op_count; // operations in op
};

#endif

// Design note. An expression is parsed once, by recursive descent, into postfix code for a small
// stack machine, because a template evaluates its conditions up to a million times. The parser
// bounds everything that a hostile text could stretch: length (EXPR_TEXT_MAX), nesting
// (EXPR_DEPTH_MAX: parentheses, calls and prefix operators each count) and, from these two, the
// operand stack (STACK_MAX, checked while code is emitted, so that evaluation needs no check).
// Evaluation never runs into undefined behaviour: every operation that can overflow goes through a
// checked builtin.
//
// && and || evaluate their right side only when it matters, as in C, so that "N != 0 && M % N == 0"
// is safe. They compile to
//     left, JUMP to L if that decides it (keeping the value) else drop it, right, L: BOOL
// Comparisons do not chain: "a < b < c" is refused instead of meaning something surprising.
//
// INT64_MIN / -1 and INT64_MIN % -1 are both overflow. ceildiv rounds towards +infinity for every
// combination of signs.
#include "problem/expr.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/identifier.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Each nesting level keeps at most one left operand per binary precedence level (comparison, sum,
// product) and one first argument of a call.
#define STACK_MAX (4 * (EXPR_DEPTH_MAX + 2))

enum op_code {
    OP_CONSTANT, // push value
    OP_VARIABLE, // push values[value]
    OP_NEGATE,
    OP_NOT,
    OP_BOOL,
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
    OP_AND, // top is 0: go to op[value]; else drop it
    OP_OR,  // top is not 0: go to op[value]; else drop it
};

struct op {
    enum op_code code;
    int64_t value; // of OP_CONSTANT, OP_VARIABLE, OP_AND, OP_OR
};

struct expr {
    char *text;    // as given
    struct op *op; // postfix code that leaves one value
    size_t op_count;
};

struct parser {
    const char *text;
    size_t at; // next byte of text
    enum expr_kind kind;
    const char *const *names;
    size_t name_count;
    struct op *op; // room for two per byte of text
    size_t op_count;
    size_t depth;  // of nesting
    size_t stack;  // operands that the code so far leaves
    size_t column; // of the error
    struct err *err;
};

static int parse_choice(struct parser *parser);

static int fail(struct parser *parser, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(struct parser *parser, size_t at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    parser->column = at + 1;
    return err_set(parser->err, ERR_INVALID, "%s", text);
}

// pops operands, pushes one.
static int emit(struct parser *parser, enum op_code code, int64_t value, size_t pops)
{
    parser->op[parser->op_count++] = (struct op){code, value};
    parser->stack = parser->stack - pops + 1;
    return parser->stack <= STACK_MAX
               ? 0
               : fail(parser, parser->at, "the expression is too complicated");
}

static void skip_blanks(struct parser *parser)
{
    while (parser->text[parser->at] == ' ' || parser->text[parser->at] == '\t') {
        parser->at++;
    }
}

// Takes the token if it comes next.
static bool accept(struct parser *parser, const char *token)
{
    skip_blanks(parser);
    size_t len = strlen(token);
    if (strncmp(parser->text + parser->at, token, len) != 0) {
        return false;
    }
    parser->at += len;
    return true;
}

static int fail_unexpected(struct parser *parser, const char *wanted)
{
    skip_blanks(parser);
    unsigned char c = (unsigned char)parser->text[parser->at];
    if (c == '\0') {
        return fail(parser, parser->at, "the expression ends where %s is expected", wanted);
    }
    if (c > ' ' && c < 0x7f) {
        return fail(parser, parser->at, "'%c' stands where %s is expected", c, wanted);
    }
    return fail(parser, parser->at, "the byte 0x%02x stands where %s is expected", c, wanted);
}

static int enter(struct parser *parser, size_t at)
{
    if (++parser->depth > EXPR_DEPTH_MAX) {
        return fail(parser, at, "the expression is nested deeper than %d levels", EXPR_DEPTH_MAX);
    }
    return 0;
}

static int parse_number(struct parser *parser, bool negative)
{
    size_t start = parser->at;
    int64_t value = 0;
    for (; parser->text[parser->at] >= '0' && parser->text[parser->at] <= '9'; parser->at++) {
        int digit = parser->text[parser->at] - '0';
        // Counted downwards, because the most negative number has no positive counterpart.
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value)) {
            return fail(parser, start, "the number does not fit into 64 bits");
        }
    }
    if (identifier_span(parser->text + parser->at) > 0) {
        return fail(parser, start,
                    "a number is followed by a letter; only decimal integers are known");
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value)) {
        return fail(parser, start, "the number does not fit into 64 bits");
    }
    return emit(parser, OP_CONSTANT, value, 0);
}

static int parse_call(struct parser *parser, enum op_code code, size_t at)
{
    int rc = enter(parser, at);
    if (rc != 0) {
        goto out;
    }
    rc = parse_choice(parser);
    if (rc != 0) {
        goto out;
    }
    if (!accept(parser, ",")) {
        rc = fail_unexpected(parser, "',' and a second argument");
    }
    if (rc != 0) {
        goto out;
    }
    rc = parse_choice(parser);
    if (rc != 0) {
        goto out;
    }
    if (!accept(parser, ")")) {
        rc = fail_unexpected(parser, "')'");
    }
    if (rc != 0) {
        goto out;
    }
    rc = emit(parser, code, 0, 2);
out:
    parser->depth--;
    return rc;
}

static int fail_unknown_name(struct parser *parser, size_t at, size_t len)
{
    struct strbuf known;
    strbuf_init(&known, 300);
    for (size_t i = 0; i < parser->name_count; i++) {
        if (parser->names[i][0] != '\0') {
            strbuf_addf(&known, "%s%s", known.len > 0 ? ", " : "", parser->names[i]);
        }
    }
    int rc = known.len > 0
                 ? fail(parser, at, "\"%.*s\" is not known here; use %s",
                        (int)(len < 64 ? len : 64), parser->text + at, strbuf_text(&known))
                 : fail(parser, at, "\"%.*s\" is not known here; no name is",
                        (int)(len < 64 ? len : 64), parser->text + at);
    strbuf_release(&known);
    return rc;
}

static int parse_name(struct parser *parser)
{
    static const struct {
        const char *name;
        enum op_code code;
    } functions[] = {{"ceildiv", OP_CEILDIV}, {"min", OP_MIN}, {"max", OP_MAX}};
    size_t start = parser->at;
    const char *name = parser->text + start;
    size_t len = identifier_span(name);
    parser->at += len;
    if (accept(parser, "(")) {
        for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
            if (strlen(functions[i].name) == len && memcmp(functions[i].name, name, len) == 0) {
                return parse_call(parser, functions[i].code, start);
            }
        }
        return fail(parser, start, "\"%.*s\" is not a function; use ceildiv, min or max",
                    (int)(len < 64 ? len : 64), name);
    }
    for (size_t i = 0; i < parser->name_count; i++) {
        if (strlen(parser->names[i]) == len && memcmp(parser->names[i], name, len) == 0) {
            return emit(parser, OP_VARIABLE, (int64_t)i, 0);
        }
    }
    return fail_unknown_name(parser, start, len);
}

static int parse_primary(struct parser *parser)
{
    skip_blanks(parser);
    size_t start = parser->at;
    if (parser->text[start] >= '0' && parser->text[start] <= '9') {
        return parse_number(parser, false);
    }
    if (identifier_span(parser->text + start) > 0) {
        return parse_name(parser);
    }
    if (!accept(parser, "(")) {
        return fail_unexpected(parser, "a number, a name or '('");
    }
    int rc = enter(parser, start);
    if (rc == 0) {
        rc = parse_choice(parser);
    }
    if (rc == 0 && !accept(parser, ")")) {
        rc = fail_unexpected(parser, "')'");
    }
    parser->depth--;
    return rc;
}

static int parse_prefix(struct parser *parser)
{
    skip_blanks(parser);
    size_t start = parser->at;
    char c = parser->text[start];
    bool is_not = c == '!' && parser->text[start + 1] != '=';
    if (is_not && parser->kind != EXPR_CONDITIONS) {
        return fail(parser, start, "'!' is known in conditions only");
    }
    if (c != '-' && !is_not) {
        return parse_primary(parser);
    }
    parser->at++;
    skip_blanks(parser);
    if (c == '-' && parser->text[parser->at] >= '0' && parser->text[parser->at] <= '9') {
        return parse_number(parser, true);
    }
    int rc = enter(parser, start);
    if (rc == 0) {
        rc = parse_prefix(parser);
    }
    if (rc == 0) {
        rc = emit(parser, c == '-' ? OP_NEGATE : OP_NOT, 0, 1);
    }
    parser->depth--;
    return rc;
}

static int parse_product(struct parser *parser)
{
    int rc = parse_prefix(parser);
    while (rc == 0) {
        enum op_code code = OP_MULTIPLY;
        if (accept(parser, "*")) {
            code = OP_MULTIPLY;
        } else if (accept(parser, "/")) {
            code = OP_DIVIDE;
        } else if (accept(parser, "%")) {
            code = OP_REMAINDER;
        } else {
            return 0;
        }
        rc = parse_prefix(parser);
        if (rc == 0) {
            rc = emit(parser, code, 0, 2);
        }
    }
    return rc;
}

static int parse_sum(struct parser *parser)
{
    int rc = parse_product(parser);
    while (rc == 0) {
        enum op_code code = OP_ADD;
        if (accept(parser, "-")) {
            code = OP_SUBTRACT;
        } else if (!accept(parser, "+")) {
            return 0;
        }
        rc = parse_product(parser);
        if (rc == 0) {
            rc = emit(parser, code, 0, 2);
        }
    }
    return rc;
}

static bool accept_comparison(struct parser *parser, enum op_code *ret)
{
    static const struct {
        const char *token;
        enum op_code code;
    } comparisons[] = {{"==", OP_EQUAL},         {"!=", OP_NOT_EQUAL}, {"<=", OP_LESS_EQUAL},
                       {">=", OP_GREATER_EQUAL}, {"<", OP_LESS},       {">", OP_GREATER}};
    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++) {
        if (accept(parser, comparisons[i].token)) {
            *ret = comparisons[i].code;
            return true;
        }
    }
    return false;
}

static int parse_comparison(struct parser *parser)
{
    int rc = parse_sum(parser);
    if (rc != 0) {
        return rc;
    }
    skip_blanks(parser);
    size_t start = parser->at;
    enum op_code code = OP_EQUAL, again = OP_EQUAL;
    if (!accept_comparison(parser, &code)) {
        return 0;
    }
    if (parser->kind != EXPR_CONDITIONS) {
        return fail(parser, start, "comparisons are known in conditions only");
    }
    rc = parse_sum(parser);
    if (rc != 0) {
        return rc;
    }
    rc = emit(parser, code, 0, 2);
    skip_blanks(parser);
    start = parser->at;
    if (rc == 0 && accept_comparison(parser, &again)) {
        return fail(parser, start, "comparisons do not chain; write a < b && b < c");
    }
    return rc;
}

// One level of && or || over operands parsed by `operand`.
static int parse_logic(struct parser *parser, const char *token, enum op_code code,
                       int (*operand)(struct parser *))
{
    int rc = operand(parser);
    while (rc == 0) {
        skip_blanks(parser);
        size_t start = parser->at;
        if (!accept(parser, token)) {
            return 0;
        }
        if (parser->kind != EXPR_CONDITIONS) {
            return fail(parser, start, "%s is known in conditions only", token);
        }
        size_t jump = parser->op_count;
        parser->op[parser->op_count++] = (struct op){code, 0};
        parser->stack--;
        rc = operand(parser);
        if (rc == 0) {
            parser->op[jump].value = (int64_t)parser->op_count;
            rc = emit(parser, OP_BOOL, 0, 1);
        }
    }
    return rc;
}

static int parse_conjunction(struct parser *parser)
{
    return parse_logic(parser, "&&", OP_AND, parse_comparison);
}

static int parse_choice(struct parser *parser)
{
    return parse_logic(parser, "||", OP_OR, parse_conjunction);
}

int expr_parse_at(struct expr **ret, const char *text, enum expr_kind kind,
                  const char *const *names, size_t name_count, size_t *ret_column, struct err *err)
{
    struct parser parser = {
        .text = text, .kind = kind, .names = names, .name_count = name_count, .err = err};
    int rc = 0;
    size_t len = strnlen(text, EXPR_TEXT_MAX + 1);
    if (len > EXPR_TEXT_MAX) {
        rc = fail(&parser, EXPR_TEXT_MAX, "the expression is longer than %d bytes", EXPR_TEXT_MAX);
        goto out;
    }
    parser.op = xcalloc(2 * len + 2, sizeof *parser.op);
    rc = parse_choice(&parser);
    skip_blanks(&parser);
    if (rc == 0 && text[parser.at] != '\0') {
        rc = fail_unexpected(&parser, "an operator or the end");
    }
    if (rc != 0) {
        goto out;
    }
    struct expr *expr = xmalloc(sizeof *expr);
    expr->text = xstrdup(text);
    expr->op = xrealloc(parser.op, parser.op_count, sizeof *parser.op);
    expr->op_count = parser.op_count;
    parser.op = NULL;
    *ret = expr;
out:
    if (rc != 0 && ret_column) {
        *ret_column = parser.column;
    }
    free(parser.op);
    return rc;
}

int expr_parse(struct expr **ret, const char *text, enum expr_kind kind, const char *const *names,
               size_t name_count, struct err *err)
{
    size_t column = 0;
    int rc = expr_parse_at(ret, text, kind, names, name_count, &column, err);
    if (rc != 0) {
        err_wrap(err, "column %zu", column);
    }
    return rc;
}

// NULL, or why a / b, a % b or ceildiv(a, b) has no answer.
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

static int64_t ceildiv(int64_t a, int64_t b)
{
    int64_t quotient = a / b, rest = a % b;
    return rest != 0 && (rest < 0) == (b < 0) ? quotient + 1 : quotient;
}

// NULL, or why a op b has no answer.
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
    int64_t stack[STACK_MAX] = {0};
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
            // The jump's target is the BOOL after the right side; the loop's own step is taken
            // back.
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

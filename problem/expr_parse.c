// Parses an expression by recursive descent into postfix code.
//
// The parser bounds everything that a hostile text could make large: its length (EXPR_TEXT_MAX),
// its nesting (EXPR_DEPTH_MAX; parentheses, calls and prefix operators each count) and, with these
// two, the operand stack (EXPR_STACK_MAX). The stack is checked while code is written, so that
// evaluation needs no check.
//
// As in C, && and || evaluate their right side only when it matters, so that "N != 0 && M % N == 0"
// is safe. The code is: left side; OP_AND or OP_OR, which keeps the left side and jumps to OP_BOOL
// when the left side decides, and drops it otherwise; right side; OP_BOOL. Comparisons do not
// chain: "a < b < c" is refused, because its meaning in C would surprise.
#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/expr_code.h"
#include "problem/identifier.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *text;
    size_t at; // index of the next byte of text
    enum expr_kind kind;
    const char *const *names; // that the text may use
    size_t name_count;
    struct op *op; // the code so far, with room for two operations per byte of text
    size_t op_count;
    size_t depth;  // present level of nesting
    size_t stack;  // operands that the code so far leaves
    size_t column; // of the error, from 1
    struct err *err;
};

static int parse_choice(struct parser *parser);

// Reports an error at byte `at` of the text.
__attribute__((format(printf, 3, 4))) static int fail(struct parser *parser, size_t at,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    parser->column = at + 1;
    return err_set(parser->err, ERR_INVALID, "%s", text);
}

// Appends an operation that pops `pops` operands and pushes one.
static int emit(struct parser *parser, enum op_code code, int64_t value, size_t pops)
{
    parser->op[parser->op_count++] = (struct op){code, value};
    parser->stack = parser->stack - pops + 1;
    return parser->stack <= EXPR_STACK_MAX
               ? 0
               : fail(parser, parser->at, "the expression is too complicated");
}

static void skip_blanks(struct parser *parser)
{
    while (parser->text[parser->at] == ' ' || parser->text[parser->at] == '\t') {
        parser->at++;
    }
}

// Consumes the token when it comes next, after blanks.
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

// Enters one more level of nesting.
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
        // The value is built as a negative one, because the most negative number has no positive
        // counterpart.
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

// Parses the two arguments of a function, behind its opening parenthesis.
static int parse_arguments(struct parser *parser)
{
    int rc = parse_choice(parser);
    if (rc != 0) {
        return rc;
    }
    if (!accept(parser, ",")) {
        return fail_unexpected(parser, "',' and a second argument");
    }
    rc = parse_choice(parser);
    if (rc != 0) {
        return rc;
    }
    return accept(parser, ")") ? 0 : fail_unexpected(parser, "')'");
}

static int parse_call(struct parser *parser, enum op_code code, size_t at)
{
    int rc = enter(parser, at);
    if (rc == 0) {
        rc = parse_arguments(parser);
    }
    if (rc == 0) {
        rc = emit(parser, code, 0, 2);
    }
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

// Parses one level of && or ||, whose operands `operand` parses.
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

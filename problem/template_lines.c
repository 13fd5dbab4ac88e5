// Reads the "//@ tune" lines of a template.
//
// Every line whose first non-blank characters are "//@" must be a well-formed tune line or a line
// of a launch manifest, which manifest.c reads. A line that was meant as a declaration is therefore
// never silently an ordinary comment. Conditions are expressions (expr.h) over this and earlier
// parameters.
#include "common/mem.h"
#include "problem/identifier.h"
#include "problem/template_params.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_TEXT 32 // bytes of a condition that count as one step

// A position in one line.
struct scanner {
    const char *path;
    const char *text; // the line, without its end
    size_t line;      // from 1
    size_t at;        // index of the next byte of text
    struct err *err;
};

// Reports an error at byte `at` of the line.
__attribute__((format(printf, 3, 4))) static int fail(const struct scanner *scanner, size_t at,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set(scanner->err, ERR_INVALID, "%s:%zu:%zu: %s", scanner->path, scanner->line,
                   at + 1, text);
}

static void skip_blanks(struct scanner *scanner)
{
    while (scanner->text[scanner->at] == ' ' || scanner->text[scanner->at] == '\t') {
        scanner->at++;
    }
}

// Consumes the character when it comes next, after blanks.
static bool accept(struct scanner *scanner, char c)
{
    skip_blanks(scanner);
    if (scanner->text[scanner->at] != c) {
        return false;
    }
    scanner->at++;
    return true;
}

// Consumes the word when it comes next, after blanks.
static bool accept_word(struct scanner *scanner, const char *word)
{
    skip_blanks(scanner);
    size_t len = identifier_span(scanner->text + scanner->at);
    if (len != strlen(word) || memcmp(scanner->text + scanner->at, word, len) != 0) {
        return false;
    }
    scanner->at += len;
    return true;
}

static int scan_name(struct scanner *scanner, const struct template *template, char **ret)
{
    skip_blanks(scanner);
    size_t start = scanner->at;
    size_t len = identifier_span(scanner->text + start);
    if (len == 0) {
        return fail(scanner, start,
                    "a parameter's name is missing; write //@ tune NAME in (1, 2, 4)");
    }
    char *name = xstrndup(scanner->text + start, len);
    int rc = 0;
    const char *refusal = identifier_refusal(name);
    if (refusal) {
        rc = fail(scanner, start, "the parameter's name \"%.64s\" %s; choose another", name,
                  refusal);
    }
    for (size_t i = 0; i < template->param_count && rc == 0; i++) {
        if (strcmp(template->param[i].name, name) == 0) {
            rc = fail(scanner, start, "\"%s\" is declared already in line %zu; declare it once",
                      name, template->param[i].line);
        }
    }
    if (rc != 0) {
        free(name);
        return rc;
    }
    scanner->at += len;
    *ret = name;
    return 0;
}

static int scan_integer(struct scanner *scanner, int64_t *ret)
{
    skip_blanks(scanner);
    size_t start = scanner->at;
    bool negative = accept(scanner, '-');
    const char *digits = scanner->text + scanner->at;
    size_t len = strspn(digits, "0123456789");
    if (len == 0) {
        return fail(scanner, start, "an integer is expected here");
    }
    int64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        int digit = digits[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            (negative ? __builtin_sub_overflow(value, digit, &value)
                      : __builtin_add_overflow(value, digit, &value))) {
            return fail(scanner, start, "the value does not fit into 64 bits");
        }
    }
    scanner->at += len;
    *ret = value;
    return 0;
}

static int scan_values(struct scanner *scanner, struct tunable *param)
{
    if (!accept(scanner, '(')) {
        return fail(scanner, scanner->at,
                    "a list of values in parentheses is expected here, such as (1, 2, 4)");
    }
    do {
        skip_blanks(scanner);
        size_t start = scanner->at;
        int64_t value = 0;
        int rc = scan_integer(scanner, &value);
        if (rc != 0) {
            return rc;
        }
        for (size_t i = 0; i < param->value_count; i++) {
            if (param->value[i] == value) {
                return fail(scanner, start, "the value %lld is listed twice; list it once",
                            (long long)value);
            }
        }
        if (param->value_count == TEMPLATE_VALUE_MAX) {
            return fail(scanner, start, "\"%s\" has more than %d values; list fewer", param->name,
                        TEMPLATE_VALUE_MAX);
        }
        param->value[param->value_count++] = value;
    } while (accept(scanner, ','));
    if (!accept(scanner, ')')) {
        return fail(scanner, scanner->at, "',' or ')' is expected after a value");
    }
    return 0;
}

static int scan_condition(struct scanner *scanner, struct template *template, struct tunable *param)
{
    const char *names[TEMPLATE_PARAM_MAX];
    size_t count = template->param_count + 1; // param itself is not counted yet
    for (size_t i = 0; i < count; i++) {
        names[i] = template->param[i].name;
    }
    skip_blanks(scanner);
    param->condition_column = scanner->at + 1;
    param->steps += strlen(scanner->text + scanner->at) / STEP_TEXT;
    size_t column = 0;
    struct err inner = ERR_INIT;
    int rc = expr_parse_at(&param->condition, scanner->text + scanner->at, EXPR_CONDITIONS, names,
                           count, &column, &inner);
    return rc == 0 ? 0 : fail(scanner, scanner->at + column - 1, "%s", inner.text);
}

// Consumes the first word of a manifest line.
static bool accept_manifest(struct scanner *scanner)
{
    return accept_word(scanner, "launch") || accept_word(scanner, "scratch") ||
           accept_word(scanner, "specialize") || accept_word(scanner, "tensormap");
}

// Reads one line that begins with //@ after blanks. The parameter is counted only when all of it is
// right. Until then its parts are in the first free entry, where template_free finds them.
static int scan_line(struct scanner *scanner, struct template *template)
{
    skip_blanks(scanner);
    scanner->at += strlen("//@");
    if (accept_manifest(scanner)) {
        return 0;
    }
    if (!accept_word(scanner, "tune")) {
        return fail(scanner, scanner->at,
                    "a line that begins with //@ must be //@ tune NAME in (…), or a plain comment");
    }
    if (template->param_count == TEMPLATE_PARAM_MAX) {
        return fail(scanner, 0, "the template has more than %d parameters; declare fewer",
                    TEMPLATE_PARAM_MAX);
    }
    struct tunable *param = &template->param[template->param_count];
    param->line = scanner->line;
    param->steps = 1;
    int rc = scan_name(scanner, template, &param->name);
    if (rc != 0) {
        return rc;
    }
    if (!accept_word(scanner, "in")) {
        return fail(scanner, scanner->at,
                    "\"in\" and a list of values are expected after the name");
    }
    rc = scan_values(scanner, param);
    if (rc != 0) {
        return rc;
    }
    if (accept_word(scanner, "if")) {
        rc = scan_condition(scanner, template, param);
    } else {
        skip_blanks(scanner);
        if (scanner->text[scanner->at] != '\0') {
            rc = fail(scanner, scanner->at,
                      "\"if\" and a condition, or the end of the line, is expected here");
        }
    }
    if (rc == 0) {
        template->param_count++;
    }
    return rc;
}

int template_read_lines(struct template *template, struct err *err)
{
    int rc = 0;
    size_t line = 1;
    for (const char *start = template->source; *start != '\0' && rc == 0; line++) {
        size_t len = strcspn(start, "\n");
        const char *next = start + len + (start[len] == '\n');
        if (strncmp(start + strspn(start, " \t"), "//@", 3) == 0) {
            while (len > 0 &&
                   (start[len - 1] == '\r' || start[len - 1] == ' ' || start[len - 1] == '\t')) {
                len--;
            }
            char *text = xstrndup(start, len);
            struct scanner scanner = {
                .path = template->path, .text = text, .line = line, .err = err};
            rc = scan_line(&scanner, template);
            free(text);
        }
        start = next;
    }
    if (rc == 0 && template->param_count == 0) {
        rc = err_set(err, ERR_INVALID,
                     "%s:1:1: no parameter is declared; begin with a line such as //@ tune UNROLL "
                     "in (1, 2, 4)",
                     template->path);
    }
    return rc;
}

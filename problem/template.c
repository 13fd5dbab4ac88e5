// Design note. A template is its text, the parameters that its "//@ tune" lines declare, and the
// table of its points.
//
// Every line whose first non-blank characters are "//@" must be a well-formed tune line, wherever
// it stands, or a line of a launch manifest, which problem/manifest.c reads: a line that was meant
// as a declaration is never silently an ordinary comment. The line is read by one scanner that
// knows its path, line and column, conditions are contract/expr's.
//
// Points are found by depth-first search over the parameters in the order of their lines. A
// condition knows only its own and earlier parameters, so it cuts a whole subtree as soon as its
// parameter is set. Two limits end the search: the number of points (TEMPLATE_POINT_MAX) and the
// work of trying values (STEP_MAX), because conditions can reject almost everything late, at the
// bottom of a tree of any size.
//
// A point is stored as one byte per parameter, the index of its value. The search yields points in
// lexicographic order of these rows, so a point is found again by binary search with memcmp.
#include "problem/template.h"
#include "common/mem.h"
#include "problem/expr.h"
#include "problem/identifier.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MAX ((size_t)1 << 24) // work before a search is given up, about a second
#define STEP_TEXT 32               // bytes of a condition that count as one more step

struct tunable {
    char *name;
    int64_t value[TEMPLATE_VALUE_MAX]; // as listed, all different
    size_t value_count;
    struct expr *condition;  // NULL, or over this and earlier parameters
    size_t line;             // where it is declared, from 1
    size_t steps;            // that trying one value counts
    size_t condition_column; // of the condition's first byte, from 1
};

struct template
{
    char *path;   // in errors
    char *source; // as given
    struct tunable param[TEMPLATE_PARAM_MAX];
    size_t param_count;
    uint8_t *row; // point_count rows of param_count value indices
    size_t point_count;
    size_t point_room; // rows allocated
};

// One tune line while it is read.
struct scanner {
    const char *path;
    const char *text; // the line, without its end
    size_t line;      // from 1
    size_t at;        // next byte of text
    struct err *err;
};

static int fail(const struct scanner *scanner, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(const struct scanner *scanner, size_t at, const char *format, ...)
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

static bool accept(struct scanner *scanner, char c)
{
    skip_blanks(scanner);
    if (scanner->text[scanner->at] != c) {
        return false;
    }
    scanner->at++;
    return true;
}

// Takes the word if it comes next and ends there.
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
    size_t count = template->param_count + 1; // param is the one after the last counted
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

// Whether the scanner is at a word of problem/manifest.h; takes it.
static bool accept_manifest(struct scanner *scanner)
{
    return accept_word(scanner, "launch") || accept_word(scanner, "scratch") ||
           accept_word(scanner, "specialize") || accept_word(scanner, "tensormap");
}

// Reads one line that begins with //@ after blanks. The parameter is counted only when all of it is
// right; its parts are in the next free entry before, where template_free finds them.
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

static int scan_source(struct template *template, struct err *err)
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

static void add_point(struct template *template, const uint8_t *index)
{
    if (template->point_count == template->point_room) {
        template->point_room = template->point_room == 0 ? 256 : 2 * template->point_room;
        template->row = xrealloc(template->row, template->point_room, template->param_count);
    }
    memcpy(template->row + template->point_count * template->param_count, index,
           template->param_count);
    template->point_count++;
}

// Whether the condition of parameter `param` admits values[0 .. param].
static int admits(const struct template *template, size_t param, const int64_t *values, bool *ret,
                  struct err *err)
{
    const struct tunable *tunable = &template->param[param];
    int64_t value = 1;
    struct err inner = ERR_INIT;
    if (tunable->condition && expr_eval(&value, tunable->condition, values, &inner) != 0) {
        struct strbuf point;
        strbuf_init(&point, 400);
        for (size_t i = 0; i <= param; i++) {
            strbuf_addf(&point, "%s%s=%lld", i > 0 ? " " : "", template->param[i].name,
                        (long long)values[i]);
        }
        int rc = err_set(err, ERR_INVALID, "%s:%zu:%zu: the condition %s at %s; guard it with &&",
                         template->path, tunable->line, tunable->condition_column, inner.text,
                         strbuf_text(&point));
        strbuf_release(&point);
        return rc;
    }
    *ret = value != 0;
    return 0;
}

static int enumerate(struct template *template, struct err *err)
{
    uint8_t index[TEMPLATE_PARAM_MAX] = {0};
    int64_t values[TEMPLATE_PARAM_MAX] = {0};
    size_t depth = 0; // the parameter that gets its next value, index[depth]
    for (size_t steps = 0;;) {
        const struct tunable *tunable = &template->param[depth];
        if (index[depth] == tunable->value_count) {
            if (depth == 0) {
                return 0;
            }
            depth--;
            index[depth]++;
            continue;
        }
        steps += tunable->steps;
        if (steps > STEP_MAX) {
            return err_set(err, ERR_LIMIT,
                           "%s: enumerating the points takes more than %zu steps; list fewer "
                           "values or put conditions on "
                           "earlier parameters",
                           template->path, STEP_MAX);
        }
        values[depth] = tunable->value[index[depth]];
        bool admitted = false;
        int rc = admits(template, depth, values, &admitted, err);
        if (rc != 0) {
            return rc;
        }
        if (admitted && depth + 1 < template->param_count) {
            depth++;
            index[depth] = 0;
            continue;
        }
        if (admitted && template->point_count == TEMPLATE_POINT_MAX) {
            return err_set(
                err, ERR_LIMIT,
                "%s: the template has more than %zu points; list fewer values or add conditions",
                template->path, TEMPLATE_POINT_MAX);
        }
        if (admitted) {
            add_point(template, index);
        }
        index[depth]++;
    }
}

int template_parse(struct template **ret, const char *source, const char *path, struct err *err)
{
    struct template *template = xcalloc(1, sizeof *template);
    template->path = xstrdup(path);
    template->source = xstrdup(source);
    int rc = scan_source(template, err);
    if (rc == 0) {
        rc = enumerate(template, err);
    }
    if (rc == 0 && template->point_count == 0) {
        rc = err_set(err, ERR_INVALID, "%s:%zu:1: the conditions leave no point; relax one", path,
                     template->param[template->param_count - 1].line);
    }
    if (rc != 0) {
        template_free(template);
        return rc;
    }
    *ret = template;
    return 0;
}

void template_free(struct template *template)
{
    if (!template) {
        return;
    }
    for (size_t i = 0; i < TEMPLATE_PARAM_MAX; i++) {
        free(template->param[i].name);
        expr_free(template->param[i].condition);
    }
    free(template->row);
    free(template->source);
    free(template->path);
    free(template);
}

size_t template_param_count(const struct template *template)
{
    return template->param_count;
}

const char *template_param_name(const struct template *template, size_t param)
{
    return template->param[param].name;
}

size_t template_value_count(const struct template *template, size_t param)
{
    return template->param[param].value_count;
}

int64_t template_value(const struct template *template, size_t param, size_t index)
{
    return template->param[param].value[index];
}

size_t template_point_count(const struct template *template)
{
    return template->point_count;
}

static const uint8_t *row_of(const struct template *template, size_t point)
{
    return template->row + point * template->param_count;
}

void template_point(const struct template *template, size_t point, int64_t *values)
{
    for (size_t i = 0; i < template->param_count; i++) {
        values[i] = template->param[i].value[row_of(template, point)[i]];
    }
}

static bool find_row(const struct template *template, const uint8_t *index, size_t *ret_point)
{
    size_t low = 0, high = template->point_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(row_of(template, middle), index, template->param_count);
        if (order == 0) {
            *ret_point = middle;
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

bool template_find(const struct template *template, const int64_t *values, size_t *ret_point)
{
    uint8_t index[TEMPLATE_PARAM_MAX] = {0};
    for (size_t i = 0; i < template->param_count; i++) {
        const struct tunable *tunable = &template->param[i];
        while (index[i] < tunable->value_count && tunable->value[index[i]] != values[i]) {
            index[i]++;
        }
        if (index[i] == tunable->value_count) {
            return false;
        }
    }
    return find_row(template, index, ret_point);
}

size_t template_neighbours(const struct template *template, size_t point, size_t *out, size_t max)
{
    uint8_t index[TEMPLATE_PARAM_MAX];
    size_t count = 0, found = 0;
    memcpy(index, row_of(template, point), template->param_count);
    for (size_t i = 0; i < template->param_count; i++) {
        uint8_t own = index[i];
        for (int step = -1; step <= 1; step += 2) {
            // Below 0 wraps to 255, which is no index either.
            index[i] = (uint8_t)(own + step);
            if (index[i] >= template->param[i].value_count || !find_row(template, index, &found)) {
                continue;
            }
            if (count < max) {
                out[count] = found;
            }
            count++;
        }
        index[i] = own;
    }
    return count;
}

void template_source(const struct template *template, size_t point, struct strbuf *out)
{
    for (size_t i = 0; i < template->param_count; i++) {
        int64_t value = template->param[i].value[row_of(template, point)[i]];
        const char *name = template->param[i].name;
        if (value >= 0) {
            strbuf_addf(out, "#define %s %lld\n", name, (long long)value);
        } else if (value == INT64_MIN) // has no literal in C
        {
            strbuf_addf(out, "#define %s (%lld - 1)\n", name, (long long)(INT64_MIN + 1));
        } else {
            strbuf_addf(out, "#define %s (%lld)\n", name, (long long)value);
        }
    }
    strbuf_adds(out, template->source);
}

void template_point_name(const struct template *template, size_t point, struct strbuf *out)
{
    for (size_t i = 0; i < template->param_count; i++) {
        strbuf_addf(out, "%s%s=%lld", i > 0 ? " " : "", template->param[i].name,
                    (long long)template->param[i].value[row_of(template, point)[i]]);
    }
}

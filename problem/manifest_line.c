#include "problem/manifest_line.h"
#include "common/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int scan_fail(struct scan *p, const char *at, const char *sentence)
{
    return err_set(p->err, ERR_INVALID, "%s:%u:%u: %s", p->path, p->number,
                   (unsigned)(at - p->line) + 1, sentence);
}

int scan_fail_name(struct scan *p, struct span name, const char *sentence)
{
    return err_set(p->err, ERR_INVALID, "%s:%u:%u: %.*s %s", p->path, p->number,
                   (unsigned)(name.at - p->line) + 1, (int)(name.len < 80 ? name.len : 80), name.at,
                   sentence);
}

void scan_blanks(struct scan *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t')) {
        p->at++;
    }
}

bool scan_at_end(struct scan *p)
{
    scan_blanks(p);
    return p->at == p->end;
}

bool scan_is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

struct span scan_word(struct scan *p)
{
    struct span word = {.at = p->at};

    if (p->at < p->end && !isdigit((unsigned char)*p->at)) {
        while (p->at < p->end && scan_is_letter(*p->at)) {
            p->at++;
        }
    }
    word.len = (size_t)(p->at - word.at);
    return word;
}

bool span_is(struct span span, const char *text)
{
    return strlen(text) == span.len && memcmp(span.at, text, span.len) == 0;
}

struct span span_trim(struct span span)
{
    while (span.len > 0 && (span.at[0] == ' ' || span.at[0] == '\t')) {
        span.at++;
        span.len--;
    }
    while (span.len > 0 && (span.at[span.len - 1] == ' ' || span.at[span.len - 1] == '\t')) {
        span.len--;
    }
    return span;
}

static bool is_operator(char c)
{
    return c != '\0' && strchr("+-*/%<>=!&|", c);
}

// Consumes the blanks at p->at. Whether the value continues after them, as "4 * rows" does at both
// of its blanks.
static bool value_goes_on(struct scan *p)
{
    char before = p->at[-1];

    scan_blanks(p);
    return p->at < p->end && (is_operator(before) || is_operator(*p->at));
}

int scan_value(struct scan *p, struct span *ret)
{
    scan_blanks(p);
    if (p->at == p->end || *p->at != '=') {
        return scan_fail(p, p->at, "an = is missing here");
    }
    p->at++;
    scan_blanks(p);
    struct span value = {.at = p->at};
    int depth = 0;
    while (p->at < p->end) {
        if (depth == 0 && (*p->at == ' ' || *p->at == '\t')) {
            const char *blank = p->at;

            if (!value_goes_on(p)) {
                p->at = blank;
                break;
            }
        }
        depth += *p->at == '(' ? 1 : *p->at == ')' ? -1 : 0;
        if (depth < 0) {
            return scan_fail(p, p->at, "this ) closes nothing");
        }
        p->at++;
    }
    value.len = (size_t)(p->at - value.at);
    if (depth > 0) {
        return scan_fail(p, value.at, "this ( is not closed");
    }
    if (value.len == 0) {
        return scan_fail(p, value.at, "a value is missing here");
    }
    *ret = value;
    return 0;
}

int scan_list(struct scan *p, struct span value, struct span item[static SCAN_ITEM_MAX],
              size_t *ret_count)
{
    size_t count = 0, from = 0;
    bool list = value.at[0] == '(' && value.at[value.len - 1] == ')';

    if (list) {
        value.at++;
        value.len -= 2;
    }
    if (span_trim(value).len == 0) {
        *ret_count = 0;
        return 0;
    }
    int depth = 0;
    for (size_t i = 0; i <= value.len; i++) {
        if (i == value.len || (value.at[i] == ',' && depth == 0)) {
            if (count == SCAN_ITEM_MAX) {
                return scan_fail(p, value.at + i, "too many items");
            }
            item[count] = span_trim((struct span){.at = value.at + from, .len = i - from});
            if (item[count++].len == 0) {
                return scan_fail(p, value.at + from, "an item is missing here");
            }
            from = i + 1;
        } else {
            depth += value.at[i] == '(' ? 1 : value.at[i] == ')' ? -1 : 0;
            if (depth < 0) { // as in "(a)+(b)"
                return scan_fail(p, value.at + i, "put the whole value into parentheses");
            }
        }
    }
    *ret_count = count;
    return 0;
}

bool scan_find_tensor(const struct scan *p, struct span name, size_t *ret)
{
    for (size_t i = 0; i < p->problem->tensor_count; i++) {
        if (span_is(name, p->problem->tensor[i].name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool scan_find_param(const struct scan *p, struct span name, size_t *ret)
{
    for (size_t i = 0; i < p->problem->param_count; i++) {
        if (span_is(name, p->problem->param[i].name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

// Refuses a word of an expression that is both a param and a macro.
static int check_words(struct scan *p, struct span text)
{
    for (size_t at = 0; at < text.len;) {
        struct span word = {.at = text.at + at};

        while (at + word.len < text.len && scan_is_letter(word.at[word.len])) {
            word.len++;
        }
        at += word.len > 0 ? word.len : 1;
        size_t index;
        if (word.len == 0 || !scan_find_param(p, word, &index)) {
            continue;
        }
        for (size_t i = p->problem->param_count; i < p->name_count; i++) {
            if (span_is(word, p->name[i])) {
                return scan_fail_name(p, word,
                                      "is a param of the problem and a macro; rename the macro");
            }
        }
    }
    return 0;
}

int scan_expr(struct scan *p, struct span text, enum expr_kind kind, struct expr **ret)
{
    int rc = check_words(p, text);

    if (rc != 0) {
        return rc;
    }
    char *copy = xstrndup(text.at, text.len);
    struct err why = ERR_INIT;
    size_t column = 1;
    rc = expr_parse_at(ret, copy, kind, p->name, p->name_count, &column, &why);

    free(copy);
    return rc == 0 ? 0 : scan_fail(p, text.at + (column > 0 ? column - 1 : 0), why.text);
}

#include "worker/llm/answer_sources.h"
#include "common/mem.h"
#include "worker/llm/json_find.h"
#include <stdlib.h>
#include <string.h>

// The programs found so far.
struct sources {
    char **ret;
    size_t count, max;
};

// Adds a program, unless it cannot be one.
static void add(struct sources *sources, const char *text, size_t len)
{
    if (sources->count < sources->max && len <= ANSWER_SOURCE_MAX && memchr(text, '{', len)) {
        sources->ret[sources->count++] = xstrndup(text, len);
    }
}

// How long the fence is with which the line begins, and its character; 0: it is no fence. Up to
// three blanks may stand before it.
static size_t fence_of(const char *line, char *ret_mark)
{
    size_t blank = strspn(line, " "), len = 0;
    char mark = line[blank];

    if (blank > 3 || (mark != '`' && mark != '~')) {
        return 0;
    }
    while (line[blank + len] == mark) {
        len++;
    }
    *ret_mark = mark;
    return len >= 3 ? len : 0;
}

static const char *next_line(const char *at)
{
    at += strcspn(at, "\n");
    return *at == '\n' ? at + 1 : at;
}

// Adds the contents of the fenced blocks.
static void find_blocks(struct sources *sources, const char *text, bool whole)
{
    const char *at = text;

    while (*at != '\0') {
        char mark, end_mark;
        size_t len = fence_of(at, &mark), end_len = 0;
        const char *begin, *line;

        at = next_line(at);
        if (len == 0) {
            continue;
        }
        begin = line = at;
        while (*line != '\0' && ((end_len = fence_of(line, &end_mark)) < len || end_mark != mark)) {
            line = next_line(line);
            end_len = 0;
        }
        if (end_len > 0 || whole) {
            add(sources, begin, (size_t)(line - begin));
        }
        at = next_line(line);
    }
}

// Adds the strings "source" and "code" of an object and of what it contains.
static void find_strings(struct sources *sources, json_t *value, unsigned depth)
{
    static const char *const names[] = {"source", "code"};
    json_t *inner;
    const char *key;
    size_t index;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *text = json_object_get(value, names[i]);

        if (json_is_string(text)) {
            add(sources, json_string_value(text), json_string_length(text));
            return;
        }
    }
    if (depth == 0) {
        return;
    }
    json_object_foreach (value, key, inner) {
        find_strings(sources, inner, depth - 1);
    }
    json_array_foreach (value, index, inner) {
        find_strings(sources, inner, depth - 1);
    }
}

size_t answer_sources(const char *text, bool whole, char **ret, size_t max)
{
    struct sources sources = {.ret = ret, .max = max};

    find_blocks(&sources, text, whole);
    if (sources.count > 0) {
        return sources.count;
    }
    struct json_find find;
    json_t *object;
    json_find_init(&find, text);
    while ((object = json_find_next(&find))) {
        find_strings(&sources, object, 3);
        json_decref(object);
    }
    return sources.count;
}

#include "problem/python_definitions.h"
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 16 // of one statement

struct name {
    const char *at;
    size_t len; // 0: none
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// The word that begins here; without length where none does.
static struct name word_at(const char *at)
{
    struct name name = {.at = at};

    while (!isdigit((unsigned char)at[0]) && is_word(at[name.len])) {
        name.len++;
    }
    return name;
}

// The word that ends before `at`, in a text that begins at begin.
static struct name word_before(const char *begin, const char *at)
{
    const char *from = at;

    while (from > begin && is_word(from[-1])) {
        from--;
    }
    struct name name = word_at(from);
    return (struct name){.at = from, .len = name.len == (size_t)(at - from) ? name.len : 0};
}

// Reads the integer here, which nothing follows that would make something else of it. *ret_end is
// behind it.
static bool read_integer(const char *at, long long *ret, const char **ret_end)
{
    char *end;

    if (!isdigit((unsigned char)at[*at == '-'])) {
        return false;
    }
    errno = 0;
    *ret = strtoll(at, &end, 0);
    *ret_end = end;
    return errno == 0 && (*end == '\0' || strchr(",)]}:; \n", *end));
}

// Finds the names of a statement "a, b = 1, 2" or "a, b = (1, 2)" and gives each its integer, as
// far as they are integers. Returns where the statement's value begins; NULL when it is none.
static const char *read_statement(const char *line,
                                  void (*found)(void *owner, const char *name, size_t len,
                                                long long value),
                                  void *owner)
{
    struct name name[NAMES_MAX];
    size_t count = 0;
    const char *at = line;

    do {
        name[count] = word_at(at + (count > 0));
        at = name[count].at + name[count].len;
    } while (name[count].len > 0 && ++count < NAMES_MAX && *at == ',');
    if (count == 0 || at[0] != '=' || at[1] == '=') {
        return NULL;
    }
    const char *value = at + 1 + (at[1] == '(');
    long long integer;
    for (size_t i = 0; i < count && read_integer(value, &integer, &value); i++) {
        found(owner, name[i].at, name[i].len, integer);
        if (*value != ',') {
            break;
        }
        value++;
    }
    return at + 1;
}

// The name to which the sign of an argument or a default belongs: what stands before it or, where
// that is a type, before the colon in front of it.
static struct name name_before(const char *begin, const char *sign)
{
    const char *at = sign;

    while (at > begin && (is_word(at[-1]) || at[-1] == '.')) {
        at--;
    }
    return at > begin && at[-1] == ':' ? word_before(begin, at - 1) : word_before(begin, sign);
}

// Where a literal ends that begins here.
static const char *skip_literal(const char *at)
{
    char quotes[] = {*at, *at, *at, '\0'};
    size_t len = strncmp(at, quotes, 3) == 0 ? 3 : 1;

    for (at += len; *at != '\0' && strncmp(at, quotes, len) != 0; at++) {
        if (*at == '\n' && len == 1) {
            return at;
        }
        at += at[0] == '\\' && at[1] != '\0';
    }
    return *at == '\0' ? at : at + len;
}

void python_definitions(const char *text,
                        void (*found)(void *owner, const char *name, size_t len, long long value),
                        void *owner)
{
    bool line = true; // one begins here

    for (const char *at = text; *at != '\0';) {
        const char *after, *begin = at;
        struct name name = {.len = 0};
        long long integer;

        if (line) {
            at += strspn(at, " \t");
            after = read_statement(at, found, owner);
            line = false;
            at = after ? after : at;
        } else if (*at == '"' || *at == '\'') {
            at = skip_literal(at);
            if (*at == ':') {
                name = word_before(begin + 1, at - 1);
            }
        } else {
            line = *at == '\n';
            if (*at == '=' && at > text) {
                name = name_before(text, at);
            }
            at++;
        }
        if (name.len > 0 && read_integer(at + (*at == ':'), &integer, &after)) {
            found(owner, name.at, name.len, integer);
        }
    }
}

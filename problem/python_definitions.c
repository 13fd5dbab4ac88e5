// Statements are told from arguments by the brackets around them: outside of any, an integer is
// that of a name only in a whole statement, which begins with its line, behind a semicolon, or
// behind the colon of "if x:" and its like.
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

struct scan {
    const char *text;
    size_t depth;   // of brackets that are open
    bool statement; // one begins here
    bool compound;  // the line is one that a statement may follow, behind a colon
    void (*found)(void *owner, const char *name, size_t len, long long value);
    void *owner;
};

// Bytes of other alphabets are parts of words, too, but no name with them is found.
static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
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

static bool is_keyword(struct name word)
{
    static const char *const words[] = {"if",    "elif", "else",   "for",     "while", "with",
                                        "try",   "def",  "except", "finally", "class", "async",
                                        "match", "case", "lambda", "return"};
    bool found = false;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        found |= strlen(words[i]) == word.len && memcmp(words[i], word.at, word.len) == 0;
    }
    return found;
}

// Reads the integer here, behind which its value ends, or goes on with "if" for another case.
// *ret_end is behind it.
static bool read_integer(const char *at, long long *ret, const char **ret_end)
{
    char *end;

    if (!isdigit((unsigned char)at[*at == '-'])) {
        return false;
    }
    errno = 0;
    *ret = strtoll(at, &end, 0);
    *ret_end = end;
    return errno == 0 && (*end == '\0' || strchr(",)]};\n", *end) || strncmp(end, " if ", 4) == 0);
}

static bool ends_statement(const char *at)
{
    return *at == '\0' || *at == '\n' || *at == ';' || *at == ' ';
}

static void tell(const struct scan *scan, struct name name, long long value)
{
    bool plain = name.len > 0;

    for (size_t i = 0; i < name.len; i++) {
        plain = plain && (unsigned char)name.at[i] < 0x80;
    }
    if (plain) {
        scan->found(scan->owner, name.at, name.len, value);
    }
}

// Tells the names of "a, b = 1, 2" or "a, b = (1, 2)" from `value` on, as far as they are integers.
static void read_values(const struct scan *scan, const struct name *name, size_t count,
                        const char *value)
{
    long long integer[NAMES_MAX];
    size_t read = 0;
    bool bracket = count > 1 && *value == '(';

    value += bracket;
    while (read < count && read_integer(value, &integer[read], &value)) {
        read++;
        if (*value != ',' || read == count) {
            break;
        }
        value++;
    }
    // All of them, or what follows is no integer; nothing may be behind a list in brackets.
    bool whole = bracket ? *value == ')' && ends_statement(value + 1) && read == count
                         : read < count || ends_statement(value);
    for (size_t i = 0; i < read && whole; i++) {
        tell(scan, name[i], integer[i]);
    }
}

// Reads a statement "a, b = …" or "a: int = …". Other statements tell nothing here.
static void read_statement(const struct scan *scan, const char *at)
{
    struct name name[NAMES_MAX];
    size_t count = 0;

    do {
        name[count] = word_at(at + (count > 0));
        at = name[count].at + name[count].len;
    } while (name[count].len > 0 && ++count < NAMES_MAX && *at == ',');
    if (count == 1 && *at == ':' && !is_keyword(name[0])) {
        for (at++; is_word(*at) || *at == '.'; at++) {
        }
    }
    if (count > 0 && at[0] == '=' && at[1] != '=') {
        read_values(scan, name, count, at + 1);
    }
}

// The name to which the sign of an argument or a default belongs: what stands before it or, where
// that is a type, before the colon in front of it.
static struct name name_before(const char *begin, const char *sign)
{
    const char *at = sign, *end = sign;

    while (at > begin && (is_word(at[-1]) || at[-1] == '.')) {
        at--;
    }
    if (at > begin && at[-1] == ':') {
        end = --at;
        while (at > begin && is_word(at[-1])) {
            at--;
        }
    }
    struct name name = word_at(at);
    bool argument = at > begin && strchr("(,", at[-1]) && name.len == (size_t)(end - at);
    return argument ? name : (struct name){.len = 0};
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

// Reads a literal, which may be a key: all of it is a name then.
static const char *read_literal(const struct scan *scan, const char *at)
{
    const char *end = skip_literal(at);
    struct name name = word_at(at + 1);
    bool key =
        at > scan->text && strchr("{,", at[-1]) && *end == ':' && name.at + name.len + 1 == end;
    long long integer;
    const char *after;

    if (key && read_integer(end + 1, &integer, &after)) {
        tell(scan, name, integer);
    }
    return end;
}

// Begins a statement: at the beginning of a line or elsewhere.
static const char *begin_statement(struct scan *scan, const char *at, bool line)
{
    at += line ? strspn(at, " \t") : 0;
    scan->compound = line ? is_keyword(word_at(at)) : scan->compound;
    scan->statement = false;
    read_statement(scan, at);
    return at;
}

static void read_char(struct scan *scan, const char *at)
{
    long long integer;
    const char *after;

    if (*at == '=' && scan->depth > 0 && read_integer(at + 1, &integer, &after)) {
        tell(scan, name_before(scan->text, at), integer);
    }
    scan->statement =
        scan->depth == 0 && (*at == ';' || (*at == ':' && scan->compound && at[1] != '='));
    scan->compound = scan->compound && !(scan->statement && *at == ':');
    scan->depth += *at == '(' || *at == '[' || *at == '{';
    scan->depth -= (*at == ')' || *at == ']' || *at == '}') && scan->depth > 0;
}

void python_definitions(const char *text,
                        void (*found)(void *owner, const char *name, size_t len, long long value),
                        void *owner)
{
    struct scan scan = {.text = text, .found = found, .owner = owner};
    bool line = true; // one begins here

    for (const char *at = text; *at != '\0';) {
        if (line || scan.statement) {
            at = begin_statement(&scan, at, line);
            line = false;
        }
        if (*at == '"' || *at == '\'') {
            at = read_literal(&scan, at);
        } else if (*at == '#') { // left where the text could not be normalised
            at += strcspn(at, "\n");
        } else if (*at != '\0') {
            line = *at == '\n' && scan.depth == 0;
            read_char(&scan, at++);
        }
    }
}

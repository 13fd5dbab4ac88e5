#include "worker/llm/answer_sources.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/candidate_form.h"
#include "worker/llm/answer_edits.h"
#include "worker/llm/json_find.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- what a candidate must be ----

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// The place behind a comment or a literal that begins here; NULL when none does.
static const char *skip_quoted(const char *at)
{
    if (at[0] == '/' && at[1] == '/') {
        return at + strcspn(at, "\n");
    }
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");

        return end ? end + 2 : at + strlen(at);
    }
    if (at[0] != '"' && at[0] != '\'') {
        return NULL;
    }
    char quote = *at++;
    while (*at != '\0' && *at != quote && *at != '\n') {
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return at + (*at == quote);
}

// Whether the text behind a function's name goes on with a parameter list and a body.
static bool has_body(const char *at)
{
    size_t depth = 0;
    bool list = false;

    while (*at != '\0') {
        const char *behind = skip_quoted(at);

        if (behind) {
            at = behind;
            continue;
        }
        if (depth == 0 && !list && *at != '(' && !isspace((unsigned char)*at)) {
            return false;
        }
        if (depth == 0 && list && (*at == '{' || *at == ';' || *at == ',' || *at == '=')) {
            return *at == '{';
        }
        depth += *at == '(';
        depth -= *at == ')' && depth > 0;
        list |= *at == '(';
        at++;
    }
    return false;
}

// Whether the text defines the function at its top level.
static bool defines(const char *text, const char *entry)
{
    size_t len = strlen(entry), depth = 0;

    for (const char *at = text; *at != '\0';) {
        const char *behind = skip_quoted(at);

        if (behind) {
            at = behind;
        } else if (is_word(*at)) {
            size_t word = 1;

            while (is_word(at[word])) {
                word++;
            }
            if (depth == 0 && word == len && memcmp(at, entry, len) == 0 && has_body(at + word)) {
                return true;
            }
            at += word;
        } else {
            depth += *at == '{';
            depth -= *at == '}' && depth > 0;
            at++;
        }
    }
    return false;
}

// Whether a line of the text is a launch of a manifest.
static bool has_launch(const char *text)
{
    while (text && *text != '\0') {
        text += strspn(text, " \t");
        if (strncmp(text, "//@", 3) == 0) {
            text += 3 + strspn(text + 3, " \t");
            if (strncmp(text, "launch", 6) == 0 && (text[6] == ' ' || text[6] == '\t')) {
                return true;
            }
        }
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return false;
}

// Whether the word that ends before `at` is this one.
static bool follows(const char *begin, const char *at, const char *word)
{
    size_t len = strlen(word);

    return (size_t)(at - begin) >= len && memcmp(at - len, word, len) == 0 &&
           ((size_t)(at - begin) == len || !is_word(at[-(ptrdiff_t)len - 1]));
}

// Whether a program in Python may define this: by def, class, an import or an assignment. What only
// seems to is found when it is recorded.
static bool python_defines(const char *source, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = strstr(source, name); at; at = strstr(at + 1, name)) {
        const char *before = at, *after = at + len + strspn(at + len, " \t");

        while (before > source && (before[-1] == ' ' || before[-1] == '\t')) {
            before--;
        }
        if ((at > source && is_word(at[-1])) || is_word(at[len])) {
            continue;
        }
        if (follows(source, before, "def") || follows(source, before, "class") ||
            follows(source, before, "as") || follows(source, before, "import") ||
            ((before == source || before[-1] == '\n') && after[0] == '=' && after[1] != '=')) {
            return true;
        }
    }
    return false;
}

static int check_python(const struct answer_wanted *wanted, const char *source, struct err *why)
{
    if (candidate_form(source, strlen(source)) != FORM_PYTHON) {
        return err_set(why, ERR_INVALID, "a block is no program in Python");
    }
    if (wanted->entry && !python_defines(source, wanted->entry) &&
        !python_defines(source, "custom_kernel") && !python_defines(source, "ModelNew")) {
        return err_set(why, ERR_INVALID, "a block defines neither %s nor custom_kernel or ModelNew",
                       wanted->entry);
    }
    return 0;
}

// ERR_INVALID says what the program lacks.
static int check(const struct answer_wanted *wanted, const char *source, struct err *why)
{
    if (strlen(source) > ANSWER_SOURCE_MAX) {
        return err_set(why, ERR_INVALID, "a program has more than %zu bytes", ANSWER_SOURCE_MAX);
    }
    if (wanted->python) {
        return check_python(wanted, source, why);
    }
    if (!strchr(source, '{')) {
        return err_set(why, ERR_INVALID, "a block is no program");
    }
    if (wanted->launches && (!has_launch(source) || !strstr(source, "__global__"))) {
        return err_set(why, ERR_INVALID, "a block has no //@ launch line and kernel");
    }
    if (wanted->entry && !defines(source, wanted->entry)) {
        return err_set(why, ERR_INVALID, "a block does not define %s", wanted->entry);
    }
    return 0;
}

// The programs found so far.
struct sources {
    const struct answer_wanted *wanted;
    char **ret;
    size_t count, max;
    struct err *why;
};

// Adds the candidate that a block is, unless it is none.
static void add(struct sources *sources, const char *text, size_t len)
{
    const struct answer_wanted *wanted = sources->wanted;
    char *source = NULL;
    int rc = 0;

    if (sources->count == sources->max) {
        return;
    }
    err_clear(sources->why);
    if (!answer_edits_are(text, len)) {
        source = xstrndup(text, len);
    } else if (wanted->program) {
        rc = answer_edits_apply(&source, wanted->program, wanted->program_len, text, len,
                                ANSWER_SOURCE_MAX, sources->why);
    } else {
        rc = err_set(sources->why, ERR_INVALID, "there is no program that edits could begin from");
    }
    if (rc == 0 && check(wanted, source, sources->why) == 0) {
        sources->ret[sources->count++] = source;
        source = NULL;
    }
    free(source);
}

// ---- what was thought before ----

// The earliest of the tags in the text, which is opening or closing; NULL when there is none.
// *ret_name is its name.
static const char *find_tag(const char *text, bool closing, const char **ret_name)
{
    static const char *const names[] = {"think", "thinking", "thought", "reasoning"};
    const char *first = NULL;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char tag[16];

        (void)snprintf(tag, sizeof(tag), "<%s%s>", closing ? "/" : "", names[i]);
        const char *at = strcasestr(text, tag);
        if (at && (!first || at < first)) {
            first = at;
            *ret_name = names[i];
        }
    }
    return first;
}

// A copy of the text without what the model thought. An end without a beginning ends what began
// before the text; a beginning without an end leaves nothing.
static char *without_thoughts(const char *text)
{
    struct strbuf out = STRBUF_INIT;

    while (text) {
        const char *name, *end_name;
        const char *begin = find_tag(text, false, &name), *end = find_tag(text, true, &end_name);

        if (end && (!begin || end < begin)) {
            strbuf_reset(&out);
            text = end + strlen(end_name) + 3;
            continue;
        }
        strbuf_add(&out, text, begin ? (size_t)(begin - text) : strlen(text));
        text = begin && end ? end + strlen(end_name) + 3 : NULL;
    }
    char *ret = xstrdup(strbuf_text(&out));
    strbuf_release(&out);
    return ret;
}

// ---- the text ----

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

size_t answer_sources(const struct answer_wanted *wanted, const char *text, bool whole, char **ret,
                      size_t max, struct err *why)
{
    struct err ignored = ERR_INIT;
    struct sources sources = {
        .wanted = wanted, .ret = ret, .max = max, .why = why ? why : &ignored};
    char *said = without_thoughts(text);

    find_blocks(&sources, said, whole);
    if (sources.count == 0 && whole && wanted->program && answer_edits_are(said, strlen(said))) {
        add(&sources, said, strlen(said));
    }
    if (sources.count == 0) {
        struct json_find find;
        json_t *object;

        json_find_init(&find, said);
        while ((object = json_find_next(&find))) {
            find_strings(&sources, object, 3);
            json_decref(object);
        }
    }
    free(said);
    return sources.count;
}

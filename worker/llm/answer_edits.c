#include "worker/llm/answer_edits.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/candidate_form.h"
#include <stdlib.h>
#include <string.h>

// A line without its end.
struct line {
    const char *at;
    size_t len;
};

// Lines [first, end) of a text.
struct range {
    size_t first, end;
};

struct lines {
    struct line *line;
    size_t count;
};

static struct lines split(const char *text, size_t len)
{
    struct lines ret = {.line = NULL};
    size_t room = 0;

    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line = end ? (size_t)(end - text) - at : len - at;

        if (ret.count == room) {
            room = 2 * room + 16;
            ret.line = xrealloc(ret.line, room, sizeof(*ret.line));
        }
        ret.line[ret.count++] = (struct line){.at = text + at, .len = line};
        at += line + 1;
    }
    return ret;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Without blanks at its end, and at its beginning where that is wanted.
static struct line trim(struct line line, bool both)
{
    while (line.len > 0 && is_blank(line.at[line.len - 1])) {
        line.len--;
    }
    while (both && line.len > 0 && is_blank(*line.at)) {
        line.at++;
        line.len--;
    }
    return line;
}

// Whether a line is a mark: the same character at least five times, then perhaps a word. Models
// write one character more or less, and leave the word out.
static bool is_mark(struct line line, char mark, const char *word)
{
    size_t count = 0;

    line = trim(line, true);
    while (count < line.len && line.at[count] == mark) {
        count++;
    }
    struct line rest = trim((struct line){.at = line.at + count, .len = line.len - count}, true);
    return count >= 5 && count <= 9 &&
           (rest.len == 0 || (rest.len == strlen(word) && memcmp(rest.at, word, rest.len) == 0));
}

static bool begins_edit(struct line line)
{
    return is_mark(line, '<', "SEARCH");
}

bool answer_edits_are(const char *text, size_t len)
{
    struct lines lines = split(text, len);
    bool ret = false;

    for (size_t i = 0; i < lines.count && !ret; i++) {
        ret = begins_edit(lines.line[i]);
    }
    free(lines.line);
    return ret;
}

static bool is_same(struct line a, struct line b, bool both)
{
    a = trim(a, both);
    b = trim(b, both);
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

// How often the lines occur in the program; *ret is the first place.
static size_t count_places(const struct lines *program, const struct line *search, size_t count,
                           bool both, size_t *ret)
{
    size_t places = 0;

    for (size_t i = 0; i + count <= program->count; i++) {
        size_t same = 0;

        while (same < count && is_same(program->line[i + same], search[same], both)) {
            same++;
        }
        if (same == count && places++ == 0) {
            *ret = i;
        }
    }
    return places;
}

static void add_lines(struct strbuf *out, const struct lines *lines, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        strbuf_add(out, lines->line[i].at, lines->line[i].len);
        strbuf_adds(out, "\n");
    }
}

static struct line indent_of(struct line line)
{
    size_t len = 0;

    while (len < line.len && is_blank(line.at[len])) {
        len++;
    }
    return (struct line){.at = line.at, .len = len};
}

// The first line that is not empty; `end` when there is none.
static size_t first_words(const struct lines *lines, size_t first, size_t end)
{
    while (first < end && trim(lines->line[first], true).len == 0) {
        first++;
    }
    return first;
}

// The blanks that the edit leaves out at the beginning of its lines, which have them in the
// program: none unless what is put in place is written as what is searched is.
static struct line left_out(const struct line *found, const struct lines *block,
                            struct range search, struct range replace)
{
    struct line none = {.at = "", .len = 0}, here = indent_of(*found);
    struct line sought = indent_of(block->line[search.first]);
    size_t first = first_words(block, replace.first, replace.end);

    if (first == replace.end || here.len <= sought.len) {
        return none;
    }
    struct line put = indent_of(block->line[first]);
    bool alike = put.len == sought.len && memcmp(put.at, sought.at, sought.len) == 0 &&
                 memcmp(here.at + here.len - sought.len, sought.at, sought.len) == 0;
    return alike ? (struct line){.at = here.at, .len = here.len - sought.len} : none;
}

// Adds lines of the edit, those that are not empty with these blanks before them.
static void add_replacement(struct strbuf *out, const struct lines *block, struct range replace,
                            struct line blanks)
{
    for (size_t i = replace.first; i < replace.end; i++) {
        if (trim(block->line[i], true).len > 0) {
            strbuf_add(out, blanks.at, blanks.len);
        }
        add_lines(out, block, i, i + 1);
    }
}

// Makes one edit of *program, which it replaces.
static int edit(char **program, const struct lines *block, struct range search,
                struct range replace, size_t number, size_t max, struct err *err)
{
    struct lines lines = split(*program, strlen(*program));
    size_t count, at = 0, places;
    struct strbuf out;
    int rc = 0;

    strbuf_init(&out, max);
    // Empty lines around what is searched are layout.
    while (search.first < search.end && trim(block->line[search.first], true).len == 0) {
        search.first++;
    }
    while (search.end > search.first && trim(block->line[search.end - 1], true).len == 0) {
        search.end--;
    }
    count = search.end - search.first;
    if (count == 0) {
        rc = err_set(err, ERR_INVALID, "edit %zu searches for nothing", number);
        goto out;
    }
    places = count_places(&lines, block->line + search.first, count, false, &at);
    if (places == 0) {
        places = count_places(&lines, block->line + search.first, count, true, &at);
    }
    if (places != 1) {
        rc = err_set(err, ERR_INVALID, "the lines that edit %zu searches for occur %zu times",
                     number, places);
        goto out;
    }
    add_lines(&out, &lines, 0, at);
    add_replacement(&out, block, replace, left_out(&lines.line[at], block, search, replace));
    add_lines(&out, &lines, at + count, lines.count);
    if (out.truncated) {
        rc = err_set(err, ERR_LIMIT, "with edit %zu the program has more than %zu bytes", number,
                     max);
        goto out;
    }
    free(*program);
    *program = xstrndup(strbuf_text(&out), out.len);
out:
    strbuf_release(&out);
    free(lines.line);
    return rc;
}

// A comment that is no line of a manifest or a template.
static bool is_comment(struct line line, bool python)
{
    line = trim(line, true);
    return python ? line.len >= 1 && line.at[0] == '#'
                  : line.len >= 2 && line.at[0] == '/' && line.at[1] == '/' &&
                        (line.len == 2 || line.at[2] != '@');
}

// Puts the comment that the block begins with before the program, in place of the program's own.
static void set_comment(char **program, const struct lines *block, size_t before)
{
    struct strbuf out = STRBUF_INIT;
    struct lines lines = split(*program, strlen(*program));
    bool python = candidate_form(*program, strlen(*program)) == FORM_PYTHON;
    size_t own = lines.count > 0 && is_comment(lines.line[0], python);

    for (size_t i = 0; i < before; i++) {
        if (is_comment(block->line[i], python)) {
            strbuf_add(&out, block->line[i].at, block->line[i].len);
            strbuf_adds(&out, "\n");
        }
    }
    if (out.len > 0) {
        add_lines(&out, &lines, own, lines.count);
        free(*program);
        *program = strbuf_detach(&out);
    }
    strbuf_release(&out);
    free(lines.line);
}

// The next line from `at` on that is a mark; the number of lines when there is none.
static size_t find_mark(const struct lines *block, size_t at, char mark, const char *word)
{
    while (at < block->count && !is_mark(block->line[at], mark, word)) {
        at++;
    }
    return at;
}

int answer_edits_apply(char **ret, const char *program, size_t program_len, const char *text,
                       size_t len, size_t max, struct err *err)
{
    struct lines block = split(text, len);
    char *edited = xstrndup(program, program_len);
    size_t at = find_mark(&block, 0, '<', "SEARCH"), first = at, number = 0;
    int rc = 0;

    while (at < block.count && rc == 0) {
        size_t divide = find_mark(&block, at + 1, '=', "");
        size_t end = find_mark(&block, divide + 1, '>', "REPLACE");

        if (++number > ANSWER_EDITS_MAX) {
            rc = err_set(err, ERR_LIMIT, "there are more than %d edits", ANSWER_EDITS_MAX);
        } else if (end >= block.count) {
            rc = err_set(err, ERR_INVALID, "edit %zu has no end", number);
        } else {
            rc = edit(&edited, &block, (struct range){at + 1, divide},
                      (struct range){divide + 1, end}, number, max, err);
        }
        at = find_mark(&block, end + 1, '<', "SEARCH");
    }
    if (rc == 0 && number == 0) {
        rc = err_set(err, ERR_INVALID, "there is no edit");
    }
    if (rc == 0) {
        set_comment(&edited, &block, first);
        *ret = edited;
        edited = NULL;
    }
    free(edited);
    free(block.line);
    return rc;
}

// The longest common subsequence of lines, by the table of its lengths from each pair of lines on.
#include "worker/prompt/source_diff.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

struct line {
    const unsigned char *data;
    size_t len; // without its newline
};

struct lines {
    struct line *line; // owned
    size_t count;
};

// Splits a source. Returns false when it has too many lines.
static bool split(struct lines *ret, const struct bytes *source)
{
    const unsigned char *at = source->data, *end = at + source->len;

    ret->line = xcalloc(SOURCE_DIFF_LINES_MAX, sizeof(*ret->line));
    ret->count = 0;
    while (at < end) {
        const unsigned char *newline = memchr(at, '\n', (size_t)(end - at));
        const unsigned char *stop = newline ? newline : end;

        if (ret->count == SOURCE_DIFF_LINES_MAX) {
            return false;
        }
        ret->line[ret->count++] = (struct line){.data = at, .len = (size_t)(stop - at)};
        at = newline ? newline + 1 : end;
    }
    return true;
}

static bool same(const struct line *a, const struct line *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static void add_line(struct strbuf *out, const char *mark, const struct line *line)
{
    strbuf_adds(out, mark);
    strbuf_add(out, line->data, line->len);
    strbuf_adds(out, "\n");
}

// Where the walk through both sources is.
struct walk {
    size_t from, to; // next lines
    size_t told;     // line of `from` behind the last one that was named
    bool any;        // a line was named
};

// Begins a change: says where it is unless it follows the last one.
static void begin_change(struct strbuf *out, struct walk *walk)
{
    if (!walk->any || walk->told != walk->from) {
        strbuf_addf(out, "@ %zu\n", walk->from + 1);
    }
    walk->any = true;
}

bool source_diff(struct strbuf *out, const struct bytes *from, const struct bytes *to)
{
    struct lines a = {.line = NULL}, b = {.line = NULL};
    bool done = split(&a, from) && split(&b, to);
    size_t wide = b.count + 1;
    // common[i * wide + j]: lines that a from line i on and b from line j on have in common.
    uint16_t *common = done ? xcalloc((a.count + 1) * wide, sizeof(*common)) : NULL;

    for (size_t i = a.count; done && i-- > 0;) {
        for (size_t j = b.count; j-- > 0;) {
            uint16_t down = common[(i + 1) * wide + j], right = common[i * wide + j + 1];

            common[i * wide + j] = same(&a.line[i], &b.line[j])
                                       ? (uint16_t)(common[(i + 1) * wide + j + 1] + 1)
                                       : (down > right ? down : right);
        }
    }
    struct walk walk = {.from = 0};
    while (done && (walk.from < a.count || walk.to < b.count)) {
        size_t i = walk.from, j = walk.to;

        if (i < a.count && j < b.count && same(&a.line[i], &b.line[j])) {
            walk.from++;
            walk.to++;
        } else if (i < a.count &&
                   (j == b.count || common[(i + 1) * wide + j] >= common[i * wide + j + 1])) {
            begin_change(out, &walk);
            add_line(out, "- ", &a.line[i]);
            walk.told = ++walk.from;
        } else {
            begin_change(out, &walk);
            add_line(out, "+ ", &b.line[j]);
            walk.told = walk.from;
            walk.to++;
        }
    }
    free(common);
    free(a.line);
    free(b.line);
    return done;
}

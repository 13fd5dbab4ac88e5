// Spaces from rows of GPU Forecasters' data sets.
//
// Design. A row is a pair of sources with the speedup of one over the other: an anchor and a
// candidate. The rows form a graph from anchors to candidates. The candidates that can be reached
// from the baseline's anchor, directly or through other candidates, are all compared with that
// anchor; they become the space.
#include "client/report/report_text.h"
#include "client/space/space_import.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "proto/verdict.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 1024
#define PROBLEM_MAX_BYTES 64
#define DEVICE_MAX_BYTES 256

// The three data sets, told apart by the field that holds the name of a row. The other texts are
// the fields that hold the problem, the sources and the speedup.
static const struct kind {
    const char *what, *name, *problem, *anchor, *candidate, *speedup;
} kinds[] = {
    {"evaluation set", "comparison_id", "pack", "anchor_code", "candidate_code",
     "aggregated_speedup"},
    {"RL pool", "row_id", "pack", "anchor_code", "candidate_code", "aggregated_speedup"},
    {"discovery pairs", "pair_id", "problem_id", "parent_code", "child_code", "g_speedup"},
};

struct pair {
    char *name, *problem, *device;
    const char *anchor_code, *candidate_code; // borrowed from row
    struct digest anchor, candidate;
    json_t *row;
    double log2;
};

struct pairs {
    const char *path;
    const struct kind *kind; // of the first row; all others must have it too
    struct pair *pair;
    size_t count, room;
    struct pair **by_anchor; // sorted by anchor, then by position in the file
};

static void release(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free(pairs->pair[i].name);
        free(pairs->pair[i].problem);
        free(pairs->pair[i].device);
        json_decref(pairs->pair[i].row);
    }
    free(pairs->pair);
    free(pairs->by_anchor);
}

// ---- rows ----

// Reads a text or an integer as text. *ret is NULL when the field is absent or null; the caller
// frees it.
static int read_word(char **ret, const json_t *row, const char *field, size_t max, struct err *err)
{
    const json_t *value = json_object_get(row, field);
    const char *text = json_string_value(value);

    *ret = NULL;
    if (!value || json_is_null(value)) {
        return 0;
    }
    if (json_is_integer(value)) {
        *ret = xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return 0;
    }
    if (!text || text[0] == '\0' || strlen(text) > max) {
        return err_set(err, ERR_INVALID, "\"%s\" is no text of 1 to %zu bytes", field, max);
    }
    *ret = xstrdup(text);
    return 0;
}

static int read_code(const char **ret, struct digest *ret_digest, const json_t *row,
                     const char *field, struct err *err)
{
    const json_t *value = json_object_get(row, field);

    if (!json_is_string(value) || json_string_length(value) == 0) {
        return err_set(err, ERR_INVALID, "\"%s\" is missing or no source text", field);
    }
    *ret = json_string_value(value);
    *ret_digest = digest_of(*ret, json_string_length(value));
    return 0;
}

static int read_speedup(double *ret, const json_t *row, const char *field, struct err *err)
{
    const json_t *value = json_object_get(row, field);

    *ret = log2(json_number_value(value));
    return json_is_number(value) && json_number_value(value) > 0 && isfinite(*ret)
               ? 0
               : err_set(err, ERR_INVALID, "\"%s\" is missing or no number above 0", field);
}

static int find_kind(const struct kind **ret, const json_t *row, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (json_object_get(row, kinds[i].name)) {
            *ret = &kinds[i];
            return 0;
        }
    }
    return err_set(
        err, ERR_INVALID,
        "none of the fields \"comparison_id\", \"row_id\" and \"pair_id\", by one of which "
        "rows are known");
}

// Reads the fields of pair->row. What was read before an error is released with the pair.
static int read_row(struct pair *pair, const struct kind *kind, struct err *err)
{
    int rc = read_word(&pair->name, pair->row, kind->name, NAME_MAX_BYTES, err);
    if (rc != 0) {
        return rc;
    }
    if (!pair->name) {
        return err_set(err, ERR_INVALID, "\"%s\" is null", kind->name);
    }
    rc = read_word(&pair->problem, pair->row, kind->problem, PROBLEM_MAX_BYTES, err);
    if (rc != 0) {
        return rc;
    }
    if (!pair->problem) {
        return err_set(err, ERR_INVALID, "\"%s\" is missing", kind->problem);
    }
    rc = read_word(&pair->device, pair->row, "hardware", DEVICE_MAX_BYTES, err);
    if (rc != 0) {
        return rc;
    }
    if (!pair->device) {
        pair->device = xstrdup("unknown");
    }
    rc = read_code(&pair->anchor_code, &pair->anchor, pair->row, kind->anchor, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_code(&pair->candidate_code, &pair->candidate, pair->row, kind->candidate, err);
    if (rc != 0) {
        return rc;
    }
    return read_speedup(&pair->log2, pair->row, kind->speedup, err);
}

static int read_line(struct pairs *pairs, const char *line, size_t len, struct err *err)
{
    if (pairs->count == pairs->room) {
        pairs->room = pairs->room == 0 ? 256 : 2 * pairs->room;
        pairs->pair = xrealloc(pairs->pair, pairs->room, sizeof(*pairs->pair));
    }
    if (pairs->count == SPACE_CANDIDATES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %zu rows", SPACE_CANDIDATES_MAX);
    }
    struct pair *pair = &pairs->pair[pairs->count++];
    json_error_t why;
    *pair = (struct pair){.row = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why)};
    if (!json_is_object(pair->row)) {
        return !pair->row ? err_set(err, ERR_INVALID, "no JSON: %s", why.text)
                          : err_set(err, ERR_INVALID, "no JSON object");
    }
    const struct kind *kind = NULL;
    int rc = find_kind(&kind, pair->row, err);
    if (rc != 0) {
        return rc;
    }
    if (pairs->kind && pairs->kind != kind) {
        return err_set(err, ERR_INVALID, "a row of the %s among rows of the %s", kind->what,
                       pairs->kind->what);
    }
    pairs->kind = kind;
    return read_row(pair, kind, err);
}

static int read_lines(struct pairs *pairs, const char *text, size_t len, struct err *err)
{
    const char *line = text, *end = text + len;

    for (size_t number = 1; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((newline ? newline : end) - line), blank = 0;
        while (blank < length && strchr(" \t\r", line[blank]) && line[blank] != '\0') {
            blank++;
        }
        int rc = blank < length ? read_line(pairs, line, length, err) : 0;
        if (rc != 0) {
            err_wrap(err, "%s:%zu", pairs->path, number);
            return rc;
        }
        line += length + 1;
    }
    return pairs->count > 0 ? 0 : err_set(err, ERR_INVALID, "%s: no rows", pairs->path);
}

// ---- one problem, one device ----

static char *const *word_of(const struct pair *pair, bool device)
{
    return device ? &pair->device : &pair->problem;
}

// Keeps the rows of the wanted problem or device. When none is wanted, all rows must have the same.
static int pick(struct pairs *pairs, bool device, const char *wanted, struct err *err)
{
    const char *what = device ? "device" : "problem";
    const char *first = *word_of(&pairs->pair[0], device);
    size_t kept = 0;

    for (size_t i = 0; i < pairs->count; i++) {
        const char *word = *word_of(&pairs->pair[i], device);
        if (!wanted && strcmp(word, first) != 0) {
            return err_set(err, ERR_INVALID,
                           "%s: rows of several %ss (\"%.100s\", \"%.100s\"); pick one with --%s",
                           pairs->path, what, first, word, what);
        }
        if (!wanted || strcmp(word, wanted) == 0) {
            struct pair moved = pairs->pair[i];
            pairs->pair[i] = pairs->pair[kept];
            pairs->pair[kept++] = moved;
        }
    }
    if (kept == 0) {
        return err_set(err, ERR_INVALID, "%s: no rows of %s \"%.100s\"; the first is of \"%.100s\"",
                       pairs->path, what, wanted, first);
    }
    while (pairs->count > kept) {
        struct pair *last = &pairs->pair[--pairs->count];
        free(last->name);
        free(last->problem);
        free(last->device);
        json_decref(last->row);
    }
    return 0;
}

// ---- the graph ----

static int by_anchor(const void *a, const void *b)
{
    const struct pair *const *left = a, *const *right = b;
    int order = memcmp(&(*left)->anchor, &(*right)->anchor, sizeof((*left)->anchor));

    return order != 0 ? order : (*left > *right) - (*left < *right);
}

// The index in by_anchor of the first row with this anchor. Without such a row it is the index
// where one would stand, or the count.
static size_t first_with(const struct pairs *pairs, const struct digest *anchor)
{
    size_t low = 0, high = pairs->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&pairs->by_anchor[middle]->anchor, anchor, sizeof(*anchor)) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int find_baseline(const struct pairs *pairs, const char *wanted, const struct pair **ret,
                         struct err *err)
{
    for (size_t i = 0; i < pairs->count && wanted; i++) {
        if (strcmp(pairs->pair[i].name, wanted) == 0) {
            *ret = &pairs->pair[i];
            return 0;
        }
    }
    if (wanted) {
        return err_set(err, ERR_INVALID, "%s: no row is called \"%.200s\"", pairs->path, wanted);
    }
    size_t most = 0;
    for (size_t i = 0, end; i < pairs->count; i = end) {
        const struct pair *here = pairs->by_anchor[i];
        for (end = i;
             end < pairs->count && digest_equal(&pairs->by_anchor[end]->anchor, &here->anchor);) {
            end++;
        }
        if (end - i > most || (end - i == most && here < *ret)) {
            most = end - i;
            *ret = here;
        }
    }
    return 0;
}

static struct result *result_of(double log2_speedup)
{
    struct result *ret = xmalloc(sizeof(*ret));

    message_init(&result_message, ret);
    ret->verdict = log2_speedup > 0   ? VERDICT_FASTER
                   : log2_speedup < 0 ? VERDICT_SLOWER
                                      : VERDICT_EQUIVALENT;
    ret->speedup = xmalloc(sizeof(*ret->speedup));
    *ret->speedup = (struct estimate){log2_speedup, log2_speedup, log2_speedup, 0};
    return ret;
}

static void add_candidate(struct space *space, const struct pair *pair, double log2_speedup)
{
    struct space_candidate *c = &space->candidate[space->head.candidates++];

    message_init(&space_candidate_message, c);
    c->name = xstrdup(pair->name);
    c->source = bytes_copy(pair->candidate_code, strlen(pair->candidate_code));
    c->digest = pair->candidate;
    c->result = result_of(log2_speedup);
}

// Orders rows by candidate, so that equal sources stand together; the first of the file comes
// first.
static int by_candidate(const void *a, const void *b)
{
    const struct pair *const *left = a, *const *right = b;
    int order = memcmp(&(*left)->candidate, &(*right)->candidate, sizeof((*left)->candidate));

    return order != 0 ? order : (*left > *right) - (*left < *right);
}

// Numbers the different candidates and returns an array of the numbers, one for each row, which the
// caller frees.
static size_t *number_candidates(const struct pairs *pairs)
{
    struct pair **sorted = xcalloc(pairs->count, sizeof(struct pair *));
    size_t *ret = xcalloc(pairs->count, sizeof(*ret)), number = 0;

    for (size_t i = 0; i < pairs->count; i++) {
        sorted[i] = &pairs->pair[i];
    }
    qsort(sorted, pairs->count, sizeof(struct pair *), by_candidate);
    for (size_t i = 0; i < pairs->count; i++) {
        number += i > 0 && !digest_equal(&sorted[i]->candidate, &sorted[i - 1]->candidate);
        ret[sorted[i] - pairs->pair] = number;
    }
    free(sorted);
    return ret;
}

// Adds the candidates that can be reached from the anchor. The search goes breadth first, so that a
// candidate's speedup is the sum over the fewest rows. Returns how many candidates were reached
// from another anchor than the baseline's.
static size_t gather(const struct pairs *pairs, const struct digest *anchor, struct space *space)
{
    size_t *number = number_candidates(pairs), far = 0;
    bool *seen = xcalloc(pairs->count, sizeof(*seen));
    struct digest from = *anchor;
    double log2_from = 0;

    for (size_t next = 0;; next++) {
        for (size_t i = first_with(pairs, &from);
             i < pairs->count && digest_equal(&pairs->by_anchor[i]->anchor, &from); i++) {
            const struct pair *pair = pairs->by_anchor[i];
            size_t which = number[pair - pairs->pair];
            if (!seen[which]) {
                seen[which] = true;
                far += !digest_equal(&from, anchor);
                add_candidate(space, pair, log2_from + pair->log2);
            }
        }
        if (next == space->head.candidates) {
            break;
        }
        // If this candidate is the baseline's anchor itself, its rows have been taken already.
        from = space->candidate[next].digest;
        log2_from = space->candidate[next].result->speedup->log2;
    }
    free(seen);
    free(number);
    return far;
}

static void make_head(struct space *space, const struct pairs *pairs, const struct pair *baseline)
{
    struct space_head *head = &space->head;

    message_init(&space_head_message, head);
    head->format = SPACE_FORMAT;
    head->problem = xstrdup(baseline->problem);
    head->device_class = xstrdup(baseline->device);
    head->baseline_source = baseline->anchor;
    head->baseline_text = bytes_copy(baseline->anchor_code, strlen(baseline->anchor_code));
    space->candidate = xcalloc(pairs->count, sizeof(*space->candidate));
}

static char *origin_of(const struct pairs *pairs, const struct space *space, const char *baseline,
                       size_t far)
{
    struct strbuf text = STRBUF_INIT, clean = STRBUF_INIT;
    size_t taken = (size_t)space->head.candidates;

    strbuf_addf(&text, "GPU Forecasters %s %.200s: %zu rows", pairs->kind->what,
                file_base_name(pairs->path), pairs->count);
    if (taken < pairs->count) {
        strbuf_addf(&text,
                    ", %zu left out (of another anchor, or of a source that is there already)",
                    pairs->count - taken);
    }
    if (far > 0) {
        strbuf_addf(&text, ", %zu through other candidates", far);
    }
    strbuf_addf(&text, "; speedups over the anchor of row %.200s", baseline);
    text_add_utf8(&clean, strbuf_text(&text), text.len);
    strbuf_release(&text);
    return strbuf_detach(&clean);
}

int space_import_forecasters(struct space *ret, const void *data, size_t len, const char *path,
                             const struct space_import *how, struct err *err)
{
    struct pairs pairs = {.path = path};
    struct space space = {.candidate = NULL};
    const struct pair *baseline = NULL;
    int rc = read_lines(&pairs, data, len, err);

    message_init(&space_head_message, &space.head);
    if (rc != 0) {
        goto out;
    }
    rc = pick(&pairs, false, how->problem, err);
    if (rc != 0) {
        goto out;
    }
    rc = pick(&pairs, true, how->device, err);
    if (rc != 0) {
        goto out;
    }
    pairs.by_anchor = xcalloc(pairs.count, sizeof(struct pair *));
    for (size_t i = 0; i < pairs.count; i++) {
        pairs.by_anchor[i] = &pairs.pair[i];
    }
    qsort(pairs.by_anchor, pairs.count, sizeof(struct pair *), by_anchor);
    rc = find_baseline(&pairs, how->baseline, &baseline, err);
    if (rc != 0) {
        goto out;
    }
    make_head(&space, &pairs, baseline);
    size_t far = gather(&pairs, &baseline->anchor, &space);
    space.head.origin = origin_of(&pairs, &space, baseline->name, far);
    rc = space_check(&space, path, err);
out:
    release(&pairs);
    if (rc != 0) {
        space_release(&space);
        return rc;
    }
    *ret = space;
    return 0;
}

#include "client/space/space_warm.h"

#include "client/space/space.h"
#include "common/strbuf.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- vendors ----

// Words in names of devices, and whose they are.
static const struct {
    const char *word, *vendor;
} names[] = {{"nvidia", "nvidia"}, {"geforce", "nvidia"}, {"tesla", "nvidia"}, {"quadro", "nvidia"},
             {"titan", "nvidia"},  {"rtx", "nvidia"},     {"gtx", "nvidia"},   {"amd", "amd"},
             {"radeon", "amd"},    {"instinct", "amd"},   {"gfx", "amd"},      {"intel", "intel"}};

// The vendor; the first word of the name where no other is known. *ret_len is the length.
static const char *vendor_of(const char *device_class, size_t *ret_len)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcasestr(device_class, names[i].word)) {
            *ret_len = strlen(names[i].vendor);
            return names[i].vendor;
        }
    }
    *ret_len = strcspn(device_class, " ,_-");
    return device_class;
}

bool space_same_vendor(const char *device_class, const char *other)
{
    size_t a_len, b_len;
    const char *a = vendor_of(device_class, &a_len), *b = vendor_of(other, &b_len);
    return a_len == b_len && strncasecmp(a, b, a_len) == 0;
}

// ---- text ----

// Adds a line. params is taken over.
static void add_line(struct strbuf *out, json_t *params, double log2, double best)
{
    json_auto_t *line = json_object();
    json_object_set_new(line, "params", params);
    json_object_set_new(line, "log2",
                        isfinite(log2) && fabs(log2 - best) <= 40 ? json_real(log2 - best)
                                                                  : json_null());
    char *text = json_dumps(line, JSON_COMPACT);
    strbuf_adds(out, text);
    strbuf_adds(out, "\n");
    free(text);
}

static void add_candidate(struct strbuf *out, const struct space_candidate *candidate, double best)
{
    json_t *params = json_object();
    for (size_t i = 0; i < candidate->params_count; i++) {
        json_object_set_new(params, candidate->params[i].name,
                            json_real(candidate->params[i].value));
    }
    add_line(out, params, space_log2(candidate), best);
}

// Adds what the worker knows of one problem on one device. A group whose numbers do not fit
// together says nothing.
static void add_group(struct strbuf *out, const struct space_warm_known *known,
                      const struct recalled *group)
{
    double best = -INFINITY;
    for (size_t i = 0; i < group->log2_count; i++) {
        best = fmax(best, isfinite(group->log2[i]) ? group->log2[i] : -INFINITY);
    }
    if (!isfinite(best) || group->values_count != group->log2_count * known->params) {
        return;
    }
    for (size_t i = 0; i < group->log2_count; i++) {
        json_t *params = json_object();
        for (size_t k = 0; k < known->params; k++) {
            json_object_set_new(params, known->param[k],
                                json_real(group->values[i * known->params + k]));
        }
        add_line(out, params, group->log2[i], best);
    }
}

static int add_space(struct strbuf *out, const struct space *space, const char *path,
                     struct err *err)
{
    double best = space_best_log2(space);
    if (space->head.candidates == 0 || space->candidate[0].params_count == 0 || isnan(best)) {
        return err_set(err, ERR_INVALID,
                       "%s: a search cannot begin with a space without parameters or without a "
                       "correct candidate",
                       path);
    }
    for (uint64_t i = 0; i < space->head.candidates; i++) {
        if (space->candidate[i].params_count > 0) {
            add_candidate(out, &space->candidate[i], best);
        }
    }
    return 0;
}

static int read_spaces(struct space *space, char **path, size_t *count, char *list, struct err *err)
{
    char *one;
    while ((one = strsep(&list, ","))) {
        if (*one == '\0' || *count == SPACE_WARM_MAX) {
            return err_set(err, ERR_USAGE, "--warm: 1 to %d paths of spaces, separated by commas",
                           SPACE_WARM_MAX);
        }
        int rc = space_read(&space[*count], one, err);
        if (rc != 0) {
            return rc;
        }
        path[(*count)++] = one;
    }
    return 0;
}

int space_warm_text(struct bytes *ret, const char *paths, const char *device_class,
                    const struct space_warm_known *known, struct err *err)
{
    struct space space[SPACE_WARM_MAX];
    char *path[SPACE_WARM_MAX], *list = paths ? xstrdup(paths) : NULL;
    struct strbuf text;
    size_t count = 0;
    strbuf_init(&text, SPACE_WARM_TEXT_MAX);
    int rc = list ? read_spaces(space, path, &count, list, err) : 0;
    for (int pass = 0; pass < 2; pass++) { // those of the same vendor first
        for (size_t i = 0; rc == 0 && i < count; i++) {
            if (space_same_vendor(space[i].head.device_class, device_class) == (pass == 0)) {
                rc = add_space(&text, &space[i], path[i], err);
            }
        }
        for (size_t i = 0; rc == 0 && known && i < known->reply->groups_count; i++) {
            const struct recalled *group = &known->reply->groups[i];
            if (space_same_vendor(group->device_class, device_class) == (pass == 0)) {
                add_group(&text, known, group);
            }
        }
    }
    if (rc == 0 && text.truncated) {
        rc = err_set(err, ERR_LIMIT, "--warm: all together has more than %zu bytes as text",
                     SPACE_WARM_TEXT_MAX);
    }
    if (rc == 0) {
        *ret = strbuf_detach_bytes(&text);
    }
    for (size_t i = 0; i < count; i++) {
        space_release(&space[i]);
    }
    strbuf_release(&text);
    free(list);
    return rc;
}

// Arbitrary text as a template. An accepted one has ordered points that are found again by their
// values, a symmetric neighbourhood, and sources that hold the same space.
#include "problem/template.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void check_point(const struct template *template, size_t point)
{
    int64_t values[TEMPLATE_PARAM_MAX];
    size_t found = 0, out[2 * TEMPLATE_PARAM_MAX], back[2 * TEMPLATE_PARAM_MAX];

    template_point(template, point, values);
    require(template_find(template, values, &found) && found == point);
    size_t count = template_neighbours(template, point, out, sizeof out / sizeof out[0]);
    require(count <= 2 * template_param_count(template));
    for (size_t i = 0; i < count; i++) {
        size_t hits = 0, count_back = template_neighbours(template, out[i], back,
                                                          sizeof back / sizeof back[0]);
        require(out[i] < template_point_count(template) && out[i] != point);
        for (size_t j = 0; j < count_back; j++) {
            hits += back[j] == point;
        }
        require(hits == 1);
    }
}

static void check_source(const struct template *template, size_t point, const char *text)
{
    struct strbuf source = STRBUF_INIT, name = STRBUF_INIT;

    template_source(template, point, &source);
    template_point_name(template, point, &name);
    require(source.len > strlen(text) &&
            strcmp(strbuf_text(&source) + source.len - strlen(text), text) == 0);
    require(name.len > 0 && !strchr(strbuf_text(&name), '\n'));
    struct template *again = NULL;
    require(template_parse(&again, strbuf_text(&source), "again.c", NULL) == 0);
    require(template_point_count(again) == template_point_count(template));
    template_free(again);
    strbuf_release(&source);
    strbuf_release(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct template *template = NULL;
    struct err err = ERR_INIT;
    char *text = strndup((const char *)data, size);
    int rc = template_parse(&template, text, "t.c", &err);

    if (rc != 0) {
        require(rc == err.code && (rc == ERR_INVALID || rc == ERR_LIMIT));
        require(strncmp(err.text, "t.c:", 4) == 0 && !strchr(err.text, '\n'));
    } else {
        size_t count = template_point_count(template);
        require(count >= 1 && count <= TEMPLATE_POINT_MAX);
        for (size_t i = 0; i < count; i += 1 + count / 50) {
            check_point(template, i);
        }
        check_point(template, count - 1);
        if (count < 1000) {
            check_source(template, count / 2, text);
        }
    }
    template_free(template);
    free(text);
    return 0;
}

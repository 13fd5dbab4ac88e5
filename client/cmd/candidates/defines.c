#include "client/cmd/candidates/defines.h"

#include "common/options/nearest.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include "problem/template.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// One line of the defines.
struct define {
    char *name;
    const char *value; // in name's memory; NULL: none was given
};

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t first = strspn(text, letters);
    return first > 0 && text[first + strspn(text + first, "abcdefghijklmnopqrstuvwxyz"
                                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                                          "0123456789")] == '\0';
}

static void free_defines(struct define *define, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(define[i].name);
    }
    free(define);
}

static int split(struct define **ret, size_t *ret_count, const char *defines, struct err *err)
{
    struct define *define = NULL;
    size_t count = 0;
    int rc = 0;
    for (const char *line = defines; rc == 0;) {
        size_t len = strcspn(line, "\n");
        char *name = xstrndup(line, len);
        char *equals = strchr(name, '=');
        if (equals) {
            *equals = '\0';
        }
        define = xgrow(define, count, sizeof(*define));
        define[count++] = (struct define){name, equals ? equals + 1 : NULL};
        if (!is_name(name)) {
            rc = err_set(err, ERR_USAGE,
                         "option --define: '%.100s' is no name of a parameter; write NAME=VALUE",
                         name);
        }
        for (size_t i = 0; i + 1 < count && rc == 0; i++) {
            if (strcmp(define[i].name, name) == 0) {
                rc = err_set(err, ERR_USAGE, "option --define: %.100s is given twice", name);
            }
        }
        if (line[len] == '\0') {
            break;
        }
        line += len + 1;
    }
    if (rc == 0) {
        *ret = define;
        *ret_count = count;
    } else {
        free_defines(define, count);
    }
    return rc;
}

// ---- templates ----

static void add_values(struct strbuf *out, const struct template *template, size_t param)
{
    for (size_t i = 0; i < template_value_count(template, param); i++) {
        strbuf_addf(out, "%s%lld", i > 0 ? ", " : "",
                    (long long)template_value(template, param, i));
    }
}

static size_t find_param(const struct template *template, const char *name)
{
    size_t param = 0;
    while (param < template_param_count(template) &&
           strcmp(template_param_name(template, param), name) != 0) {
        param++;
    }
    return param;
}

static int unknown_param(const struct template *template, const char *path, const char *name,
                         struct err *err)
{
    struct nearest nearest = {.word = name, .len = strlen(name)};
    struct strbuf list = STRBUF_INIT;
    for (size_t i = 0; i < template_param_count(template); i++) {
        nearest_try(&nearest, template_param_name(template, i));
        strbuf_addf(&list, "%s%s", i > 0 ? ", " : "", template_param_name(template, i));
    }
    int rc = nearest.best ? err_set(err, ERR_USAGE, "%s has no parameter %.100s; did you mean %s?",
                                    path, name, nearest.best)
                          : err_set(err, ERR_USAGE, "%s has no parameter %.100s; it has %.300s",
                                    path, name, strbuf_text(&list));
    strbuf_release(&list);
    return rc;
}

// Reads the value of one parameter.
static int read_value(const struct template *template, const char *path,
                      const struct define *define, size_t param, int64_t *ret, struct err *err)
{
    int64_t value;
    if (define->value && parse_i64(&value, define->value, INT64_MIN, INT64_MAX, "", NULL) == 0) {
        for (size_t i = 0; i < template_value_count(template, param); i++) {
            if (template_value(template, param, i) == value) {
                *ret = value;
                return 0;
            }
        }
    }
    struct strbuf values = STRBUF_INIT;
    add_values(&values, template, param);
    int rc = err_set(err, ERR_USAGE, "%s: %s is %.100s, and may be %.300s", path, define->name,
                     define->value ? define->value : "not given a value", strbuf_text(&values));
    strbuf_release(&values);
    return rc;
}

static int missing_params(const struct template *template, const char *path, const bool *given,
                          struct err *err)
{
    struct strbuf list = STRBUF_INIT;
    for (size_t i = 0; i < template_param_count(template); i++) {
        if (!given[i]) {
            strbuf_addf(&list, "%s%s (", list.len > 0 ? ", " : "",
                        template_param_name(template, i));
            add_values(&list, template, i);
            strbuf_addc(&list, ')');
        }
    }
    int rc = err_set(err, ERR_USAGE,
                     "%s: no value for %.500s; give each with --define, or let `kcast tune` find "
                     "the best ones",
                     path, strbuf_text(&list));
    strbuf_release(&list);
    return rc;
}

static int apply_to_template(const struct template *template, const char *path,
                             const struct define *define, size_t count, struct strbuf *out,
                             struct err *err)
{
    int64_t values[TEMPLATE_PARAM_MAX];
    bool given[TEMPLATE_PARAM_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        size_t param = find_param(template, define[i].name);
        if (param == template_param_count(template)) {
            return unknown_param(template, path, define[i].name, err);
        }
        int rc = read_value(template, path, &define[i], param, &values[param], err);
        if (rc != 0) {
            return rc;
        }
        given[param] = true;
    }
    for (size_t i = 0; i < template_param_count(template); i++) {
        if (!given[i]) {
            return missing_params(template, path, given, err);
        }
    }
    size_t point;
    if (!template_find(template, values, &point)) {
        return err_set(err, ERR_USAGE,
                       "%s: a condition of its //@ tune lines excludes these values together",
                       path);
    }
    template_source(template, point, out);
    return 0;
}

// ---- any source ----

static char *param_names(const struct template *template)
{
    struct strbuf names = STRBUF_INIT;
    for (size_t i = 0; i < template_param_count(template); i++) {
        strbuf_addf(&names, "%s%s", i > 0 ? " " : "", template_param_name(template, i));
    }
    return strbuf_detach(&names);
}

int defines_apply(struct bytes *source, const char *path, const char *defines, size_t *ret_lines,
                  char **ret_params, struct err *err)
{
    struct template *template = NULL;
    struct define *define = NULL;
    struct strbuf out = STRBUF_INIT;
    size_t count = 0;
    int rc = 0;
    bool is_text = !memchr(source->data, '\0', source->len);
    char *text = xstrndup((const char *)source->data, source->len);
    bool tunable = is_text && strstr(text, "//@ tune ");
    // A template that cannot be parsed is a source like any other until it is to be a point.
    if (tunable) {
        rc = template_parse(&template, text, path, defines ? err : NULL);
    }
    if (rc != 0 || !defines) {
        rc = defines ? rc : 0;
        goto out;
    }
    rc = split(&define, &count, defines, err);
    if (rc != 0) {
        goto out;
    }
    if (template) {
        rc = apply_to_template(template, path, define, count, &out, err);
    } else {
        for (size_t i = 0; i < count; i++) {
            strbuf_addf(&out, "#define %s %s\n", define[i].name,
                        define[i].value ? define[i].value : "1");
        }
        strbuf_add(&out, source->data, source->len);
    }
    if (rc == 0) {
        bytes_clear(source);
        *source = bytes_copy(out.data, out.len);
    }
out:
    if (rc == 0) {
        *ret_lines = template && defines ? template_param_count(template) : count;
        *ret_params = template ? param_names(template) : NULL;
    }
    free_defines(define, count);
    template_free(template);
    strbuf_release(&out);
    free(text);
    return rc;
}

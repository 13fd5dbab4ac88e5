#include "client/tune/tune_case.h"

#include "common/mem.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include <float.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// ---- which cases are chosen ----

static int no_case(const struct problem *problem, const char *list, struct err *err)
{
    struct strbuf known;
    strbuf_init(&known, 600);
    for (size_t i = 0; i < problem->bench_count; i++) {
        strbuf_adds(&known, i > 0 ? ", " : "");
        problem_case_name(problem, &problem->bench[i], &known);
    }
    int rc = err_set(err, ERR_INVALID, "--case: %s has no benchmark case \"%.100s\"; it has %s",
                     problem->name, list, strbuf_text(&known));
    strbuf_release(&known);
    return rc;
}

// Whether the case has the value that `word`, NAME=VALUE, asks for.
static bool has_value(const struct problem *problem, const struct shape_case *shape,
                      const char *word)
{
    const char *equals = strchr(word, '=');
    for (size_t i = 0; equals && i < problem->param_count; i++) {
        const char *name = problem->param[i].name;
        if (strlen(name) != (size_t)(equals - word) ||
            strncmp(name, word, (size_t)(equals - word)) != 0) {
            continue;
        }
        int64_t whole;
        if (problem->param[i].type == PARAM_INT) {
            return parse_i64(&whole, equals + 1, INT64_MIN, INT64_MAX, name, NULL) == 0 &&
                   whole == shape->i[i];
        }
        double real;
        return parse_f64(&real, equals + 1, -DBL_MAX, DBL_MAX, name, NULL) == 0 &&
               !(real < shape->f[i] || real > shape->f[i]);
    }
    return false;
}

// Whether the case has all values of a list separated by blanks. An empty list has no case.
static bool has_values(const struct problem *problem, const struct shape_case *shape,
                       const char *list)
{
    bool all = list[strspn(list, " ")] != '\0';
    while (all && *(list += strspn(list, " ")) != '\0') {
        size_t len = strcspn(list, " ");
        char *word = xstrndup(list, len);
        all = has_value(problem, shape, word);
        free(word);
        list += len;
    }
    return all;
}

int tune_select(bool chosen[static PROBLEM_CASE_MAX], const struct problem *problem,
                const char *wanted, struct err *err)
{
    for (size_t i = 0; i < PROBLEM_CASE_MAX; i++) {
        chosen[i] = !wanted && i < problem->bench_count;
    }
    int rc = 0;
    while (rc == 0 && wanted) {
        size_t len = strcspn(wanted, ",");
        char *list = xstrndup(wanted, len);
        bool any = false;
        for (size_t i = 0; i < problem->bench_count; i++) {
            bool fits = has_values(problem, &problem->bench[i], list);
            chosen[i] |= fits;
            any |= fits;
        }
        rc = any ? 0 : no_case(problem, list, err);
        free(list);
        wanted = wanted[len] == ',' ? wanted + len + 1 : NULL;
    }
    return rc;
}

// ---- the problem with one case ----

// problem.json with that benchmark case alone, malloc'd. NULL when it cannot be made.
static char *narrow_json(const struct problem_dir *dir, size_t bench)
{
    json_t *root = json_loadb((const char *)dir->json.data, dir->json.len, 0, NULL);
    json_t *cases = json_object_get(root, "cases");
    json_t *one = json_pack("[O]", json_array_get(json_object_get(cases, "bench"), bench));
    char *text = NULL;
    if (one && json_object_set_new(cases, "bench", one) == 0) {
        text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    }
    json_decref(root);
    return text;
}

int tune_narrow(struct problem_dir *ret, const struct problem_dir *dir, const struct bytes *kernel,
                size_t bench, struct err *err)
{
    struct problem_dir copy = {.path = xstrdup(dir->path),
                               .reference = bytes_copy(dir->reference.data, dir->reference.len),
                               .baseline = bytes_copy(dir->baseline.data, dir->baseline.len),
                               .template_source = bytes_copy(kernel->data, kernel->len),
                               .readme = bytes_copy(dir->readme.data, dir->readme.len),
                               .reference_digest = dir->reference_digest,
                               .baseline_digest = dir->baseline_digest};
    char *path = xasprintf("%s/problem.json", dir->path);
    char *text = bench == TUNE_ALL ? NULL : narrow_json(dir, bench);
    int rc = 0;
    if (bench == TUNE_ALL) {
        copy.json = bytes_copy(dir->json.data, dir->json.len);
    } else if (!text) {
        rc = err_set(err, ERR_INTERNAL, "%s: benchmark case %zu cannot be taken out", path, bench);
    } else {
        copy.json = bytes_copy(text, strlen(text));
    }
    if (rc == 0) {
        copy.json_digest = digest_of(copy.json.data, copy.json.len);
        rc = problem_parse(&copy.problem, (const char *)copy.json.data, copy.json.len, path, err);
    }
    if (rc == 0) {
        *ret = copy;
    } else {
        problem_dir_release(&copy);
    }
    free(text);
    free(path);
    return rc;
}

// Turns the text of problem.json into a struct problem, or into one sentence that says what is
// wrong with it. Nothing is guessed and nothing is ignored: an unknown key, a missing one and a
// wrong type are errors at every level.
//
// Parameters are read before everything that holds expressions over them. The names that an
// expression may use are indexed like problem.param, with an empty name for each f64 parameter, so
// that shape_case.i can be passed to expr_eval as it is.
//
// Files: problem_reader.c gives typed access to the JSON text, problem_tensors.c and
// problem_cases.c read their parts. What follows from an accepted problem is in problem_shapes.c
// (sizes and work), problem_hidden.c (hidden cases) and problem_prototype.c (C text).
//
// Limits: jansson bounds nesting (2048) and checks UTF-8. The other limits are constants in
// problem.h.
#include "problem/problem.h"
#include "common/mem.h"
#include "problem/identifier.h"
#include "problem/problem_reader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 200 // bytes of title and license

static int read_param(const struct reader *reader, const struct json_path *where, json_t *entry,
                      size_t index)
{
    static const char *const keys[] = {"name", "type"}, *const types[] = {"int", "f64"};
    struct problem *problem = reader->problem;
    struct param *param = &problem->param[index];
    int rc = reader_check_object(reader, where, entry, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        return rc;
    }
    rc = reader_get_identifier(reader, where, entry, "name", &param->name);
    if (rc != 0) {
        return rc;
    }
    size_t type = 0;
    rc = reader_get_choice(reader, where, entry, "type", types, ARRAY_LEN(types), &type);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(problem->param[i].name, param->name) == 0) {
            return reader_fail(reader, where, "the name \"%s\" is used twice; choose another",
                               param->name);
        }
    }
    param->type = (enum param_type)type;
    return 0;
}

static int read_params(struct reader *reader, const struct json_path *root, const json_t *object)
{
    struct problem *problem = reader->problem;
    json_t *list = NULL;
    struct json_path at;
    int rc = reader_get_list(reader, root, object, "params", 0, PROBLEM_PARAM_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct json_path here = json_path_below(&at, "[%zu]", i);
        const struct param *param = &problem->param[problem->param_count++];
        rc = read_param(reader, &here, json_array_get(list, i), i);
        reader->int_name[i] = rc == 0 && param->type == PARAM_INT ? param->name : "";
    }
    return rc;
}

// Refuses a name that a prototype would have twice: params, tensors, and the names that the
// reference's arguments get from tensors.
static int check_names(const struct reader *reader, const struct json_path *root)
{
    const struct problem *problem = reader->problem;
    const char *name[3 * PROBLEM_TENSOR_MAX + PROBLEM_PARAM_MAX];
    size_t count = 0, derived_count = 0;
    for (size_t i = 0; i < problem->param_count; i++) {
        name[count++] = problem->param[i].name;
    }
    for (size_t i = 0; i < problem->tensor_count; i++) {
        name[count++] = problem->tensor[i].name;
    }
    char derived[2 * PROBLEM_TENSOR_MAX][IDENTIFIER_MAX + 16];
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        if (tensor->direction == DIRECTION_IN) {
            continue;
        }
        snprintf(derived[derived_count], sizeof derived[0], "%s_scale", tensor->name);
        name[count++] = derived[derived_count++];
        if (tensor->direction == DIRECTION_OUT) {
            continue;
        }
        snprintf(derived[derived_count], sizeof derived[0], "%s_out", tensor->name);
        name[count++] = derived[derived_count++];
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(name[i], name[j]) == 0) {
                struct json_path here = json_path_below(root, ".tensors");
                return reader_fail(reader, &here,
                                   "the name \"%s\" is used twice among params, tensors and the "
                                   "reference's arguments "
                                   "(NAME_scale, NAME_out); choose another",
                                   name[i]);
            }
        }
    }
    return 0;
}

static int read_work_expr(const struct reader *reader, const struct json_path *where,
                          const json_t *work, const char *key, struct expr **ret)
{
    json_t *value = NULL;
    struct json_path at;
    int rc = reader_get(reader, where, work, key, KIND_TEXT, &value, &at);
    return rc != 0 ? rc : reader_expr(reader, &at, value, ret);
}

static int read_work(const struct reader *reader, const struct json_path *root,
                     const json_t *object)
{
    static const char *const keys[] = {"flops", "bytes", "unit"};
    // In the order of enum work_unit.
    static const char *const units[] = {"f32", "f64", "tf32", "f16", "bf16", "fp8", "i8"};
    struct problem *problem = reader->problem;
    json_t *work = NULL;
    struct json_path here;
    int rc = reader_get(reader, root, object, "work", KIND_OBJECT, &work, &here);
    if (rc != 0) {
        return rc;
    }
    // Only a cuda problem has the last key.
    rc = reader_check_keys(reader, &here, work, keys,
                           problem->cuda ? ARRAY_LEN(keys) : ARRAY_LEN(keys) - 1);
    if (rc != 0) {
        return rc;
    }
    size_t unit = UNIT_F32;
    if (json_object_get(work, "unit")) {
        rc = reader_get_choice(reader, &here, work, "unit", units, ARRAY_LEN(units), &unit);
        if (rc != 0) {
            return rc;
        }
    }
    problem->unit = (enum work_unit)unit;
    rc = read_work_expr(reader, &here, work, "flops", &problem->flops);
    return rc != 0 ? rc : read_work_expr(reader, &here, work, "bytes", &problem->bytes);
}

static int read_entry(const struct reader *reader, const struct json_path *root,
                      const json_t *object)
{
    struct problem *problem = reader->problem;
    if (problem->cuda) {
        return !json_object_get(object, "entry")
                   ? 0
                   : reader_fail(reader, root,
                                 "a cuda problem has no \"entry\": candidates name their kernels");
    }
    int rc = reader_get_identifier(reader, root, object, "entry", &problem->entry);
    if (rc != 0) {
        return rc;
    }
    if (strcmp(problem->entry, "main") == 0 || strcmp(problem->entry, "reference") == 0) {
        struct json_path here = json_path_below(root, ".entry");
        return reader_fail(reader, &here,
                           "the name \"%s\" has a meaning of its own; choose another",
                           problem->entry);
    }
    return 0;
}

// Reads what describes the problem as a whole: name, title, license, language.
static int read_head(const struct reader *reader, const struct json_path *where, json_t *root)
{
    static const char *const languages[] = {"c", "cuda"};
    static const char license_characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.+-() ";
    static const char name_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    struct problem *problem = reader->problem;
    int rc = reader_get_text(reader, where, root, "name", 40, name_characters, &problem->name);
    if (rc != 0) {
        return rc;
    }
    rc = reader_get_text(reader, where, root, "title", TEXT_MAX, NULL, &problem->title);
    if (rc != 0) {
        return rc;
    }
    rc = reader_get_text(reader, where, root, "license", TEXT_MAX, license_characters,
                         &problem->license);
    if (rc != 0) {
        return rc;
    }
    size_t choice = 0;
    rc = reader_get_choice(reader, where, root, "language", languages, ARRAY_LEN(languages),
                           &choice);
    if (rc != 0) {
        return rc;
    }
    problem->language = xstrdup(languages[choice]);
    problem->cuda = choice == 1;
    return 0;
}

// Each check case meets the next of a tensor's further distributions (executor/input_values.h), so
// that with fewer cases one might never be met.
static int check_also(const struct reader *reader, const struct json_path *root)
{
    const struct problem *problem = reader->problem;
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        if (tensor->also_count > problem->check_count) {
            struct json_path here = json_path_below(root, ".tensors[%zu].also", i);
            return reader_fail(reader, &here,
                               "%zu distributions need as many check cases, and there are %zu; add "
                               "cases or remove distributions",
                               tensor->also_count, problem->check_count);
        }
    }
    return 0;
}

static int read_problem(struct reader *reader, json_t *root)
{
    static const char *const keys[] = {"name",   "title",   "license", "language", "entry",
                                       "params", "tensors", "cases",   "cache",    "work"};
    static const char *const caches[] = {"warm", "cold"};
    struct json_path at = {"$"};
    int rc = reader_check_object(reader, &at, root, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        return rc;
    }
    rc = read_head(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = read_entry(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = read_params(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = problem_read_tensors(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = check_names(reader, &at);
    if (rc != 0) {
        return rc;
    }
    size_t cache = 0;
    rc = reader_get_choice(reader, &at, root, "cache", caches, ARRAY_LEN(caches), &cache);
    if (rc != 0) {
        return rc;
    }
    reader->problem->cache = (enum cache_regime)cache;
    rc = read_work(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = problem_read_cases(reader, &at, root);
    return rc != 0 ? rc : check_also(reader, &at);
}

int problem_parse(struct problem **ret, const char *json, size_t len, const char *path,
                  struct err *err)
{
    if (len > PROBLEM_JSON_MAX) {
        return err_set(err, ERR_LIMIT, "%s: is larger than %zu bytes; shorten it", path,
                       PROBLEM_JSON_MAX);
    }
    struct problem *problem = xcalloc(1, sizeof *problem);
    struct reader reader = {.path = path, .problem = problem, .err = err};
    json_error_t fault;
    json_auto_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &fault);
    int rc = root ? read_problem(&reader, root)
                  : err_set(err, ERR_INVALID, "%s:%d:%d: is not valid JSON: %s", path, fault.line,
                            fault.column, reader_quote(fault.text).text);
    if (rc != 0) {
        problem_free(problem);
        return rc;
    }
    problem->digest = digest_of(json, len);
    *ret = problem;
    return 0;
}

const char *problem_extension(const struct problem *problem)
{
    return problem->cuda ? "cu" : "c";
}

void problem_free(struct problem *problem)
{
    if (!problem) {
        return;
    }
    free(problem->name);
    free(problem->title);
    free(problem->license);
    free(problem->language);
    free(problem->entry);
    for (size_t i = 0; i < PROBLEM_PARAM_MAX; i++) {
        free(problem->param[i].name);
    }
    for (size_t i = 0; i < PROBLEM_TENSOR_MAX; i++) {
        free(problem->tensor[i].name);
        for (size_t j = 0; j < PROBLEM_RANK_MAX; j++) {
            expr_free(problem->tensor[i].shape[j]);
        }
    }
    expr_free(problem->flops);
    expr_free(problem->bytes);
    free(problem);
}

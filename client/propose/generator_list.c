#include "client/propose/generator_list.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

// Whether the text begins with a generator's kind: a comma before it separates two generators.
static bool begins_a_kind(const char *text)
{
    static const char *const whole[] = {"tunable", "llm"};
    for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
        size_t len = strlen(whole[i]);
        if (strncmp(text, whole[i], len) == 0 && (text[len] == '\0' || text[len] == ',')) {
            return true;
        }
    }
    return generator_is_files(text) || generator_command(text);
}

// The end of the generator's name that begins here: its comma or the NUL.
static const char *end_of(const char *name)
{
    const char *comma = strchr(name, ',');
    while (comma && !begins_a_kind(comma + 1)) {
        comma = strchr(comma + 1, ',');
    }
    return comma ? comma : name + strlen(name);
}

// Takes kind_take in any case.
static int add(struct generator_list *list, char *kind_take, struct err *err)
{
    int rc = 0;
    if (list->count == GENERATOR_LIST_MAX) {
        rc = err_set(err, ERR_USAGE, "--generator names more than %d generators; leave some out",
                     GENERATOR_LIST_MAX);
    }
    for (size_t i = 0; i < list->count && rc == 0; i++) {
        if (strcmp(list->kind[i], kind_take) == 0) {
            rc =
                err_set(err, ERR_USAGE, "--generator names %.200s twice; leave one out", kind_take);
        }
    }
    if (rc == 0) {
        list->kind[list->count++] = kind_take;
    } else {
        free(kind_take);
    }
    return rc;
}

int generator_list_parse(struct generator_list *ret, const char *names, struct err *err)
{
    *ret = (struct generator_list){.names = xstrdup(names ? names : "")};
    int rc = 0;
    for (const char *at = names; at && rc == 0;) {
        const char *end = end_of(at);
        rc = add(ret, xstrndup(at, (size_t)(end - at)), err);
        at = *end == ',' ? end + 1 : NULL;
    }
    if (rc != 0) {
        generator_list_release(ret);
    }
    return rc;
}

void generator_list_release(struct generator_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->kind[i]);
        bytes_clear(&list->text[i]);
        generator_free(list->generator[i]);
    }
    free(list->names);
    *list = (struct generator_list){0};
}

void generator_list_tunable(struct generator_list *ret, const struct bytes *text)
{
    *ret = (struct generator_list){.names = xstrdup("tunable"), .count = 1};
    ret->kind[0] = xstrdup(ret->names);
    ret->text[0] = bytes_copy(text->data, text->len);
}

int generator_list_read(struct generator_list *list, const struct problem_dir *dir, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < list->count && rc == 0; i++) {
        rc = generator_read(&list->text[i], list->kind[i], dir, err);
    }
    return rc;
}

int generator_list_create(struct generator_list *list, const char *template_path, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < list->count && rc == 0; i++) {
        const char *kind = list->kind[i];
        rc = generator_create(&list->generator[i], kind, &list->text[i],
                              generator_is_files(kind) ? kind + strlen("pool:") : template_path,
                              err);
    }
    return rc;
}

// The number of the first generator that asks; the list's count when there is none.
static size_t first_that_asks(const struct generator_list *list)
{
    size_t number = 0;
    while (number < list->count && !generator_asks(list->kind[number])) {
        number++;
    }
    return number;
}

size_t generator_list_points(const struct generator_list *list)
{
    size_t points = 0;
    for (size_t i = 0; i < list->count; i++) {
        points += list->generator[i]->point_count;
    }
    return first_that_asks(list) < list->count ? 0 : points;
}

bool generator_list_asks(const char *names)
{
    struct generator_list list;
    bool asks =
        generator_list_parse(&list, names, NULL) == 0 && first_that_asks(&list) < list.count;
    generator_list_release(&list);
    return asks;
}

// ---- in the run file ----

// The texts of generators of files are pool_source and more_pool_sources of RUN_STARTED, in the
// order of the list.

// How many generators of files come before this generator.
static size_t files_before(const struct generator_list *list, size_t number)
{
    size_t files = 0;
    for (size_t i = 0; i < number; i++) {
        files += generator_is_files(list->kind[i]);
    }
    return files;
}

struct digest *generator_list_slot(const struct generator_list *list, struct run_started *started,
                                   size_t number)
{
    const char *kind = list->kind[number];
    size_t before = files_before(list, number);
    if (generator_asks(kind)) {
        return NULL;
    }
    if (!generator_is_files(kind)) {
        return &started->template_source;
    }
    if (before == 0) {
        return &started->pool_source;
    }
    return before <= started->more_pool_sources_count ? &started->more_pool_sources[before - 1]
                                                      : NULL;
}

void generator_list_reserve(const struct generator_list *list, struct run_started *started)
{
    size_t files = files_before(list, list->count);
    if (files > 1) {
        started->more_pool_sources_count = files - 1;
        started->more_pool_sources = xcalloc(files - 1, sizeof(*started->more_pool_sources));
    }
}

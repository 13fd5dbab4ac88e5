#include "client/propose/candidate_line.h"

#include "common/mem.h"
#include "common/printable.h"
#include "problem/problem.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 1024 // the limit of RUN_PROPOSED
#define MODEL_MAX_BYTES 256

bool candidate_line_is_blank(const char *line, size_t len)
{
    size_t at = 0;

    while (at < len && strchr(" \t\r", line[at]) && line[at] != '\0') {
        at++;
    }
    return at == len;
}

static int read_source(struct candidate_line *ret, const json_t *object, struct err *err)
{
    const json_t *source = json_object_get(object, "source");

    if (!json_is_string(source) || json_string_length(source) == 0) {
        return err_set(err, ERR_INVALID, "\"source\" is missing, empty or no text");
    }
    if (json_string_length(source) > PROBLEM_SOURCE_MAX) {
        return err_set(err, ERR_LIMIT, "the source is longer than %zu bytes", PROBLEM_SOURCE_MAX);
    }
    ret->source = xstrdup(json_string_value(source));
    return 0;
}

// Reads a text that may be absent. what names it as the beginning of a sentence.
static int read_text(char **ret, const json_t *object, const char *key, const char *what,
                     size_t bytes_max, struct err *err)
{
    const json_t *value = json_object_get(object, key);

    if (!value) {
        return 0;
    }
    if (!json_is_string(value)) {
        return err_set(err, ERR_INVALID, "\"%s\" is no text", key);
    }
    if (json_string_length(value) > bytes_max) {
        return err_set(err, ERR_LIMIT, "the %s is longer than %zu bytes", key, bytes_max);
    }
    int rc = printable_check(what, json_string_value(value), err);
    if (rc == 0) {
        *ret = xstrdup(json_string_value(value));
    }
    return rc;
}

// Reads what a language model used; a number that cannot be that counts as absent.
static void read_usage(struct candidate_line *ret, const json_t *object)
{
    json_int_t input = json_integer_value(json_object_get(object, "input_tokens"));
    json_int_t output = json_integer_value(json_object_get(object, "output_tokens"));
    const json_t *cost = json_object_get(object, "cost");

    ret->input_tokens = input > 0 && input < INT32_MAX ? (uint64_t)input : 0;
    ret->output_tokens = output > 0 && output < INT32_MAX ? (uint64_t)output : 0;
    ret->cost =
        json_is_number(cost) && json_number_value(cost) >= 0 && json_number_value(cost) < 1e9
            ? json_number_value(cost)
            : NAN;
}

int candidate_line_parse(struct candidate_line *ret, const char *line, size_t len, struct err *err)
{
    struct candidate_line made = {.cost = NAN};
    json_error_t why;
    json_auto_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);

    if (!object) {
        return err_set(err, ERR_INVALID, "no JSON: %s", why.text);
    }
    if (!json_is_object(object)) {
        return err_set(err, ERR_INVALID, "no JSON object with \"name\" and \"source\"");
    }
    int rc = read_source(&made, object, err);
    rc = rc == 0
             ? read_text(&made.name, object, "name", "the name of a candidate", NAME_MAX_BYTES, err)
             : rc;
    rc = rc == 0 ? read_text(&made.model, object, "model", "the model of a candidate",
                             MODEL_MAX_BYTES, err)
                 : rc;
    if (rc != 0) {
        candidate_line_release(&made);
        return rc;
    }
    read_usage(&made, object);
    *ret = made;
    return 0;
}

void candidate_line_release(struct candidate_line *line)
{
    free(line->source);
    free(line->name);
    free(line->model);
    *line = (struct candidate_line){.cost = NAN};
}

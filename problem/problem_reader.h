// Typed access to the JSON text of a problem. Only problem/problem*.c include this.
//
// Every function takes the JSON path of the value that it reads. When the value is missing or
// wrong, the function fails with ERR_INVALID and one sentence: the file, the JSON path such as
// "$.tensors[1].dtype", and what would be right. Objects are read by the list of their keys, so
// that an unknown key is an error, too. On failure results are unchanged.
#ifndef PROBLEM_PROBLEM_READER_H
#define PROBLEM_PROBLEM_READER_H

#include "problem/problem.h"
#include <jansson.h>

// A problem that is being read.
struct reader {
    const char *path;        // of the file, for errors
    struct problem *problem; // to be filled
    // The names that expressions may use, indexed like problem.param: "" for an f64 parameter.
    const char *int_name[PROBLEM_PARAM_MAX];
    struct err *err; // receives the first error
};

// Where a value is in the JSON text, such as "$.tensors[1]".
struct json_path {
    char text[200];
};

// The parent's path followed by the formatted text.
struct json_path json_path_below(const struct json_path *parent, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Text from the file, made fit for an error sentence: at most 60 bytes, without control characters.
struct quoted {
    char text[64];
};
struct quoted reader_quote(const char *text);

// Reports an error at this path. Returns ERR_INVALID.
int reader_fail(const struct reader *reader, const struct json_path *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum json_kind { KIND_OBJECT, KIND_LIST, KIND_TEXT, KIND_INTEGER, KIND_NUMBER };

// Refuses a value of another kind.
MUST_CHECK int reader_check_kind(const struct reader *reader, const struct json_path *where,
                                 const json_t *value, enum json_kind kind);
// Refuses an object with a key that is not in the list.
MUST_CHECK int reader_check_keys(const struct reader *reader, const struct json_path *where,
                                 json_t *object, const char *const *keys, size_t count);
// Refuses what is not an object with these keys at most.
MUST_CHECK int reader_check_object(const struct reader *reader, const struct json_path *where,
                                   json_t *value, const char *const *keys, size_t count);

// Each of these reads the member `key` of an object, at path `where`. The member must exist.

// A value of this kind, which the object still owns. *ret_where becomes its path.
MUST_CHECK int reader_get(const struct reader *reader, const struct json_path *where,
                          const json_t *object, const char *key, enum json_kind kind, json_t **ret,
                          struct json_path *ret_where);
// A list of min to max entries.
MUST_CHECK int reader_get_list(const struct reader *reader, const struct json_path *where,
                               const json_t *object, const char *key, size_t min, size_t max,
                               json_t **ret, struct json_path *ret_where);
MUST_CHECK int reader_get_number(const struct reader *reader, const struct json_path *where,
                                 const json_t *object, const char *key, double min, double max,
                                 double *ret);
MUST_CHECK int reader_get_integer(const struct reader *reader, const struct json_path *where,
                                  const json_t *object, const char *key, int64_t min, int64_t max,
                                  int64_t *ret);
// One of the names. *ret becomes its index.
MUST_CHECK int reader_get_choice(const struct reader *reader, const struct json_path *where,
                                 const json_t *object, const char *key, const char *const *names,
                                 size_t count, size_t *ret);
// One line of 1 to max bytes. Only the characters in `allowed` may occur, unless it is NULL. The
// caller frees *ret.
MUST_CHECK int reader_get_text(const struct reader *reader, const struct json_path *where,
                               const json_t *object, const char *key, size_t max,
                               const char *allowed, char **ret);
// A name that can stand in generated C. The caller frees *ret.
MUST_CHECK int reader_get_identifier(const struct reader *reader, const struct json_path *where,
                                     const json_t *object, const char *key, char **ret);

// Parses a text value as an expression over the int parameters. The caller frees *ret.
MUST_CHECK int reader_expr(const struct reader *reader, const struct json_path *where,
                           const json_t *value, struct expr **ret);

// The parts of a problem, read from the object `root` at path `where` into reader->problem.
MUST_CHECK int problem_read_tensors(const struct reader *reader, const struct json_path *where,
                                    const json_t *root); // problem_tensors.c
MUST_CHECK int problem_read_cases(const struct reader *reader, const struct json_path *where,
                                  const json_t *root); // problem_cases.c

#endif

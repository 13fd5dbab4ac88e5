// What the file of an autotuner says: configurations with their times. Each format has a reader:
// import_tuner.c for Kernel Tuner's cache files, import_tuner_t4.c for its T4 results, import_ktt.c
// for KTT's results. They share import_tuner_fields.c. import_tuner_space.c makes a space of what
// was read, with the numbers and names of import_tuner_values.c. Nobody else includes this.
#ifndef CLIENT_SPACE_IMPORT_TUNER_H
#define CLIENT_SPACE_IMPORT_TUNER_H

#include "common/err.h"
#include "common/strbuf.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <stddef.h>

#define TUNER_PARAM_MAX 64

// A tunable parameter.
struct tuner_param {
    const char *name;
    const json_t *listed; // its values in the order of the file; NULL when the file has no list
};

// A configuration that the tuner tried.
struct tuner_row {
    const json_t *config; // object from parameter to value, which may have other keys
    enum verdict verdict; // VERDICT_NONE: correct
    const char *reason;   // the file's word for why it is not correct; NULL when it is
    double time;          // ms; what the tuner minimised; NaN unless correct
    double *times;        // ms of single launches, finite and positive; owned
    size_t times_count;
    double compile, verify, benchmark; // ms that these took; NaN when not known
};

// A file; texts and values are borrowed from root.
struct tuner {
    json_t *root;               // owns all that is borrowed here
    const char *device;         // NULL: the file does not name it
    const char *kernel;         // NULL: the file does not name it
    const json_t *problem_size; // NULL: the file does not name it
    const char *tool;           // "Kernel Tuner" or "KTT"
    const char *format;         // "cache", "T4 results" or "results"
    const char *time_field;     // what the file calls the time of a configuration
    struct tuner_param param[TUNER_PARAM_MAX];
    size_t param_count;
    struct tuner_row *row;
    size_t row_count;
};

// ---- reading a file ----

// Reads the bytes of a file of Kernel Tuner. *ret is uninitialised before the call and belongs to
// the caller after success. Every configuration has a value for every parameter. ERR_INVALID and
// ERR_LIMIT sentences begin with path.
MUST_CHECK int tuner_read(struct tuner *ret, const void *data, size_t len, const char *path,
                          struct err *err);
// The same for a file of KTT.
MUST_CHECK int tuner_read_ktt(struct tuner *ret, const void *data, size_t len, const char *path,
                              struct err *err);
// Reads T4 results, whose text is parsed already, into a tuner that has only a root. What was made
// belongs to the caller also after an error.
MUST_CHECK int tuner_read_t4(struct tuner *tuner, const char *path, struct err *err);
// Frees all that a successful reader made, or one that failed half-way.
void tuner_release(struct tuner *tuner);

// ---- fields that all formats have ----
//
// `path` and `where` are what the error sentences name: the file and one of its configurations.

// Reads a unit of time, such as "milliseconds". *ret becomes its milliseconds, and stays as it is
// when the field is absent, null or empty. ERR_INVALID names a unit that is not known. `where` is
// NULL for a field of the whole file.
MUST_CHECK int tuner_read_unit(double *ret, const json_t *object, const char *field,
                               const char *path, const char *where, struct err *err);
// Reads a time in `unit` milliseconds. *ret becomes milliseconds, or NaN when the field is absent
// or null. ERR_INVALID when it is no number from 0.
MUST_CHECK int tuner_read_ms(double *ret, const json_t *object, const char *field, double unit,
                             const char *path, const char *where, struct err *err);
// A word by which a format says how a configuration ended.
struct tuner_word {
    const char *name;
    enum verdict verdict; // VERDICT_NONE: correct
};
// Sets the row's verdict and reason by the word among `count`; text may be NULL. False when it is
// none of them.
bool tuner_read_verdict(struct tuner_row *row, const struct tuner_word *word, size_t count,
                        const char *text);
// Reads the row's times of single launches. What is no time is left out. A list that is absent or
// null has none.
MUST_CHECK int tuner_read_times(struct tuner_row *row, const json_t *list, double unit,
                                const char *path, const char *where, struct err *err);
// Adds a parameter, whose name is borrowed. ERR_LIMIT when there are too many, or it is too long.
MUST_CHECK int tuner_add_param(struct tuner *tuner, const char *name, const char *path,
                               struct err *err);
// Makes room for `count` rows, when all parameters have been added.
MUST_CHECK int tuner_make_rows(struct tuner *tuner, size_t count, const char *path,
                               struct err *err);
// Checks that a row that was read is correct with a time above 0 or has an error, and that it has
// every parameter.
MUST_CHECK int tuner_check_row(const struct tuner *tuner, const struct tuner_row *row,
                               const char *path, const char *where, struct err *err);

// ---- values and names ----

struct tuner_scale; // how the values of one parameter become numbers

// Appends a value as it stands in names.
void tuner_add_value(struct strbuf *out, const json_t *value);
// Appends "NAME=VALUE NAME=VALUE …" of all parameters.
void tuner_add_name(struct strbuf *out, const struct tuner *tuner, const struct tuner_row *row);
// Makes a scale for each parameter, which the caller frees, also after an error. A parameter is
// numeric when all its values are numbers or booleans; they stand for themselves. The values of
// other parameters are numbered from 0, those of the file's list first. ERR_LIMIT when there are
// too many to be numbered.
MUST_CHECK int tuner_scales_make(struct tuner_scale **ret, const struct tuner *tuner,
                                 const char *path, struct err *err);
// The number of a parameter's value on its scale. ERR_LIMIT as above.
MUST_CHECK int tuner_scale_number(struct tuner_scale *scales, const struct tuner *tuner,
                                  size_t param, const json_t *value, double *ret, const char *path,
                                  struct err *err);
void tuner_scales_free(struct tuner_scale *scales, const struct tuner *tuner); // NULL is fine

#endif

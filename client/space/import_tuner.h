// What a file of Kernel Tuner says, in either of its two formats: configurations with their times.
// import_tuner.c reads the formats, import_tuner_space.c makes a space of the result. Nobody else
// includes this.
#ifndef CLIENT_SPACE_IMPORT_TUNER_H
#define CLIENT_SPACE_IMPORT_TUNER_H

#include "common/err.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <stddef.h>

#define TUNER_PARAM_MAX 64

// A tunable parameter.
struct tuner_param {
    const char *name;
    const json_t *listed; // its values in the order of the file; NULL when the file has no list
};

// A configuration that Kernel Tuner tried.
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
    const char *format;         // "cache" or "T4 results"
    struct tuner_param param[TUNER_PARAM_MAX];
    size_t param_count;
    struct tuner_row *row;
    size_t row_count;
};

// Reads a file's bytes. *ret is uninitialised before the call and belongs to the caller after
// success. Every configuration has a value for every parameter. ERR_INVALID and ERR_LIMIT sentences
// begin with path.
MUST_CHECK int tuner_read(struct tuner *ret, const void *data, size_t len, const char *path,
                          struct err *err);
// Frees all that a successful tuner_read() made.
void tuner_release(struct tuner *tuner);

#endif

// What a file of Kernel Tuner says, whichever of its two formats it has: configurations with times.
// Between the readers (import_tuner.c) and what makes a space of it (import_tuner_space.c).
#ifndef CLIENT_SPACE_IMPORT_TUNER_H
#define CLIENT_SPACE_IMPORT_TUNER_H

#include "common/err.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <stddef.h>

#define TUNER_PARAM_MAX 64

struct tuner_param {
    const char *name;
    const json_t *listed; // its values in the file's order; NULL when the file has no list
};

struct tuner_row {
    const json_t *config; // object: parameter -> value, among other things
    enum verdict verdict; // VERDICT_NONE: correct
    const char *reason;   // why it is not correct, as the file says it; else NULL
    double time;          // ms, what the tuner minimised; NaN unless correct
    double *times;        // ms, of single launches; finite and positive
    size_t times_count;
    double compile, verify, benchmark; // ms that these took; NaN: not known
};

struct tuner {
    json_t *root;               // owns what is pointed to
    const char *device;         // NULL: the file does not say
    const char *kernel;         // the same
    const json_t *problem_size; // the same
    const char *format;         // "cache" or "T4 results"
    struct tuner_param param[TUNER_PARAM_MAX];
    size_t param_count;
    struct tuner_row *row;
    size_t row_count;
};

// *ret is uninitialised before and the caller's after success. Every row has all parameters.
MUST_CHECK int tuner_read(struct tuner *ret, const void *data, size_t len, const char *path,
                          struct err *err);
void tuner_release(struct tuner *tuner);

#endif

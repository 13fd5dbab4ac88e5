// Reads text of other tools as a space, which succeeds or is refused. The tests of both importers
// share this.
#ifndef TESTS_CLIENT_SPACE_SPACE_READER_H
#define TESTS_CLIENT_SPACE_SPACE_READER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/space/space_import.h"
#include "client/space/space_json.h"
#include "client/space/space_source.h"
#include "common/mem.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef int reader(struct space *ret, const void *data, size_t len, const char *path,
                   const struct space_import *how, struct err *err);

static inline void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b)))) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

static inline struct space taken(reader *read, const char *text, const struct space_import *how)
{
    static const struct space_import plain = {NULL, NULL, NULL};
    struct err err = ERR_INIT;
    struct space space;
    struct bytes copy = bytes_copy(text, strlen(text)); // without a NUL behind it
    if (read(&space, copy.data, copy.len, "f.json", how ? how : &plain, &err) != 0) {
        fail_msg("%s", err.text);
    }
    bytes_clear(&copy);
    assert_int_equal(space_check(&space, "f.json", &err), 0);
    return space;
}

static inline void refused(reader *read, const char *text, const struct space_import *how,
                           const char *says)
{
    static const struct space_import plain = {NULL, NULL, NULL};
    struct err err = ERR_INIT;
    struct space space;
    if (read(&space, text, strlen(text), "f.json", how ? how : &plain, &err) == 0) {
        fail_msg("taken, where \"%s\" was to be said", says);
    }
    if (strncmp(err.text, "f.json", 6) != 0 || !strstr(err.text, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
}

static const struct space_candidate *find(const struct space *space, const char *name)
{
    for (size_t i = 0; i < space->head.candidates; i++) {
        if (strcmp(space->candidate[i].name, name) == 0) {
            return &space->candidate[i];
        }
    }
    fail_msg("no candidate \"%s\"", name);
    return NULL;
}

#endif

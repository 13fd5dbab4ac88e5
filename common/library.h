// Shared libraries found at run time: by dlopen, into function pointers that a table names. So one
// build runs with and without them.
#ifndef COMMON_LIBRARY_H
#define COMMON_LIBRARY_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
    const char *name; // "cuInit"
    void *where;      // of the function pointer that gets its address; NULL when it is not there
    bool required;    // without it the library cannot be used
};

// Opens the first of `names` (sonames or paths, up to a NULL) that can be opened and looks up every
// symbol. *ret is a handle for library_close. ERR_NOT_FOUND: none can be opened; the sentence has
// the names and the loader's reason for the last. ERR_VERSION: a required symbol is missing; the
// sentence has library and symbol. After an error every pointer of the table is NULL.
MUST_CHECK int library_open(void **ret, const char *const *names,
                            const struct library_symbol *symbols, size_t count, struct err *err);
void library_close(void *library); // NULL is fine

#endif

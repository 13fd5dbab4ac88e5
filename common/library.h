// Shared libraries that are opened at run time, such as those of a GPU's driver: dlopen fills
// function pointers that a table names. The same build therefore runs with and without them.
#ifndef COMMON_LIBRARY_H
#define COMMON_LIBRARY_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
    const char *name; // of the function, such as "cuInit"
    void *where;      // address of the function pointer; filled with NULL when it is missing
    bool required;    // the library cannot be used without it
};

// Opens the first of `names` (sonames or paths, ended by NULL) that can be opened and looks up
// every symbol. *ret is a handle for library_close. After an error every pointer of the table is
// NULL. ERR_NOT_FOUND: none can be opened; the sentence has the names and the loader's reason for
// the last one. ERR_VERSION: a required symbol is missing; the sentence has library and symbol.
MUST_CHECK int library_open(void **ret, const char *const *names,
                            const struct library_symbol *symbols, size_t count, struct err *err);
// Closes a library. NULL is allowed.
void library_close(void *library);

#endif

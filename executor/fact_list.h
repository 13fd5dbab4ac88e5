// Growing lists of named numbers, the `fact`s of the wire: features of compiled code, properties of
// a device. Compilations and probes fill them. This module must not know what the names mean.
#ifndef EXECUTOR_FACT_LIST_H
#define EXECUTOR_FACT_LIST_H

#include "proto/messages.h"
#include <stddef.h>

// Appends a fact. The caller owns the list, which is malloc'd and may move; the name is copied.
void fact_list_add(struct fact **list, size_t *count, const char *name, double value);

// Returns the value of the first fact with that name, NaN when there is none.
double fact_list_find(const struct fact *list, size_t count, const char *name);

#endif

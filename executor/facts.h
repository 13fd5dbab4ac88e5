// Lists of named numbers: features of compiled code, facts about a device.
#ifndef EXECUTOR_FACTS_H
#define EXECUTOR_FACTS_H

#include "proto/messages.h"
#include <stddef.h>

// Adds a fact to a growing list, which is the caller's, malloc'd.
void facts_add(struct fact **list, size_t *count, const char *name, double value);

// The value of the first fact of that name; NaN when there is none.
double facts_find(const struct fact *list, size_t count, const char *name);

#endif

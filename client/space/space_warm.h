// What spaces tell a search that begins with them (client/propose/warm.h). Called by commands and
// replays.
#ifndef CLIENT_SPACE_SPACE_WARM_H
#define CLIENT_SPACE_SPACE_WARM_H

#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stdbool.h>

#define SPACE_WARM_MAX 16                      // spaces of one list
#define SPACE_WARM_TEXT_MAX ((size_t)64 << 20) // bytes

// Whether two device classes are of the same vendor, by the names that vendors give their devices.
bool space_same_vendor(const char *device_class, const char *other);

// What the worker knows (client/forecast/recall.h). All pointers are borrowed.
struct space_warm_known {
    const struct recall_reply *reply;
    const char *const *param; // names of the parameters, in the order of the reply's values
    size_t params;
};

// Reads the spaces of the list of paths, separated by commas, and makes their text, with what the
// worker knows; known may be NULL, and paths NULL where it is not. What is of the vendor of
// device_class stands first, spaces before the worker's, so that it counts where several know the
// same configuration. Speedups are over the best of their space or group. Errors are space_read's;
// ERR_USAGE for an empty path or more than SPACE_WARM_MAX; ERR_INVALID for a space without
// parameters or without a correct candidate. *ret is the caller's.
MUST_CHECK int space_warm_text(struct bytes *ret, const char *paths, const char *device_class,
                               const struct space_warm_known *known, struct err *err);

#endif

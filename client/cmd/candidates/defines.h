// The values of `kcast measure --define`: which point of a template they name, or which #define
// lines stand before another source. Called by client/cmd/candidates/candidates.c.
#ifndef CLIENT_CMD_CANDIDATES_DEFINES_H
#define CLIENT_CMD_CANDIDATES_DEFINES_H

#include "common/err.h"
#include "common/mem.h"
#include <stddef.h>

// Puts the defines, lines of NAME=VALUE or NAME, before the source. Of a template they must name a
// point. *ret_lines is the number of lines that were added, and *ret_params the names of the
// template's parameters divided by blanks, malloc'd, or NULL for what is none. `path` names the
// source in sentences. defines may be NULL: the source stays as it is. ERR_USAGE, and source is
// unchanged.
MUST_CHECK int defines_apply(struct bytes *source, const char *path, const char *defines,
                             size_t *ret_lines, char **ret_params, struct err *err);

#endif

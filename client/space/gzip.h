// Gzip files in memory. Only this module knows zlib. Spaces are gzip files, and so are many of
// those that are imported.
#ifndef CLIENT_SPACE_GZIP_H
#define CLIENT_SPACE_GZIP_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

#define GZIP_MAGIC_LEN 2

// Whether data begins like a gzip file, which its first two bytes say.
bool gzip_is(const void *data, size_t len);
// Appends what a gzip file of one member or more unpacks to. ERR_LIMIT as soon as that is more than
// the maximum of `out`, ERR_CORRUPT when the file is damaged, cut or followed by something; `out`
// has a part of the content then. Makes no sentence, because the caller knows what the file is.
MUST_CHECK int gzip_unpack(struct strbuf *out, const void *data, size_t len);
// Appends data as a gzip file of one member, packed as well as zlib can.
void gzip_pack(struct strbuf *out, const void *data, size_t len);

#endif

// Sources of a space's candidates: kept ones, and points of its template.
#ifndef CLIENT_SPACE_SPACE_SOURCE_H
#define CLIENT_SPACE_SPACE_SOURCE_H

#include "client/space/space.h"
#include "common/err.h"
#include "common/strbuf.h"

struct template;

struct space_sources {
    const struct space *space; // outlives this
    struct template *template; // NULL: the space has none
};

// *ret is uninitialised before and the caller's after success. ERR_INVALID when the space's
// template is none; the sentence begins with path.
MUST_CHECK int space_sources_init(struct space_sources *ret, const struct space *space,
                                  const char *path, struct err *err);
void space_sources_release(struct space_sources *sources);

// Appends the source of candidate i (from 0) and says so in *ret_known; it is not known where
// neither text nor point was kept. ERR_CORRUPT when the point is none of the template's, or the
// source's digest not the recorded one.
MUST_CHECK int space_sources_get(const struct space_sources *sources, size_t i, struct strbuf *out,
                                 bool *ret_known, struct err *err);

#endif

// The sources of a space's candidates: texts that the space keeps, or points of its template.
// client/cmd and replay/ call this.
#ifndef CLIENT_SPACE_SPACE_SOURCE_H
#define CLIENT_SPACE_SPACE_SOURCE_H

#include "client/space/space.h"
#include "common/err.h"
#include "common/strbuf.h"

struct template;

struct space_sources {
    const struct space *space; // borrowed; must outlive this
    struct template *template; // owned; NULL when the space has none
};

// *ret is uninitialised before the call and belongs to the caller after success. ERR_INVALID when
// the space's template cannot be parsed; the sentence begins with path.
MUST_CHECK int space_sources_init(struct space_sources *ret, const struct space *space,
                                  const char *path, struct err *err);
void space_sources_release(struct space_sources *sources);

// Appends the source of candidate i (from 0) and sets *ret_known. The source is not known when the
// space has neither its text nor its point. ERR_CORRUPT when the point is not one of the
// template's, or when the digest of the source is not the recorded one; `out` is then unchanged.
MUST_CHECK int space_sources_get(const struct space_sources *sources, size_t i, struct strbuf *out,
                                 bool *ret_known, struct err *err);

#endif

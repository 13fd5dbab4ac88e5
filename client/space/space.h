// Spaces: candidates of one problem that have all been measured on one class of devices, in a file.
// What a search can be replayed on (replay/), and what other tools' data is turned into
// (client/space/space_import.h).
//
// The file is a gzip stream of the eight bytes "KCSPACE1" and frames: 4 bytes of length,
// little-endian, and so many bytes, one message (proto/space.def); first space_head, then as many
// space_candidate as it says.
#ifndef CLIENT_SPACE_SPACE_H
#define CLIENT_SPACE_SPACE_H

#include "client/run/run.h"
#include "common/err.h"
#include "common/strbuf.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define SPACE_FORMAT 1
#define SPACE_FILE_MAX ((size_t)64 << 20) // bytes of a file
#define SPACE_BYTES_MAX ((size_t)1 << 30) // the same, unpacked
#define SPACE_CANDIDATES_MAX ((size_t)1 << 20)
#define SPACE_SUFFIX ".space"

struct space {
    struct space_head head;
    struct space_candidate *candidate; // head.candidates of them
};

// *ret is uninitialised before and the caller's after success. ERR_NOT_FOUND, ERR_LIMIT;
// ERR_CORRUPT for what is no space or not all of one; ERR_VERSION for a later format.
MUST_CHECK int space_read(struct space *ret, const char *path, struct err *err);
// From what the gzip stream held. path names it in errors.
MUST_CHECK int space_parse(struct space *ret, const void *data, size_t len, const char *path,
                           struct err *err);
// That there are candidates, no two of one name, each with an outcome, and that those with
// parameters have the same ones: ERR_CORRUPT otherwise, with a sentence that begins with path.
MUST_CHECK int space_check(const struct space *space, const char *path, struct err *err);
// The other way round, appended to out, whose maximum is the space's. ERR_CORRUPT from
// space_check; ERR_LIMIT for what is longer than the messages allow.
MUST_CHECK int space_pack(const struct space *space, const char *path, struct strbuf *out,
                          struct err *err);
// Whether the file begins like a space (or anything else that gzip packs). What cannot be read does
// not.
bool space_is(const char *path);
// DIR/NAME.run -> DIR/NAME.space; malloc'd.
char *space_path_of(const char *path);
// Replaces path when all is written; path is as before otherwise.
MUST_CHECK int space_write(const struct space *space, const char *path, struct err *err);
void space_release(struct space *space);

// What a run has measured: its candidates with a result or without an object, but no duplicates.
// Messages are cut to what replaying needs, numbers to single precision; sources are kept where
// they are no template's points. Of two candidates of one name the later gets a number behind it.
// ERR_INVALID when nothing was measured.
MUST_CHECK int space_of_run(struct space *ret, struct run *run, struct err *err);

// log2 speedup of a candidate: of its second measurement, where there is one. NaN when it has none.
double space_log2(const struct space_candidate *candidate);
// The greatest; NaN when there is none.
double space_best_log2(const struct space *space);

#endif

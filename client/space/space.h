// Spaces: candidates of one problem that have all been measured on one class of devices, in a file.
// Searches can be replayed on a space (replay/), and other tools' data can be turned into one
// (client/space/space_import.h).
//
// The file is a gzip stream. It holds the eight bytes "KCSPACE1" and then frames. A frame is 4
// bytes of length, little-endian, and a message of that length (proto/space.def). The first frame
// is a space_head; then come as many space_candidate as it says.
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
#define SPACE_BYTES_MAX ((size_t)1 << 30) // bytes of its unpacked content
#define SPACE_CANDIDATES_MAX ((size_t)1 << 20)
#define SPACE_SUFFIX ".space"

struct space {
    struct space_head head;
    struct space_candidate *candidate; // owned; head.candidates of them
};

// Reads a file. *ret is uninitialised before the call and belongs to the caller after success.
// ERR_NOT_FOUND and ERR_LIMIT as they say; ERR_CORRUPT when the file is not a space or is
// incomplete; ERR_VERSION for a later format.
MUST_CHECK int space_read(struct space *ret, const char *path, struct err *err);
// Reads what the gzip stream of a space held. `path` names it in errors.
MUST_CHECK int space_parse(struct space *ret, const void *data, size_t len, const char *path,
                           struct err *err);
// Checks that there are candidates, that no two have the same name, that each has an outcome, and
// that those with parameters all have the same ones. ERR_CORRUPT otherwise, with a sentence that
// begins with path.
MUST_CHECK int space_check(const struct space *space, const char *path, struct err *err);
// Appends what the gzip stream of the space will hold to `out`, whose maximum limits it.
// ERR_CORRUPT from space_check(); ERR_LIMIT when a message or the whole is too long.
MUST_CHECK int space_pack(const struct space *space, const char *path, struct strbuf *out,
                          struct err *err);
// Whether the file begins like a gzip file, as all spaces do. False for a file that cannot be read.
bool space_is(const char *path);
// Replaces a file name's ending by ".space", as in DIR/NAME.run and DIR/NAME.space. The caller
// frees the result.
char *space_path_of(const char *path);
// Writes a file. It replaces `path` when all is written; after an error `path` is as before.
MUST_CHECK int space_write(const struct space *space, const char *path, struct err *err);
// Frees the head and all candidates, also of a space that is only half made.
void space_release(struct space *space);

// Appends a sentence without a full stop that begins with name and warns of costs that are not
// those of measuring, as head.launch_costs says. Appends nothing when there are none.
void space_add_cost_warning(const struct space *space, const char *name, struct strbuf *out);

// Makes a space of what a run has measured: its candidates that have a result or did not compile,
// without those of duplicate source. Messages are reduced to what a replay needs, numbers to single
// precision. Sources are kept unless they are points of a template. When two candidates have the
// same name, the later one gets a number behind it. ERR_INVALID when nothing was measured.
MUST_CHECK int space_of_run(struct space *ret, struct run *run, struct err *err);

// The log2 speedup of a candidate: of its second measurement if there is one. NaN when it has none.
double space_log2(const struct space_candidate *candidate);
// The greatest log2 speedup; NaN when there is none.
double space_best_log2(const struct space *space);

#endif

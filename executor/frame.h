// Frames between kcastd and a serving kcast-exec, which handles many plans in one process. A frame
// is four bytes of length, little-endian, and then as many bytes. An empty frame from kcast-exec
// says that it is ready. The modes that serve call this; it must not know what a frame contains.
#ifndef EXECUTOR_FRAME_H
#define EXECUTOR_FRAME_H

#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

// Reads one frame into *ret, which the caller clears. *ret_ended is set, and *ret is not, when the
// stream ends where a frame could have begun. ERR_LIMIT when the frame is longer than max,
// ERR_PROTOCOL when it is cut off.
MUST_CHECK int frame_read(int fd, struct bytes *ret, size_t max, bool *ret_ended, struct err *err);
MUST_CHECK int frame_write(int fd, const struct bytes *bytes, struct err *err);

// Writes an empty frame to `out`, then answers each frame from `in` by one frame to `out`. Returns
// 0 when `in` ends, or after an answer that sets *ret_last. Any error ends it, among them a plan
// that is longer than max. `answer` hands over the bytes of *ret: they are sent and freed here.
MUST_CHECK int frame_serve(int in, int out, size_t max,
                           int (*answer)(void *owner, const struct bytes *plan, struct bytes *ret,
                                         bool *ret_last, struct err *err),
                           void *owner, struct err *err);

#endif

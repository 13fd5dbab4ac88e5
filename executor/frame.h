// Messages between kcastd and a kcast-exec that serves many plans: four bytes of length, little-endian,
// then so many bytes. An empty frame says that the process is ready.
#ifndef EXECUTOR_FRAME_H
#define EXECUTOR_FRAME_H

#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

// Reads one frame. *ret_ended: the stream ended where a frame could have begun; then there is none.
// *ret is the caller's to clear. ERR_LIMIT when it is longer than max, ERR_PROTOCOL when it is cut off.
MUST_CHECK int frame_read(int fd, struct bytes *ret, size_t max, bool *ret_ended, struct err *err);
MUST_CHECK int frame_write(int fd, const struct bytes *bytes, struct err *err);

// Says that it is ready (an empty frame to out), then has each frame from in answered by one to out,
// until in ends or an answer is the last: then 0. Any error ends it. answer's *ret is sent and cleared;
// a plan longer than max is an error.
MUST_CHECK int frame_serve(int in, int out, size_t max,
                           int (*answer)(void *owner, const struct bytes *plan, struct bytes *ret,
                                         bool *ret_last, struct err *err),
                           void *owner, struct err *err);

#endif

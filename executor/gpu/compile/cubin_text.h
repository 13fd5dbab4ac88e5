// A cubin with a launch manifest as a text: the lines of the manifest, which begin with "//@",
// other comments and blank lines, and after them the cubin in base64, as the program base64 writes
// it. The compile server in the jail reads it.
#ifndef EXECUTOR_GPU_COMPILE_CUBIN_TEXT_H
#define EXECUTOR_GPU_COMPILE_CUBIN_TEXT_H

#include "common/strbuf.h"
#include "executor/gpu/compile/nvrtc.h"

// Unpacks input->source. Names of kernels are symbols. What is no such text has `compiled` false
// and a sentence in the log. The cubin itself is not looked into.
void cubin_text_unpack(const struct nvrtc_input *input, struct nvrtc_output *ret);
// Decodes base64 with line ends and blanks in it, without what is behind its "=" signs. The caller
// clears *ret. ERR_INVALID when another character stands in it, or a piece is cut off.
MUST_CHECK int cubin_text_decode(const char *text, size_t len, struct bytes *ret, struct err *err);
// Appends the bytes in base64.
void cubin_text_encode(const struct bytes *cubin, struct strbuf *out);

#endif

// Any text as a cubin with a launch manifest. What is unpacked is no longer than its base64 allows,
// and is the same again.
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/cubin_text.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *source = xstrndup((const char *)data, len);
    const char *const name[] = {"k"};
    const struct nvrtc_input input = {.form = FORM_CUBIN,
                                      .source = source,
                                      .file = "candidate.cubin",
                                      .name = name,
                                      .name_count = 1};
    struct nvrtc_output output, again;
    struct err err = ERR_INIT;

    if (candidate_skip_comments(source, strlen(source)) > strlen(source)) {
        abort();
    }
    cubin_text_unpack(&input, &output);
    cubin_text_unpack(&input, &again);
    if (output.compiled != again.compiled || !output.log || output.cubin.len != again.cubin.len ||
        output.cubin.len > strlen(source) / 4 * 3 + 3 || (output.compiled && !output.symbol[0]) ||
        (output.cubin.len > 0 &&
         memcmp(output.cubin.data, again.cubin.data, output.cubin.len) != 0)) {
        abort();
    }
    (void)!cubin_check(&output.cubin, &err);
    nvrtc_output_release(&output);
    nvrtc_output_release(&again);
    free(source);
    return 0;
}

#include "executor/gpu/device/kernels.h"
#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/compile/toolkit.h"

// The assembler puts the text of the three .cu files here, one behind the other. It finds the file
// because make runs the compiler in the root of the source tree.
__asm__(".section .rodata\n"
        "kernels_text:\n"
        ".incbin \"executor/gpu/device/kernels_base.cu\"\n"
        ".incbin \"executor/gpu/device/kernels_inputs.cu\"\n"
        ".incbin \"executor/gpu/device/kernels.cu\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char kernels_text[];

int kernels_build(const char *target, struct bytes *ret_cubin, struct err *err)
{
    struct nvrtc_input input = {.source = kernels_text, .file = "kernels.cu", .target = target};
    struct nvrtc_output output = {.compiled = false};
    struct toolkit toolkit;
    int rc = toolkit_find(&toolkit, err);

    if (rc != 0) {
        return rc;
    }
    struct nvrtc *nvrtc = NULL;
    rc = nvrtc_open(&nvrtc, &toolkit, err);
    if (rc != 0) {
        goto out;
    }
    rc = nvrtc_compile(nvrtc, &input, &output, err);
    if (rc != 0) {
        goto out;
    }
    if (!output.compiled) {
        rc = err_set(err, ERR_VERSION, "NVRTC refuses the executor's kernels: %.600s", output.log);
        goto out;
    }
    *ret_cubin = output.cubin;
    output.cubin = (struct bytes){.len = 0};
out:
    nvrtc_output_release(&output);
    nvrtc_close(nvrtc);
    toolkit_release(&toolkit);
    return rc;
}

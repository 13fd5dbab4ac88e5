#include "cuda/kernels.h"
#include "cuda/nvrtc.h"
#include "cuda/toolkit.h"

// The text of cuda/kernels.cu, put here by the assembler; the compiler runs where the Makefile is.
__asm__(".section .rodata\n"
        "kernels_text:\n"
        ".incbin \"cuda/kernels.cu\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char kernels_text[];

int kernels_build(const char *target, struct bytes *ret_cubin, struct err *err)
{
    struct nvrtc_input input = {.source = kernels_text, .file = "kernels.cu", .target = target};
    struct nvrtc_output output = {.compiled = false};
    struct nvrtc *nvrtc = NULL;
    struct toolkit toolkit;
    int status = toolkit_find(&toolkit, err);

    if (status != 0) {
        return status;
    }
    status = nvrtc_open(&nvrtc, &toolkit, err);
    if (status == 0) {
        status = nvrtc_compile(nvrtc, &input, &output, err);
    }
    if (status == 0 && !output.compiled) {
        status = err_set(err, ERR_VERSION, "NVRTC refuses the executor's kernels: %.600s", output.log);
    }
    if (status == 0) {
        *ret_cubin = output.cubin;
        output.cubin = (struct bytes){.len = 0};
    }
    nvrtc_output_release(&output);
    nvrtc_close(nvrtc);
    toolkit_release(&toolkit);
    return status;
}

#include "executor/gpu/record/machine_code.h"
#include "common/strbuf.h"
#include "executor/gpu/compile/cubin_text.h"
#include "executor/gpu/compile/sass.h"
#include "executor/gpu/record/features.h"
#include "problem/candidate_form.h"
#include <string.h>

#define IMAGE_MOST ((size_t)1 << 20) // bytes; those of libraries are larger, and take seconds

void record_machine_code(const struct cuda_recording *recording, const struct recorded_case *of,
                         const struct compile_plan *plan, struct cuda_jail *jail,
                         struct fact **list, size_t *count)
{
    const struct recorded_node *largest = record_largest_kernel(of);
    const struct bytes *image = largest ? &recording->images[largest->image].data : NULL;

    if (!image || image->len > IMAGE_MOST || !jail->toolkit.nvdisasm) {
        return;
    }
    struct strbuf text = STRBUF_INIT;
    cubin_text_encode(image, &text);
    const struct nvrtc_input input = {
        .form = FORM_CUBIN, .file = "image", .target = plan->target, .source = text.data};
    const struct cuda_jail_limits limits = {.cpu_seconds = plan->max_seconds,
                                            .wall_seconds = plan->wall_seconds,
                                            .memory = plan->max_memory,
                                            .disassemble = true};
    struct nvrtc_output output = {.compiled = false};
    struct cuda_jail_report report = {.end = CUDA_JAIL_LOST};
    struct err ignored = ERR_INIT;
    if (cuda_jail_begin(jail, 0, &input, &limits, &ignored) == 0 &&
        cuda_jail_end(jail, 0, &report, &output, &ignored) == 0 && report.end == CUDA_JAIL_DONE &&
        output.sass) {
        sass_features(output.sass, strlen(output.sass), list, count);
    }
    nvrtc_output_release(&output);
    strbuf_release(&text);
}

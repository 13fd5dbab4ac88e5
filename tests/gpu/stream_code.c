#include "tests/gpu/stream_code.h"
#include "executor/gpu/compile/cubin.h"

#include <string.h>

#define WORDS_MAX 200 // bytes of the compiler's first words

const struct cuda_kernel *stream_code_kernel(const struct stream_code *code, const char *name)
{
    for (size_t i = 0; i < code->kernel_count; i++) {
        if (strcmp(code->kernel[i].name, name) == 0) {
            return &code->kernel[i];
        }
    }
    return NULL;
}

static int read_manifest(struct stream_code *code, const struct problem *problem,
                         const char *source, const char *name, struct err *err)
{
    int rc = manifest_parse(&code->manifest, source, strlen(source), name, problem,
                            MANIFEST_CANDIDATE, err);

    if (rc == 0 && (code->manifest->specializes || code->manifest->tensormap_count > 0)) {
        rc = err_set(err, ERR_UNSUPPORTED,
                     "%s specialises or has tensor maps, which is not done here; choose another "
                     "problem",
                     name);
    }
    return rc;
}

// Names of the kernels that are launched, each once.
static size_t list_names(const struct manifest *manifest, const char *ret[static NVRTC_NAMES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < manifest->launch_count; i++) {
        size_t k = 0;
        while (k < count && strcmp(ret[k], manifest->launch[i].kernel) != 0) {
            k++;
        }
        if (k == count && count < NVRTC_NAMES_MAX) {
            ret[count++] = manifest->launch[i].kernel;
        }
    }
    return count;
}

static int take_kernels(struct stream_code *code, const struct nvrtc_input *input,
                        struct nvrtc_output *output, struct err *err)
{
    int rc = 0;

    code->cubin = bytes_take(&output->cubin);
    for (size_t i = 0; i < input->name_count && rc == 0; i++) {
        struct cuda_kernel *kernel = &code->kernel[code->kernel_count++];

        message_init(&cuda_kernel_message, kernel);
        kernel->name = xstrdup(input->name[i]);
        kernel->symbol = xstrdup(output->symbol[i]);
        rc = cubin_parameters(&code->cubin, kernel->symbol, kernel, err);
    }
    return rc;
}

int stream_code_compile(struct stream_code *ret, struct nvrtc *nvrtc, const char *target,
                        const struct problem *problem, const char *source, const char *name,
                        struct err *err)
{
    const char *names[NVRTC_NAMES_MAX];
    struct nvrtc_input input = {.file = "source.cu", .target = target, .name = names};
    struct nvrtc_output output = {.compiled = false};
    struct strbuf text = STRBUF_INIT;

    *ret = (struct stream_code){.manifest = NULL};
    int rc = read_manifest(ret, problem, source, name, err);
    if (rc != 0) {
        return rc;
    }
    strbuf_addf(&text, "#line 1\n%s", source);
    input.source = text.data;
    input.name_count = list_names(ret->manifest, names);
    rc = nvrtc_compile(nvrtc, &input, &output, err);
    if (rc == 0 && !output.compiled) {
        rc = err_set(err, ERR_INVALID, "%s does not compile: %.*s", name, WORDS_MAX,
                     output.log ? output.log : output.result);
    }
    if (rc == 0) {
        rc = take_kernels(ret, &input, &output, err);
    }
    nvrtc_output_release(&output);
    strbuf_release(&text);
    return rc;
}

void stream_code_release(struct stream_code *code)
{
    for (size_t i = 0; i < code->kernel_count; i++) {
        message_clear(&cuda_kernel_message, &code->kernel[i]);
    }
    manifest_free(code->manifest);
    bytes_clear(&code->cubin);
    *code = (struct stream_code){.manifest = NULL};
}

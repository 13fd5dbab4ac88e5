// Design note. Compiling takes a second of a processor, and every process that opens a GPU needs
// the result: so it is kept in a file, for each target, in the folder that KCAST_KERNELS names. The
// file begins with two digests: of the text and of what compiled it, and of the cubin behind them.
// Where either does not fit, or there is no file, the text is compiled and the file written anew.
#include "executor/gpu/device/kernels.h"
#include "common/digest.h"
#include "common/file.h"
#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/compile/toolkit.h"
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX ((size_t)16 << 20)
#define HEAD_BYTES (2 * sizeof(struct digest))

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

static int compile(struct nvrtc *nvrtc, const char *target, struct bytes *ret_cubin,
                   struct err *err)
{
    struct nvrtc_input input = {.source = kernels_text, .file = "kernels.cu", .target = target};
    struct nvrtc_output output = {.compiled = false};
    int rc = nvrtc_compile(nvrtc, &input, &output, err);

    if (rc == 0 && !output.compiled) {
        rc = err_set(err, ERR_VERSION, "NVRTC refuses the executor's kernels: %.600s", output.log);
    } else if (rc == 0) {
        *ret_cubin = output.cubin;
        output.cubin = (struct bytes){.len = 0};
    }
    nvrtc_output_release(&output);
    return rc;
}

// ---- the kept cubin ----

// Returns the path of the file, NULL when there is none.
static char *path_of_kept(const char *target)
{
    const char *folder = getenv("KCAST_KERNELS");

    return folder && folder[0] != '\0' ? xasprintf("%s/%s.cubin", folder, target) : NULL;
}

static struct digest key_of(const char *target, const char *compiler)
{
    struct digest_state *state = digest_begin();

    digest_add_text(state, kernels_text);
    digest_add_text(state, target);
    digest_add_text(state, compiler);
    return digest_end(state);
}

static bool read_kept(const char *path, const struct digest *key, struct bytes *ret_cubin)
{
    struct err ignored = ERR_INIT;
    struct bytes file;

    if (file_read(&file, path, KEPT_MAX, &ignored) != 0) {
        return false;
    }
    bool fits = false;
    if (file.len > HEAD_BYTES) {
        const unsigned char *cubin = (const unsigned char *)file.data + HEAD_BYTES;
        const struct digest head[2] = {*key, digest_of(cubin, file.len - HEAD_BYTES)};

        fits = memcmp(file.data, head, HEAD_BYTES) == 0;
        if (fits) {
            *ret_cubin = bytes_copy(cubin, file.len - HEAD_BYTES);
        }
    }
    bytes_clear(&file);
    return fits;
}

// A file that cannot be written costs the next process a second, and nothing else.
static void write_kept(const char *path, const struct digest *key, const struct bytes *cubin)
{
    const struct digest head[2] = {*key, digest_of(cubin->data, cubin->len)};
    struct bytes file = {.data = xmalloc(HEAD_BYTES + cubin->len), .len = HEAD_BYTES + cubin->len};
    struct err ignored = ERR_INIT;

    memcpy(file.data, head, HEAD_BYTES);
    memcpy((unsigned char *)file.data + HEAD_BYTES, cubin->data, cubin->len);
    (void)!file_replace(path, file.data, file.len, false, &ignored);
    bytes_clear(&file);
}

int kernels_build(const char *target, struct bytes *ret_cubin, struct err *err)
{
    char *compiler = NULL, *path = path_of_kept(target);
    struct toolkit toolkit;
    int rc = toolkit_find(&toolkit, err);

    if (rc != 0) {
        free(path);
        return rc;
    }
    struct nvrtc *nvrtc = NULL;
    rc = nvrtc_open(&nvrtc, &toolkit, err);
    if (rc != 0) {
        goto out;
    }
    rc = nvrtc_version(nvrtc, &compiler, err);
    if (rc != 0) {
        goto out;
    }
    struct digest key = key_of(target, compiler);
    if (path && read_kept(path, &key, ret_cubin)) {
        goto out;
    }
    rc = compile(nvrtc, target, ret_cubin, err);
    if (rc == 0 && path) {
        write_kept(path, &key, ret_cubin);
    }
out:
    free(path);
    free(compiler);
    nvrtc_close(nvrtc);
    toolkit_release(&toolkit);
    return rc;
}

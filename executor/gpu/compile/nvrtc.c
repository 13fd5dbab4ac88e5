// Design note. People and models include standard headers by habit. The host's headers are not
// readable in a jail and not meant for device code, so the compiler gets a few small ones from
// here, and "#include <stdint.h>" compiles as it does with nvcc.
#include "executor/gpu/compile/nvrtc.h"
#include "common/library.h"
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *nvrtc_program;

// The results of NVRTC that a source can cause.
enum {
    NVRTC_OUT_OF_MEMORY = 1,
    NVRTC_COMPILE_ERROR = 6,
    NVRTC_NAME_EXPRESSION_NOT_VALID = 10,
    NVRTC_INTERNAL_ERROR = 11,
};

struct nvrtc {
    void *library;
    char *include, *include_cccl; // options
    const char *(*error_string)(int result);
    int (*version)(int *major, int *minor);
    int (*create)(nvrtc_program *ret, const char *source, const char *name, int headers,
                  const char *const *header, const char *const *header_name);
    int (*destroy)(nvrtc_program *program);
    int (*compile)(nvrtc_program program, int count, const char *const *option);
    int (*add_name)(nvrtc_program program, const char *name);
    int (*lowered_name)(nvrtc_program program, const char *name, const char **ret);
    int (*log_size)(nvrtc_program program, size_t *ret);
    int (*log)(nvrtc_program program, char *ret);
    int (*cubin_size)(nvrtc_program program, size_t *ret);
    int (*cubin)(nvrtc_program program, char *ret);
    int (*ptx_size)(nvrtc_program program, size_t *ret);
    int (*ptx)(nvrtc_program program, char *ret);
};

// ---- headers ----

#define DEFINED(name, value) "#ifndef " name "\n#define " name " " value "\n#endif\n"

static const char stdint_text[] =
    "#pragma once\n"
    "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t;\n"
    "typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t;\n"
    "typedef long long int64_t; typedef unsigned long long uint64_t; typedef long long intptr_t;\n"
    "typedef unsigned long long uintptr_t; typedef unsigned long int size_t;\n"
    "typedef long int ptrdiff_t;\n" DEFINED("INT32_MAX", "2147483647")
        DEFINED("INT32_MIN", "(-INT32_MAX - 1)") DEFINED("UINT32_MAX", "4294967295u")
            DEFINED("INT64_MAX", "9223372036854775807LL") DEFINED("INT64_MIN", "(-INT64_MAX - 1)")
                DEFINED("UINT64_MAX", "18446744073709551615ull") DEFINED("UINT8_MAX", "255")
                    DEFINED("UINT16_MAX", "65535") DEFINED("SIZE_MAX", "UINT64_MAX");
static const char float_text[] = "#pragma once\n" DEFINED("FLT_MAX", "3.402823466e+38f")
    DEFINED("FLT_MIN", "1.175494351e-38f") DEFINED("FLT_EPSILON", "1.192092896e-07f")
        DEFINED("DBL_MAX", "1.7976931348623157e+308") DEFINED("DBL_MIN", "2.2250738585072014e-308")
            DEFINED("DBL_EPSILON", "2.2204460492503131e-16");
static const char limits_text[] = // the same spelling as in CCCL, where they are defined too
    "#pragma once\n" DEFINED("INT_MAX", "0x7fffffff") DEFINED("INT_MIN", "(-INT_MAX - 1)")
        DEFINED("UINT_MAX", "0xffffffff") DEFINED("LLONG_MAX", "0x7fffffffffffffffLL")
            DEFINED("LLONG_MIN", "(-LLONG_MAX - 1LL)");
static const char math_text[] =
    "#pragma once\n"
    "#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif\n"
    "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"
    "#ifndef HUGE_VALF\n#define HUGE_VALF INFINITY\n#endif\n"
    "#ifndef M_PI\n#define M_PI 3.14159265358979323846\n#endif\n";
static const char empty_text[] = "#pragma once\n";

static const struct {
    const char *name, *text;
} headers[] = {
    {"stdint.h", stdint_text},
    {"cstdint", stdint_text},
    {"stddef.h", stdint_text},
    {"cstddef", stdint_text},
    {"inttypes.h", stdint_text},
    {"sys/types.h", stdint_text},
    {"float.h", float_text},
    {"cfloat", float_text},
    {"limits.h", limits_text},
    {"climits", limits_text},
    {"math.h", math_text},
    {"cmath", math_text},
    {"assert.h", empty_text},
    {"cassert", empty_text},
    {"stdio.h", empty_text},
    {"cstdio", empty_text},
    {"cuda_runtime.h", empty_text},
    {"cuda.h", empty_text},
    {"device_launch_parameters.h", empty_text},
};

// ---- the library ----

// Loads NVRTC's library of built-ins. NVRTC opens it by its name when it compiles, and the loader
// finds it only where the toolkit is on its path, unless it is loaded already. It stays loaded.
static void load_builtins(const char *nvrtc)
{
    static const char begin[] = "libnvrtc-builtins.so.";
    const char *slash = strrchr(nvrtc, '/');
    char *folder = slash ? xstrndup(nvrtc, (size_t)(slash - nvrtc)) : NULL;
    DIR *dir = folder ? opendir(folder) : NULL;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
            char *path = xasprintf("%s/%s", folder, entry->d_name);
            const char *const names[] = {path, NULL};
            void *library;
            struct err err = ERR_INIT;

            // Without the library nvrtc_compile fails, and says so.
            (void)!library_open(&library, names, NULL, 0, &err);
            free(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
    free(folder);
}

int nvrtc_open(struct nvrtc **ret, const struct toolkit *toolkit, struct err *err)
{
    struct nvrtc *n = xcalloc(1, sizeof(*n));
    const char *const names[] = {toolkit->nvrtc, NULL};
    const struct library_symbol symbols[] = {
        {"nvrtcGetErrorString", &n->error_string, true},
        {"nvrtcVersion", &n->version, true},
        {"nvrtcCreateProgram", &n->create, true},
        {"nvrtcDestroyProgram", &n->destroy, true},
        {"nvrtcCompileProgram", &n->compile, true},
        {"nvrtcAddNameExpression", &n->add_name, true},
        {"nvrtcGetLoweredName", &n->lowered_name, true},
        {"nvrtcGetProgramLogSize", &n->log_size, true},
        {"nvrtcGetProgramLog", &n->log, true},
        {"nvrtcGetCUBINSize", &n->cubin_size, true},
        {"nvrtcGetCUBIN", &n->cubin, true},
        {"nvrtcGetPTXSize", &n->ptx_size, true},
        {"nvrtcGetPTX", &n->ptx, true},
    };

    load_builtins(toolkit->nvrtc);
    int rc = library_open(&n->library, names, symbols, ARRAY_LEN(symbols), err);

    if (rc != 0) {
        free(n);
        return rc;
    }
    n->include = xasprintf("-I%s", toolkit->include);
    n->include_cccl = xasprintf("-I%s/cccl", toolkit->include);
    *ret = n;
    return 0;
}

void nvrtc_close(struct nvrtc *nvrtc)
{
    if (nvrtc) { // the library stays loaded, because it keeps memory that only it can find
        free(nvrtc->include);
        free(nvrtc->include_cccl);
        free(nvrtc);
    }
}

static int check(const struct nvrtc *n, int result, const char *what, struct err *err)
{
    return result == 0 ? 0
                       : err_set(err, ERR_SYSTEM, "NVRTC, %s: %s", what, n->error_string(result));
}

// Gets one result of the compilation: log, PTX or cubin. The caller frees *ret.
static int take_text(struct nvrtc *n, nvrtc_program program, int (*size)(void *, size_t *),
                     int (*get)(void *, char *), const char *what, char **ret, size_t *ret_len,
                     struct err *err)
{
    size_t len = 0;
    int rc = check(n, size(program, &len), what, err);

    if (rc != 0) {
        return rc;
    }
    char *text = xmalloc(len + 1);
    rc = check(n, get(program, text), what, err);
    if (rc != 0) {
        free(text);
        return rc;
    }
    text[len] = '\0';
    *ret = text;
    *ret_len = len;
    return 0;
}

// Whether the result is about the source, and notes it then. Everything else is a failure of the
// machine.
static bool is_about_source(const struct nvrtc *n, int result, const char *name,
                            struct nvrtc_output *out)
{
    if (result != NVRTC_OUT_OF_MEMORY && result != NVRTC_COMPILE_ERROR &&
        result != NVRTC_NAME_EXPRESSION_NOT_VALID && result != NVRTC_INTERNAL_ERROR) {
        return false;
    }
    out->compiled = false;
    (void)snprintf(out->result, sizeof(out->result), "%.80s%s%.70s", name, name[0] ? ": " : "",
                   n->error_string(result));
    return true;
}

static int take_symbols(struct nvrtc *n, nvrtc_program program, const struct nvrtc_input *input,
                        struct nvrtc_output *out, struct err *err)
{
    for (size_t i = 0; i < input->name_count; i++) {
        const char *symbol = NULL;
        int result = n->lowered_name(program, input->name[i], &symbol);

        if (is_about_source(n, result, input->name[i], out)) {
            return 0;
        }
        int rc = check(n, result, input->name[i], err);
        if (rc != 0) {
            return rc;
        }
        out->symbol[i] = xstrdup(symbol);
    }
    return 0;
}

static int take_output(struct nvrtc *n, nvrtc_program program, const struct nvrtc_input *input,
                       struct nvrtc_output *out, struct err *err)
{
    char *cubin = NULL;
    size_t len = 0;
    int rc = take_text(n, program, n->ptx_size, n->ptx, "PTX", &out->ptx, &len, err);

    if (rc != 0) {
        return rc;
    }
    rc = take_text(n, program, n->cubin_size, n->cubin, "cubin", &cubin, &len, err);
    if (rc != 0) {
        return rc;
    }
    out->cubin = (struct bytes){.data = (unsigned char *)cubin, .len = len};
    return take_symbols(n, program, input, out, err);
}

// Compiles a program that was created. On failure *out may be half filled.
static int compile_program(struct nvrtc *n, nvrtc_program program, const struct nvrtc_input *input,
                           const char *const *option, size_t option_count, struct nvrtc_output *out,
                           struct err *err)
{
    for (size_t i = 0; i < input->name_count; i++) {
        int rc = check(n, n->add_name(program, input->name[i]), input->name[i], err);

        if (rc != 0) {
            return rc;
        }
    }
    int result = n->compile(program, (int)option_count, option);
    out->compiled = result == 0;
    size_t len;
    int rc = take_text(n, program, n->log_size, n->log, "log", &out->log, &len, err);
    if (rc != 0) {
        return rc;
    }
    if (result != 0 && !is_about_source(n, result, "", out)) {
        return check(n, result, "compiling", err);
    }
    return out->compiled ? take_output(n, program, input, out, err) : 0;
}

char *nvrtc_architecture(const char *target)
{
    return xasprintf("-arch=%s%s", target, strcmp(target, "sm_90") == 0 ? "a" : "");
}

int nvrtc_compile(struct nvrtc *n, const struct nvrtc_input *input, struct nvrtc_output *ret,
                  struct err *err)
{
    const char *text[ARRAY_LEN(headers)], *name[ARRAY_LEN(headers)];
    char *arch = nvrtc_architecture(input->target);
    const char *const option[] = {arch,
                                  "-std=c++17",
                                  "--ptxas-options=-v",
                                  "-default-device",
                                  "--pre-include=math.h", // nvcc includes it by itself
                                  n->include,
                                  n->include_cccl};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        text[i] = headers[i].text;
        name[i] = headers[i].name;
    }
    nvrtc_program program = NULL;
    int rc = check(
        n, n->create(&program, input->source, input->file, (int)ARRAY_LEN(headers), text, name),
        "starting", err);
    struct nvrtc_output out = {.compiled = false};
    if (rc == 0) {
        rc = compile_program(n, program, input, option, ARRAY_LEN(option), &out, err);
    }
    if (program) {
        (void)n->destroy(&program);
    }
    free(arch);
    if (rc != 0) {
        nvrtc_output_release(&out);
        return rc;
    }
    *ret = out;
    return 0;
}

void nvrtc_output_release(struct nvrtc_output *output)
{
    for (size_t i = 0; i < NVRTC_NAMES_MAX; i++) {
        free(output->symbol[i]);
    }
    free(output->log);
    free(output->ptx);
    free(output->sass);
    bytes_clear(&output->cubin);
    *output = (struct nvrtc_output){.compiled = false};
}

int nvrtc_version(struct nvrtc *nvrtc, char **ret, struct err *err)
{
    int major = 0, minor = 0, rc = check(nvrtc, nvrtc->version(&major, &minor), "version", err);

    if (rc == 0) {
        *ret = xasprintf("nvrtc %d.%d", major, minor);
    }
    return rc;
}

int nvrtc_toolchain(char **ret, struct err *err)
{
    struct nvrtc *nvrtc = NULL;
    struct toolkit toolkit;
    char *version = NULL;
    int rc = toolkit_find(&toolkit, err);

    if (rc != 0) {
        return rc;
    }
    rc = nvrtc_open(&nvrtc, &toolkit, err);
    if (rc != 0) {
        goto out;
    }
    rc = nvrtc_version(nvrtc, &version, err);
    if (rc != 0) {
        goto out;
    }
    *ret = xasprintf("%s, %s", version, toolkit.nvdisasm ? "nvdisasm" : "no nvdisasm");
out:
    free(version);
    nvrtc_close(nvrtc);
    toolkit_release(&toolkit);
    return rc;
}

#include "executor/gpu/compile/assembler.h"
#include "common/library.h"
#include "common/strbuf.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_PTX 2
#define LOG_MAX ((size_t)1 << 20)
#define WORDS_OF_PLACE "ptxas application ptx input, line " // then the number and ";"

// Names of the library's results, by their numbers.
static const char *const results[] = {
    "no error",         "an unrecognised option", "no option -arch",
    "an invalid input", "PTX that is refused",    "a failure of the compiler"};

typedef void *link_handle;

struct assembler {
    void *library;
    int (*create)(link_handle *ret, uint32_t count, const char **option);
    int (*destroy)(link_handle *handle);
    int (*add)(link_handle handle, int kind, const void *data, size_t len, const char *name);
    int (*complete)(link_handle handle);
    int (*cubin_size)(link_handle handle, size_t *ret);
    int (*cubin)(link_handle handle, void *ret);
    int (*error_size)(link_handle handle, size_t *ret);
    int (*error)(link_handle handle, char *ret);
    int (*info_size)(link_handle handle, size_t *ret);
    int (*info)(link_handle handle, char *ret);
};

int assembler_open(struct assembler **ret, const struct toolkit *toolkit, struct err *err)
{
    struct assembler *a = xcalloc(1, sizeof(*a));
    const char *const names[] = {toolkit->nvjitlink, NULL};
    const struct library_symbol symbols[] = {
        {"nvJitLinkCreate", &a->create, true},
        {"nvJitLinkDestroy", &a->destroy, true},
        {"nvJitLinkAddData", &a->add, true},
        {"nvJitLinkComplete", &a->complete, true},
        {"nvJitLinkGetLinkedCubinSize", &a->cubin_size, true},
        {"nvJitLinkGetLinkedCubin", &a->cubin, true},
        {"nvJitLinkGetErrorLogSize", &a->error_size, true},
        {"nvJitLinkGetErrorLog", &a->error, true},
        {"nvJitLinkGetInfoLogSize", &a->info_size, true},
        {"nvJitLinkGetInfoLog", &a->info, true},
    };
    int rc = library_open(&a->library, names, symbols, ARRAY_LEN(symbols), err);

    if (rc != 0) {
        free(a);
        return rc;
    }
    *ret = a;
    return 0;
}

void assembler_close(struct assembler *assembler)
{
    free(assembler); // the library stays loaded, as NVRTC does
}

// Appends a line with its place as NVRTC writes it: "candidate.ptx(12): error: …".
static void add_line(const char *line, size_t len, const char *file, struct strbuf *out)
{
    size_t words = strlen(WORDS_OF_PLACE), digits = 0;

    if (strncmp(line, WORDS_OF_PLACE, words) == 0) {
        digits = strspn(line + words, "0123456789");
    }
    if (digits > 0 && line[words + digits] == ';') {
        strbuf_addf(out, "%s(%.*s):", file, (int)digits, line + words);
        line += words + digits + 1;
        len -= words + digits + 1;
        size_t kind = strcspn(line, " \n:"); // it is filled up with blanks: " error   :"
        kind += kind == 0 ? 1 + strcspn(line + 1, " \n:") : 0;
        size_t blanks = strspn(line + kind, " ");
        if (line[kind + blanks] == ':') {
            strbuf_add(out, line, kind);
            line += kind + blanks;
            len -= kind + blanks;
        }
    }
    strbuf_add(out, line, len);
    strbuf_adds(out, "\n");
}

// Appends one of the two logs.
static void add_log(link_handle handle, int (*size)(link_handle, size_t *),
                    int (*get)(link_handle, char *), const char *file, struct strbuf *out)
{
    size_t len = 0;

    if (size(handle, &len) != 0 || len == 0 || len > LOG_MAX) {
        return;
    }
    char *text = xcalloc(len + 1, 1);
    if (get(handle, text) == 0) {
        for (const char *line = text; *line != '\0';) {
            size_t bytes = strcspn(line, "\n");

            add_line(line, bytes, file, out);
            line += bytes + (line[bytes] == '\n');
        }
    }
    free(text);
}

static void take_cubin(const struct assembler *a, link_handle handle,
                       const struct nvrtc_input *input, struct nvrtc_output *out)
{
    size_t len = 0;

    if (a->cubin_size(handle, &len) != 0 || len == 0) {
        return;
    }
    struct bytes cubin = {.data = xmalloc(len), .len = len};
    if (a->cubin(handle, cubin.data) != 0) {
        bytes_clear(&cubin);
        return;
    }
    out->cubin = cubin;
    out->ptx = xstrdup(input->source);
    for (size_t i = 0; i < input->name_count; i++) {
        out->symbol[i] = xstrdup(input->name[i]);
    }
    out->compiled = true;
}

int assembler_assemble(const struct assembler *a, const struct nvrtc_input *input,
                       struct nvrtc_output *ret, struct err *err)
{
    char *arch = nvrtc_architecture(input->target);
    const char *option[] = {arch, "-Xptxas=-v"}; // its table of registers and spills
    link_handle handle = NULL;
    int result = a->create(&handle, ARRAY_LEN(option), option);

    free(arch);
    if (result != 0) {
        return err_set(err, ERR_SYSTEM, "nvJitLink does not know %s", input->target);
    }
    struct nvrtc_output out = {.compiled = false};
    struct strbuf log;
    strbuf_init(&log, LOG_MAX);
    result = a->add(handle, INPUT_PTX, input->source, strlen(input->source), input->file);
    result = result == 0 ? a->complete(handle) : result;
    add_log(handle, a->error_size, a->error, input->file, &log);
    add_log(handle, a->info_size, a->info, input->file, &log);
    if (result == 0) {
        take_cubin(a, handle, input, &out);
    } else {
        (void)snprintf(out.result, sizeof(out.result), "%s",
                       result > 0 && (size_t)result < ARRAY_LEN(results) ? results[result]
                                                                         : "an error of nvJitLink");
    }
    out.log = xstrdup(strbuf_text(&log));
    strbuf_release(&log);
    (void)a->destroy(&handle);
    *ret = out;
    return 0;
}

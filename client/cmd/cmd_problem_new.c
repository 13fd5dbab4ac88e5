// kcast problem new: writes a folder with a working problem, which the user then changes into
// another. The operation is z = a x + y. It takes one line and has everything that a problem may
// have: inputs, a scalar, an error scale, hidden shapes and a template, in C or as sealed CUDA.
#include "client/command.h"
#include "client/session.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_MAX_LEN 40

struct new_options {
    char *language;
};

static const struct option_row rows[] = {
    {"language", 0, OPTION_CHOICE, offsetof(struct new_options, language), "LANGUAGE", "c", 0, 0,
     "c|cuda", "of its sources: C for the CPU, or CUDA C++ for GPUs"},
    {.name = NULL},
};

// In the texts @NAME@ is replaced by the problem's name and @ENTRY@ by the C function's name.
struct skeleton {
    const char *file; // NULL ends the list
    const char *text;
};

static const struct skeleton c_skeleton[] = {
    {"problem.json",
     "{\n"
     "  \"name\": \"@NAME@\",\n"
     "  \"title\": \"Scaled sum of two vectors, z = a x + y\",\n"
     "  \"license\": \"MIT\",\n"
     "  \"language\": \"c\",\n"
     "  \"entry\": \"@ENTRY@\",\n"
     "  \"params\": [\n"
     "    {\"name\": \"N\", \"type\": \"int\"},\n"
     "    {\"name\": \"a\", \"type\": \"f64\"}\n"
     "  ],\n"
     "  \"tensors\": [\n"
     "    {\"name\": \"x\", \"direction\": \"in\",  \"dtype\": \"f32\", \"shape\": [\"N\"],\n"
     "     \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},\n"
     "    {\"name\": \"y\", \"direction\": \"in\",  \"dtype\": \"f32\", \"shape\": [\"N\"],\n"
     "     \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},\n"
     "    {\"name\": \"z\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"], "
     "\"tolerance\": 4}\n"
     "  ],\n"
     "  \"cases\": {\n"
     "    \"check\": [{\"N\": 1000, \"a\": 1.7}, {\"N\": 1, \"a\": 1.7}, {\"N\": 33, \"a\": "
     "1.7}],\n"
     "    \"bench\": [{\"params\": {\"N\": 100000, \"a\": 1.7}, \"weight\": 1}],\n"
     "    \"hidden\": {\"N\": {\"min\": 1, \"max\": 5000}}\n"
     "  },\n"
     "  \"cache\": \"warm\",\n"
     "  \"work\": {\"flops\": \"2*N\", \"bytes\": \"12*N\"}\n"
     "}\n"},
    {"reference.c", "// What is right: in double precision, as plain as it can be. z_scale is the "
                    "same computation on absolute values; an element\n"
                    "// passes when its error is at most tolerance * 2^-24 * z_scale.\n"
                    "#include <math.h>\n"
                    "#include <stdint.h>\n"
                    "\n"
                    "void reference(const float *x, const float *y, double *z, double *z_scale, "
                    "int64_t N, double a)\n"
                    "{\n"
                    "    for (int64_t i = 0; i < N; i++) {\n"
                    "        z[i] = a * (double)x[i] + (double)y[i];\n"
                    "        z_scale[i] = fabs(a * (double)x[i]) + fabs((double)y[i]);\n"
                    "    }\n"
                    "}\n"},
    {"baseline.c", "// What speedup is counted from, and the first incumbent: write it as somebody "
                   "would who does not care for speed but for\n"
                   "// being right.\n"
                   "#include <stdint.h>\n"
                   "\n"
                   "void @ENTRY@(const float *x, const float *y, float *z, int64_t N, double a)\n"
                   "{\n"
                   "    for (int64_t i = 0; i < N; i++)\n"
                   "        z[i] = (float)a * x[i] + y[i];\n"
                   "}\n"},
    {"template.c", "//@ tune WIDTH in (1, 4, 8, 16)\n"
                   "//@ tune UNROLL in (1, 2, 4)\n"
                   "// A candidate with parameters: each point of the space puts `#define WIDTH …` "
                   "lines in front of this file.\n"
                   "#include <stdint.h>\n"
                   "\n"
                   "#define STEP (WIDTH * UNROLL)\n"
                   "\n"
                   "void @ENTRY@(const float *restrict x, const float *restrict y, float *restrict "
                   "z, int64_t N, double a)\n"
                   "{\n"
                   "    const float factor = (float)a;\n"
                   "    int64_t i = 0;\n"
                   "    for (; i + STEP <= N; i += STEP)\n"
                   "        for (int64_t j = 0; j < STEP; j++)\n"
                   "            z[i + j] = factor * x[i + j] + y[i + j];\n"
                   "    for (; i < N; i++)\n"
                   "        z[i] = factor * x[i] + y[i];\n"
                   "}\n"},
    {"README.md", "# @NAME@\n"
                  "\n"
                  "z = a x + y for vectors of N elements in single precision.\n"
                  "\n"
                  "This is the skeleton of `kcast problem new`. Replace the operation, then run "
                  "`kcast problem check` on this folder until\n"
                  "it is admitted.\n"},
    {NULL, NULL},
};

static const struct skeleton cuda_skeleton[] = {
    {"problem.json",
     "{\n"
     "  \"name\": \"@NAME@\",\n"
     "  \"title\": \"Scaled sum of two vectors, z = a x + y\",\n"
     "  \"license\": \"MIT\",\n"
     "  \"language\": \"cuda\",\n"
     "  \"params\": [\n"
     "    {\"name\": \"N\", \"type\": \"int\"},\n"
     "    {\"name\": \"a\", \"type\": \"f64\"}\n"
     "  ],\n"
     "  \"tensors\": [\n"
     "    {\"name\": \"x\", \"direction\": \"in\",  \"dtype\": \"f32\", \"shape\": [\"N\"],\n"
     "     \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},\n"
     "    {\"name\": \"y\", \"direction\": \"in\",  \"dtype\": \"f32\", \"shape\": [\"N\"],\n"
     "     \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},\n"
     "    {\"name\": \"z\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"], "
     "\"tolerance\": 4}\n"
     "  ],\n"
     "  \"cases\": {\n"
     "    \"check\": [{\"N\": 100000, \"a\": 1.7}, {\"N\": 1, \"a\": 1.7}, {\"N\": 1023, \"a\": "
     "1.7}],\n"
     "    \"bench\": [{\"params\": {\"N\": 16777216, \"a\": 1.7}, \"weight\": 1}],\n"
     "    \"hidden\": {\"N\": {\"min\": 1, \"max\": 50000}}\n"
     "  },\n"
     "  \"cache\": \"cold\",\n"
     "  \"work\": {\"flops\": \"2*N\", \"bytes\": \"12*N\"}\n"
     "}\n"},
    {"reference.cu",
     "//@ launch reference grid=(ceildiv(N, 256)) block=(256) args=(x, y, z, z_scale, N, a)\n"
     "// What is right: in double precision, as plain as it can be. z_scale is the same "
     "computation on absolute values; an\n"
     "// element passes when its error is at most tolerance * 2^-24 * z_scale.\n"
     "\n"
     "extern \"C\" __global__ void reference(const float *x, const float *y, double *z, double "
     "*z_scale,\n"
     "                                     long long N, double a)\n"
     "{\n"
     "    long long i = blockIdx.x * 256LL + threadIdx.x;\n"
     "\n"
     "    if (i < N) {\n"
     "        z[i] = a * (double)x[i] + (double)y[i];\n"
     "        z_scale[i] = fabs(a * (double)x[i]) + fabs((double)y[i]);\n"
     "    }\n"
     "}\n"},
    {"baseline.cu", "//@ launch axpy grid=(ceildiv(N, 256)) block=(256) args=(x, y, z, N, a)\n"
                    "// What speedup is counted from, and the first incumbent: write it as "
                    "somebody would who does not care for speed but for\n"
                    "// being right.\n"
                    "\n"
                    "extern \"C\" __global__ void axpy(const float *x, const float *y, float *z, "
                    "long long N, float a)\n"
                    "{\n"
                    "    long long i = blockIdx.x * 256LL + threadIdx.x;\n"
                    "\n"
                    "    if (i < N) {\n"
                    "        z[i] = a * x[i] + y[i];\n"
                    "    }\n"
                    "}\n"},
    {"template.cu",
     "//@ tune THREADS in (128, 256, 512)\n"
     "//@ tune PER_THREAD in (1, 2, 4, 8)\n"
     "//@ launch axpy grid=(ceildiv(N, THREADS * PER_THREAD)) block=(THREADS) args=(x, y, z, N, "
     "a)\n"
     "// A candidate with parameters: each point of the space puts `#define THREADS ...` lines in "
     "front of this file.\n"
     "\n"
     "extern \"C\" __global__ void axpy(const float *__restrict__ x, const float *__restrict__ y,\n"
     "                                float *__restrict__ z, int N, float a)\n"
     "{\n"
     "    int first = blockIdx.x * (THREADS * PER_THREAD) + threadIdx.x;\n"
     "\n"
     "#pragma unroll\n"
     "    for (int k = 0; k < PER_THREAD; k++) {\n"
     "        int i = first + k * THREADS;\n"
     "\n"
     "        if (i < N) {\n"
     "            z[i] = a * x[i] + y[i];\n"
     "        }\n"
     "    }\n"
     "}\n"},
    {"README.md", "# @NAME@\n"
                  "\n"
                  "z = a x + y for vectors of N elements in single precision.\n"
                  "\n"
                  "This is the skeleton of `kcast problem new --language cuda`. Replace the "
                  "operation, then run `kcast problem check` on this\n"
                  "folder until it is admitted. The reference may be PyTorch code in double "
                  "precision instead, reference.py, and the\n"
                  "baseline baseline.py.\n"},
    {NULL, NULL},
};

static bool good_name(const char *name)
{
    size_t len = strlen(name);
    return len >= 1 && len <= NAME_MAX_LEN &&
           name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

// Makes a C identifier of the problem's name: '-' becomes '_', and a name that begins with a digit
// or is a keyword of C gets the prefix "kernel_". malloc'd.
static char *entry_of(const char *name)
{
    static const char *const words[] = {
        "auto",   "break",    "case",   "char",   "const",    "continue", "default", "do",
        "double", "else",     "enum",   "extern", "float",    "for",      "goto",    "if",
        "inline", "int",      "long",   "main",   "register", "restrict", "return",  "short",
        "signed", "sizeof",   "static", "struct", "switch",   "typedef",  "union",   "unsigned",
        "void",   "volatile", "while",  "asm",    "typeof",   "reference"};
    bool prefix = name[0] >= '0' && name[0] <= '9';
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        prefix |= strcmp(name, words[i]) == 0;
    }
    char *entry = xasprintf("%s%s", prefix ? "kernel_" : "", name);
    for (char *c = entry; *c != '\0'; c++) {
        if (*c == '-') {
            *c = '_';
        }
    }
    return entry;
}

static void fill_in(const char *text, const char *name, const char *entry, struct strbuf *out)
{
    while (*text != '\0') {
        if (strncmp(text, "@NAME@", 6) == 0) {
            strbuf_adds(out, name);
            text += 6;
        } else if (strncmp(text, "@ENTRY@", 7) == 0) {
            strbuf_adds(out, entry);
            text += 7;
        } else {
            strbuf_addc(out, *text++);
        }
    }
}

static int write_skeleton(const struct skeleton *skeleton, const char *dir, const char *name,
                          struct err *err)
{
    char *entry = entry_of(name);
    int rc = 0;
    for (size_t i = 0; skeleton[i].file && rc == 0; i++) {
        struct strbuf text = STRBUF_INIT;
        char *path = xasprintf("%s/%s", dir, skeleton[i].file);
        fill_in(skeleton[i].text, name, entry, &text);
        rc = file_replace(path, text.data, text.len, false, err);
        free(path);
        strbuf_release(&text);
    }
    free(entry);
    return rc;
}

static int new_run(struct session *session, const void *options, char **argument,
                   size_t argument_count, struct err *err)
{
    (void)argument_count;
    const struct new_options *own = options;
    const struct skeleton *skeleton =
        strcmp(own->language, "cuda") == 0 ? cuda_skeleton : c_skeleton;
    char *dir = xstrdup(argument[0]);
    for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--) {
        dir[len - 1] = '\0';
    }
    const char *name = file_base_name(dir);
    struct stat status;
    int rc = 0;
    if (!good_name(name)) {
        rc = err_set(err, ERR_INVALID,
                     "%s: a problem's name has 1 to %d of the characters a-z 0-9 _ -", argument[0],
                     NAME_MAX_LEN);
    } else if (lstat(dir, &status) == 0) {
        rc = err_set(err, ERR_CONFLICT, "%s exists already", argument[0]);
    }
    if (rc != 0) {
        goto out;
    }
    rc = file_make_dirs(dir, err);
    if (rc != 0) {
        goto out;
    }
    rc = write_skeleton(skeleton, dir, name, err);
    if (rc != 0) {
        (void)!file_remove_tree(dir, NULL); // what is there now is of no use to anybody
        goto out;
    }
    if (!session_options(session)->quiet) {
        printable_printf(stderr, "kcast: wrote %s; change it, then run: kcast problem check %s/\n",
                         dir, dir);
    }
out:
    free(dir);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_problem_new = {
    .name = "problem new",
    .arguments = "DIR",
    .help = "Write a working problem folder to start from",
    .argument_min = 1,
    .argument_max = 1,
    .option = rows,
    .options_size = sizeof(struct new_options),
    .run = new_run,
};

// Mutants of cuda problems, run on the CPU. Their kernels and those of the baseline are compiled as
// C++ with a few definitions of CUDA words before them, and launched as their manifest says. The
// threads of a launch run one after the other; those of a launch of one block run concurrently, so
// that they can synchronise. This tests what the kernels compute, and not nvrtc. Without a C++
// compiler these tests are skipped.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/problem/mutant.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/stats.h"
#include "problem/manifest.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GUARD 64
#define POISON 0xA5
#define ARGS 8 // of a kernel, all of them pointers or integers

static const char words[] =
    "#define __global__\n#define __device__\n#define __shared__ static\n"
    "struct kc_index { unsigned x; };\nstatic thread_local kc_index blockIdx, threadIdx;\n"
    "static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }\n"
    "static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }\n"
    "extern \"C\" { void (*kc_meet)(void); void kc_at(unsigned b, unsigned t) { blockIdx.x = b; "
    "threadIdx.x = t; } }\n"
    "#define __syncthreads() kc_meet()\n";

static const char bfloat16[] =
    "#pragma once\nstruct __nv_bfloat16 {\n    unsigned short word;\n    __nv_bfloat16() = "
    "default;\n"
    "    explicit __nv_bfloat16(float x)\n    {\n        unsigned all = __float_as_uint(x);\n"
    "        word = (all + 0x7fff + (all >> 16 & 1)) >> 16;\n    }\n"
    "    operator float() const { return __uint_as_float((unsigned)word << 16); }\n};\n";

struct sample {
    const char *json, *baseline;
    size_t applicable; // mutants
};

static const struct sample samples[] = {
    // y = row-wise prefix sum of x, in f32. The baseline defines macros that could collide.
    {"{\"name\":\"prefix\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"cuda\","
     "\"params\":[{\"name\":\"M\",\"type\":\"int\"},{\"name\":\"N\",\"type\":\"int\"}],"
     "\"tensors\":[{\"name\":\"x\",\"direction\":\"in\",\"dtype\":\"f32\",\"shape\":[\"M\",\"N\"],"
     "\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"y\",\"direction\":\"out\",\"dtype\":\"f32\",\"shape\":[\"M\",\"N\"],"
     "\"tolerance\":4}],"
     "\"cases\":{\"check\":[{\"M\":5,\"N\":37}],\"bench\":[{\"params\":{\"M\":16,\"N\":33},"
     "\"weight\":1}]},"
     "\"cache\":\"cold\",\"work\":{\"flops\":\"M*N\",\"bytes\":\"8*M*N\"}}",
     "#define t whatever\n#define i inner\n#define n count\n#define ROWS 1\n"
     "//@ launch prefix grid=(ceildiv(M, ROWS)) block=(ROWS) args=(x, y, M, N)\n"
     "extern \"C\" __global__ void prefix(const float *x, float *y, long long M, int N)\n{\n"
     "    float s = 0;\n    for (int i = 0; i < N; i++)\n"
     "        y[blockIdx.x * (long long)N + i] = s += x[blockIdx.x * (long long)N + i];\n}\n",
     MUTANT_COUNT - 3}, // not applicable: previous, first and f32-output
    // z += 2 x in bf16 with an index, and a sum in f64 of rank 0.
    {"{\"name\":\"mixed\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"cuda\","
     "\"params\":[{\"name\":\"N\",\"type\":\"int\"}],"
     "\"tensors\":[{\"name\":\"at\",\"direction\":\"in\",\"dtype\":\"i32\",\"shape\":[\"N\"],"
     "\"values\":{\"distribution\":\"integers\",\"low\":0,\"high\":6}},"
     "{\"name\":\"z\",\"direction\":\"inout\",\"dtype\":\"bf16\",\"shape\":[\"N\"],\"tolerance\":1,"
     "\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"sum\",\"direction\":\"out\",\"dtype\":\"f64\",\"shape\":[],\"tolerance\":4}],"
     "\"cases\":{\"check\":[{\"N\":333}],\"bench\":[{\"params\":{\"N\":1001},\"weight\":1}]},"
     "\"cache\":\"cold\",\"work\":{\"flops\":\"N\",\"bytes\":\"8*N\"}}",
     "#include <cuda_bf16.h>\n//@ scratch part bytes=8 init=zero\n"
     "//@ launch first grid=(1) block=(1) args=(at, z, part, N)\n//@ launch second grid=(1) "
     "block=(1) args=(part, sum)\n"
     "extern \"C\" __global__ void first(const int *at, __nv_bfloat16 *z, double *part, long long "
     "n)\n{\n"
     "    for (long long i = 0; i < n; i++) {\n        z[i] = __nv_bfloat16((float)z[i] + 2.0f + "
     "(float)at[i]);\n"
     "        *part += (double)(float)z[i] * (i + 1);\n    }\n}\n"
     "extern \"C\" __global__ void second(const double *part, double *sum) { *sum = *part; }\n",
     // Not applicable: previous, first, the two of the last column, and the two that round inputs,
     // which are i32 and bf16.
     MUTANT_COUNT - 6},
};

struct buffers {
    unsigned char *data[PROBLEM_TENSOR_MAX];
    size_t size[PROBLEM_TENSOR_MAX]; // bytes without the guard zone
};

// A compiled source with its manifest.
struct program {
    void *handle;
    struct manifest *manifest;
    void (*at)(unsigned block, unsigned thread);
};

static char *work_dir;
static char *compiler; // the C++ compiler; NULL: there is none
static pthread_barrier_t barrier;

static void meet(void)
{
    (void)pthread_barrier_wait(&barrier);
}

// The exit status of a command; 127 when the command does not exist.
static int run_command(char *const *command)
{
    pid_t child = fork();
    if (child == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void choose_compiler(void)
{
    static char *const compilers[] = {"g++", "clang++"};
    for (size_t i = 0; i < ARRAY_LEN(compilers) && !compiler; i++) {
        char *const command[] = {compilers[i], "-fsyntax-only", "-x", "c++", "/dev/null", NULL};
        compiler = run_command(command) == 0 ? compilers[i] : NULL;
    }
}

static struct program load(const struct problem *problem, const char *source)
{
    static unsigned number;
    struct program program = {0};
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/k%u.cc", work_dir, ++number),
         *object = xasprintf("%s/k%u.so", work_dir, number);
    if (manifest_parse(&program.manifest, source, strlen(source), path, problem, MANIFEST_CANDIDATE,
                       &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, words);
    strbuf_adds(&text, source);
    assert_int_equal(file_replace(path, text.data, text.len, false, NULL), 0);
    char *const command[] = {compiler,
                             "-std=c++17",
                             "-O1",
                             "-Wall",
                             "-Wno-unused-function",
                             "-Wno-unknown-warning-option",
                             "-Wno-maybe-uninitialized",
                             "-Werror",
                             "-shared",
                             "-fPIC",
                             "-I",
                             work_dir,
                             path,
                             "-o",
                             object,
                             NULL};
    if (run_command(command) != 0) {
        fail_msg("%s does not compile", path);
    }
    program.handle = dlopen(object, RTLD_NOW | RTLD_LOCAL);
    if (!program.handle) {
        fail_msg("%s", dlerror());
    }
    *(void **)&program.at = dlsym(program.handle, "kc_at");
    *(void (**)(void))dlsym(program.handle, "kc_meet") = meet;
    strbuf_release(&text);
    free(path);
    free(object);
    return program;
}

static void unload(struct program *program)
{
    dlclose(program->handle);
    manifest_free(program->manifest);
}

typedef void kernel_function(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                             int64_t);

struct thread {
    const struct program *program;
    kernel_function *kernel;
    const int64_t *arg;
    unsigned block, index;
};

static void *run_thread(void *data)
{
    const struct thread *t = data;
    const int64_t *a = t->arg;
    t->program->at(t->block, t->index);
    t->kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    return NULL;
}

static void run_launch(const struct program *program, kernel_function *kernel, const int64_t *arg,
                       const struct manifest_shape *shape)
{
    struct thread *thread = xcalloc(shape->block[0], sizeof *thread);
    pthread_t *id = xcalloc(shape->block[0], sizeof *id);
    bool together = shape->grid[0] == 1 && shape->block[0] > 1;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, shape->block[0]), 0);
    for (unsigned block = 0; block < shape->grid[0]; block++) {
        for (unsigned i = 0; i < shape->block[0]; i++) {
            thread[i] = (struct thread){program, kernel, arg, block, i};
            if (together) {
                assert_int_equal(pthread_create(&id[i], NULL, run_thread, &thread[i]), 0);
            } else {
                run_thread(&thread[i]);
            }
        }
        for (unsigned i = 0; i < shape->block[0] && together; i++) {
            assert_int_equal(pthread_join(id[i], NULL), 0);
        }
    }
    pthread_barrier_destroy(&barrier);
    free(thread);
    free(id);
}

static void run(const struct program *program, const struct problem *problem,
                const struct shape_case *shape, struct buffers *buffers)
{
    const struct manifest *m = program->manifest;
    void *scratch[MANIFEST_SCRATCH_MAX] = {NULL};
    for (size_t i = 0; i < m->scratch_count; i++) {
        int64_t bytes = 0;
        assert_int_equal(manifest_eval(m, m->scratch[i].bytes, shape, problem, &bytes, NULL), 0);
        scratch[i] = xmalloc((size_t)bytes);
        memset(scratch[i], m->scratch[i].zero ? 0 : POISON, (size_t)bytes);
    }
    for (size_t l = 0; l < m->launch_count; l++) {
        struct manifest_shape form;
        assert_int_equal(manifest_launch_shape(m, l, shape, problem, &form, NULL), 0);
        assert_in_range(m->launch[l].arg_count, 0, ARGS);
        int64_t arg[ARGS] = {0};
        for (size_t i = 0; i < m->launch[l].arg_count; i++) {
            const struct manifest_arg *a = &m->launch[l].arg[i];
            if (a->kind == ARG_INTEGER) {
                assert_int_equal(manifest_eval(m, a->expr, shape, problem, &arg[i], NULL), 0);
            } else {
                arg[i] = (int64_t)(intptr_t)(a->kind == ARG_SCRATCH ? scratch[a->index]
                                                                    : buffers->data[a->index]);
            }
        }
        kernel_function *kernel = NULL;
        *(void **)&kernel = dlsym(program->handle, m->launch[l].kernel);
        assert_non_null(kernel);
        run_launch(program, kernel, arg, &form);
    }
    for (size_t i = 0; i < m->scratch_count; i++) {
        free(scratch[i]);
    }
}

static void fill(const struct problem *problem, const struct shape_case *shape,
                 struct buffers *buffers)
{
    for (size_t t = 0; t < problem->tensor_count; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        size_t n;
        assert_int_equal(problem_elements(problem, t, shape, &n, NULL), 0);
        struct stats_rng rng;
        stats_rng_init(&rng, 1, t);
        buffers->size[t] = n * dtype_size(tensor->dtype);
        buffers->data[t] = xmalloc(buffers->size[t] + GUARD);
        memset(buffers->data[t], POISON, buffers->size[t] + GUARD);
        for (size_t i = 0; i < n && tensor->direction != DIRECTION_OUT; i++) {
            float value = (float)stats_rng_normal(&rng);
            int32_t integer = (int32_t)(stats_rng_below(&rng, 7));
            if (tensor->dtype == DTYPE_F32) {
                memcpy(buffers->data[t] + 4 * i, &value, 4);
            } else if (tensor->dtype == DTYPE_BF16) {
                memcpy(buffers->data[t] + 2 * i, (const char *)&value + 2, 2);
            } else {
                memcpy(buffers->data[t] + 4 * i, &integer, 4);
            }
        }
    }
}

static void drop(struct buffers *buffers)
{
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        free(buffers->data[t]);
    }
}

// Whether the two differ in an output or a guard zone or, when inputs is true, in an input.
static bool differs(const struct problem *problem, const struct buffers *a, const struct buffers *b,
                    bool inputs)
{
    for (size_t t = 0; t < problem->tensor_count; t++) {
        bool is_input = problem->tensor[t].direction == DIRECTION_IN;
        if (is_input == inputs &&
            memcmp(a->data[t], b->data[t], a->size[t] + (inputs ? 0 : GUARD)) != 0) {
            return true;
        }
    }
    return false;
}

static void assert_spoils(const struct problem *problem, enum mutant mutant,
                          const struct program *honest, const struct program *other)
{
    const struct shape_case *shape[] = {&problem->check[0], &problem->bench[0]};
    bool outputs = false, inputs = false;
    for (size_t i = 0; i < ARRAY_LEN(shape); i++) {
        struct buffers right = {.size = {0}}, maybe = {.size = {0}};
        fill(problem, shape[i], &right);
        fill(problem, shape[i], &maybe);
        run(honest, problem, shape[i], &right);
        run(other, problem, shape[i], &maybe);
        outputs |= differs(problem, &right, &maybe, false);
        inputs |= differs(problem, &right, &maybe, true);
        drop(&right);
        drop(&maybe);
    }
    if (outputs == (mutant == MUTANT_WRITES_INPUT) || inputs != (mutant == MUTANT_WRITES_INPUT)) {
        fail_msg("%s of %s: outputs %s, inputs %s", mutant_name(mutant), problem->name,
                 outputs ? "spoilt" : "right", inputs ? "changed" : "as they were");
    }
}

static void every_sealed_mutant_spoils_the_result_and_nothing_else(void **state)
{
    (void)state;
    choose_compiler();
    if (!compiler) {
        skip();
    }
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct problem *problem = NULL;
        struct err err = ERR_INIT;
        if (problem_parse(&problem, samples[s].json, strlen(samples[s].json), "problem.json",
                          &err) != 0) {
            fail_msg("%s", err.text);
        }
        struct program honest = load(problem, samples[s].baseline);
        size_t applicable = 0;
        for (size_t i = 0; i < MUTANT_COUNT; i++) {
            struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
            if (mutant_applicable((enum mutant)i, problem, &reason)) {
                applicable++;
                mutant_source((enum mutant)i, problem, samples[s].baseline, &source);
                struct program other = load(problem, strbuf_text(&source));
                assert_spoils(problem, (enum mutant)i, &honest, &other);
                unload(&other);
            }
            strbuf_release(&source);
            strbuf_release(&reason);
        }
        if (applicable != samples[s].applicable) {
            fail_msg("%s: %zu of %zu mutants apply", problem->name, applicable,
                     samples[s].applicable);
        }
        unload(&honest);
        problem_free(problem);
    }
}

static int set_up(void **state)
{
    (void)state;
    int code = file_make_temp_dir(&work_dir, "kcast-test-mutant", NULL);
    char *path = xasprintf("%s/cuda_bf16.h", work_dir);
    if (code == 0) {
        code = file_replace(path, bfloat16, strlen(bfloat16), false, NULL);
    }
    free(path);
    return code;
}

static int tear_down(void **state)
{
    (void)state;
    int code = file_remove_tree(work_dir, NULL);
    free(work_dir);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sealed_mutant_spoils_the_result_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

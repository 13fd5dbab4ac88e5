// Compiles and calls the code of problems, for the tests of mutants and of checks.
#ifndef TESTS_CLIENT_PROBLEM_PROBLEM_CODE_H
#define TESTS_CLIENT_PROBLEM_PROBLEM_CODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/command.h"
#include "client/problem/mutant.h"
#include "client/problem/problem_check.h"
#include "client/session.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/stats.h"
#include "problem/manifest.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POISON 0xA5
#define GUARD 64 // bytes behind every tensor

// A case's tensors, each with a guard zone behind it.
struct buffers {
    unsigned char *data[PROBLEM_TENSOR_MAX];
    size_t size[PROBLEM_TENSOR_MAX]; // bytes without the guard zone
};

static char *work_dir;

static inline struct problem *parse(const char *json)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    if (problem_parse(&problem, json, strlen(json), "problem.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    return problem;
}

static inline void write_text(const char *path, const char *text)
{
    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
}

typedef void entry_function(void *const *pointer, const int64_t *integer, const double *scalar);

// Compiles header + source + glue with all warnings as errors and loads it. The code is never
// unloaded, so that memory that only its statics point to is no leak.
static inline entry_function *load(const struct problem *problem, bool reference,
                                   const char *source, void **ret_handle)
{
    static unsigned number;
    struct strbuf text = STRBUF_INIT;
    char *path = xasprintf("%s/c%u.c", work_dir, ++number),
         *object = xasprintf("%s/c%u.so", work_dir, number);
    problem_header(problem, reference, &text);
    strbuf_adds(&text, "\n");
    strbuf_adds(&text, source);
    strbuf_adds(&text, "\n#undef N\n#undef i\n");
    struct strbuf glue = STRBUF_INIT;
    problem_glue(problem, reference, &glue);
    write_text(path, strbuf_text(&text));
    char *glue_path = xasprintf("%s/g%u.c", work_dir, number);
    write_text(glue_path, strbuf_text(&glue));
    char *const command[] = {
        "gcc",     "-std=gnu11", "-O1",   "-Wall", "-Wextra", "-Wno-unused-function",
        "-Werror", "-shared",    "-fPIC", path,    glue_path, "-o",
        object,    "-lm",        NULL};
    pid_t child = fork();
    if (child == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) {
        fail_msg("%s does not compile", path);
    }
    *ret_handle = dlopen(object, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!*ret_handle) {
        fail_msg("%s", dlerror());
    }
    entry_function *entry = NULL;
    *(void **)&entry = dlsym(*ret_handle, "kcast_entry");
    assert_non_null(entry);
    strbuf_release(&text);
    strbuf_release(&glue);
    free(path);
    free(glue_path);
    free(object);
    return entry;
}

static inline void fill(const struct problem *problem, const struct shape_case *shape,
                        uint64_t seed, struct buffers *buffers)
{
    for (size_t t = 0; t < problem->tensor_count; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        size_t n;
        assert_int_equal(problem_elements(problem, t, shape, &n, NULL), 0);
        struct stats_rng rng;
        stats_rng_init(&rng, seed, t);
        buffers->size[t] = n * dtype_size(tensor->dtype);
        buffers->data[t] = xmalloc(buffers->size[t] + GUARD);
        memset(buffers->data[t], POISON, buffers->size[t] + GUARD);
        for (size_t i = 0; i < n && tensor->direction != DIRECTION_OUT; i++) {
            double value = stats_rng_normal(&rng);
            if (tensor->dtype == DTYPE_F32) {
                ((float *)(void *)buffers->data[t])[i] = (float)value;
            } else if (tensor->dtype == DTYPE_F64) {
                ((double *)(void *)buffers->data[t])[i] = value;
            } else {
                // The value 255 has to occur.
                buffers->data[t][i] = (unsigned char)(255 - (int)(fabs(value) * 60) % 256);
            }
        }
    }
}

static inline void drop(struct buffers *buffers)
{
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        free(buffers->data[t]);
    }
}

static inline void call(entry_function *entry, const struct problem *problem,
                        const struct shape_case *shape, struct buffers *buffers)
{
    void *pointer[PROBLEM_TENSOR_MAX];
    for (size_t t = 0; t < problem->tensor_count; t++) {
        pointer[t] = buffers->data[t];
    }
    entry(pointer, shape->i, shape->f);
}

static inline double element(enum dtype dtype, const unsigned char *data, size_t i)
{
    switch (dtype) {
    case DTYPE_F32:
        return (double)((const float *)(const void *)data)[i];
    case DTYPE_F64:
        return ((const double *)(const void *)data)[i];
    case DTYPE_I32:
        return ((const int32_t *)(const void *)data)[i];
    default:
        return data[i];
    }
}

static inline int set_up(void **state)
{
    (void)state;
    return file_make_temp_dir(&work_dir, "kcast-test-check", NULL);
}

static inline int tear_down(void **state)
{
    (void)state;
    int code = file_remove_tree(work_dir, NULL);
    free(work_dir);
    return code;
}

#endif

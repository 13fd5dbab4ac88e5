// Recordings that are kept in tests/data/recordings, and a fake GPU to replay them on. For the test
// of them alone, so it is a header only.
#ifndef TESTS_EXECUTOR_GPU_PROGRAM_KEPT_FIXTURE_H
#define TESTS_EXECUTOR_GPU_PROGRAM_KEPT_FIXTURE_H

#include "common/file.h"
#include "executor/gpu/arena.h"
#include "executor/gpu/program/program.h"
#include "executor/gpu/program/recording.h"
#include "tests/support/gpu.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENDING ".recording"
#define OBJECT_MAX ((size_t)32 << 20)

struct kept {
    char *name; // without its ending
    struct bytes packed;
    struct problem *problem;
};

struct kept_fixture {
    struct gpu gpu;
    struct kept *kept;
    size_t count;
};

static inline void must(int rc, const struct err *err, const char *name)
{
    if (rc != 0) {
        fail_msg("%s: %s", name, err->text);
    }
}

// ---- the files ----

static inline char *folder_path(void)
{
    const char *root = getenv("KCAST_ROOT");

    return xasprintf("%s/tests/data/recordings", root ? root : ".");
}

static inline char *path_of(const char *name, const char *ending)
{
    char *folder = folder_path(), *path = xasprintf("%s/%s%s", folder, name, ending);

    free(folder);
    return path;
}

static inline struct bytes read_file(const char *name, const char *ending)
{
    char *path = path_of(name, ending);
    struct bytes data;
    struct err err = ERR_INIT;

    must(file_read(&data, path, OBJECT_MAX, &err), &err, name);
    free(path);
    return data;
}

static inline void write_file(const char *name, const char *ending, const void *data, size_t len)
{
    char *path = path_of(name, ending);
    struct err err = ERR_INIT;

    must(file_replace(path, data, len, false, &err), &err, name);
    free(path);
}

static inline int is_recording(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > strlen(ENDING) && strcmp(entry->d_name + len - strlen(ENDING), ENDING) == 0;
}

static inline void load_kept(struct kept_fixture *f)
{
    char *folder = folder_path();
    struct dirent **entry = NULL;
    int count = scandir(folder, &entry, is_recording, alphasort);

    free(folder);
    f->kept = xcalloc((size_t)(count > 0 ? count : 0) + 1, sizeof(*f->kept));
    for (int i = 0; i < count; i++) {
        struct kept *kept = &f->kept[f->count++];
        struct err err = ERR_INIT;

        kept->name = xstrndup(entry[i]->d_name, strlen(entry[i]->d_name) - strlen(ENDING));
        kept->packed = read_file(kept->name, ENDING);
        struct bytes json = read_file(kept->name, ".json");
        must(problem_parse(&kept->problem, (const char *)json.data, json.len, kept->name, &err),
             &err, kept->name);
        bytes_clear(&json);
        free(entry[i]);
    }
    free(entry);
}

// ---- the fake GPU ----

#define OK(call) assert_int_equal(f->gpu.driver.call, CU_OK)

// Does what gpu_open does, without the executor's kernels, which need a compiler.
static inline void open_gpu(struct kept_fixture *f)
{
    static const char *const symbol[] = {
#define X(id, name) name,
        GPU_KERNELS(X)
#undef X
    };
    char reason[ERR_TEXT_MAX];
    struct driver driver;
    struct err err = ERR_INIT;

    gpu_fake_use("memory=4G");
    assert_int_equal(gpu_count(&driver, reason), 1);
    must(gpu_describe(&f->gpu, &driver, 0, &err), &err, "the fake GPU");
    OK(context_retain(&f->gpu.context, 0));
    OK(context_set(f->gpu.context));
    OK(stream_create(&f->gpu.stream, CU_STREAM_NON_BLOCKING));
    OK(event_create(&f->gpu.mark, CU_EVENT_DEFAULT));
#define X(id, name) name " "
    OK(module_load(&f->gpu.kernels, "fake:" GPU_KERNELS(X)));
#undef X
    for (size_t i = 0; i < GPU_KERNEL_COUNT; i++) {
        OK(module_function(&f->gpu.function[i], f->gpu.kernels, symbol[i]));
    }
    struct gpu *gpu = &f->gpu;
    must(arena_open(&gpu->open, &gpu->driver, 0, ARENA_OPEN, gpu->memory_bytes, &err), &err,
         "open");
    must(arena_open(&gpu->judge, &gpu->driver, 0, ARENA_JUDGE, gpu->memory_bytes, &err), &err,
         "judge");
}

static inline int kept_set_up(void **state)
{
    struct kept_fixture *f = xcalloc(1, sizeof(*f));

    load_kept(f);
    open_gpu(f);
    *state = f;
    return 0;
}

static inline int kept_tear_down(void **state)
{
    struct kept_fixture *f = *state;

    gpu_close(&f->gpu);
    for (size_t i = 0; i < f->count; i++) {
        free(f->kept[i].name);
        bytes_clear(&f->kept[i].packed);
        problem_free(f->kept[i].problem);
    }
    free(f->kept);
    free(f);
    return 0;
}

// ---- a case of a recording on it ----

struct replayed {
    const struct kept *kept;
    struct program *program;
    struct shape_case shape;
    struct guarded_buffer tensor[PROBLEM_TENSOR_MAX];
    struct program_tensors tensors;
};

// The case as the problem has it. What are no integers has no part in a recording.
static inline void shape_of(struct replayed *r, const struct recorded_case *of)
{
    const struct problem *problem = r->kept->problem;
    size_t at = 0;

    r->shape = problem->bench[0];
    for (size_t i = 0; i < problem->param_count; i++) {
        if (problem->param[i].type == PARAM_INT) {
            r->shape.i[i] = (int64_t)of->values[at++];
        }
    }
}

// Puts the tensors where they were recorded. Returns 0 or an error, also where none can be.
static inline int place(struct kept_fixture *f, struct replayed *r, const struct recorded_case *of,
                        struct err *err)
{
    for (size_t t = 0; t < r->kept->problem->tensor_count; t++) {
        size_t count = 0;
        int rc = problem_elements(r->kept->problem, t, &r->shape, &count, err);
        if (rc != 0) {
            return rc;
        }
        size_t bytes = count * dtype_size(r->kept->problem->tensor[t].dtype);
        if (of->tensors[t] < f->gpu.open.base + GUARD_BYTES ||
            of->tensors[t] - f->gpu.open.base > f->gpu.memory_bytes / 2 ||
            bytes > f->gpu.memory_bytes / 2) {
            return err_set(err, ERR_INVALID, "a tensor lies where none can be");
        }
        rc = arena_reach(&f->gpu.open, of->tensors[t] + bytes - f->gpu.open.base, err);
        if (rc != 0) {
            return rc;
        }
        r->tensor[t] = (struct guarded_buffer){.tensor = of->tensors[t], .bytes = bytes};
        r->tensors.tensor[t] = &r->tensor[t];
    }
    return 0;
}

static inline int prepare(struct kept_fixture *f, struct replayed *r, size_t number,
                          struct err *err)
{
    const struct recorded_case *of = &r->program->object.recording->cases[number];

    shape_of(r, of);
    int rc = place(f, r, of, err);
    return rc != 0 ? rc : program_prepare(r->program, &r->shape, &r->tensors, err);
}

static inline int begin(struct kept_fixture *f, struct replayed *r, const struct kept *kept,
                        const struct bytes *packed, struct err *err)
{
    *r = (struct replayed){.kept = kept};
    // Which of the two arenas it is follows from the base; a fresh one takes either.
    arena_release(&f->gpu.recorded[0]);
    f->gpu.recorded[0] = (struct arena){.driver = NULL};
    return program_create(&r->program, &f->gpu, kept->problem, MANIFEST_CANDIDATE, packed,
                          &f->gpu.recorded[0], err);
}

static inline void end(struct kept_fixture *f, struct replayed *r)
{
    program_free(r->program);
    arena_rewind(&f->gpu.judge, 0);
}

#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/command.h"
#include "client/problem/problem_check.h"
#include "client/problem/problem_mutant.h"
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

struct sample {
    const char *json, *baseline;
    size_t applicable; // mutants
};

static const struct sample samples[] = {
    {"{\"name\":\"gemm\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":\"gemm\","
     "\"params\":[{\"name\":\"M\",\"type\":\"int\"},{\"name\":\"N\",\"type\":\"int\"},{\"name\":"
     "\"K\",\"type\":\"int\"}],"
     "\"tensors\":[{\"name\":\"A\",\"direction\":\"in\",\"dtype\":\"f32\",\"shape\":[\"M\",\"K\"],"
     "\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"B\",\"direction\":\"in\",\"dtype\":\"f32\",\"shape\":[\"K\",\"N\"],\"values\":{"
     "\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"C\",\"direction\":\"out\",\"dtype\":\"f32\",\"shape\":[\"M\",\"N\"],"
     "\"tolerance\":16}],"
     "\"cases\":{\"check\":[{\"M\":5,\"N\":37,\"K\":9}],\"bench\":[{\"params\":{\"M\":32,\"N\":32,"
     "\"K\":32},\"weight\":1}],"
     "\"hidden\":{\"M\":{\"min\":1,\"max\":40},\"N\":{\"min\":1,\"max\":40},\"K\":{\"min\":1,"
     "\"max\":40}}},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"2*M*N*K\",\"bytes\":\"4*(M*K+K*N+M*N)\"}}",
     // Macros and names that a careless wrapper would collide with.
     "#include <stdlib.h>\n#include <string.h>\n#define N columns\n#define i inner\nstatic int "
     "kept(int x) { return x; }\n"
     "void gemm(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n"
     "    for (int64_t r = 0; r < M; r++)\n        for (int64_t c = 0; c < N; c++) {\n            "
     "float s = 0;\n"
     "            for (int64_t i = 0; i < K; i++)\n                s += A[r * K + i] * B[i * N + "
     "c];\n"
     "            C[r * N + c] = s * (float)kept(1);\n        }\n}\n",
     MUTANT_COUNT - 1},
    {"{\"name\":\"soft\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":\"soft\","
     "\"params\":[{\"name\":\"R\",\"type\":\"int\"},{\"name\":\"N\",\"type\":\"int\"},{\"name\":"
     "\"scale\",\"type\":\"f64\"}],"
     "\"tensors\":[{\"name\":\"x\",\"direction\":\"in\",\"dtype\":\"f64\",\"shape\":[\"R\",\"max(N,"
     " 2) - min(1, R - R)\"],\"values\":{\"distribution\":\"uniform\",\"low\":-3,\"high\":3}},"
     "{\"name\":\"y\",\"direction\":\"out\",\"dtype\":\"f64\",\"shape\":[\"R\",\"ceildiv(2*N, "
     "2)\"],\"tolerance\":64}],"
     "\"cases\":{\"check\":[{\"R\":4,\"N\":35,\"scale\":0.5}],\"bench\":[{\"params\":{\"R\":8,"
     "\"N\":64,\"scale\":0.5},\"weight\":1}],"
     "\"hidden\":{\"R\":{\"min\":2,\"max\":20},\"N\":{\"min\":2,\"max\":50}}},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"3*R*N\",\"bytes\":\"16*R*N\"}}",
     "#include <math.h>\nvoid soft(const double *x, double *y, int64_t R, int64_t N, double "
     "scale)\n{\n"
     "    for (int64_t r = 0; r < R; r++) {\n        double top = -INFINITY, sum = 0;\n"
     "        for (int64_t c = 0; c < N; c++)\n            top = fmax(top, scale * x[r * N + c]);\n"
     "        for (int64_t c = 0; c < N; c++)\n            sum += y[r * N + c] = exp(scale * x[r * "
     "N + c] - top);\n"
     "        for (int64_t c = 0; c < N; c++)\n            y[r * N + c] /= sum;\n    }\n}\n",
     MUTANT_COUNT},
    {"{\"name\":\"count\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":"
     "\"count\","
     "\"params\":[{\"name\":\"N\",\"type\":\"int\"}],"
     "\"tensors\":[{\"name\":\"key\",\"direction\":\"in\",\"dtype\":\"u8\",\"shape\":[\"N\"],"
     "\"values\":{\"distribution\":\"zipf\",\"count\":256,\"exponent\":1.3}},"
     "{\"name\":\"n\",\"direction\":\"out\",\"dtype\":\"i32\",\"shape\":[\"256\"],\"tolerance\":0}]"
     ","
     "\"cases\":{\"check\":[{\"N\":1000}],\"bench\":[{\"params\":{\"N\":4096},\"weight\":1}]},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"0\",\"bytes\":\"N + 1024\"}}",
     "#include <string.h>\nvoid count(const uint8_t *key, int32_t *n, int64_t N)\n{\n    memset(n, "
     "0, 256 * sizeof *n);\n"
     "    for (int64_t i = 0; i < N; i++)\n        n[key[i]]++;\n}\n",
     // no column beside the row (2), no remainder (1), nothing to round (4)
     MUTANT_COUNT - 7},
    {"{\"name\":\"stride\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\",\"entry\":"
     "\"stride\","
     "\"params\":[{\"name\":\"N\",\"type\":\"int\"},{\"name\":\"a\",\"type\":\"f64\"}],"
     "\"tensors\":[{\"name\":\"y\",\"direction\":\"inout\",\"dtype\":\"f32\",\"shape\":[\"N\"],"
     "\"tolerance\":4,\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}},"
     "{\"name\":\"m\",\"direction\":\"inout\",\"dtype\":\"f32\",\"shape\":[\"3\",\"N\"],"
     "\"tolerance\":4,\"values\":{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}}],"
     "\"cases\":{\"check\":[{\"N\":333,\"a\":1.5}],\"bench\":[{\"params\":{\"N\":1000,\"a\":1.5},"
     "\"weight\":1}],\"hidden\":{\"N\":{\"min\":1,\"max\":90}}},"
     "\"cache\":\"warm\",\"work\":{\"flops\":\"2*N\",\"bytes\":\"12*N\"}}",
     "void stride(float *y, float *m, int64_t N, double a)\n{\n    for (int64_t i = 0; i < N; "
     "i++)\n        y[i] += (float)a * (m[i] + 1);\n"
     "    for (int64_t i = 0; i < 3 * N; i++)\n        m[i] = (float)a - m[i];\n}\n",
     MUTANT_COUNT - 3}, // no pure input to copy or to write to, no double
};

// A case's tensors, each with a guard zone behind it.
struct buffers {
    unsigned char *data[PROBLEM_TENSOR_MAX];
    size_t size[PROBLEM_TENSOR_MAX]; // without the guard
};

static char *work_dir;

static struct problem *parse(const char *json)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    if (problem_parse(&problem, json, strlen(json), "problem.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    return problem;
}

static void write_text(const char *path, const char *text)
{
    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
}

typedef void entry_function(void *const *pointer, const int64_t *integer, const double *scalar);

// Compiles header + source + glue with all warnings as errors, loads it. The code stays when it is
// closed: memory that only its statics point to is then no leak.
static entry_function *load(const struct problem *problem, bool reference, const char *source,
                            void **ret_handle)
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

static void fill(const struct problem *problem, const struct shape_case *shape, uint64_t seed,
                 struct buffers *buffers)
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
                buffers->data[t][i] =
                    (unsigned char)(255 - (int)(fabs(value) * 60) % 256); // 255 occurs
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

static void call(entry_function *entry, const struct problem *problem,
                 const struct shape_case *shape, struct buffers *buffers)
{
    void *pointer[PROBLEM_TENSOR_MAX];
    for (size_t t = 0; t < problem->tensor_count; t++) {
        pointer[t] = buffers->data[t];
    }
    entry(pointer, shape->i, shape->f);
}

static double element(enum dtype dtype, const unsigned char *data, size_t i)
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

// Whether an output differs by more than rounding (1e-5 for f32, 1e-13 for f64), or an input or a
// guard zone at all.
static bool differs(const struct problem *problem, const struct buffers *a, const struct buffers *b)
{
    for (size_t t = 0; t < problem->tensor_count; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        if (memcmp(a->data[t] + a->size[t], b->data[t] + b->size[t], GUARD) != 0) {
            return true;
        }
        if (tensor->direction == DIRECTION_IN && memcmp(a->data[t], b->data[t], a->size[t]) != 0) {
            return true;
        }
        double bound = tensor->dtype == DTYPE_F32 ? 1e-5 : tensor->dtype == DTYPE_F64 ? 1e-13 : 0;
        for (size_t i = 0; i < a->size[t] / dtype_size(tensor->dtype); i++) {
            double x = element(tensor->dtype, a->data[t], i),
                   y = element(tensor->dtype, b->data[t], i);
            if (!(fabs(x - y) <= bound * fmax(1, fabs(x)))) // NaN differs
            {
                return true;
            }
        }
    }
    return false;
}

// Runs both on two contents of a case and on its other shapes; whether they ever differ.
static bool ever_differs(const struct problem *problem, entry_function *honest,
                         entry_function *other)
{
    bool found = false;
    const struct shape_case *shape[] = {&problem->check[0], &problem->check[0], &problem->bench[0]};
    for (size_t i = 0; i < ARRAY_LEN(shape); i++) {
        struct buffers right = {.size = {0}}, maybe = {.size = {0}};
        fill(problem, shape[i], i + 1, &right);
        fill(problem, shape[i], i + 1, &maybe);
        call(honest, problem, shape[i], &right);
        call(other, problem, shape[i], &maybe);
        found |= differs(problem, &right, &maybe);
        drop(&right);
        drop(&maybe);
    }
    return found;
}

static void every_mutant_compiles_and_spoils_the_result(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct problem *problem = parse(samples[s].json);
        void *honest_handle, *handle;
        entry_function *honest = load(problem, false, samples[s].baseline, &honest_handle);
        size_t applicable = 0;
        for (size_t i = 0; i < MUTANT_COUNT; i++) {
            struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
            bool applies = mutant_applies((enum mutant)i, problem, &reason);
            assert_true(applies == (reason.len == 0));
            if (applies) {
                applicable++;
                mutant_source((enum mutant)i, problem, samples[s].baseline, &source);
                if (!ever_differs(problem, honest,
                                  load(problem, false, strbuf_text(&source), &handle))) {
                    fail_msg("%s of %s is right", mutant_name((enum mutant)i), problem->name);
                }
                dlclose(handle);
            }
            strbuf_release(&source);
            strbuf_release(&reason);
        }
        if (applicable != samples[s].applicable) {
            fail_msg("%s: %zu of %zu mutants apply", problem->name, applicable,
                     samples[s].applicable);
        }
        dlclose(honest_handle);
        problem_free(problem);
    }
}

static void every_honest_variant_compiles_and_is_right(void **state)
{
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(samples); s++) {
        struct problem *problem = parse(samples[s].json);
        void *honest_handle, *handle;
        entry_function *honest = load(problem, false, samples[s].baseline, &honest_handle);
        for (size_t i = 0; i < HONEST_COUNT; i++) {
            struct strbuf source = STRBUF_INIT;
            honest_source((enum honest)i, samples[s].baseline, &source);
            assert_false(
                ever_differs(problem, honest, load(problem, false, strbuf_text(&source), &handle)));
            dlclose(handle);
            strbuf_release(&source);
        }
        dlclose(honest_handle);
        problem_free(problem);
    }
}

static void remembering_mutants_are_right_the_first_time(void **state)
{
    (void)state;
    struct problem *problem = parse(samples[0].json);
    void *honest_handle;
    entry_function *honest = load(problem, false, samples[0].baseline, &honest_handle);
    static const enum mutant remembering[] = {MUTANT_PREVIOUS, MUTANT_FIRST};
    for (size_t i = 0; i < ARRAY_LEN(remembering); i++) {
        struct strbuf source = STRBUF_INIT;
        mutant_source(remembering[i], problem, samples[0].baseline, &source);
        void *handle;
        entry_function *entry = load(problem, false, strbuf_text(&source), &handle);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct buffers right = {.size = {0}}, maybe = {.size = {0}};
            fill(problem, &problem->check[0], seed, &right);
            fill(problem, &problem->check[0], seed, &maybe);
            call(honest, problem, &problem->check[0], &right);
            call(entry, problem, &problem->check[0], &maybe);
            assert_true(differs(problem, &right, &maybe) == (seed > 1));
            drop(&right);
            drop(&maybe);
        }
        dlclose(handle);
        strbuf_release(&source);
    }
    dlclose(honest_handle);
    problem_free(problem);
}

// A new session that talks to nobody.
static struct session *lonely_session(void)
{
    static struct session_options options = {.quiet = true};
    struct session *session = NULL;
    struct err err = ERR_INIT;
    if (session_create(&session, &options, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return session;
}

// The options of `kcast problem new`.
struct new_options {
    char *language;
};

static char *new_problem_in(const char *name, const char *language)
{
    struct new_options options = {.language = xstrdup(language)};
    struct session *session = lonely_session();
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", work_dir, name);
    if (cmd_problem_new.run(session, &options, &path, 1, &err) != EXIT_OK) {
        fail_msg("%s", err.text);
    }
    session_free(session);
    free(options.language);
    return path;
}

static char *new_problem(const char *name)
{
    return new_problem_in(name, "c");
}

static void skeleton_is_a_problem_whose_baseline_meets_its_reference(void **state)
{
    (void)state;
    static const char *const name[] = {"my-op_2", "9lives", "double"};
    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        struct problem_dir dir;
        struct err err = ERR_INIT;
        char *path = new_problem(name[i]);
        if (problem_dir_load(&dir, path, &err) != 0) {
            fail_msg("%s", err.text);
        }
        void *baseline_handle, *reference_handle;
        entry_function *baseline =
            load(dir.problem, false, (const char *)dir.baseline.data, &baseline_handle);
        entry_function *reference =
            load(dir.problem, true, (const char *)dir.reference.data, &reference_handle);
        const struct shape_case *shape = &dir.problem->check[0];
        struct buffers buffers = {.size = {0}};
        fill(dir.problem, shape, 1, &buffers);
        call(baseline, dir.problem, shape, &buffers);
        size_t n = buffers.size[2] / sizeof(float);
        double *expected = xcalloc(n, sizeof *expected), *scale = xcalloc(n, sizeof *scale);
        void *pointer[] = {buffers.data[0], buffers.data[1], expected, scale};
        reference(pointer, shape->i, shape->f);
        for (size_t e = 0; e < n; e++) {
            assert_true(fabs(element(DTYPE_F32, buffers.data[2], e) - expected[e]) <=
                        dir.problem->tensor[2].tolerance * 0x1p-24 * scale[e]);
        }
        free(expected);
        free(scale);
        drop(&buffers);
        dlclose(baseline_handle);
        dlclose(reference_handle);
        problem_dir_release(&dir);
        free(path);
    }
}

static void judge_all(struct problem_check *check)
{
    for (size_t i = 0; i < check->trial_count; i++) {
        struct result result = {
            .verdict = check->trial[i].kind == TRIAL_MUTANT ? VERDICT_WRONG : VERDICT_INCONCLUSIVE,
            .max_error = NAN,
            .error_bound = NAN};
        if (check->trial[i].source) {
            trial_judge(&check->trial[i], &result);
        }
    }
}

static struct trial *find(struct problem_check *check, const char *name)
{
    for (size_t i = 0; i < check->trial_count; i++) {
        if (check->trial[i].name && strcmp(check->trial[i].name, name) == 0) {
            return &check->trial[i];
        }
    }
    fail_msg("no trial %s", name);
    return NULL;
}

static void assert_manifest(const struct problem_dir *dir, const char *source, const char *name,
                            enum manifest_role role)
{
    struct manifest *manifest = NULL;
    struct err err = ERR_INIT;
    if (manifest_parse(&manifest, source, strlen(source), name, dir->problem, role, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct manifest_shape shape;
    if (manifest_launch_shape(manifest, 0, &dir->problem->bench[0], dir->problem, &shape, &err) !=
        0) {
        fail_msg("%s: %s", name, err.text);
    }
    manifest_free(manifest);
}

// Of a cuda problem the check has the sealed mutants, each with a launch manifest, and one honest
// variant; what only C has is left out with its reason.
static void cuda_skeleton_is_a_problem_with_trials(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    char *path = new_problem_in("on-gpu", "cuda");
    if (problem_dir_load(&dir, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(dir.problem->cuda);
    assert_manifest(&dir, (const char *)dir.baseline.data, "baseline.cu", MANIFEST_CANDIDATE);
    assert_manifest(&dir, (const char *)dir.reference.data, "reference.cu", MANIFEST_REFERENCE);
    struct problem_check check;
    if (problem_check_init(&check, &dir, 7, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(check.points, 12);
    size_t sealed = 0;
    for (size_t i = 0; i < check.trial_count; i++) {
        const struct trial *trial = &check.trial[i];
        if (!trial->source) {
            continue;
        }
        sealed += trial->kind == TRIAL_MUTANT;
        assert_manifest(&dir, trial->source, trial->name ? trial->name : trial->point_name,
                        MANIFEST_CANDIDATE);
    }
    // Not: the two that remember, the two of the last column, f32-output.
    assert_int_equal(sealed, MUTANT_COUNT - 5);
    assert_int_equal(find(&check, "reordered")->outcome, TRIAL_NOT_APPLICABLE);
    assert_non_null(find(&check, "reordered")->reason);
    assert_int_equal(find(&check, "previous")->outcome, TRIAL_NOT_APPLICABLE);
    judge_all(&check);
    struct strbuf reasons = STRBUF_INIT;
    assert_true(problem_check_admits(&check, &reasons));
    strbuf_release(&reasons);
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

static void new_refuses_what_exists_and_bad_names(void **state)
{
    (void)state;
    struct session *session = lonely_session();
    static const char *const bad[] = {"/tmp", "x/Upper", "x/a b", "x/", "x/<b>"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        char *argument = i == 0 ? xstrdup(bad[i]) : xasprintf("%s/%s", work_dir, bad[i]);
        struct new_options options = {.language = (char[]){"c"}};
        int rc = cmd_problem_new.run(session, &options, &argument, 1, &err);
        if (strcmp(bad[i], "x/") != 0) // a good name, "x"
        {
            assert_int_equal(rc, EXIT_INVALID);
        } else {
            assert_int_equal(rc, EXIT_OK);
        }
        free(argument);
    }
    session_free(session);
}

static void judgement_names_what_got_through(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    char *path = new_problem("judged");
    assert_int_equal(problem_dir_load(&dir, path, &err), 0);
    struct problem_check check;
    assert_int_equal(problem_check_init(&check, &dir, 7, &err), 0);
    assert_true(check.has_template);
    assert_int_equal(check.points, 12);
    static const struct {
        const char *trial;
        uint64_t verdict;
        const char *says; // NULL: admitted
    } row[] = {
        {"zeros", VERDICT_WRONG, NULL},
        {"zeros", VERDICT_QUARANTINED, NULL},
        {"zeros", VERDICT_CRASH, NULL},
        {"zeros", VERDICT_SLOWER,
         "\"zeros\", which writes zeros, was taken for correct: the error scale"},
        {"zeros", VERDICT_COMPILE_ERROR, "\"zeros\" could not be tried (compile-error)"},
        {"zeros", VERDICT_TIMEOUT, "\"zeros\" could not be tried (timeout)"},
        {"baseline", VERDICT_WRONG, "The baseline does not agree with the reference (wrong)"},
        {"reordered", VERDICT_WRONG, "the tolerance is too tight"},
        {"reordered", VERDICT_EQUIVALENT, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct result result = {.verdict = row[i].verdict, .max_error = NAN, .error_bound = NAN};
        judge_all(&check);
        trial_judge(find(&check, row[i].trial), &result);
        struct strbuf reasons = STRBUF_INIT;
        assert_int_equal(problem_check_admits(&check, &reasons), !row[i].says);
        if (row[i].says && !strstr(strbuf_text(&reasons), row[i].says)) {
            fail_msg("\"%s\" is not in: %s", row[i].says, strbuf_text(&reasons));
        }
        strbuf_release(&reasons);
    }
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

static void template_needs_one_point_that_works(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    char *path = new_problem("templated");
    assert_int_equal(problem_dir_load(&dir, path, &err), 0);
    struct problem_check check;
    assert_int_equal(problem_check_init(&check, &dir, 7, &err), 0);
    judge_all(&check);
    struct result wrong = {.verdict = VERDICT_WRONG, .max_error = NAN, .error_bound = NAN};
    size_t points = 0;
    for (size_t i = 0; i < check.trial_count; i++) {
        if (check.trial[i].kind == TRIAL_TEMPLATE && points++ > 0) {
            trial_judge(&check.trial[i], &wrong);
        }
    }
    assert_int_equal(points, CHECK_SAMPLE);
    struct strbuf reasons = STRBUF_INIT;
    assert_true(problem_check_admits(&check, &reasons));
    for (size_t i = 0; i < check.trial_count; i++) {
        if (check.trial[i].kind == TRIAL_TEMPLATE) {
            trial_judge(&check.trial[i], &wrong);
        }
    }
    assert_false(problem_check_admits(&check, &reasons));
    assert_non_null(strstr(strbuf_text(&reasons), "None of the template's points"));
    strbuf_release(&reasons);
    problem_check_release(&check);
    problem_dir_release(&dir);
    free(path);
}

static int set_up(void **state)
{
    (void)state;
    return file_make_temp_dir(&work_dir, "kcast-test-check", NULL);
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
        cmocka_unit_test(every_mutant_compiles_and_spoils_the_result),
        cmocka_unit_test(every_honest_variant_compiles_and_is_right),
        cmocka_unit_test(remembering_mutants_are_right_the_first_time),
        cmocka_unit_test(skeleton_is_a_problem_whose_baseline_meets_its_reference),
        cmocka_unit_test(cuda_skeleton_is_a_problem_with_trials),
        cmocka_unit_test(new_refuses_what_exists_and_bad_names),
        cmocka_unit_test(judgement_names_what_got_through),
        cmocka_unit_test(template_needs_one_point_that_works),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

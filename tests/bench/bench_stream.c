// Does what kcast measures agree with what a program sees that streams new data? For points of the
// problems' templates this prints the speedup over the baseline twice: as the daemon measures it,
// and as a loop in this process sees it that fills new inputs by a generator of its own and calls
// baseline and candidate in turns, with nothing in between: no sandbox, no poison, no other
// process.
//  bench_stream [POINTS [ROUNDS]]   points of each template, default 3; calls of each arm,
//                                   default 200
#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "tests/bench/samples.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING 1 // sets of tensors that take turns

typedef void entry_function(void **pointer, const int64_t *integer, const double *scalar);

static const char *const problem_name[] = {"conv2d", "histogram", "rmsnorm",  "scan",
                                           "sgemm",  "softmax",   "transpose"};

// ---- calling code ----

static const char *type_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return "float";
    case DTYPE_F64:
        return "double";
    case DTYPE_I32:
        return "int32_t";
    case DTYPE_I64:
        return "int64_t";
    default:
        return "uint8_t";
    }
}

// Runs gcc as kcast-exec does and returns whether it succeeded.
static bool run_gcc(const char *from, const char *to)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        (void)execlp("gcc", "gcc", "-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast",
                     "-fPIC", "-shared", "-w", "-o", to, from, "-lm", (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

// Writes the source with a function `call` behind it that unpacks the arguments, and compiles it.
static entry_function *compile(const struct problem *problem, const char *dir, const char *name,
                               const char *source)
{
    struct strbuf text = STRBUF_INIT;
    char path[512], to[512];

    strbuf_addf(&text, "#include <stdint.h>\n%s\n", source);
    strbuf_addf(&text, "void call(void **p, const int64_t *i, const double *f)\n{\n    %s(",
                problem->entry);
    for (size_t t = 0; t < problem->tensor_count; t++) {
        bool in = problem->tensor[t].direction == DIRECTION_IN;
        strbuf_addf(&text, "%s(%s%s *)p[%zu]", t > 0 ? ", " : "", in ? "const " : "",
                    type_of(problem->tensor[t].dtype), t);
    }
    for (size_t p = 0; p < problem->param_count; p++) {
        strbuf_addf(&text, ", %s[%zu]", problem->param[p].type == PARAM_F64 ? "f" : "i", p);
    }
    strbuf_adds(&text, ");\n}\n");
    snprintf(path, sizeof(path), "%s/%s.c", dir, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text.data, file) < 0 || fclose(file) != 0) {
        fprintf(stderr, "benchmark: %s cannot be written\n", path);
        exit(1);
    }
    snprintf(to, sizeof(to), "%s/%s.so", dir, name);
    void *object = run_gcc(path, to) ? dlopen(to, RTLD_NOW | RTLD_LOCAL) : NULL;
    strbuf_release(&text);
    return object ? (entry_function *)(uintptr_t)dlsym(object, "call") : NULL;
}

// ---- streaming ----

// A normal or uniform value by the C library's generator; what a real program is fed looks alike.
static double draw(const struct tensor *tensor)
{
    double a = tensor->value[0], b = tensor->value[1], u = drand48();

    switch (tensor->distribution) {
    case VALUES_NORMAL:
        return a + b * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * drand48());
    case VALUES_ZIPF: // the continuous power law with that exponent, cut at count
        return floor(pow(1 + u * (pow(a, 1 - b) - 1), 1 / (1 - b))) - 1;
    default:
        return a + (b - a) * u;
    }
}

static void fill(const struct tensor *tensor, void *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value = draw(tensor);
        switch (tensor->dtype) {
        case DTYPE_F32:
            ((float *)out)[i] = (float)value;
            break;
        case DTYPE_F64:
            ((double *)out)[i] = value;
            break;
        case DTYPE_I32:
            ((int32_t *)out)[i] = (int32_t)value;
            break;
        case DTYPE_I64:
            ((int64_t *)out)[i] = (int64_t)value;
            break;
        default:
            ((uint8_t *)out)[i] = (uint8_t)value;
            break;
        }
    }
}

static double thread_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

// Returns the median time of the baseline over that of the candidate for one shape, in log2.
static double stream(const struct problem *problem, const struct shape_case *shape,
                     entry_function *const arm[2], size_t rounds)
{
    void *tensor[RING][PROBLEM_TENSOR_MAX];
    size_t count[PROBLEM_TENSOR_MAX];
    struct err err = ERR_INIT;
    double *ratio = xcalloc(rounds, sizeof(*ratio));

    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (problem_elements(problem, t, shape, &count[t], &err) != 0) {
            die(&err);
        }
        for (size_t r = 0; r < RING; r++) {
            tensor[r][t] = aligned_alloc(64, (count[t] * 8 + 63) / 64 * 64);
            memset(tensor[r][t], 0, count[t] * 8);
        }
    }
    for (size_t i = 0, at = 0; i < rounds; i++) {
        double ns[2] = {0, 0};
        for (size_t j = 0; j < 4; j++, at = (at + 1) % RING) {
            size_t which = (i & 1) ^ (j == 1 || j == 2);
            for (size_t t = 0; t < problem->tensor_count; t++) {
                if (problem->tensor[t].direction != DIRECTION_OUT) {
                    fill(&problem->tensor[t], tensor[at][t], count[t]);
                }
            }
            double start = thread_ns();
            arm[which](tensor[at], shape->i, shape->f);
            ns[which] += 0.5 * log2(thread_ns() - start);
        }
        ratio[i] = ns[0] - ns[1];
    }
    double median = stats_median(ratio, rounds);
    for (size_t t = 0; t < problem->tensor_count; t++) {
        for (size_t r = 0; r < RING; r++) {
            free(tensor[r][t]);
        }
    }
    free(ratio);
    return median;
}

// ---- the comparison ----

// number makes the object's path another one for each candidate: dlopen would return the same object
// for the same path.
static void compare(struct job_client *pool, const struct problem_dir *dir, const char *folder,
                    size_t number, const char *name, const char *source, entry_function *baseline,
                    size_t rounds)
{
    const struct problem *problem = dir->problem;
    char file[32];
    snprintf(file, sizeof(file), "candidate%zu", number);
    entry_function *arm[2] = {baseline, compile(problem, folder, file, source)};
    struct digest digest;
    struct samples samples;
    double streamed = 0;

    job_client_add_blob(pool, source, strlen(source), &digest);
    samples_run(pool, &samples, dir, &digest, 1, 0);
    if (arm[1] && samples.count == 1) {
        for (size_t i = 0; i < problem->bench_count; i++) {
            streamed += problem->bench[i].weight * stream(problem, &problem->bench[i], arm, rounds);
        }
        printf("%-10s %-44s measured %7.3f +- %.3f   streamed %7.3f   %+6.2f %%\n", problem->name,
               name, exp2(samples.log2[0]), exp2(samples.log2[0]) * samples.half_width[0] * log(2),
               exp2(streamed), 100 * (exp2(samples.log2[0] - streamed) - 1));
    } else {
        printf("%-10s %-44s has no speedup\n", problem->name, name);
    }
    samples_release(&samples);
}

static void compare_problem(struct job_client *pool, const char *problem, size_t points,
                            size_t rounds)
{
    struct problem_dir dir;
    struct err err = ERR_INIT;
    struct template *template = NULL;
    char folder[] = "/tmp/kcast-stream.XXXXXX", path[64];

    snprintf(path, sizeof(path), "problems/cpu/%s", problem);
    if (problem_dir_load(&dir, path, &err) < 0 || !mkdtemp(folder) ||
        template_parse(&template, (const char *)dir.template_source.data, dir.path, &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, &dir);
    entry_function *baseline =
        compile(dir.problem, folder, "baseline", (const char *)dir.baseline.data);
    size_t count = template_point_count(template);
    for (size_t i = 0; i < points; i++) {
        size_t point = (2 * i + 1) * count / (2 * points);
        struct strbuf source = STRBUF_INIT, name = STRBUF_INIT;
        template_source(template, point, &source);
        template_point_name(template, point, &name);
        compare(pool, &dir, folder, i, name.data, source.data, baseline, rounds);
        strbuf_release(&source);
        strbuf_release(&name);
    }
    if (file_remove_tree(folder, &err) != 0) {
        die(&err);
    }
    template_free(template);
    problem_dir_release(&dir);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct session *session = NULL;
    struct session_options options = {.local = true, .quiet = true};
    struct job_client *pool = NULL;
    struct err err = ERR_INIT;
    uint64_t points = 3, rounds = 200;
    if ((argc > 1 && parse_u64(&points, argv[1], 1, 100, "POINTS", &err) < 0) ||
        (argc > 2 && parse_u64(&rounds, argv[2], 3, 100000, "ROUNDS", &err) < 0) ||
        session_create(&session, &options, &err) < 0 ||
        samples_open(&pool, session, "stream", &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < ARRAY_LEN(problem_name); i++) {
        compare_problem(pool, problem_name[i], points, rounds);
    }
    job_client_close(pool);
    session_free(session);
    return 0;
}

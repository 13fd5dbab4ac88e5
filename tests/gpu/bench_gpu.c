// Benchmarks of measuring on a GPU: verdicts per second, time to one verdict, false FASTER and
// SLOWER among A/A runs of kernels from 4 us to 1 ms, spread of the estimate, and how often copies
// that were made 1 % or 3 % slower are found.
//   bench_gpu [RUNS [KERNEL…]]
// makes RUNS A/A runs (100) of each kernel, or of the kernels with these names (3us, 20us). The
// program uses the daemon at the default address, which tests/gpu/run.sh starts.
#include "client/session.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISTINCT 400
#define FEW_LAUNCHES 64

// Kernels that take about as long as their names say.
static const struct kernel {
    const char *name;
    unsigned n, steps;
    unsigned slower_permille; // steps of the slower copy, in thousandths; 0: there is no copy
    unsigned share;           // per cent of RUNS that are made; 0: all
} kernels[] = {
    {"3us", 1024, 1, 0, 0},          {"4us", 32768, 40, 0, 0},
    {"5us", 32768, 90, 1140, 0},     {"20us", 32768, 1150, 0, 0},
    {"50us", 65536, 2800, 1012, 0},  {"200us", 65536, 11500, 1011, 0},
    {"1ms", 131072, 45000, 1010, 0}, {"100ms", 131072, 4500000, 0, 4},
};

static void load(struct problem_dir *dir, struct job_client *pool, const char *path)
{
    struct err err = ERR_INIT;

    if (problem_dir_load(dir, path, &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, dir);
}

// ---- verdicts per second ----

static void bench_throughput(struct job_client *pool)
{
    struct problem_dir dir;

    load(&dir, pool, "tests/data/cuda/rowsum");
    struct err err = ERR_INIT;
    struct template *template = NULL;
    if (template_parse(&template, (const char *)dir.template_source.data, dir.path, &err) < 0) {
        die(&err);
    }
    size_t points = template_point_count(template);
    struct digest digest[DISTINCT];
    for (size_t i = 0; i < DISTINCT; i++) {
        struct strbuf source = STRBUF_INIT;

        strbuf_addf(&source, "#define DISTINCT %zu\n", i);
        template_source(template, i % points, &source);
        job_client_add_blob(pool, source.data, source.len, &digest[i]);
        strbuf_release(&source);
    }
    struct samples samples;
    samples_run(pool, &samples, &dir, digest, 1, 0);
    printf("one candidate alone, cold cache, warm daemon: verdict after %.3f s\n", samples.seconds);
    samples_release(&samples);
    samples_run(pool, &samples, &dir, digest + 1, DISTINCT - 1, 0);
    printf("distinct candidates, source to verdict: %.1f verdicts a second on one GPU\n",
           (double)samples.runs / samples.seconds);
    samples_print("small problem, distinct candidates", &samples);
    samples_release(&samples);
    template_free(template);
    problem_dir_release(&dir);
}

// ---- kernels of known length ----

// Makes a copy of tests/data/cuda/stream with these sizes, in a folder of its own.
static void load_stream(struct problem_dir *dir, struct job_client *pool,
                        const struct kernel *kernel, const char *folder)
{
    static const char *const files[] = {"reference.cu", "baseline.cu", "README.md"};
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s/stream", folder, kernel->name);
    struct bytes json;
    char *mark, *copy, *file = xasprintf("%s/problem.json", path);

    if (file_make_dirs(path, &err) < 0 ||
        file_read(&json, "tests/data/cuda/stream/problem.json", PROBLEM_JSON_MAX, &err) < 0) {
        die(&err);
    }
    copy = xstrndup((const char *)json.data, json.len);
    mark = strstr(copy, "\"n\": 65536, \"steps\": 1000");
    if (!mark) {
        (void)err_set(&err, ERR_INVALID, "tests/data/cuda/stream/problem.json has no n and steps");
        die(&err);
    }
    struct strbuf text = STRBUF_INIT;
    strbuf_add(&text, copy, (size_t)(mark - copy));
    strbuf_addf(&text, "\"n\": %u, \"steps\": %u", kernel->n, kernel->steps);
    strbuf_adds(&text, mark + strlen("\"n\": 65536, \"steps\": 1000"));
    if (file_replace(file, text.data, text.len, false, &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char *from = xasprintf("tests/data/cuda/stream/%s", files[i]);
        char *to = xasprintf("%s/%s", path, files[i]);
        struct bytes bytes;

        if (file_read(&bytes, from, PROBLEM_SOURCE_MAX, &err) < 0 ||
            file_replace(to, bytes.data, bytes.len, false, &err) < 0) {
            die(&err);
        }
        bytes_clear(&bytes);
        free(from);
        free(to);
    }
    load(dir, pool, path);
    bytes_clear(&json);
    strbuf_release(&text);
    free(copy);
    free(file);
    free(path);
}

static void repeat(struct job_client *pool, struct samples *samples, const struct problem_dir *dir,
                   const struct digest *candidate, size_t runs, uint64_t launches)
{
    struct digest *all = xcalloc(runs, sizeof(*all));

    for (size_t i = 0; i < runs; i++) {
        all[i] = *candidate;
    }
    samples_run(pool, samples, dir, all, runs, launches);
    free(all);
}

static void bench_same(struct job_client *pool, const struct kernel *kernel,
                       const struct problem_dir *dir, size_t runs, size_t total[2])
{
    struct samples samples;

    repeat(pool, &samples, dir, &dir->baseline_digest, runs, 0);
    size_t wrong = samples.verdict[VERDICT_FASTER] + samples.verdict[VERDICT_SLOWER];
    total[0] += wrong;
    total[1] += runs;
    printf("A/A %s (%.1f us): %zu of %zu FASTER or SLOWER\n", kernel->name,
           samples.baseline_ns / 1e3, wrong, runs);
    samples_print("   A/A", &samples);
    samples_release(&samples);
    repeat(pool, &samples, dir, &dir->baseline_digest, runs, FEW_LAUNCHES);
    printf("sd of the estimate, %s: %.3f %% with %.0f launches of the candidate\n", kernel->name,
           samples_sd(&samples) * 100, (double)samples.launches / (double)samples.runs);
    samples_release(&samples);
}

// Writes the baseline with another value of PERMILLE.
static void slower_copy(struct strbuf *out, const struct problem_dir *dir, unsigned permille)
{
    static const char mark[] = "#define PERMILLE 1000";
    char *text = xstrndup((const char *)dir->baseline.data, dir->baseline.len);
    char *at = strstr(text, mark);

    if (!at) {
        fprintf(stderr, "benchmark: the baseline has no PERMILLE\n");
        exit(1);
    }
    strbuf_add(out, text, (size_t)(at - text));
    strbuf_addf(out, "#define PERMILLE %u", permille);
    strbuf_adds(out, at + strlen(mark));
    free(text);
}

static void bench_slower(struct job_client *pool, const struct kernel *kernel,
                         const struct problem_dir *dir, size_t runs)
{
    struct strbuf source = STRBUF_INIT;

    slower_copy(&source, dir, kernel->slower_permille);
    struct digest digest;
    job_client_add_blob(pool, source.data, source.len, &digest);
    struct samples samples;
    repeat(pool, &samples, dir, &digest, runs, 0);
    printf("%s, %.1f %% more steps: SLOWER in %zu of %zu\n", kernel->name,
           (double)kernel->slower_permille / 10.0 - 100.0, samples.verdict[VERDICT_SLOWER], runs);
    samples_print("   slower", &samples);
    samples_release(&samples);
    strbuf_release(&source);
}

// Whether the kernel is among the names. Without names every kernel is.
static bool wanted(const struct kernel *kernel, char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], kernel->name) == 0) {
            return true;
        }
    }
    return count <= 0;
}

int main(int argc, char **argv)
{
    char *folder = NULL, search[64];

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)snprintf(search, sizeof(search), "bench-%llx", (unsigned long long)stats_entropy());
    struct session_options options = {.quiet = true};
    struct session *session = NULL;
    struct err err = ERR_INIT;
    struct job_client *pool = NULL;
    uint64_t runs = 100;
    if ((argc > 1 && parse_u64(&runs, argv[1], 10, 100000, "RUNS", &err) < 0) ||
        session_create(&session, &options, &err) < 0 ||
        samples_open(&pool, session, search, &err) < 0 ||
        file_make_temp_dir(&folder, "kcast-bench", &err) < 0) {
        die(&err);
    }
    if (argc < 3) {
        bench_throughput(pool);
    }
    size_t total[2] = {0, 0};
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
        if (!wanted(&kernels[i], argv + 2, argc - 2)) {
            continue;
        }
        struct problem_dir dir;
        load_stream(&dir, pool, &kernels[i], folder);
        bench_same(pool, &kernels[i], &dir,
                   kernels[i].share > 0 ? (runs * kernels[i].share + 99) / 100 : runs, total);
        if (kernels[i].slower_permille > 0) {
            bench_slower(pool, &kernels[i], &dir, runs / 2);
        }
        problem_dir_release(&dir);
    }
    printf("A/A altogether: %zu of %zu FASTER or SLOWER, %.1f %%\n", total[0], total[1],
           100.0 * (double)total[0] / (double)total[1]);
    job_client_close(pool);
    session_free(session);
    (void)!file_remove_tree(folder, &err);
    free(folder);
    return 0;
}

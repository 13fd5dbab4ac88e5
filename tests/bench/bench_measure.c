// Measuring on the CPU device: verdicts a second for a small problem, false FASTER and SLOWER among A/A runs, and whether a candidate
// that is 2 % slower by construction is found.
//   bench_measure [RUNS]      A/A runs, default 500; a tenth as many of the slower candidate
#include "client/pool.h"
#include "client/problem_dir.h"
#include "client/session.h"
#include "common/parse.h"
#include "common/stats.h"
#include "contract/template.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_COUNT 120

static void die(const struct err *err)
{
    fprintf(stderr, "bench_measure: %s\n", err->text);
    exit(err_exit(err->code));
}

struct tally {
    size_t verdict[16];
    double *log2;
    size_t count;
    double held, seconds;
    uint64_t launches;
    double width;
};

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct tally *tally = owner;
    (void)tag;
    if (error != NULL)
        die(error);
    const struct result *result = info->result;
    if (result == NULL) {
        fprintf(stderr, "bench_measure: %s\n", info->reason != NULL ? info->reason : "a job ended without a result");
        exit(1);
    }
    tally->verdict[result->verdict % 16]++;
    if (result->seconds != NULL)
        tally->held += result->seconds->held;
    tally->launches += result->launches;
    if (result->speedup != NULL) {
        tally->log2[tally->count++] = result->speedup->log2;
        tally->width += (result->speedup->hi - result->speedup->lo) / 2;
    }
}

static void run(struct pool *pool, struct tally *tally, const struct problem_dir *dir, const struct digest *candidate, size_t runs)
{
    struct err err = ERR_INIT;
    *tally = (struct tally){.log2 = xcalloc(runs, sizeof(double))};
    uint64_t start = uv_hrtime();
    for (size_t i = 0; i < runs; i++) {
        struct job_spec spec;
        char key[128];
        problem_dir_spec(dir, JOB_MEASURE, &candidate[i], &spec);
        spec.fresh = true;
        spec.repeat = i + 1;
        snprintf(key, sizeof key, "%s-%p-%zu", dir->problem->name, (const void *)tally, i);
        pool_submit(pool, key, &spec, 0, on_job, tally, i);
    }
    if (pool_drain(pool, &err) < 0)
        die(&err);
    tally->seconds = (double)(uv_hrtime() - start) / 1e9;
}

static void print_tally(const char *name, struct tally *tally, size_t runs)
{
    printf("%s: %zu runs in %.1f s, held %.1f ms each, %.0f launches each\n   ", name, runs, tally->seconds,
           tally->held / (double)runs * 1e3, (double)tally->launches / (double)runs);
    for (uint64_t v = 0; v < 16; v++)
        if (tally->verdict[v] > 0)
            printf(" %s %zu", verdict_name(v), tally->verdict[v]);
    if (tally->count > 0)
        printf("; estimate %+.3f %% (sd %.3f %%), half-width %.3f %% on average", (exp2(stats_mean(tally->log2, tally->count)) - 1) * 100,
               sqrt(stats_variance(tally->log2, tally->count)) * log(2) * 100, tally->width / (double)tally->count * log(2) * 100);
    printf("\n");
    free(tally->log2);
}

static void load(struct problem_dir *dir, struct pool *pool, const char *path)
{
    struct err err = ERR_INIT;
    if (problem_dir_load(dir, path, &err) < 0)
        die(&err);
    pool_add_problem(pool, dir);
}

// Distinct candidates that no cache knows, from source to verdict.
static void bench_verdicts(struct pool *pool)
{
    struct err err = ERR_INIT;
    struct problem_dir dir;
    struct template *template = NULL;
    struct tally tally;
    struct digest digest[SMALL_COUNT];
    load(&dir, pool, "tests/data/bench/tiny");
    if (template_parse(&template, (const char *)dir.template_source.data, dir.path, &err) < 0)
        die(&err);
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        struct strbuf source = STRBUF_INIT;
        template_source(template, i, &source);
        pool_add_blob(pool, source.data, source.len, &digest[i]);
        strbuf_release(&source);
    }
    run(pool, &tally, &dir, digest, SMALL_COUNT);
    printf("verdicts on one core, compiled on the others: %.1f a second\n", SMALL_COUNT / tally.seconds);
    print_tally("small problem, distinct candidates", &tally, SMALL_COUNT);
    template_free(template);
    problem_dir_release(&dir);
}

static void bench_same(struct pool *pool, const char *path, size_t runs)
{
    struct problem_dir dir;
    struct tally tally;
    struct digest *digest = xcalloc(runs, sizeof *digest);
    char name[256];
    load(&dir, pool, path);
    for (size_t i = 0; i < runs; i++)
        digest[i] = dir.baseline_digest;
    run(pool, &tally, &dir, digest, runs);
    size_t wrong = tally.verdict[VERDICT_FASTER] + tally.verdict[VERDICT_SLOWER];
    printf("A/A, %s against itself: %zu of %zu FASTER or SLOWER, %.1f %%\n", dir.problem->name, wrong, runs, 100.0 * (double)wrong / (double)runs);
    snprintf(name, sizeof name, "A/A %s", dir.problem->name);
    print_tally(name, &tally, runs);
    free(digest);
    problem_dir_release(&dir);
}

static void bench_slower(struct pool *pool, size_t runs)
{
    struct problem_dir dir;
    struct tally tally;
    struct digest *digest = xcalloc(runs, sizeof *digest);
    struct strbuf source = STRBUF_INIT;
    load(&dir, pool, "tests/data/bench/chain");
    strbuf_adds(&source, "#define LENGTH_PERCENT 102\n");
    strbuf_add(&source, dir.baseline.data, dir.baseline.len);
    pool_add_blob(pool, source.data, source.len, &digest[0]);
    for (size_t i = 1; i < runs; i++)
        digest[i] = digest[0];
    run(pool, &tally, &dir, digest, runs);
    printf("2 %% more work than the baseline: SLOWER in %zu of %zu\n", tally.verdict[VERDICT_SLOWER], runs);
    print_tally("2 % slower", &tally, runs);
    strbuf_release(&source);
    free(digest);
    problem_dir_release(&dir);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    uint64_t runs = 500;
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct session *session = NULL;
    struct session_options options = {.local = true, .quiet = true};
    struct pool *pool = NULL;
    if ((argc > 1 && parse_u64(&runs, argv[1], 10, 100000, "RUNS", &err) < 0) || session_create(&session, &options, &err) < 0 ||
        pool_create(&pool, session, "bench", &err) < 0)
        die(&err);
    bench_verdicts(pool);
    bench_slower(pool, runs / 10);
    bench_same(pool, "tests/data/bench/chain", runs);
    bench_same(pool, "problems/cpu/rmsnorm", runs / 10);
    pool_close(pool);
    session_free(session);
    return 0;
}

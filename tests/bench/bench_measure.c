// Measuring on the CPU device: verdicts per second for a small problem, wrong verdicts FASTER and
// SLOWER among A/A runs, and whether a candidate that is 2 % slower by construction is found.
//  bench_measure [RUNS]      A/A runs, default 500; a tenth as many of the slower candidate
#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "tests/bench/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_COUNT 120

static void load(struct problem_dir *dir, struct job_client *pool, const char *path)
{
    struct err err = ERR_INIT;
    if (problem_dir_load(dir, path, &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, dir);
}

// Measures distinct candidates that no cache has, from source to verdict.
static void bench_verdicts(struct job_client *pool)
{
    struct problem_dir dir;
    load(&dir, pool, "tests/data/bench/tiny");
    struct err err = ERR_INIT;
    struct template *template = NULL;
    if (template_parse(&template, (const char *)dir.template_source.data, dir.path, &err) < 0) {
        die(&err);
    }
    struct digest digest[SMALL_COUNT];
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        struct strbuf source = STRBUF_INIT;
        template_source(template, i, &source);
        job_client_add_blob(pool, source.data, source.len, &digest[i]);
        strbuf_release(&source);
    }
    struct samples samples;
    samples_run(pool, &samples, &dir, digest, SMALL_COUNT, 0);
    printf("verdicts on one core, compiled on the others: %.1f a second\n",
           SMALL_COUNT / samples.seconds);
    samples_print("small problem, distinct candidates", &samples);
    samples_release(&samples);
    template_free(template);
    problem_dir_release(&dir);
}

static void bench_same(struct job_client *pool, const char *path, size_t runs)
{
    struct problem_dir dir;
    struct digest *digest = xcalloc(runs, sizeof *digest);
    load(&dir, pool, path);
    for (size_t i = 0; i < runs; i++) {
        digest[i] = dir.baseline_digest;
    }
    struct samples samples;
    samples_run(pool, &samples, &dir, digest, runs, 0);
    size_t wrong = samples.verdict[VERDICT_FASTER] + samples.verdict[VERDICT_SLOWER];
    printf("A/A, %s against itself: %zu of %zu FASTER or SLOWER, %.1f %%\n", dir.problem->name,
           wrong, runs, 100.0 * (double)wrong / (double)runs);
    char name[256];
    snprintf(name, sizeof name, "A/A %s", dir.problem->name);
    samples_print(name, &samples);
    samples_release(&samples);
    free(digest);
    problem_dir_release(&dir);
}

static void bench_slower(struct job_client *pool, size_t runs)
{
    struct problem_dir dir;
    struct digest *digest = xcalloc(runs, sizeof *digest);
    load(&dir, pool, "tests/data/bench/chain");
    struct strbuf source = STRBUF_INIT;
    strbuf_adds(&source, "#define LENGTH_PERCENT 102\n");
    strbuf_add(&source, dir.baseline.data, dir.baseline.len);
    job_client_add_blob(pool, source.data, source.len, &digest[0]);
    for (size_t i = 1; i < runs; i++) {
        digest[i] = digest[0];
    }
    struct samples samples;
    samples_run(pool, &samples, &dir, digest, runs, 0);
    printf("2 %% more work than the baseline: SLOWER in %zu of %zu\n",
           samples.verdict[VERDICT_SLOWER], runs);
    samples_print("2 % slower", &samples);
    samples_release(&samples);
    strbuf_release(&source);
    free(digest);
    problem_dir_release(&dir);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct session *session = NULL;
    struct session_options options = {.local = true, .quiet = true};
    struct job_client *pool = NULL;
    struct err err = ERR_INIT;
    uint64_t runs = 500;
    if ((argc > 1 && parse_u64(&runs, argv[1], 10, 100000, "RUNS", &err) < 0) ||
        session_create(&session, &options, &err) < 0 ||
        samples_open(&pool, session, "bench", &err) < 0) {
        die(&err);
    }
    bench_verdicts(pool);
    bench_slower(pool, runs / 10);
    bench_same(pool, "tests/data/bench/chain", runs);
    bench_same(pool, "problems/cpu/rmsnorm", runs / 10);
    job_client_close(pool);
    session_free(session);
    return 0;
}

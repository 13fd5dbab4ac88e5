#include "tests/bench/tally.h"
#include "client/session.h"
#include "common/stats.h"
#include "contract/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const struct err *err)
{
    fprintf(stderr, "benchmark: %s\n", err->text);
    exit(err_exit((int)err->code));
}

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct tally *tally = owner;
    const struct result *result = error == NULL ? info->result : NULL;

    (void)tag;
    if (error != NULL) {
        die(error);
    }
    if (result == NULL) {
        fprintf(stderr, "benchmark: %s\n",
                info->reason != NULL ? info->reason : "a job ended without a result");
        exit(1);
    }
    tally->verdict[result->verdict % 16]++;
    if (result->seconds != NULL) {
        tally->held_s += result->seconds->held;
    }
    if (result->baseline_ns != NULL) {
        tally->baseline_ns = result->baseline_ns->p50;
    }
    tally->launches += result->launches;
    if (result->speedup != NULL) {
        tally->log2[tally->count] = result->speedup->log2;
        tally->half_width[tally->count++] = (result->speedup->hi - result->speedup->lo) / 2;
    } else if (result->reason != NULL && tally->verdict[result->verdict % 16] == 1) {
        printf("   %s: %s\n", verdict_name(result->verdict), result->reason);
    }
}

void tally_run(struct pool *pool, struct tally *tally, const struct problem_dir *dir,
               const struct digest *candidate, size_t runs, uint64_t max_launches)
{
    static unsigned series;
    struct err err = ERR_INIT;
    uint64_t start = uv_hrtime();

    series++;
    *tally = (struct tally){.runs = runs,
                            .log2 = xcalloc(runs, sizeof(double)),
                            .half_width = xcalloc(runs, sizeof(double))};
    for (size_t i = 0; i < runs; i++) {
        struct job_spec spec;
        char key[128];

        problem_dir_spec(dir, JOB_MEASURE, &candidate[i], &spec);
        spec.repeat = ((uint64_t)series << 32) + i + 1; // no cache knows it
        if (max_launches > 0) {
            spec.max_launches = max_launches;
            spec.precision_log2 = 1e-6;
        }
        (void)snprintf(key, sizeof(key), "%s-%u-%zu", dir->problem->name, series, i);
        pool_submit(pool, key, &spec, 0, on_job, tally, i);
    }
    if (pool_drain(pool, &err) < 0) {
        die(&err);
    }
    tally->seconds = (double)(uv_hrtime() - start) / 1e9;
}

void tally_release(struct tally *tally)
{
    free(tally->log2);
    free(tally->half_width);
    *tally = (struct tally){.runs = 0};
}

double tally_sd(const struct tally *tally)
{
    return sqrt(stats_variance(tally->log2, tally->count)) * log(2);
}

double tally_median(const struct tally *tally)
{
    double *copy = xcalloc(tally->count + 1, sizeof(double)), median;

    memcpy(copy, tally->log2, tally->count * sizeof(double));
    median = exp2(stats_median(copy, tally->count));
    free(copy);
    return median;
}

void tally_print(const char *name, const struct tally *tally)
{
    double runs = (double)tally->runs;

    printf("%s: %zu runs in %.1f s, held %.1f ms each, %.0f launches each\n   ", name, tally->runs,
           tally->seconds, tally->held_s / runs * 1e3, (double)tally->launches / runs);
    for (uint64_t v = 0; v < 16; v++) {
        if (tally->verdict[v] > 0) {
            printf(" %s %zu", verdict_name(v), tally->verdict[v]);
        }
    }
    if (tally->count > 0) {
        printf("; estimate %+.3f %% (sd %.3f %%), half-width %.3f %% on average",
               (exp2(stats_mean(tally->log2, tally->count)) - 1) * 100, tally_sd(tally) * 100,
               stats_mean(tally->half_width, tally->count) * log(2) * 100);
    }
    printf("\n");
}

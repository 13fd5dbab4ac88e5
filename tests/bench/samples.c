#include "tests/bench/samples.h"
#include "client/session.h"
#include "common/stats.h"
#include "proto/verdict.h"
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
    struct samples *samples = owner;
    const struct result *result = !error ? info->result : NULL;

    (void)tag;
    if (error) {
        die(error);
    }
    if (!result) {
        fprintf(stderr, "benchmark: %s\n",
                info->reason ? info->reason : "a job ended without a result");
        exit(1);
    }
    samples->verdict[result->verdict % 16]++;
    if (result->seconds) {
        samples->held_s += result->seconds->held;
    }
    if (result->baseline_ns) {
        samples->baseline_ns = result->baseline_ns->p50;
    }
    samples->launches += result->launches;
    if (result->speedup) {
        samples->log2[samples->count] = result->speedup->log2;
        samples->half_width[samples->count++] = (result->speedup->hi - result->speedup->lo) / 2;
    } else if (result->reason && samples->verdict[result->verdict % 16] == 1) {
        printf("   %s: %s\n", verdict_name(result->verdict), result->reason);
    }
}

int samples_open(struct job_client **ret, struct session *session, const char *search,
                 struct err *err)
{
    struct remote *remote;
    int rc = session_daemon(session, &remote, err);
    if (rc == 0) {
        *ret = job_client_create(session, remote, search);
    }
    return rc;
}

void samples_add_problem(struct job_client *pool, const struct problem_dir *dir)
{
    job_client_add_blob(pool, dir->json.data, dir->json.len, NULL);
    job_client_add_blob(pool, dir->reference.data, dir->reference.len, NULL);
    job_client_add_blob(pool, dir->baseline.data, dir->baseline.len, NULL);
}

void samples_run(struct job_client *pool, struct samples *samples, const struct problem_dir *dir,
                 const struct digest *candidate, size_t runs, uint64_t max_launches)
{
    static unsigned series;
    uint64_t start = uv_hrtime();

    series++;
    *samples = (struct samples){.runs = runs,
                                .log2 = xcalloc(runs, sizeof(double)),
                                .half_width = xcalloc(runs, sizeof(double))};
    for (size_t i = 0; i < runs; i++) {
        struct job_spec spec;

        problem_dir_spec(dir, JOB_MEASURE, &candidate[i], &spec);
        spec.repeat = ((uint64_t)series << 32) + i + 1; // a job that no cache has
        if (max_launches > 0) {
            spec.max_launches = max_launches;
            spec.precision_log2 = 1e-6;
        }
        char key[128];
        (void)snprintf(key, sizeof(key), "%s-%u-%zu", dir->problem->name, series, i);
        job_client_submit(pool, key, &spec, 0, on_job, samples, i);
    }
    struct err err = ERR_INIT;
    if (job_client_drain(pool, &err) < 0) {
        die(&err);
    }
    samples->seconds = (double)(uv_hrtime() - start) / 1e9;
}

void samples_release(struct samples *samples)
{
    free(samples->log2);
    free(samples->half_width);
    *samples = (struct samples){.runs = 0};
}

double samples_sd(const struct samples *samples)
{
    return sqrt(stats_variance(samples->log2, samples->count)) * log(2);
}

double samples_median(const struct samples *samples)
{
    double *copy = xcalloc(samples->count + 1, sizeof(double)), median;

    memcpy(copy, samples->log2, samples->count * sizeof(double));
    median = exp2(stats_median(copy, samples->count));
    free(copy);
    return median;
}

void samples_print(const char *name, const struct samples *samples)
{
    double runs = (double)samples->runs;

    printf("%s: %zu runs in %.1f s, held %.1f ms each, %.0f launches each\n   ", name,
           samples->runs, samples->seconds, samples->held_s / runs * 1e3,
           (double)samples->launches / runs);
    for (uint64_t v = 0; v < 16; v++) {
        if (samples->verdict[v] > 0) {
            printf(" %s %zu", verdict_name(v), samples->verdict[v]);
        }
    }
    if (samples->count > 0) {
        printf("; estimate %+.3f %% (sd %.3f %%), half-width %.3f %% on average",
               (exp2(stats_mean(samples->log2, samples->count)) - 1) * 100,
               samples_sd(samples) * 100,
               stats_mean(samples->half_width, samples->count) * log(2) * 100);
    }
    printf("\n");
}

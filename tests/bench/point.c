#include "tests/bench/point.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 40         // points that are looked at before a problem is given up
#define STEP 0.618033989 // of the template, from one point that is no use to the next

// ---- one measurement ----

struct answer {
    struct point_measured *ret;
    bool is_ratio;
    char reason[256];
};

static void take(struct point_measured *ret, const struct result *result)
{
    *ret = (struct point_measured){.log2 = result->speedup->log2};
    for (size_t i = 0; i < result->cases_count && i < PROBLEM_CASE_MAX; i++) {
        const struct case_result *of = &result->cases[i];
        ret->of_case[i] = (struct point_case){.log2 = of->speedup->log2,
                                              .baseline_ns = of->baseline_ns->p50,
                                              .candidate_ns = of->candidate_ns->p50};
    }
}

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct answer *answer = owner;
    const struct result *result = !error ? info->result : NULL;
    const char *reason = error ? error->text : result ? result->reason : info->reason;

    (void)tag;
    if (error) {
        die(error);
    }
    (void)snprintf(answer->reason, sizeof(answer->reason), "%s",
                   reason ? reason : "no reason given");
    if (result && result->speedup && verdict_is_ratio(result->verdict)) {
        answer->is_ratio = true;
        take(answer->ret, result);
    }
}

// Measures the point afresh. Returns whether it has a speedup.
static bool measure(struct point *point, struct job_client *pool, const struct problem_dir *dir,
                    struct answer *answer)
{
    static unsigned series;
    struct job_spec spec;
    char key[128];

    *answer = (struct answer){.ret = &point->measured[point->turns]};
    problem_dir_spec(dir, JOB_MEASURE, &point->digest, &spec);
    spec.repeat = stats_entropy() | 1; // a job that no cache has
    (void)snprintf(key, sizeof(key), "%s-%u", dir->problem->name, series++);
    job_client_submit(pool, key, &spec, 0, on_job, answer, 0);
    struct err err = ERR_INIT;
    if (job_client_drain(pool, &err) < 0) {
        die(&err);
    }
    point->turns += answer->is_ratio;
    return answer->is_ratio;
}

bool point_measure(struct point *point, struct job_client *pool, const struct problem_dir *dir)
{
    struct answer answer;

    if (point->turns == POINT_TURNS_MAX) {
        printf("%s %s: more than %d measurements\n", dir->problem->name, point->name.data,
               POINT_TURNS_MAX);
        return false;
    }
    if (!measure(point, pool, dir, &answer)) {
        printf("%s %s: %s\n", dir->problem->name, point->name.data, answer.reason);
        return false;
    }
    return true;
}

// ---- points ----

static void open_point(struct point *ret, struct job_client *pool, struct template *template,
                       size_t number)
{
    *ret = (struct point){.number = number, .name = STRBUF_INIT, .source = STRBUF_INIT};
    template_point_name(template, number, &ret->name);
    template_source(template, number, &ret->source);
    job_client_add_blob(pool, ret->source.data, ret->source.len, &ret->digest);
}

bool point_find(struct point *ret, struct job_client *pool, const struct problem_dir *dir,
                struct template *template, double share,
                bool (*usable)(void *owner, const struct point *point), void *owner)
{
    size_t count = template_point_count(template);

    for (size_t i = 0; i < TRIES; i++) {
        double at = share + (double)i * STEP;
        struct answer answer;

        open_point(ret, pool, template, (size_t)((at - floor(at)) * (double)count));
        if ((!usable || usable(owner, ret)) && measure(ret, pool, dir, &answer)) {
            return true;
        }
        point_release(ret);
    }
    return false;
}

void point_release(struct point *point)
{
    strbuf_release(&point->name);
    strbuf_release(&point->source);
}

// ---- all turns ----

// The median over turns of the double that lies `offset` bytes into each measurement; turns in
// which it is NaN do not count.
static double median_of(const struct point *point, size_t offset)
{
    double value[POINT_TURNS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < point->turns; i++) {
        memcpy(&value[count], (const char *)&point->measured[i] + offset, sizeof(double));
        count += !isnan(value[count]);
    }
    return stats_median(value, count);
}

void point_median(const struct point *point, size_t cases, struct point_measured *ret)
{
    ret->log2 = median_of(point, offsetof(struct point_measured, log2));
    for (size_t i = 0; i < cases && i < PROBLEM_CASE_MAX; i++) {
        size_t at = offsetof(struct point_measured, of_case) + i * sizeof(struct point_case);
        ret->of_case[i] = (struct point_case){
            .log2 = median_of(point, at + offsetof(struct point_case, log2)),
            .baseline_ns = median_of(point, at + offsetof(struct point_case, baseline_ns)),
            .candidate_ns = median_of(point, at + offsetof(struct point_case, candidate_ns))};
    }
}

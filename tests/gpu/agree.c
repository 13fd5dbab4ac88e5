// Finds out whether speedups agree with those of another day or machine.
//   agree PROBLEMS POINTS NEW [OLD]
// measures POINTS points of each problem's template, spread over it, and writes a line "problem
// point log2 lo hi" for each to the file NEW. OLD is such a file from another time. With OLD, the
// program prints for how many points the two intervals overlap, and for how many the difference is
// at most sqrt(half1^2 + half2^2). It uses the daemon at the default address. The last line is "N
// of N agree" or "N measured".
#include "client/session.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 64
#define PROBLEMS_MAX 256
#define SHARE 0.9 // of the points have to agree

struct point {
    char *problem;
    size_t number;
    struct estimate estimate;
    bool measured;
};

static struct point *points;
static size_t point_count;

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct point *point = &points[tag];

    (void)owner;
    if (!error && info->result && info->result->speedup &&
        verdict_is_ratio(info->result->verdict)) {
        point->estimate = *info->result->speedup;
        point->measured = true;
    }
}

static void submit_problem(struct job_client *pool, const char *path, size_t wanted)
{
    struct err err = ERR_INIT;
    struct problem_dir dir;

    if (problem_dir_load(&dir, path, &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, &dir);
    struct template *template = NULL;
    if (template_parse(&template, (const char *)dir.template_source.data, dir.path, &err) < 0) {
        die(&err);
    }
    size_t count = template_point_count(template);
    for (size_t i = 0; i < wanted && i < count; i++) {
        struct point *point = &points[point_count];

        *point = (struct point){.problem = xstrdup(dir.problem->name),
                                .number = (size_t)((double)i * (double)count / (double)wanted)};
        struct strbuf source = STRBUF_INIT;
        template_source(template, point->number, &source);
        struct digest digest;
        job_client_add_blob(pool, source.data, source.len, &digest);
        struct job_spec spec;
        problem_dir_spec(&dir, JOB_MEASURE, &digest, &spec);
        char key[160];
        (void)snprintf(key, sizeof(key), "%s-%zu", point->problem, point->number);
        job_client_submit(pool, key, &spec, 0, on_job, NULL, point_count++);
        strbuf_release(&source);
    }
    template_free(template);
    problem_dir_release(&dir);
}

static int is_problem(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void write_points(const char *path)
{
    struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < point_count; i++) {
        const struct point *p = &points[i];

        if (p->measured) {
            strbuf_addf(&text, "%s %zu %.6f %.6f %.6f\n", p->problem, p->number, p->estimate.log2,
                        p->estimate.lo, p->estimate.hi);
        }
    }
    struct err err = ERR_INIT;
    if (file_replace(path, strbuf_text(&text), text.len, false, &err) < 0) {
        die(&err);
    }
    strbuf_release(&text);
}

static const struct point *find(const char *problem, size_t number)
{
    for (size_t i = 0; i < point_count; i++) {
        if (points[i].measured && points[i].number == number &&
            strcmp(points[i].problem, problem) == 0) {
            return &points[i];
        }
    }
    return NULL;
}

static int compare(const char *path)
{
    size_t agree = 0, close = 0, count = 0;
    char problem[80], line[256];
    FILE *file = fopen(path, "r");

    if (!file) {
        fprintf(stderr, "agree: %s cannot be read\n", path);
        return 1;
    }
    while (fgets(line, sizeof(line), file)) {
        struct estimate old = {.blocks = 0};
        const struct point *now;
        size_t number;

        if (sscanf(line, "%79s %zu %lf %lf %lf", problem, &number, &old.log2, &old.lo, &old.hi) !=
                5 ||
            !(now = find(problem, number))) {
            continue;
        }
        double half = (old.hi - old.lo) / 2, other = (now->estimate.hi - now->estimate.lo) / 2;
        double apart = fabs(old.log2 - now->estimate.log2);

        count++;
        agree += apart <= half + other;
        close += apart <= hypot(half, other);
        if (apart > half + other) {
            printf("%s %zu: %.4fx then, %.4fx now; %.2f %% apart, the intervals allow %.2f %%\n",
                   problem, number, exp2(old.log2), exp2(now->estimate.log2),
                   (exp2(apart) - 1) * 100, (exp2(half + other) - 1) * 100);
        }
    }
    fclose(file);
    printf("%zu of them differ by no more than chance would have it\n", close);
    printf("%zu of %zu agree\n", agree, count);
    return count > 0 && (double)agree >= SHARE * (double)count ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    uint64_t wanted;

    if (argc < 4 || parse_u64(&wanted, argv[2], 1, POINTS_MAX, "POINTS", &err) < 0) {
        fprintf(stderr, "usage: agree PROBLEMS POINTS NEW [OLD]\n");
        return 2;
    }
    char search[64];
    (void)snprintf(search, sizeof(search), "agree-%llx", (unsigned long long)stats_entropy());
    struct session_options options = {.quiet = true};
    struct session *session = NULL;
    struct job_client *pool = NULL;
    if (session_create(&session, &options, &err) < 0 ||
        samples_open(&pool, session, search, &err) < 0) {
        die(&err);
    }
    points = xcalloc(PROBLEMS_MAX * wanted, sizeof(*points));
    struct dirent **name;
    int count = scandir(argv[1], &name, is_problem, alphasort);
    for (int i = 0; i < count && i < PROBLEMS_MAX; i++) {
        char *path = xasprintf("%s/%s", argv[1], name[i]->d_name);

        submit_problem(pool, path, wanted);
        free(path);
    }
    if (job_client_drain(pool, &err) < 0) {
        die(&err);
    }
    size_t measured = 0;
    for (size_t i = 0; i < point_count; i++) {
        measured += points[i].measured;
    }
    write_points(argv[3]);
    printf("%zu of %zu points have a ratio\n", measured, point_count);
    if (argc > 4) {
        return compare(argv[4]);
    }
    printf("%zu measured\n", measured);
    return 0;
}

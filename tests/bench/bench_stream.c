// Does what kcast measures agree with what a program sees that streams new data? For points of the
// problems' templates this prints times and speedups as the daemon measures them and as a loop in
// this process sees them (tests/bench/stream_loop.h), to which new data comes in three ways: it is
// drawn in place, it is copied, or another process copies it. Daemon and loops take turns, each
// with fresh memory; medians over the turns are printed.
//  bench_stream [POINTS [ROUNDS [TURNS [PROBLEM…]]]]   points of each template, default 3; blocks of
//                            four calls of a turn, default 24; turns, default 3; default all
//                            problems
#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "tests/bench/point.h"
#include "tests/bench/samples.h"
#include "tests/bench/stream_loop.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POINTS_MAX 64 // of all problems, in the summary

static const char *const problem_name[] = {"conv2d", "histogram", "rmsnorm",  "scan",
                                           "sgemm",  "softmax",   "transpose"};

static const char *const filler_name[FILLERS] = {"in place", "by copy", "by another process"};

// One problem and what is compiled for it.
struct bench {
    struct job_client *pool;
    struct problem_dir dir;
    char *folder; // of the compiled objects
    unsigned objects;
    struct stream_loop loop;
    double difference[FILLERS][POINTS_MAX]; // |log2| of each point
    size_t points[FILLERS];
};

// ---- code ----

static void write_file(const struct bench *bench, const char *name, const void *data, size_t len)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", bench->folder, name);

    if (file_replace(path, data, len, false, &err) < 0) {
        die(&err);
    }
    free(path);
}

// Runs gcc with the flags that docs/problems.md documents, without a word about what it refuses.
static bool run_gcc(const char *folder, const char *to)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (chdir(folder) == 0 && null >= 0 && dup2(null, STDERR_FILENO) >= 0) {
            (void)execlp("gcc", "gcc", "-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast",
                         "-fPIC", "-shared", "-nostartfiles", "-include", "problem.h", "-o", to,
                         "source.c", "glue.c", "-lm", (char *)NULL);
        }
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

// Returns the entry of a source, or NULL when it does not compile. Each object has another path:
// dlopen would return the same object for the same path.
static entry_function *compile(struct bench *bench, const void *source, size_t len)
{
    struct strbuf header = STRBUF_INIT, glue = STRBUF_INIT;
    char *to = xasprintf("%s/object%u.so", bench->folder, bench->objects++);

    problem_header(bench->dir.problem, false, &header);
    problem_glue(bench->dir.problem, false, &glue);
    write_file(bench, "problem.h", header.data, header.len);
    write_file(bench, "glue.c", glue.data, glue.len);
    write_file(bench, "source.c", source, len);
    void *object = run_gcc(bench->folder, to) ? dlopen(to, RTLD_NOW | RTLD_LOCAL) : NULL;
    strbuf_release(&header);
    strbuf_release(&glue);
    free(to);
    return object ? (entry_function *)(uintptr_t)dlsym(object, "kcast_entry") : NULL;
}

static bool compiles(void *owner, const struct point *point)
{
    struct bench *bench = owner;

    return (bench->loop.arm[1] = compile(bench, point->source.data, point->source.len));
}

// ---- the comparison ----

// The speedup of the measured medians, in log2, if every launch had taken so much less.
static double of_medians(const struct problem *problem, const struct point_measured *measured,
                         double less_ns)
{
    double sum = 0;

    for (size_t i = 0; i < problem->bench_count; i++) {
        const struct point_case *of = &measured->of_case[i];
        sum += problem->bench[i].weight *
               log2((of->baseline_ns - less_ns) / (of->candidate_ns - less_ns));
    }
    return sum;
}

static void print_case(const struct problem *problem, size_t of,
                       const struct point_measured *daemon,
                       const struct point_measured loop[FILLERS])
{
    const struct point_case *way[1 + FILLERS] = {&daemon->of_case[of]};
    struct strbuf name = STRBUF_INIT;

    for (size_t i = 0; i < FILLERS; i++) {
        way[1 + i] = &loop[i].of_case[of];
    }
    problem_case_name(problem, &problem->bench[of], &name);
    printf("   %-24s baseline", name.data);
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        printf(" %8.1f", way[i]->baseline_ns / 1e3);
    }
    printf(" us, candidate");
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        printf(" %7.1f", way[i]->candidate_ns / 1e3);
    }
    printf(" us, speedup");
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        printf(" %6.3f", exp2(way[i]->log2));
    }
    printf("\n");
    strbuf_release(&name);
}

static void print_point(struct bench *bench, const struct point *point,
                        const struct point_measured loop[FILLERS])
{
    const struct problem *problem = bench->dir.problem;
    struct point_measured measured;
    double low = point->measured[0].log2, high = low;
    double handover_ns = bench->loop.handover_ns / (double)bench->loop.handovers;

    point_median(point, problem->bench_count, &measured);
    for (size_t i = 1; i < point->turns; i++) {
        low = fmin(low, point->measured[i].log2);
        high = fmax(high, point->measured[i].log2);
    }
    printf("%s %s: measured; streamed in place, by copy, by another process\n", problem->name,
           point->name.data);
    for (size_t i = 0; i < problem->bench_count; i++) {
        print_case(problem, i, &measured, loop);
    }
    printf(
        "   measured %.3f (%.3f to %.3f; its medians %.3f, with %.1f us less for each launch %.3f)",
        exp2(measured.log2), exp2(low), exp2(high), exp2(of_medians(problem, &measured, 0)),
        handover_ns / 1e3, exp2(of_medians(problem, &measured, handover_ns)));
    for (enum stream_filler filler = 0; filler < FILLERS; filler++) {
        double apart = measured.log2 - loop[filler].log2;
        printf("; %s %.3f: %+.1f %%", filler_name[filler], exp2(loop[filler].log2),
               100 * (exp2(apart) - 1));
        if (!isnan(apart) && bench->points[filler] < POINTS_MAX) {
            bench->difference[filler][bench->points[filler]++] = fabs(apart);
        }
    }
    printf("\n");
}

// Daemon and loops in turns.
static void compare(struct bench *bench, struct point *point, uint64_t turns)
{
    const struct problem *problem = bench->dir.problem;
    struct point loop[FILLERS] = {{.turns = 0}};

    for (uint64_t turn = 0; turn < turns; turn++) {
        if (point->turns <= turn && !point_measure(point, bench->pool, &bench->dir)) {
            return;
        }
        for (enum stream_filler filler = 0; filler < FILLERS; filler++) {
            struct point_measured *now = &loop[filler].measured[loop[filler].turns++];

            for (size_t i = 0; i < problem->bench_count; i++) {
                stream_loop_run(&bench->loop, &problem->bench[i], filler, &now->of_case[i]);
                now->log2 += problem->bench[i].weight * now->of_case[i].log2;
            }
        }
    }
    struct point_measured seen[FILLERS];
    for (enum stream_filler filler = 0; filler < FILLERS; filler++) {
        point_median(&loop[filler], problem->bench_count, &seen[filler]);
    }
    print_point(bench, point, seen);
}

static void open_problem(struct bench *bench, const char *name)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("problems/cpu/%s", name);

    if (problem_dir_load(&bench->dir, path, &err) < 0) {
        die(&err);
    }
    free(path);
    samples_add_problem(bench->pool, &bench->dir);
    stream_loop_open(&bench->loop, bench->dir.problem);
    bench->loop.arm[0] = compile(bench, bench->dir.baseline.data, bench->dir.baseline.len);
    if (!bench->loop.arm[0]) {
        (void)err_set(&err, ERR_INVALID, "%s/baseline.c does not compile here", bench->dir.path);
        die(&err);
    }
}

static void compare_problem(struct bench *bench, const char *name, uint64_t points, uint64_t turns)
{
    struct err err = ERR_INIT;
    struct template *template = NULL;

    open_problem(bench, name);
    if (template_parse(&template, (const char *)bench->dir.template_source.data, bench->dir.path,
                       &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < points; i++) {
        struct point point;

        if (!point_find(&point, bench->pool, &bench->dir, template,
                        ((double)i + 0.5) / (double)points, compiles, bench)) {
            (void)err_set(&err, ERR_NOT_FOUND, "no point of %s/template.c has a speedup",
                          bench->dir.path);
            die(&err);
        }
        compare(bench, &point, turns);
        point_release(&point);
    }
    stream_loop_close(&bench->loop);
    template_free(template);
    problem_dir_release(&bench->dir);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct session *session = NULL;
    struct session_options options = {.local = true, .quiet = true};
    struct bench bench = {.loop.rounds = 24};
    struct err err = ERR_INIT;
    uint64_t points = 3, turns = 3;
    char search[64];
    (void)snprintf(search, sizeof(search), "stream-%llx", (unsigned long long)stats_entropy());
    if ((argc > 1 && parse_u64(&points, argv[1], 1, 9, "POINTS", &err) < 0) ||
        (argc > 2 && parse_u64(&bench.loop.rounds, argv[2], 3, 100000, "ROUNDS", &err) < 0) ||
        (argc > 3 && parse_u64(&turns, argv[3], 1, POINT_TURNS_MAX, "TURNS", &err) < 0) ||
        session_create(&session, &options, &err) < 0 ||
        samples_open(&bench.pool, session, search, &err) < 0 ||
        file_make_temp_dir(&bench.folder, "kcast-stream", &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < ARRAY_LEN(problem_name) && argc <= 4; i++) {
        compare_problem(&bench, problem_name[i], points, turns);
    }
    for (int i = 4; i < argc; i++) {
        compare_problem(&bench, argv[i], points, turns);
    }
    for (enum stream_filler filler = 0; filler < FILLERS; filler++) {
        double *difference = bench.difference[filler];
        size_t count = bench.points[filler];
        double median = stats_median(difference, count); // which sorts
        printf("%zu points, new data %s: the two differ by %.1f %% in the median and %.1f %% at "
               "most\n",
               count, filler_name[filler], 100 * (exp2(median) - 1),
               count > 0 ? 100 * (exp2(difference[count - 1]) - 1) : (double)NAN);
    }
    printf("%llu of %llu blocks count; another process's data costs %.1f us of asking and waking\n",
           (unsigned long long)bench.loop.counted, (unsigned long long)bench.loop.blocks,
           bench.loop.handover_ns / (double)bench.loop.handovers / 1e3);
    job_client_close(bench.pool);
    session_free(session);
    if (file_remove_tree(bench.folder, &err) != 0) {
        die(&err);
    }
    free(bench.folder);
    return 0;
}

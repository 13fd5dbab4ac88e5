// Does what kcast measures on a GPU agree with what a program sees that streams new data?
//   stream PROBLEMS [POINTS [ROUNDS [TURNS [PROBLEM…]]]]
// For points of the templates of CUDA problems in the folder PROBLEMS this prints times and
// speedups twice: as the daemon measures them, and as this program sees them, which compiles the
// same sources, copies new data of its own to the GPU before each launch and times the launch by
// events (tests/gpu/stream_run.h). POINTS of each template (3), ROUNDS contents of each case and
// turn (24), TURNS of both (3), whose medians are printed; without PROBLEM some of kcast's own. The
// program uses the daemon in $KCAST_POOL, else at the default address. The daemon measures
// everything first, because another program with a context disturbs it; this program then uses GPU
// 0. The last line is a summary. The exit status is not 0 when a point computes something else here
// than the baseline, or when something fails.
#include "client/session.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "tests/bench/draw.h"
#include "tests/bench/point.h"
#include "tests/bench/samples.h"
#include "tests/gpu/stream_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEMS_MAX 32
#define POINTS_MAX (STREAM_ARMS_MAX - 1)

static const char *const default_problem[] = {"axpy",  "reduce_sum", "softmax",   "layernorm",
                                              "sgemm", "transpose",  "histogram", "scan"};

// A point, and what the program sees of it in each turn.
struct candidate {
    struct point point;
    struct stream_code code;
    struct point seen; // its measurements alone are used
};

struct subject {
    struct problem_dir dir;
    struct stream_code baseline;
    struct draw *draw[PROBLEM_TENSOR_MAX];
    struct candidate candidate[POINTS_MAX];
    size_t points;
};

struct comparison {
    struct job_client *pool;
    struct nvrtc *nvrtc;
    struct stream_device device;
    struct subject *subject[PROBLEMS_MAX]; // owned
    size_t subjects;
    uint64_t points, rounds, turns;
    double difference[PROBLEMS_MAX * POINTS_MAX]; // of each point, |log2|
    size_t compared, wrong;
};

// ---- what the daemon says ----

static void compile(struct comparison *comparison, struct subject *subject, const char *source,
                    struct stream_code *ret)
{
    struct err err = ERR_INIT;

    if (stream_code_compile(ret, comparison->nvrtc, comparison->device.target, subject->dir.problem,
                            source, subject->dir.problem->name, &err) != 0) {
        die(&err);
    }
}

static void open_subject(struct comparison *comparison, struct subject *subject, const char *path)
{
    struct err err = ERR_INIT;

    if (problem_dir_load(&subject->dir, path, &err) < 0) {
        die(&err);
    }
    const struct problem *problem = subject->dir.problem;
    if (!problem->cuda || !subject->dir.template_source.data) {
        (void)err_set(&err, ERR_INVALID, "%s: it is no CUDA problem with a template", path);
        die(&err);
    }
    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (problem->tensor[t].direction != DIRECTION_OUT &&
            draw_create(&subject->draw[t], &problem->tensor[t], stats_entropy(), &err) != 0) {
            (void)err_wrap(&err, "%s", path);
            die(&err);
        }
    }
    compile(comparison, subject, (const char *)subject->dir.baseline.data, &subject->baseline);
    samples_add_problem(comparison->pool, &subject->dir);
}

// Finds the points of a problem and has the daemon measure them, each as often as there are turns.
static void measure_subject(struct comparison *comparison, struct subject *subject)
{
    struct template *template = NULL;
    struct err err = ERR_INIT;

    if (template_parse(&template, (const char *)subject->dir.template_source.data,
                       subject->dir.path, &err) < 0) {
        die(&err);
    }
    for (uint64_t i = 0; i < comparison->points; i++) {
        struct candidate *candidate = &subject->candidate[subject->points];
        double share = ((double)i + 0.5) / (double)comparison->points;
        bool there = point_find(&candidate->point, comparison->pool, &subject->dir, template, share,
                                NULL, NULL);

        while (there && candidate->point.turns < comparison->turns) {
            there = point_measure(&candidate->point, comparison->pool, &subject->dir);
        }
        if (!there) {
            (void)err_set(&err, ERR_NOT_FOUND,
                          "the daemon gives no speedup for a point of %s/template.cu; see its log",
                          subject->dir.path);
            die(&err);
        }
        compile(comparison, subject, candidate->point.source.data, &candidate->code);
        subject->points++;
    }
    template_free(template);
}

// ---- what the program sees ----

// Adds the case to the turn of each candidate.
static void take_times(const struct comparison *comparison, struct subject *subject, size_t of,
                       size_t turn, const struct stream_times *times)
{
    double *work = xcalloc(comparison->rounds, sizeof(*work));
    double baseline_ns;

    memcpy(work, times->ns[0], comparison->rounds * sizeof(*work));
    baseline_ns = stats_median(work, comparison->rounds);
    for (size_t i = 0; i < subject->points; i++) {
        struct point_measured *turn_of = &subject->candidate[i].seen.measured[turn];
        const double *ns = times->ns[i + 1];
        double log2_ratio;

        for (size_t k = 0; k < comparison->rounds; k++) {
            work[k] = log2(times->ns[0][k] / ns[k]);
        }
        log2_ratio = stats_median(work, comparison->rounds);
        memcpy(work, ns, comparison->rounds * sizeof(*work));
        turn_of->of_case[of] =
            (struct point_case){.log2 = log2_ratio,
                                .baseline_ns = baseline_ns,
                                .candidate_ns = stats_median(work, comparison->rounds)};
        turn_of->log2 += subject->dir.problem->bench[of].weight * log2_ratio;
    }
    free(work);
}

static void check_outputs(struct comparison *comparison, const struct subject *subject, size_t of,
                          const struct stream_times *times)
{
    const struct problem *problem = subject->dir.problem;
    struct strbuf name = STRBUF_INIT;

    problem_case_name(problem, &problem->bench[of], &name);
    for (size_t i = 0; i < subject->points; i++) {
        if (!times->agrees[i + 1]) {
            printf("%s %s computes something else here than the baseline, for %s\n", problem->name,
                   subject->candidate[i].point.name.data, name.data);
            comparison->wrong++;
        }
    }
    strbuf_release(&name);
}

static void stream_subject(struct comparison *comparison, struct subject *subject, size_t turn)
{
    const struct problem *problem = subject->dir.problem;
    struct stream_case of = {.problem = problem,
                             .code = {&subject->baseline},
                             .arms = subject->points + 1,
                             .rounds = comparison->rounds};
    struct err err = ERR_INIT;

    memcpy(of.draw, subject->draw, sizeof(of.draw));
    for (size_t i = 0; i < subject->points; i++) {
        of.code[i + 1] = &subject->candidate[i].code;
        subject->candidate[i].seen.turns = turn + 1;
    }
    for (size_t i = 0; i < problem->bench_count; i++) {
        struct stream_times times;

        of.shape = &problem->bench[i];
        if (stream_run(&comparison->device, &of, &times, &err) != 0) {
            (void)err_wrap(&err, "%s", problem->name);
            die(&err);
        }
        take_times(comparison, subject, i, turn, &times);
        check_outputs(comparison, subject, i, &times);
        for (size_t arm = 0; arm < of.arms; arm++) {
            free(times.ns[arm]);
        }
    }
}

// ---- the comparison ----

static void range(const struct point *point, double *ret_low, double *ret_high)
{
    *ret_low = *ret_high = point->measured[0].log2;
    for (size_t i = 1; i < point->turns; i++) {
        *ret_low = fmin(*ret_low, point->measured[i].log2);
        *ret_high = fmax(*ret_high, point->measured[i].log2);
    }
}

static void print_candidate(struct comparison *comparison, const struct problem *problem,
                            const struct candidate *candidate)
{
    struct point_measured daemon, here;
    double low[2], high[2];

    point_median(&candidate->point, problem->bench_count, &daemon);
    point_median(&candidate->seen, problem->bench_count, &here);
    range(&candidate->point, &low[0], &high[0]);
    range(&candidate->seen, &low[1], &high[1]);
    printf("%s %s: measured, streamed\n", problem->name, candidate->point.name.data);
    for (size_t i = 0; i < problem->bench_count; i++) {
        const struct point_case *a = &daemon.of_case[i], *b = &here.of_case[i];
        struct strbuf name = STRBUF_INIT;

        problem_case_name(problem, &problem->bench[i], &name);
        printf("   %-24s baseline %8.2f %8.2f us, candidate %8.2f %8.2f us, speedup %6.3f %6.3f: "
               "ratio %.3f\n",
               name.data, a->baseline_ns / 1e3, b->baseline_ns / 1e3, a->candidate_ns / 1e3,
               b->candidate_ns / 1e3, exp2(a->log2), exp2(b->log2), exp2(a->log2 - b->log2));
        strbuf_release(&name);
    }
    printf("   measured %.3f (%.3f to %.3f), streamed %.3f (%.3f to %.3f): ratio %.3f\n",
           exp2(daemon.log2), exp2(low[0]), exp2(high[0]), exp2(here.log2), exp2(low[1]),
           exp2(high[1]), exp2(daemon.log2 - here.log2));
    comparison->difference[comparison->compared++] = fabs(daemon.log2 - here.log2);
}

static void print_all(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->subjects; i++) {
        const struct subject *subject = comparison->subject[i];

        for (size_t k = 0; k < subject->points; k++) {
            print_candidate(comparison, subject->dir.problem, &subject->candidate[k]);
        }
    }
    double median = stats_median(comparison->difference, comparison->compared); // which sorts
    double most = comparison->difference[comparison->compared - 1];
    printf("%zu points: %.2f %% apart in the median, %.2f %% at most; %zu wrong outputs\n",
           comparison->compared, 100 * (exp2(median) - 1), 100 * (exp2(most) - 1),
           comparison->wrong);
}

static void free_subjects(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->subjects; i++) {
        struct subject *subject = comparison->subject[i];

        for (size_t k = 0; k < subject->points; k++) {
            stream_code_release(&subject->candidate[k].code);
            point_release(&subject->candidate[k].point);
        }
        for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
            draw_free(subject->draw[t]);
        }
        stream_code_release(&subject->baseline);
        problem_dir_release(&subject->dir);
        free(subject);
    }
}

// ---- all of it ----

static void measure_all(struct comparison *comparison, const char *folder,
                        const char *const *problem, size_t count)
{
    char search[64];
    struct session_options options = {.quiet = true, .pool = getenv("KCAST_POOL")};
    struct session *session = NULL;
    struct toolkit toolkit;
    struct err err = ERR_INIT;

    (void)snprintf(search, sizeof(search), "stream-%llx", (unsigned long long)stats_entropy());
    if (stream_device_find(&comparison->device, &err) != 0 || toolkit_find(&toolkit, &err) != 0 ||
        nvrtc_open(&comparison->nvrtc, &toolkit, &err) != 0 ||
        session_create(&session, &options, &err) < 0 ||
        samples_open(&comparison->pool, session, search, &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < count && i < PROBLEMS_MAX; i++) {
        char *path = xasprintf("%s/%s", folder, problem[i]);
        struct subject *subject = xcalloc(1, sizeof(*subject));

        comparison->subject[comparison->subjects++] = subject;
        open_subject(comparison, subject, path);
        measure_subject(comparison, subject);
        printf("%s: %zu points measured\n", problem[i], subject->points);
        free(path);
    }
    job_client_close(comparison->pool);
    session_free(session);
    nvrtc_close(comparison->nvrtc);
    toolkit_release(&toolkit);
}

static void stream_all(struct comparison *comparison)
{
    struct err err = ERR_INIT;

    if (stream_device_start(&comparison->device, &err) != 0) {
        die(&err);
    }
    for (size_t turn = 0; turn < comparison->turns; turn++) {
        for (size_t i = 0; i < comparison->subjects; i++) {
            stream_subject(comparison, comparison->subject[i], turn);
        }
    }
    stream_device_stop(&comparison->device);
}

int main(int argc, char **argv)
{
    static struct comparison comparison = {.points = 3, .rounds = 24, .turns = 3};
    struct err err = ERR_INIT;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 2) {
        fprintf(stderr, "usage: stream PROBLEMS [POINTS [ROUNDS [TURNS [PROBLEM…]]]]\n");
        return 2;
    }
    if ((argc > 2 && parse_u64(&comparison.points, argv[2], 1, POINTS_MAX, "POINTS", &err) < 0) ||
        (argc > 3 && parse_u64(&comparison.rounds, argv[3], 1, 100000, "ROUNDS", &err) < 0) ||
        (argc > 4 &&
         parse_u64(&comparison.turns, argv[4], 1, POINT_TURNS_MAX, "TURNS", &err) < 0)) {
        die(&err);
    }
    if (argc > 5) {
        measure_all(&comparison, argv[1], (const char *const *)(uintptr_t)(argv + 5),
                    (size_t)argc - 5);
    } else {
        measure_all(&comparison, argv[1], default_problem, ARRAY_LEN(default_problem));
    }
    stream_all(&comparison);
    print_all(&comparison);
    free_subjects(&comparison);
    return comparison.wrong > 0 ? 1 : 0;
}

// What the compiler costs for the candidates of a template: processor seconds of kcast-exec
// cuda-compile and its children, without their start, for each way in which candidates are
// compiled. Needs a CUDA toolkit and no GPU. Points are drawn from the template; the hidden shapes
// are the same in every run.
//  bench_compile PROBLEM… [-n POINTS]      names or folders of problems; default 12 points of each
#include "client/problem/problem_dir.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "executor/frame.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POINTS_MAX 1000
#define OUTCOME_MAX ((size_t)64 << 20)

// One way of compiling all candidates.
struct way {
    const char *name;
    bool features_only, no_machine_code;
    bool known;   // goes on from what the way before has compiled
    size_t width; // variants at once; 0: one
};

static const struct way ways[] = {
    {"all variants, machine code", false, false, false, 0},
    {"for features, machine code", true, false, false, 0},
    {"then the rest, to measure", false, true, true, 0},
    {"for features, no machine code", true, true, false, 0},
    {"all variants, no machine code", false, true, false, 0},
    {"the same, two at once", false, true, false, 2},
    {"the same, four at once", false, true, false, 4},
};

struct bench {
    struct problem_dir dir;
    struct bytes source[POINTS_MAX];
    struct compile_outcome outcome[POINTS_MAX]; // of the last way
    size_t count;
    const char *program; // kcast-exec
    double start_cpu_s;  // of a kcast-exec that compiles nothing
};

struct server {
    pid_t pid;
    int in, out; // its stdin and stdout
};

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        fprintf(stderr, "bench_compile: %s\n", err->text);
        exit(1);
    }
}

static struct server start(const char *program)
{
    int in[2], out[2];
    struct server server = {.pid = -1};

    if (pipe(in) == 0 && pipe(out) == 0) {
        server.pid = fork();
    }
    if (server.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execl(program, program, "cuda-compile", (char *)NULL);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    server.in = in[1];
    server.out = out[0];
    struct bytes ready = {.len = 0};
    bool ended = false;
    struct err err = ERR_INIT;
    must(frame_read(server.out, &ready, 1, &ended, &err), &err);
    if (ended) {
        fprintf(stderr, "bench_compile: %s cannot compile CUDA here\n", program);
        exit(1);
    }
    bytes_clear(&ready);
    return server;
}

// Returns the processor seconds that it and its children have used.
static double stop(struct server *server)
{
    struct rusage used;
    int status = 0;

    close(server->in);
    close(server->out);
    (void)wait4(server->pid, &status, 0, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// Compiles one candidate; its outcome takes the place of the one before.
static void compile(struct bench *bench, const struct server *server, const struct way *way,
                    size_t i)
{
    struct compile_outcome *outcome = &bench->outcome[i];
    struct compile_plan plan; // shares what it sends; never cleared
    struct err err = ERR_INIT;

    message_init(&compile_plan_message, &plan);
    plan.source = bench->source[i];
    plan.header = plan.glue = (char[]){""};
    plan.language = (char[]){"cuda"};
    plan.target = (char[]){"sm_90"};
    plan.problem = bench->dir.json;
    plan.max_seconds = 60;
    plan.wall_seconds = 600;
    plan.max_memory = (uint64_t)4 << 30;
    plan.max_output = (uint64_t)32 << 20;
    plan.hidden_seed = 7;
    plan.features_only = way->features_only;
    plan.no_machine_code = way->no_machine_code;
    plan.width = way->width;
    if (way->known && outcome->compiled->verdict == VERDICT_NONE) {
        plan.known = outcome->object;
        plan.known_features = outcome->compiled->features;
        plan.known_features_count = outcome->compiled->features_count;
    }
    struct strbuf packed;
    strbuf_init(&packed, OUTCOME_MAX);
    must(message_pack(&compile_plan_message, &plan, &packed, &err), &err);
    struct bytes bytes = strbuf_detach_bytes(&packed), answer = {.len = 0};
    bool ended = false;
    must(frame_write(server->in, &bytes, &err), &err);
    must(frame_read(server->out, &answer, OUTCOME_MAX, &ended, &err), &err);
    message_clear(&compile_outcome_message, outcome);
    must(message_read(&compile_outcome_message, outcome, answer.data, answer.len, &err), &err);
    bytes_clear(&bytes);
    bytes_clear(&answer);
}

static void run_way(struct bench *bench, const struct way *way)
{
    struct server server = start(bench->program);
    uint64_t begun_ns = clock_now_ns(&clock_system);
    size_t variants = 0, refused = 0;

    for (size_t i = 0; i < bench->count; i++) {
        compile(bench, &server, way, i);
        const struct compile_outcome *outcome = &bench->outcome[i];
        struct cuda_object object;
        if (outcome->compiled->verdict != VERDICT_NONE) {
            refused++;
        } else if (message_read(&cuda_object_message, &object, outcome->object.data,
                                outcome->object.len, NULL) == 0) {
            variants += object.variants_count;
            message_clear(&cuda_object_message, &object);
        }
    }
    double wall_s = clock_seconds(clock_now_ns(&clock_system) - begun_ns);
    double cpu_s = stop(&server) - bench->start_cpu_s;
    printf("  %-30s %7.1f ms of a processor each, %7.1f ms by the clock, %.1f variants%s\n",
           way->name, 1e3 * cpu_s / (double)bench->count, 1e3 * wall_s / (double)bench->count,
           (double)variants / (double)(bench->count - refused > 0 ? bench->count - refused : 1),
           refused > 0 ? ", some are refused" : "");
}

static void draw_points(struct bench *bench, uint64_t points)
{
    struct template *template = NULL;
    struct err err = ERR_INIT;
    char *text =
        xstrndup((const char *)bench->dir.template_source.data, bench->dir.template_source.len);
    must(template_parse(&template, text, "template.cu", &err), &err);
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 0);
    for (bench->count = 0; bench->count < points; bench->count++) {
        struct strbuf source = STRBUF_INIT;
        template_source(template, stats_rng_below(&rng, template_point_count(template)), &source);
        bench->source[bench->count] = strbuf_detach_bytes(&source);
    }
    template_free(template);
    free(text);
}

static void run_problem(struct bench *bench, const char *name, uint64_t points)
{
    struct err err = ERR_INIT;

    must(problem_dir_load(&bench->dir, name, &err), &err);
    if (!bench->dir.template_source.data || !bench->dir.problem->cuda) {
        fprintf(stderr, "bench_compile: %s has no CUDA template\n", name);
        exit(1);
    }
    draw_points(bench, points);
    printf("%s, %zu points of its template\n", name, bench->count);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        run_way(bench, &ways[i]);
    }
    for (size_t i = 0; i < bench->count; i++) {
        message_clear(&compile_outcome_message, &bench->outcome[i]);
        bytes_clear(&bench->source[i]);
    }
    problem_dir_release(&bench->dir);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct err err = ERR_INIT;
    uint64_t points = 12;
    int last = argc;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 3 && strcmp(argv[argc - 2], "-n") == 0) {
        must(parse_u64(&points, argv[argc - 1], 1, POINTS_MAX, "POINTS", &err), &err);
        last = argc - 2;
    }
    char *slash = strrchr(argv[0], '/');
    char *program = xasprintf("%.*skcast-exec", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    bench.program = program;
    struct server server = start(program);
    bench.start_cpu_s = stop(&server);
    printf("start of kcast-exec cuda-compile: %.0f ms of a processor\n", 1e3 * bench.start_cpu_s);
    for (int i = 1; i < last; i++) {
        run_problem(&bench, argv[i], points);
    }
    free(program);
    return 0;
}

// Fresh processes and parking on a core, with the real sandbox: what a runner and a fresh child of
// it cost by the size of tensors, what an empty launch costs, and by how much the clock of a parked
// child moves, alone and beside a program that wants the core.
//  bench_renew [LAUNCHES]      default 20000
#include "common/clock.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "executor/cpu/child.h"
#include "executor/cpu/runner_process.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS (20 * NS_PER_S)
#define RENEWALS 200
#define LOADS 20

struct bench {
    struct zygote zygote;
    struct buffer tensor;
    struct runner_process runner;
};

static void must(int rc, const struct err *err)
{
    if (rc != 0) {
        fprintf(stderr, "bench_renew: %s\n", err->text);
        exit(1);
    }
}

static void must_be_done(const struct bench *bench, enum launch_outcome outcome)
{
    uint32_t verdict;

    if (outcome != LAUNCH_DONE) {
        fprintf(stderr, "bench_renew: %s\n", runner_process_describe(&bench->runner, &verdict));
        exit(1);
    }
}

// An object whose entry is never called.
static void compile(struct bytes *ret)
{
    char path[] = "/tmp/kcast-bench.XXXXXX";
    struct err err = ERR_INIT;
    int fd = mkstemp(path), status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execlp("gcc", "gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared",
               "-nostartfiles", "-I.", "-o", path, "tests/data/exec/runner/acts.c", (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
    if (status != 0) {
        fprintf(stderr, "bench_renew: start it in the root of the tree, where gcc is installed\n");
        exit(1);
    }
    must(file_read(ret, path, 64 << 20, &err), &err);
    close(fd);
    unlink(path);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts, and returns the quantile.
static double quantile(double *x, size_t n, double q)
{
    qsort(x, n, sizeof *x, ascending);
    return stats_quantile(x, n, q);
}

// Returns how long the runner took to load its object, in microseconds.
static double open_bench(struct bench *bench, const struct child_context *context,
                         const struct bytes *object, size_t bytes)
{
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .scratch = 1 << 20};
    struct err err = ERR_INIT;

    *bench = (struct bench){.zygote.socket = -1};
    bench->runner = (struct runner_process){.name = "runner", .output = -1, .pointer_count = 1};
    must(zygote_create(&bench->zygote, child_main, context, &err), &err);
    must(runner_process_prepare_harness(0, &bench->zygote, &err), &err);
    must(zygote_enter(&bench->zygote, &sandbox, &err), &err);
    must(buffer_create(&bench->tensor, bytes, false, &err), &err);
    buffer_place(&bench->tensor, bytes, 0, 1);
    bench->runner.pointer[0] = (struct runner_pointer){.buffer = &bench->tensor, .writable = true};
    uint64_t start = clock_now_ns(&clock_system);
    must(runner_process_start(&bench->runner, &bench->zygote, object, (uint64_t)4 << 30, 600, 1, 0,
                              false, &err),
         &err);
    must_be_done(bench, runner_process_ready(&bench->runner, LIMIT_NS));
    return (double)(clock_now_ns(&clock_system) - start) / 1e3;
}

static void close_bench(struct bench *bench)
{
    runner_process_release(&bench->runner);
    buffer_release(&bench->tensor);
    zygote_release(&bench->zygote);
}

static void bench_renewals(const struct child_context *context, const struct bytes *object,
                           size_t bytes)
{
    struct bench bench;
    struct launch_time time;
    double us[RENEWALS], cpu[2][RENEWALS];

    for (size_t i = 0; i < LOADS; i++) {
        us[i] = open_bench(&bench, context, object, bytes);
        uint64_t start = clock_now_ns(&clock_system);
        runner_process_release(&bench.runner);
        us[i] += (double)(clock_now_ns(&clock_system) - start) / 1e3;
        close_bench(&bench);
    }
    printf("a runner from the zygote and its end, %zu KiB of tensors: median %.0f µs\n",
           bytes / 1024, quantile(us, LOADS, 0.5));
    (void)open_bench(&bench, context, object, bytes);
    must_be_done(&bench, runner_process_renew(&bench.runner, LIMIT_NS));
    for (size_t i = 0; i < RENEWALS; i++) {
        uint64_t start = clock_now_ns(&clock_system);
        must_be_done(&bench, runner_process_renew(&bench.runner, LIMIT_NS));
        us[i] = (double)(clock_now_ns(&clock_system) - start) / 1e3;
        for (size_t k = 0; k < 2; k++) {
            must_be_done(&bench, runner_process_launch(&bench.runner, CONTROL_NOTHING, NULL, NULL,
                                                       LIMIT_NS, &time));
            cpu[k][i] = time.cpu / 1e3;
        }
    }
    printf("a fresh process, %zu KiB of tensors: median %.0f µs, 90 %% %.0f µs\n", bytes / 1024,
           quantile(us, RENEWALS, 0.5), quantile(us, RENEWALS, 0.9));
    printf("processor time of its first and second empty launch: median %.2f and %.2f µs\n",
           quantile(cpu[0], RENEWALS, 0.5), quantile(cpu[1], RENEWALS, 0.5));
    close_bench(&bench);
}

static void bench_launches(const struct child_context *context, const struct bytes *object,
                           size_t launches, const char *where)
{
    struct bench bench;
    double *cpu = xcalloc(launches, sizeof *cpu), *excess = xcalloc(launches, sizeof *excess);
    double *moved = xcalloc(launches, sizeof *moved), most = 0;
    struct launch_time time;

    (void)open_bench(&bench, context, object, 4096);
    must_be_done(&bench, runner_process_renew(&bench.runner, LIMIT_NS));
    uint64_t start = clock_now_ns(&clock_system);
    size_t any = 0;
    for (size_t i = 0; i < launches; i++) {
        must_be_done(&bench, runner_process_launch(&bench.runner, CONTROL_NOTHING, NULL, NULL,
                                                   LIMIT_NS, &time));
        cpu[i] = time.cpu;
        excess[i] = time.wall - time.cpu;
        // As long as a harness takes to prepare the next launch.
        for (uint64_t end = clock_now_ns(&clock_system) + 20 * NS_PER_US;
             clock_now_ns(&clock_system) < end;) {
        }
        moved[i] = (double)(runner_process_clock_ns(&bench.runner) - bench.runner.mark_ns);
        any += moved[i] > 0;
        most = moved[i] > most ? moved[i] : most;
    }
    double each = (double)(clock_now_ns(&clock_system) - start) / 1e3 / (double)launches;
    printf("an empty launch, %s: %.1f µs with 20 µs between; processor time median %.2f µs; wall "
           "time less that %.2f µs, 99 %% %.2f µs\n",
           where, each, quantile(cpu, launches, 0.5) / 1e3, quantile(excess, launches, 0.5) / 1e3,
           quantile(excess, launches, 0.99) / 1e3);
    printf("the clock of a parked child, %s: moved after %zu of %zu launches, at most by %.2f µs\n",
           where, any, launches, most / 1e3);
    free(cpu);
    free(excess);
    free(moved);
    close_bench(&bench);
}

int main(int argc, char **argv)
{
    struct child_context context;
    struct bytes object;
    struct err err = ERR_INIT;
    uint64_t launches = 20000;

    if (argc > 1 && parse_u64(&launches, argv[1], 10, 100000000, "LAUNCHES", &err) != 0) {
        fprintf(stderr, "usage: bench_renew [LAUNCHES]\n");
        return 2;
    }
    compile(&object);
    must(child_context_init(&context, CHILD_NEEDS_RUNNER, &err), &err);
    static const size_t size[] = {4096, 1 << 20, 16 << 20, 256 << 20};
    for (size_t i = 0; i < ARRAY_LEN(size); i++) {
        bench_renewals(&context, &object, size[i]);
    }
    bench_launches(&context, &object, launches, "alone");
    pid_t other = fork();
    if (other == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        for (;;) { // on the same core, which this process has inherited
        }
    }
    bench_launches(&context, &object, launches / 10, "beside another program");
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    bytes_clear(&object);
    child_context_release(&context);
    return 0;
}

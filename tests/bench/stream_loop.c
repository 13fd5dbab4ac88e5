#include "tests/bench/stream_loop.h"
#include "common/stats.h"
#include "tests/bench/samples.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM_UP 2   // blocks that do not count
#define AWAY_NS 5e4 // longer than this, from the first new byte to the result, others had the core
#define TRIES 40    // most of one call, until nobody else has the core

// What writing the inputs took.
struct writing {
    double start_ns; // on the clock
    double cpu_ns;   // of the processor
};

struct tensors {
    enum stream_filler filler;
    void *at[PROBLEM_TENSOR_MAX];
    void *arrived[PROBLEM_TENSOR_MAX]; // of inputs that are copied: where they are drawn
    size_t count[PROBLEM_TENSOR_MAX], last[PROBLEM_TENSOR_MAX], bytes[PROBLEM_TENSOR_MAX];
    pid_t producer; // process that writes the inputs; 0: this one
    int socket;     // to it
};

static void fail(const char *what)
{
    struct err err = ERR_INIT;

    (void)err_set_errno(&err, ERR_SYSTEM, errno, "%s", what);
    die(&err);
}

static double now_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

// ---- inputs ----

static void open_draws(struct stream_loop *loop)
{
    struct err err = ERR_INIT;

    for (size_t t = 0; t < loop->problem->tensor_count; t++) {
        loop->draw[t] = NULL;
        if (loop->problem->tensor[t].direction != DIRECTION_OUT &&
            draw_create(&loop->draw[t], &loop->problem->tensor[t], stats_entropy(), &err) != 0) {
            die(&err);
        }
    }
}

void stream_loop_open(struct stream_loop *loop, const struct problem *problem)
{
    loop->problem = problem;
    open_draws(loop);
}

void stream_loop_close(struct stream_loop *loop)
{
    for (size_t t = 0; t < loop->problem->tensor_count; t++) {
        draw_free(loop->draw[t]);
        loop->draw[t] = NULL;
    }
}

static void draw_inputs(struct stream_loop *loop, const struct tensors *tensors, void *const *to)
{
    for (size_t t = 0; t < loop->problem->tensor_count; t++) {
        if (loop->draw[t]) {
            draw_fill(loop->draw[t], tensors->count[t], tensors->last[t], to[t]);
        }
    }
}

static void copy_inputs(const struct stream_loop *loop, const struct tensors *tensors)
{
    for (size_t t = 0; t < loop->problem->tensor_count; t++) {
        if (loop->draw[t]) {
            memcpy(tensors->at[t], tensors->arrived[t], tensors->bytes[t]);
        }
    }
}

// Writes new data to the inputs. It leaves the core once before, so that the time slice is fresh.
static struct writing write_inputs(struct stream_loop *loop, const struct tensors *tensors)
{
    bool copied = tensors->filler != FILLED_IN_PLACE;

    if (copied) {
        draw_inputs(loop, tensors, tensors->arrived);
    }
    (void)sched_yield();
    struct writing writing = {.start_ns = now_ns(CLOCK_MONOTONIC)};
    double cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    if (copied) {
        copy_inputs(loop, tensors);
    } else {
        draw_inputs(loop, tensors, tensors->at);
    }
    writing.cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    return writing;
}

// Writes the inputs whenever it is asked to, until the other end is closed.
__attribute__((noreturn)) static void produce(struct stream_loop *loop,
                                              const struct tensors *tensors, int socket)
{
    char byte;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    open_draws(loop); // what the parent's would give is the same at each turn
    while (read(socket, &byte, 1) == 1) {
        struct writing writing = write_inputs(loop, tensors);
        if (write(socket, &writing, sizeof(writing)) != sizeof(writing)) {
            break;
        }
    }
    _exit(0);
}

static void start_producer(struct stream_loop *loop, struct tensors *tensors)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        fail("a socket to the process that writes inputs");
    }
    tensors->producer = fork();
    if (tensors->producer < 0) {
        fail("the process that writes inputs");
    }
    if (tensors->producer == 0) {
        close(pair[0]);
        produce(loop, tensors, pair[1]);
    }
    close(pair[1]);
    tensors->socket = pair[0];
}

// ---- memory ----

static void open_tensors(struct stream_loop *loop, const struct shape_case *shape,
                         enum stream_filler filler, struct tensors *ret)
{
    const struct problem *problem = loop->problem;
    int sharing = filler == FILLED_ELSEWHERE ? MAP_SHARED : MAP_PRIVATE;
    struct err err = ERR_INIT;

    *ret = (struct tensors){.filler = filler};
    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (problem_elements(problem, t, shape, &ret->count[t], &err) != 0 ||
            problem_last_extent(problem, t, shape, &ret->last[t], &err) != 0) {
            die(&err);
        }
        ret->bytes[t] = ret->count[t] * dtype_size(problem->tensor[t].dtype);
        ret->at[t] = mmap(NULL, ret->bytes[t], PROT_READ | PROT_WRITE,
                          sharing | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (ret->at[t] == MAP_FAILED) {
            fail("memory for a tensor");
        }
        ret->arrived[t] = filler == FILLED_IN_PLACE ? NULL : xmalloc(ret->bytes[t]);
    }
    if (filler == FILLED_ELSEWHERE) {
        start_producer(loop, ret);
    }
}

static void close_tensors(const struct stream_loop *loop, struct tensors *tensors)
{
    if (tensors->producer > 0) {
        close(tensors->socket);
        (void)waitpid(tensors->producer, NULL, 0);
    }
    for (size_t t = 0; t < loop->problem->tensor_count; t++) {
        (void)munmap(tensors->at[t], tensors->bytes[t]);
        free(tensors->arrived[t]);
    }
}

// ---- the loop ----

// Reads the results, as whoever has asked for them does.
static void read_results(struct stream_loop *loop, const struct tensors *tensors)
{
    for (size_t t = 0; t < loop->problem->tensor_count; t++) {
        const unsigned char *result = tensors->at[t];
        bool is_input = loop->problem->tensor[t].direction == DIRECTION_IN;

        for (size_t i = 0; !is_input && i < tensors->bytes[t]; i += 64) {
            loop->sum += result[i];
        }
    }
}

// Has new data written to the inputs and calls the arm. Returns whether nobody else had the core
// meanwhile. *ret is what the call took.
static bool call_once(struct stream_loop *loop, const struct shape_case *shape,
                      const struct tensors *tensors, size_t arm, double *ret)
{
    double asked = now_ns(CLOCK_THREAD_CPUTIME_ID);
    struct writing writing;
    char byte = 0;

    if (tensors->producer == 0) {
        writing = write_inputs(loop, tensors);
    } else if (write(tensors->socket, &byte, 1) != 1 ||
               read(tensors->socket, &writing, sizeof(writing)) != sizeof(writing)) {
        fail("the process that writes inputs has ended");
    }
    double start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    loop->arm[arm](tensors->at, shape->i, shape->f);
    *ret = now_ns(CLOCK_THREAD_CPUTIME_ID) - start;
    if (tensors->producer > 0) {
        loop->handover_ns += start - asked;
        loop->handovers++;
    }
    double wall_ns = now_ns(CLOCK_MONOTONIC) - writing.start_ns;
    read_results(loop, tensors);
    return wall_ns - writing.cpu_ns - *ret < AWAY_NS;
}

// Calls the arm until nobody else had the core. Returns whether that has succeeded. *spare is how
// many calls may be made again.
static bool call(struct stream_loop *loop, const struct shape_case *shape,
                 const struct tensors *tensors, size_t arm, int64_t *spare, double *ret)
{
    bool alone = call_once(loop, shape, tensors, arm, ret);

    for (size_t i = 1; !alone && i < TRIES && (*spare)-- > 0; i++) {
        alone = call_once(loop, shape, tensors, arm, ret);
    }
    return alone;
}

// Keeps this process, and those that it starts, on the core where it is.
static void stay(cpu_set_t *ret_before)
{
    int core = sched_getcpu();
    cpu_set_t one;

    CPU_ZERO(&one);
    if (core >= 0) {
        CPU_SET(core, &one);
    }
    if (sched_getaffinity(0, sizeof(*ret_before), ret_before) != 0 ||
        sched_setaffinity(0, sizeof(one), &one) != 0) {
        fail("staying on one core");
    }
}

// Makes one block, A B B A or B A A B. Returns whether it counts.
static bool run_block(struct stream_loop *loop, const struct shape_case *shape,
                      const struct tensors *tensors, bool turned, int64_t *spare,
                      double ret_ns[2][2])
{
    bool alone = true;

    for (size_t j = 0; j < 4; j++) {
        size_t arm = (j == 1 || j == 2) != turned;
        alone = call(loop, shape, tensors, arm, spare, &ret_ns[arm][j > 1]) && alone;
    }
    return alone;
}

void stream_loop_run(struct stream_loop *loop, const struct shape_case *shape,
                     enum stream_filler filler, struct point_case *ret)
{
    double *ratio = xcalloc(loop->rounds, sizeof(*ratio));
    double *ns[2] = {xcalloc(2 * loop->rounds, sizeof(double)),
                     xcalloc(2 * loop->rounds, sizeof(double))};
    int64_t spare = 4 * (int64_t)loop->rounds; // as many again as there are to be
    struct tensors tensors;
    size_t count = 0;
    cpu_set_t before;

    stay(&before);
    open_tensors(loop, shape, filler, &tensors);
    for (size_t i = 0; i < WARM_UP + loop->rounds; i++) {
        double took[2][2];
        if (!run_block(loop, shape, &tensors, i & 1, &spare, took) || i < WARM_UP) {
            continue;
        }
        for (size_t arm = 0; arm < 2; arm++) {
            memcpy(&ns[arm][2 * count], took[arm], sizeof(took[arm]));
        }
        ratio[count++] = 0.5 * log2(took[0][0] * took[0][1] / (took[1][0] * took[1][1]));
    }
    loop->blocks += loop->rounds;
    loop->counted += count;
    bool enough = count >= (loop->rounds + 3) / 4;
    *ret = (struct point_case){
        .log2 = enough ? stats_median(ratio, count) : (double)NAN,
        .baseline_ns = enough ? stats_median(ns[0], 2 * count) : (double)NAN,
        .candidate_ns = enough ? stats_median(ns[1], 2 * count) : (double)NAN,
    };
    close_tensors(loop, &tensors);
    (void)sched_setaffinity(0, sizeof(before), &before);
    free(ratio);
    free(ns[0]);
    free(ns[1]);
}

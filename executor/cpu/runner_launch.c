// Launches of a child: go, done, and parking; the clock and its limits.
//
// The harness trusts nothing in the control page. What it relies on:
//
//   - A child is one thread: the filter refuses clone. While that thread waits in a futex, no code
//     of the candidate runs.
//   - FUTEX_CMP_REQUEUE, which wakes nobody and moves one waiter, returns 1 only when a thread
//     waits on go at that moment. From then on it waits on park, and changing any word of the page
//     does not wake it. The filter refuses waits with a time limit, signals and timers, so that
//     only the FUTEX_WAKE of a launch does.
//   - The words are written by the harness while the child is parked, hence never at the same time
//     as by the child.
//
// It follows that whatever the candidate writes to go, done or park, and wherever it waits, it is
// either parked, and its processor time since the parking before has been charged, or it runs into
// its limit.
#include "common/clock.h"
#include "common/stats.h"
#include "executor/cpu/runner_process.h"
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// SIGCHLD interrupts the wait when the child dies. If it dies just before the wait, its death is
// noticed after this time.
#define WAIT_SLICE_NS (20 * NS_PER_MS)
// A child that other programs keep from the processor may take this many times its limit of wall
// time.
#define WALL_FACTOR 4
// After this many yields without a parking the harness sleeps between two looks, so that it does
// not take the core from a child that works on.
#define PARK_YIELDS 20
#define PARK_SLICE_NS (50 * NS_PER_US)
// A child that has been moved to park may still have to leave the core: a few hundred instructions
// of the kernel, perhaps with an interrupt in between. They are charged to the next launch.
#define PARKED_RESIDUE_NS (20 * NS_PER_US)

uint32_t runner_next_nonce(struct runner_process *runner)
{
    uint32_t now = atomic_load(&runner->control->go), done = atomic_load(&runner->control->done),
             nonce;
    do {
        nonce = (uint32_t)stats_philox(runner->nonce_key, 0x6e6f6e6365ULL, runner->nonce_counter++);
    } while (nonce == now || nonce == done);
    return nonce;
}

// ---- clocks ----

static uint64_t processor_ns(clockid_t clock)
{
    struct timespec ts;

    if (clock_gettime(clock, &ts) != 0) {
        return 0;
    }
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t runner_process_clock_ns(const struct runner_process *runner)
{
    return runner->child == 0 ? 0 : processor_ns(runner->clock);
}

bool runner_process_still(const struct runner_process *runner)
{
    return runner->child == 0 || processor_ns(runner->clock) <= runner->mark_ns + PARKED_RESIDUE_NS;
}

// Returns for how long the child and the harness have been ready to run without running, in
// nanoseconds; 0 where the kernel does not count that.
//
// The harness's waiting counts because a child that is parked sleeps until the harness has seen it.
// Where both wait at once it is subtracted twice, which hides as much of a sleep. That is no way to
// hide work: nobody else works for a candidate.
static uint64_t delay_ns(const struct runner_process *runner)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < 2; i++) {
        char text[128];
        int fd = runner->delay_fd[i];
        ssize_t n = fd > 0 ? pread(fd, text, sizeof(text) - 1, 0) : 0;
        unsigned long long ran, delay;

        text[n > 0 ? n : 0] = '\0';
        sum += sscanf(text, "%llu %llu", &ran, &delay) == 2 ? delay : 0;
    }
    return sum;
}

struct runner_deadline runner_deadline_begin(clockid_t clock, uint64_t limit_ns)
{
    return (struct runner_deadline){.clock = clock,
                                    .start_ns = clock_now_ns(&clock_system),
                                    .start_cpu = processor_ns(clock),
                                    .limit_ns = limit_ns};
}

uint64_t runner_deadline_left(const struct runner_deadline *deadline)
{
    uint64_t elapsed = clock_now_ns(&clock_system) - deadline->start_ns;

    if (elapsed < deadline->limit_ns) {
        uint64_t left = deadline->limit_ns - elapsed;
        return left < WAIT_SLICE_NS ? left : WAIT_SLICE_NS;
    }
    if (elapsed >= WALL_FACTOR * deadline->limit_ns ||
        processor_ns(deadline->clock) - deadline->start_cpu >= deadline->limit_ns / 2) {
        return 0;
    }
    return WAIT_SLICE_NS;
}

// ---- the end of a child ----

bool runner_reap_child(struct runner_process *runner, int flags)
{
    int status = 0;

    if (runner->child == 0) {
        return true;
    }
    pid_t pid;
    do {
        pid = waitpid(runner->child, &status, flags);
    } while (pid < 0 && errno == EINTR);
    if (pid == 0) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        if (runner->delay_fd[i] > 0) {
            close(runner->delay_fd[i]);
        }
        runner->delay_fd[i] = 0;
    }
    runner->child = 0;
    runner->status = status;
    runner->fault = RUNNER_FAULT_CHILD;
    return true;
}

void runner_end_child(struct runner_process *runner)
{
    if (runner->child != 0) {
        (void)kill(runner->child, SIGKILL);
        (void)runner_reap_child(runner, 0);
    }
}

// ---- launches ----

// Tries to move the child from go to park. The comparison is with what is there: it does not
// matter which value the child waits with.
static bool park(struct control *control)
{
    return syscall(SYS_futex, &control->go, FUTEX_CMP_REQUEUE, 0, (void *)1, &control->park,
                   atomic_load(&control->go)) == 1;
}

// Waits for the nonce in control->done. Nothing else that the child writes is looked at.
static enum launch_outcome await_done(struct runner_process *runner, uint32_t nonce,
                                      const struct runner_deadline *deadline)
{
    uint64_t left = deadline->limit_ns < WAIT_SLICE_NS ? deadline->limit_ns : WAIT_SLICE_NS;
    uint32_t seen;

    while ((seen = atomic_load(&runner->control->done)) != nonce) {
        struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)left};

        (void)syscall(SYS_futex, &runner->control->done, FUTEX_WAIT, seen, &wait, NULL, 0);
        if (atomic_load(&runner->control->done) == nonce) {
            break;
        }
        if (runner_reap_child(runner, WNOHANG)) {
            return LAUNCH_DIED;
        }
        left = runner_deadline_left(deadline);
        if (left == 0) {
            return LAUNCH_TIMEOUT;
        }
    }
    return LAUNCH_DONE;
}

static enum launch_outcome await_park(struct runner_process *runner,
                                      const struct runner_deadline *deadline)
{
    struct timespec pause = {.tv_nsec = PARK_SLICE_NS};

    for (size_t looks = 0; !park(runner->control); looks++) {
        if (looks < PARK_YIELDS) {
            (void)sched_yield();
            continue;
        }
        if (runner_reap_child(runner, WNOHANG)) {
            return LAUNCH_DIED;
        }
        if (runner_deadline_left(deadline) == 0) {
            return LAUNCH_TIMEOUT;
        }
        (void)nanosleep(&pause, NULL);
    }
    return LAUNCH_DONE;
}

enum launch_outcome runner_await_parked(struct runner_process *runner, uint32_t nonce,
                                        uint64_t limit_ns)
{
    struct runner_deadline deadline = runner_deadline_begin(runner->clock, limit_ns);
    enum launch_outcome outcome = await_done(runner, nonce, &deadline);

    runner->returned = outcome == LAUNCH_DONE;
    if (outcome == LAUNCH_DONE) {
        outcome = await_park(runner, &deadline);
    }
    if (outcome == LAUNCH_TIMEOUT) {
        runner_end_child(runner);
    }
    return outcome;
}

enum launch_outcome runner_process_launch(struct runner_process *runner,
                                          enum control_command command, const int64_t *integer,
                                          const double *scalar, uint64_t limit_ns,
                                          struct launch_time *time)
{
    struct control *control = runner->control;

    if (runner->child == 0) {
        return LAUNCH_DIED;
    }
    uint32_t nonce = runner_next_nonce(runner);
    control->command = command;
    for (uint32_t i = 0; i < runner->pointer_count; i++) {
        control->offset[i] = runner->pointer[i].buffer->offset;
    }
    if (integer) {
        memcpy(control->integer, integer, sizeof(control->integer));
        memcpy(control->scalar, scalar, sizeof(control->scalar));
    }
    uint64_t mark = runner->mark_ns, delay = delay_ns(runner);
    uint64_t wall = clock_now_ns(&clock_system);
    atomic_store(&control->go, nonce);
    (void)syscall(SYS_futex, &control->park, FUTEX_WAKE, 1, NULL, NULL, 0);
    enum launch_outcome outcome = runner_await_parked(runner, nonce, limit_ns);
    wall = clock_now_ns(&clock_system) - wall;
    if (outcome != LAUNCH_DONE) {
        return outcome;
    }
    runner->mark_ns = runner_process_clock_ns(runner);
    if (time) {
        uint64_t cpu = runner->mark_ns - mark;

        delay = delay_ns(runner) - delay;
        wall = wall > delay + cpu ? wall - delay : cpu;
        *time = (struct launch_time){.cpu = (double)cpu, .wall = (double)wall};
    }
    return LAUNCH_DONE;
}

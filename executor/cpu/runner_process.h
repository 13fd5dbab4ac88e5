// The harness's end of one runner: start, launch, clock, deadline, death.
//
// The clock is the runner's processor time as the kernel keeps it (clock_getcpuclockid), read by
// the harness. A launch is charged from just before its go until the harness next turns to this runner:
// what the candidate computes after it said "done" is charged as well. Judge and runner are pinned
// to one core, so that the runner stands still whenever the harness runs.
#ifndef EXECUTOR_CPU_RUNNER_PROCESS_H
#define EXECUTOR_CPU_RUNNER_PROCESS_H

#include "common/err.h"
#include "common/mem.h"
#include "executor/cpu/buffer.h"
#include "executor/cpu/control.h"
#include "executor/sandbox/zygote.h"
#include "executor/timing.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define RUNNER_OUTPUT_MAX 4096

enum launch_outcome {
    LAUNCH_DONE,
    LAUNCH_DIED,    // see runner_process_describe
    LAUNCH_TIMEOUT, // the runner has been killed
};

// A tensor as one runner sees it.
struct runner_pointer {
    struct buffer *buffer; // the harness's, shared by runners
    bool writable;
};

struct runner_process {
    const char *name; // "candidate"
    pid_t pid;        // 0: not running
    clockid_t clock;
    struct control *control;
    int control_fd;
    int output; // read end of the runner's stdout and stderr
    uint64_t nonce_key;
    uint64_t nonce_counter;
    uint32_t hello;
    int status; // wait status once dead
    bool dead;
    uint64_t mark_ns;                                // processor time up to which charging is done
    struct launch_time *pending;                     // gets what is charged since mark_ns
    struct runner_pointer pointer[CONTROL_POINTER_MAX]; // in call order
    uint32_t pointer_count;
};

// Makes SIGCHLD interrupt waiting (a handler that does nothing) and pins this process and the
// zygote, whose children inherit it, to a core: the one asked for, or, when that is not allowed
// and core is 0, the first that is. Call before any runner.
MUST_CHECK int runner_process_prepare_harness(uint64_t core, const struct zygote *zygote, struct err *err);

// Starts a runner for the object; it loads in the background. pointer[0 .. pointer_count) were set
// by the caller. nonce_key is secret. preload: the object needs the vector math library.
MUST_CHECK int runner_process_start(struct runner_process *runner, struct zygote *zygote, const struct bytes *object,
                         uint64_t max_memory, uint64_t cpu_seconds, uint64_t nonce_key,
                         uint32_t index, bool preload, struct err *err);

// Waits until the runner has loaded its object.
enum launch_outcome runner_process_ready(struct runner_process *runner, uint64_t limit_ns);

// One launch of the entry (or of nothing). Pointers go to the current places of the buffers. A
// launch that takes longer than limit_ns ends with the runner killed. time may be NULL.
enum launch_outcome runner_process_launch(struct runner_process *runner, enum control_command command,
                               const int64_t *integer, const double *scalar, uint64_t limit_ns,
                               struct launch_time *time);

// Charges what the runner has used since its last launch to that launch.
void runner_process_settle(struct runner_process *runner);

// The runner's processor time now; 0 when it is gone.
uint64_t runner_process_clock_ns(const struct runner_process *runner);

// Kills and reaps the runner. It can be asked about afterwards.
void runner_process_kill(struct runner_process *runner);
void runner_process_release(struct runner_process *runner);

// How the runner died: *ret_verdict is CRASH or REJECTED, the sentence (malloc'd) says what
// happened.
char *runner_process_describe(const struct runner_process *runner, uint32_t *ret_verdict);

// What the runner has written so far, at most RUNNER_OUTPUT_MAX bytes from the end, printable;
// malloc'd, NULL when nothing.
char *runner_process_output(struct runner_process *runner);

#endif

// One runner as the harness holds it: start, launch, clock, deadline, death. The harness and the
// probe call this. It must not know what is computed or verified.
//
// The clock is the runner's processor time as the kernel counts it (clock_getcpuclockid), read in
// this process. A launch is charged from just before its go until the harness next uses this
// runner, so that work which a candidate does after it has reported "done" is charged too. Harness
// and runners are pinned to one core: a runner stands still whenever the harness runs.
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

#define RUNNER_OUTPUT_MAX 4096 // bytes of output that are kept

enum launch_outcome {
    LAUNCH_DONE,
    LAUNCH_DIED,    // runner_process_describe says how
    LAUNCH_TIMEOUT, // the runner has been killed
};

// A tensor that a runner maps.
struct runner_pointer {
    struct buffer *buffer; // the harness's; runners share it
    bool writable;
};

struct runner_process {
    const char *name; // for sentences: "candidate"; borrowed
    pid_t pid;        // 0: not running
    clockid_t clock;  // processor time of pid
    struct control *control;
    int control_fd;
    int output;             // read end of a pipe: the runner's stdout and stderr
    uint64_t nonce_key;     // secret key of the nonces
    uint64_t nonce_counter; // of the next nonce
    uint32_t hello;         // nonce by which the runner says that it has loaded its object
    int status;             // wait status, valid when dead
    bool dead;
    uint64_t mark_ns;            // processor time up to which launches have been charged
    struct launch_time *pending; // is charged with the time since mark_ns; NULL: none
    struct runner_pointer pointer[CONTROL_POINTER_MAX]; // in the order of the call's arguments
    uint32_t pointer_count;
};

// Call this before any runner is started. It makes SIGCHLD interrupt waiting, by a handler that
// does nothing. It pins this process and the zygote, from which runners inherit it, to the given
// core. When core is 0 and not allowed, it takes the first core that is.
MUST_CHECK int runner_process_prepare_harness(uint64_t core, const struct zygote *zygote,
                                              struct err *err);

// Starts a runner for the object, which it loads in the background. The caller has set name and
// pointer[0 .. pointer_count). max_memory is bytes of address space beside the tensors. nonce_key
// is secret. index is the runner's number, different for each. preload: the object needs the vector
// math library. Release the runner after a failure too.
MUST_CHECK int runner_process_start(struct runner_process *runner, struct zygote *zygote,
                                    const struct bytes *object, uint64_t max_memory,
                                    uint64_t cpu_seconds, uint64_t nonce_key, uint32_t index,
                                    bool preload, struct err *err);

// Waits until the runner has loaded its object.
enum launch_outcome runner_process_ready(struct runner_process *runner, uint64_t limit_ns);

// Launches the entry once, or nothing (CONTROL_NOTHING). The entry gets the buffers at their
// current places. A launch that takes longer than limit_ns ends with the runner killed. time may be
// NULL; its cpu is complete after the next launch or runner_process_settle.
enum launch_outcome runner_process_launch(struct runner_process *runner,
                                          enum control_command command, const int64_t *integer,
                                          const double *scalar, uint64_t limit_ns,
                                          struct launch_time *time);

// Ends the child that there is and has a fresh one made.
enum launch_outcome runner_process_renew(struct runner_process *runner, uint64_t limit_ns);
// Ends the child, if there is one.
void runner_process_end(struct runner_process *runner);
// Whether the child has not run since it was parked.
bool runner_process_still(const struct runner_process *runner);
// Whether the runner ended because its sandbox could not be set up.
bool runner_process_setup_failed(const struct runner_process *runner);

// Charges what the runner has used since its last launch to that launch.
void runner_process_settle(struct runner_process *runner);

// Returns the runner's processor time in nanoseconds, 0 when it does not run.
uint64_t runner_process_clock_ns(const struct runner_process *runner);

// Kills and reaps the runner. Its output and how it died stay available.
void runner_process_kill(struct runner_process *runner);
void runner_process_release(struct runner_process *runner);

// Returns a sentence, malloc'd, that says how the runner died. *ret_verdict is CRASH or REJECTED.
char *runner_process_describe(const struct runner_process *runner, uint32_t *ret_verdict);

// Returns the end of what the runner has written so far, at most RUNNER_OUTPUT_MAX bytes, printable
// and malloc'd. NULL when it has written nothing.
char *runner_process_output(struct runner_process *runner);

#endif

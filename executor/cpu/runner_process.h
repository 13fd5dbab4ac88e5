// One runner as the harness holds it: start, renew, launch, clock, deadline, death. The harness and
// the probe call this. It must not know what is computed or verified.
//
// A runner is a clean parent, which has loaded the object, and at most one child, in which the
// entry is called (executor/cpu/runner.h). runner_process_renew replaces the child by a fresh one:
// nothing that the candidate has left in its memory is in the next child.
//
// Between launches a child is parked: it sleeps in a futex from which the harness alone can wake
// it. The clock is the child's processor time as the kernel counts it (clock_getcpuclockid), read
// in this process. A launch is charged everything between two parkings, so that work which a
// candidate does after it has reported "done" is charged too, and there is no launch without a
// charge for what was done for it. Harness and runners are pinned to one core: a child stands still
// whenever the harness runs.
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
    LAUNCH_TIMEOUT, // what was waited for has been killed
};

// Why a runner does not serve launches.
enum runner_fault {
    RUNNER_FAULT_NONE,
    RUNNER_FAULT_SETUP, // the sandbox or a process cannot be made. No code of the object had run in
                        // the process that failed, so that this is never a candidate's doing
    RUNNER_FAULT_LOAD,  // the object cannot be loaded
    RUNNER_FAULT_CHILD, // the child has ended after it had begun to serve
};

// A tensor that a runner maps.
struct runner_pointer {
    struct buffer *buffer; // the harness's; runners share it
    bool writable;
};

struct runner_process {
    const char *name;      // for sentences: "candidate"; borrowed
    pid_t pid;             // the clean parent; 0: not running
    pid_t group;           // process group of everything that belongs to this runner; 0: none
    pid_t child;           // 0: there is none
    clockid_t clock;       // processor time of child
    clockid_t pid_clock;   // processor time of pid
    int socket;            // to the clean parent, see struct runner_request; 0: none
    int delay_fd[2];       // /proc/PID/schedstat of child and of this process; 0: there is none
    uint64_t mark_ns;      // processor time of child when it was parked last
    bool confined, loaded; // what the clean parent has reported
    bool returned;         // the last launch had reported "done" before its limit
    enum runner_fault fault;
    uint32_t load_trap;         // enum runner_message_kind with which loading ended
    uint32_t load_call;         // system call to MESSAGE_LOAD_CALL
    char text[RUNNER_TEXT_MAX]; // sentence to the faults SETUP and LOAD; printable
    int status;                 // wait status of the process that ended, valid with a fault
    struct control *control;
    int control_fd;
    int output;             // read end of a pipe: the runner's stdout and stderr
    uint64_t nonce_key;     // secret key of the nonces
    uint64_t nonce_counter; // of the next nonce
    struct runner_pointer pointer[CONTROL_POINTER_MAX]; // in the order of the call's arguments
    uint32_t pointer_count;
};

// Call this before any runner is started. It makes SIGCHLD interrupt waiting, by a handler that
// does nothing. It pins this process and the zygote, from which runners inherit it, to the given
// core. When core is 0 and not allowed, it takes the first core that is.
MUST_CHECK int runner_process_prepare_harness(uint64_t core, const struct zygote *zygote,
                                              struct err *err);

// Starts a runner for the object, which its clean parent loads in the background. The caller has
// set name and pointer[0 .. pointer_count). max_memory is bytes of address space beside the
// tensors. cpu_seconds is the limit of each child. nonce_key is secret. index is the runner's
// number, part of the object's name in sentences. preload: the object needs the vector math
// library. Release the runner after a failure too.
MUST_CHECK int runner_process_start(struct runner_process *runner, struct zygote *zygote,
                                    const struct bytes *object, uint64_t max_memory,
                                    uint64_t cpu_seconds, uint64_t nonce_key, uint32_t index,
                                    bool preload, struct err *err);

// Waits until the clean parent has loaded its object. There is no child yet.
enum launch_outcome runner_process_ready(struct runner_process *runner, uint64_t limit_ns);

// Ends the child, if there is one, and has a fresh one forked. Call it after runner_process_ready
// and before the first launch. The new child has its page tables for the tensors filled and is
// parked. After LAUNCH_DIED and LAUNCH_TIMEOUT the runner is dead, with the fault SETUP.
enum launch_outcome runner_process_renew(struct runner_process *runner, uint64_t limit_ns);

// Launches the entry once, or nothing (CONTROL_NOTHING). The entry gets the buffers at their
// current places. LAUNCH_DONE: the child is parked again, and *time, which may be NULL, is
// complete. A launch that takes longer than limit_ns until it is parked ends with the child killed;
// runner->returned says whether the entry had reported "done". Without a child: LAUNCH_DIED.
//
// time->cpu is the child's processor time from parking to parking. time->wall is the wall time of
// the same, less the times in which the child or the harness was ready to run and waited for the
// core (0 where the kernel does not count that), but not less than time->cpu. So wall - cpu is time
// in which the child neither ran nor could run, though others did not keep it from that: it slept.
enum launch_outcome runner_process_launch(struct runner_process *runner,
                                          enum control_command command, const int64_t *integer,
                                          const double *scalar, uint64_t limit_ns,
                                          struct launch_time *time);

// Returns whether the child's clock has stood still since it was parked; true without a child. The
// few instructions of the kernel between the parking and the sleep do not count.
bool runner_process_still(const struct runner_process *runner);

// Returns the child's processor time in nanoseconds, 0 without a child.
uint64_t runner_process_clock_ns(const struct runner_process *runner);

// Kills and reaps everything that belongs to the runner. Its output and how it died stay available.
void runner_process_kill(struct runner_process *runner);
void runner_process_release(struct runner_process *runner);

// Returns a sentence, malloc'd, that says how the runner died. *ret_verdict is CRASH or REJECTED.
char *runner_process_describe(const struct runner_process *runner, uint32_t *ret_verdict);

// Returns the end of what the runner has written so far, at most RUNNER_OUTPUT_MAX bytes, printable
// and malloc'd. NULL when it has written nothing.
char *runner_process_output(struct runner_process *runner);

// ---- parts of the above, in executor/cpu/runner_launch.c and executor/cpu/runner_end.c ----

// Returns a nonce that neither futex holds.
uint32_t runner_next_nonce(struct runner_process *runner);
// Waits until the child has written the nonce to done and is parked, and sets the mark. The child
// is killed when it takes too long.
enum launch_outcome runner_await_parked(struct runner_process *runner, uint32_t nonce,
                                        uint64_t limit_ns);

// A limit of wall time for something that a process does.
struct runner_deadline {
    clockid_t clock;    // processor time of the process
    uint64_t start_ns;  // wall time
    uint64_t start_cpu; // processor time
    uint64_t limit_ns;
};
// Returns how long to wait at most before the next look, 0 when the limit has passed. A process
// that used less than half of the limit as processor time, because other programs kept it from the
// core, has several times the limit.
struct runner_deadline runner_deadline_begin(clockid_t clock, uint64_t limit_ns);
uint64_t runner_deadline_left(const struct runner_deadline *deadline);

// Returns whether the child has ended or is none, and reaps it in that case.
bool runner_reap_child(struct runner_process *runner, int flags);
// Kills and reaps the child.
void runner_end_child(struct runner_process *runner);
void runner_printable(char *text);

#endif

#include "executor/cpu/runner_process.h"
#include "common/clock.h"
#include "common/stats.h"
#include "common/strbuf.h"
#include "proto/verdict.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// SIGCHLD interrupts the wait when the runner dies. If it dies just before the wait, its death is
// noticed after this time.
#define WAIT_SLICE_NS (20 * NS_PER_MS)
// A runner that still works after this many yields is no longer waited for.
#define SETTLE_YIELDS 20
// A runner that other programs keep from the processor may take this many times its limit of wall
// time.
#define WALL_FACTOR 4

static void on_child(int number)
{
    (void)number;
}

// Pins a process to one core.
static bool pin(pid_t pid, size_t core)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(pid, sizeof(one), &one) == 0;
}

int runner_process_prepare_harness(uint64_t core, const struct zygote *zygote, struct err *err)
{
    struct sigaction action = {.sa_handler = on_child}; // without SA_RESTART waits end with EINTR
    cpu_set_t allowed;

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGCHLD, &action, NULL);
    if (core < CPU_SETSIZE && pin(0, core) && pin(zygote->pid, core)) {
        return 0;
    }
    for (size_t cpu = 0;
         core == 0 && cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
         cpu++) {
        if (CPU_ISSET(cpu, &allowed) && pin(0, cpu) && pin(zygote->pid, cpu)) {
            return 0;
        }
    }
    return err_set(err, ERR_SYSTEM, "cannot run on core %llu", (unsigned long long)core);
}

// ---- start ----

static int make_control(struct runner_process *runner, struct err *err)
{
    runner->control_fd = memfd_create("control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (runner->control_fd < 0 || ftruncate(runner->control_fd, sizeof(struct control)) != 0 ||
        fcntl(runner->control_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory of the control page");
    }
    runner->control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED,
                           runner->control_fd, 0);
    if (runner->control == MAP_FAILED) {
        runner->control = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "mapping the control page");
    }
    return 0;
}

static int make_object(const struct bytes *object, int *ret, struct err *err)
{
    size_t at = 0;
    int fd = memfd_create("object", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    while (fd >= 0 && at < object->len) {
        ssize_t n = write(fd, object->data + at, object->len - at);
        if (n <= 0) {
            close(fd);
            fd = -1;
        } else {
            at += (size_t)n;
        }
    }
    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory of an object");
    }
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    *ret = fd;
    return 0;
}

// Returns a nonce that neither futex holds.
static uint32_t next_nonce(struct runner_process *runner)
{
    uint32_t now = atomic_load(&runner->control->go), done = atomic_load(&runner->control->done),
             nonce;
    do {
        nonce = (uint32_t)stats_philox(runner->nonce_key, 0x6e6f6e6365ULL, runner->nonce_counter++);
    } while (nonce == now || nonce == done);
    return nonce;
}

int runner_process_start(struct runner_process *runner, struct zygote *zygote,
                         const struct bytes *object, uint64_t max_memory, uint64_t cpu_seconds,
                         uint64_t nonce_key, uint32_t index, bool preload, struct err *err)
{
    struct runner_spec spec = {.role = CHILD_RUNNER,
                               .object_size = object->len,
                               .max_memory = max_memory,
                               .cpu_seconds = cpu_seconds,
                               .index = index,
                               .preload_vector_math = preload,
                               .map_count = runner->pointer_count};
    int fd[3 + CONTROL_POINTER_MAX], object_fd = -1, pipe_end[2] = {-1, -1};

    runner->output = -1;
    runner->nonce_key = nonce_key;
    int rc = make_control(runner, err);
    if (rc != 0) {
        goto out;
    }
    runner->hello = spec.hello = next_nonce(runner);
    rc = make_object(object, &object_fd, err);
    if (rc != 0) {
        goto out;
    }
    if (pipe2(pipe_end, O_CLOEXEC | O_NONBLOCK) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "pipe for a runner's output");
        goto out;
    }
    fd[0] = runner->control_fd;
    fd[1] = object_fd;
    fd[2] = pipe_end[1];
    for (uint32_t i = 0; i < runner->pointer_count; i++) {
        fd[3 + i] = runner->pointer[i].buffer->fd;
        spec.map[i] = (struct runner_map){.size = runner->pointer[i].buffer->size,
                                          .writable = runner->pointer[i].writable};
    }
    rc =
        zygote_spawn(zygote, &spec, sizeof(spec), fd, 3 + runner->pointer_count, &runner->pid, err);
    if (rc != 0) {
        goto out;
    }
    if (clock_getcpuclockid(runner->pid, &runner->clock) != 0) {
        rc = err_set(err, ERR_SYSTEM, "the %s's processor clock cannot be read", runner->name);
    }
out:
    runner->output = pipe_end[0];
    if (pipe_end[1] >= 0) {
        close(pipe_end[1]);
    }
    if (object_fd >= 0) {
        close(object_fd);
    }
    return rc;
}

// ---- launches ----

uint64_t runner_process_clock_ns(const struct runner_process *runner)
{
    struct timespec ts;
    if (runner->pid == 0 || clock_gettime(runner->clock, &ts) != 0) {
        return 0;
    }
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

// Returns whether the runner has ended, and reaps it in that case.
static bool reap(struct runner_process *runner, int flags)
{
    if (runner->pid == 0) {
        return true;
    }
    pid_t pid;
    do {
        pid = waitpid(runner->pid, &runner->status, flags);
    } while (pid < 0 && errno == EINTR);
    if (pid == 0) {
        return false;
    }
    runner->pid = 0;
    runner->dead = true;
    return true;
}

void runner_process_kill(struct runner_process *runner)
{
    if (runner->pid != 0) {
        (void)kill(runner->pid, SIGKILL);
        (void)reap(runner, 0);
    }
    runner->pending = NULL;
}

// Charges the time since the mark to the pending launch, if there is one, and moves the mark.
static void charge(struct runner_process *runner, uint64_t now_ns)
{
    if (runner->pending && now_ns > runner->mark_ns) {
        runner->pending->cpu += (double)(now_ns - runner->mark_ns);
    }
    runner->mark_ns = now_ns;
}

// Lets the runner go from "done" to its next wait and charges that time. A runner that goes on
// working is left after SETTLE_YIELDS; what it does then is charged later.
static void drain(struct runner_process *runner)
{
    uint64_t before = runner->mark_ns, now;
    size_t yields = 0;

    do {
        now = before;
        (void)sched_yield();
        before = runner_process_clock_ns(runner);
    } while (before != now && ++yields < SETTLE_YIELDS);
    charge(runner, before);
}

void runner_process_settle(struct runner_process *runner)
{
    if (runner->pid != 0) {
        charge(runner, runner_process_clock_ns(runner));
    }
    runner->pending = NULL;
}

// Waits for the nonce in control->done. Nothing else that the runner writes is looked at. When the
// wall time limit has passed, the runner is killed only if it used half of it as processor time, or
// after WALL_FACTOR times the limit.
static enum launch_outcome await(struct runner_process *runner, uint32_t nonce, uint64_t limit_ns)
{
    uint64_t start = clock_now_ns(&clock_system), start_cpu = runner->mark_ns;
    bool first = true;

    for (;;) {
        uint32_t seen = atomic_load(&runner->control->done);
        uint64_t left = limit_ns;

        if (seen == nonce) {
            return LAUNCH_DONE;
        }
        if (!first) {
            if (reap(runner, WNOHANG)) {
                return LAUNCH_DIED;
            }
            uint64_t elapsed = clock_now_ns(&clock_system) - start;
            if (elapsed >= limit_ns &&
                (elapsed >= WALL_FACTOR * limit_ns ||
                 runner_process_clock_ns(runner) - start_cpu >= limit_ns / 2)) {
                runner_process_kill(runner);
                return LAUNCH_TIMEOUT;
            }
            left = elapsed < limit_ns ? limit_ns - elapsed : WAIT_SLICE_NS;
        }
        first = false;
        left = left < WAIT_SLICE_NS ? left : WAIT_SLICE_NS;
        struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)left};
        (void)syscall(SYS_futex, &runner->control->done, FUTEX_WAIT, seen, &wait, NULL, 0);
    }
}

enum launch_outcome runner_process_ready(struct runner_process *runner, uint64_t limit_ns)
{
    enum launch_outcome outcome = await(runner, runner->hello, limit_ns);
    runner->mark_ns = runner_process_clock_ns(runner);
    return outcome;
}

enum launch_outcome runner_process_launch(struct runner_process *runner,
                                          enum control_command command, const int64_t *integer,
                                          const double *scalar, uint64_t limit_ns,
                                          struct launch_time *time)
{
    struct control *control = runner->control;

    if (runner->pid == 0) {
        return LAUNCH_DIED;
    }
    uint32_t nonce = next_nonce(runner);
    control->command = command;
    for (uint32_t i = 0; i < runner->pointer_count; i++) {
        control->offset[i] = runner->pointer[i].buffer->offset;
    }
    if (integer) {
        memcpy(control->integer, integer, sizeof(control->integer));
        memcpy(control->scalar, scalar, sizeof(control->scalar));
    }
    struct launch_time ignored = {0};
    time = time ? time : &ignored;
    *time = (struct launch_time){0};
    charge(runner, runner_process_clock_ns(runner)); // to the previous launch
    runner->pending = time;
    uint64_t wall = clock_now_ns(&clock_system);
    atomic_store(&control->go, nonce);
    (void)syscall(SYS_futex, &control->go, FUTEX_WAKE, 1, NULL, NULL, 0);
    enum launch_outcome outcome = await(runner, nonce, limit_ns);
    time->wall = (double)(clock_now_ns(&clock_system) - wall);
    if (outcome == LAUNCH_DONE) {
        drain(runner);
    }
    runner_process_settle(runner);
    return outcome;
}

enum launch_outcome runner_process_renew(struct runner_process *runner, uint64_t limit_ns)
{
    (void)limit_ns;
    return runner->pid != 0 ? LAUNCH_DONE : LAUNCH_DIED;
}

void runner_process_end(struct runner_process *runner)
{
    (void)runner;
}

bool runner_process_still(const struct runner_process *runner)
{
    (void)runner;
    return true;
}

bool runner_process_setup_failed(const struct runner_process *runner)
{
    return runner->control->trap == TRAP_SETUP;
}

void runner_process_release(struct runner_process *runner)
{
    runner_process_kill(runner);
    if (runner->control) {
        munmap(runner->control, sizeof(struct control));
        close(runner->control_fd);
    }
    if (runner->output > 0) {
        close(runner->output);
    }
    *runner = (struct runner_process){.output = -1};
}

// ---- how it ended, what it wrote ----

static const char *signal_meaning(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV (access to memory that it does not have)";
    case SIGBUS:
        return "SIGBUS (bad memory access)";
    case SIGFPE:
        return "SIGFPE (integer division by zero or overflow)";
    case SIGILL:
        return "SIGILL (illegal instruction)";
    case SIGTRAP:
        return "SIGTRAP (trap)";
    case SIGABRT:
        return "SIGABRT (abort)";
    case SIGKILL:
        return "SIGKILL (out of memory or processor time)";
    case SIGXCPU:
        return "SIGXCPU (out of processor time)";
    default:
        return NULL;
    }
}

static void printable(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text != '\n' && *text != '\t' && (*text < ' ' || *text > '~')) {
            *text = '?';
        }
    }
}

static char *describe_trap(const struct runner_process *runner, uint32_t trap,
                           uint32_t *ret_verdict)
{
    if (trap == TRAP_CALL) {
        char *name = sandbox_call_name((int)runner->control->trap_value);
        char *sentence = xasprintf("the %s called %s, a system call that candidates may not use",
                                   runner->name, name);
        free(name);
        *ret_verdict = VERDICT_REJECTED;
        return sentence;
    }
    if (trap == TRAP_ABORT) {
        return xasprintf("the %s called abort", runner->name);
    }
    char text[CONTROL_TEXT_MAX];
    memcpy(text, runner->control->text, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    printable(text);
    *ret_verdict = VERDICT_REJECTED;
    return xasprintf(trap == TRAP_LOAD ? "the %s's object cannot be loaded: %s"
                                       : "the %s's sandbox cannot be set up: %s",
                     runner->name, text);
}

char *runner_process_describe(const struct runner_process *runner, uint32_t *ret_verdict)
{
    uint32_t trap = runner->control->trap;

    *ret_verdict = VERDICT_CRASH;
    if (!runner->dead) {
        return xasprintf("the %s does not run", runner->name);
    }
    if (WIFEXITED(runner->status)) {
        if (trap > TRAP_NONE && trap <= TRAP_SETUP) {
            return describe_trap(runner, trap, ret_verdict);
        }
        return xasprintf("the %s ended its process with exit status %d instead of returning",
                         runner->name, WEXITSTATUS(runner->status));
    }
    if (WTERMSIG(runner->status) == SIGSYS) {
        *ret_verdict = VERDICT_REJECTED;
        return xasprintf("the %s called a system call that candidates may not use", runner->name);
    }
    if (signal_meaning(WTERMSIG(runner->status))) {
        return xasprintf("the %s was ended by %s", runner->name,
                         signal_meaning(WTERMSIG(runner->status)));
    }
    return xasprintf("the %s was ended by signal %d", runner->name, WTERMSIG(runner->status));
}

char *runner_process_output(struct runner_process *runner)
{
    struct strbuf text;

    strbuf_init(&text, (size_t)1 << 17); // more than the 64 KiB that a pipe holds
    char chunk[4096];
    ssize_t n;
    while (runner->output >= 0 && !text.truncated &&
           (n = read(runner->output, chunk, sizeof(chunk))) > 0) {
        strbuf_add(&text, chunk, (size_t)n);
    }
    if (text.len == 0) {
        strbuf_release(&text);
        return NULL;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\0') {
            text.data[i] = '?';
        }
    }
    printable(text.data);
    char *tail =
        xstrdup(text.data + (text.len > RUNNER_OUTPUT_MAX ? text.len - RUNNER_OUTPUT_MAX : 0));
    strbuf_release(&text);
    return tail;
}

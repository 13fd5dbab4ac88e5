#include "executor/cpu/arm.h"
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

// A death is noticed by the interrupted wait; this is how long one may stay unnoticed that came
// just before the wait.
#define WAIT_SLICE_NS (20 * NS_PER_MS)
#define SETTLE_YIELDS 20
// A runner that does not get the processor may take this many times its limit by the wall clock.
#define WALL_FACTOR 4

static void on_child(int number)
{
    (void)number;
}

// Pins a process to one core. Runners inherit it from the zygote.
static bool pin(pid_t pid, size_t core)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(pid, sizeof(one), &one) == 0;
}

int arm_prepare_harness(uint64_t core, const struct zygote *zygote, struct err *err)
{
    struct sigaction action = {.sa_handler = on_child}; // no SA_RESTART: waits end with EINTR
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

static int make_control(struct arm *arm, struct err *err)
{
    arm->control_fd = memfd_create("control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (arm->control_fd < 0 || ftruncate(arm->control_fd, sizeof(struct control)) != 0 ||
        fcntl(arm->control_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory of the control page");
    }
    arm->control =
        mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, arm->control_fd, 0);
    if (arm->control == MAP_FAILED) {
        arm->control = NULL;
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

static uint32_t next_nonce(struct arm *arm)
{
    uint32_t now = atomic_load(&arm->control->go), done = atomic_load(&arm->control->done), nonce;
    do {
        nonce = (uint32_t)stats_philox(arm->nonce_key, 0x6e6f6e6365ULL, arm->nonce_counter++);
    } while (nonce == now || nonce == done);
    return nonce;
}

int arm_start(struct arm *arm, struct zygote *zygote, const struct bytes *object,
              uint64_t max_memory, uint64_t cpu_seconds, uint64_t nonce_key, uint32_t index,
              bool preload, struct err *err)
{
    struct runner_spec spec = {.role = CHILD_RUNNER,
                               .object_size = object->len,
                               .max_memory = max_memory,
                               .cpu_seconds = cpu_seconds,
                               .index = index,
                               .preload_vector_math = preload,
                               .map_count = arm->pointer_count};
    int fd[3 + CONTROL_POINTER_MAX], object_fd = -1, pipe_end[2] = {-1, -1}, rc;

    arm->output = -1;
    arm->nonce_key = nonce_key;
    rc = make_control(arm, err);
    if (rc != 0) {
        goto out;
    }
    arm->hello = spec.hello = next_nonce(arm);
    rc = make_object(object, &object_fd, err);
    if (rc != 0) {
        goto out;
    }
    if (pipe2(pipe_end, O_CLOEXEC | O_NONBLOCK) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "pipe for a runner's output");
        goto out;
    }
    fd[0] = arm->control_fd;
    fd[1] = object_fd;
    fd[2] = pipe_end[1];
    for (uint32_t i = 0; i < arm->pointer_count; i++) {
        fd[3 + i] = arm->pointer[i].buffer->fd;
        spec.map[i] = (struct runner_map){.size = arm->pointer[i].buffer->size,
                                          .writable = arm->pointer[i].writable};
    }
    rc = zygote_spawn(zygote, &spec, sizeof(spec), fd, 3 + arm->pointer_count, &arm->pid, err);
    if (rc != 0) {
        goto out;
    }
    if (clock_getcpuclockid(arm->pid, &arm->clock) != 0) {
        rc = err_set(err, ERR_SYSTEM, "the %s's processor clock cannot be read", arm->name);
    }
out:
    arm->output = pipe_end[0];
    if (pipe_end[1] >= 0) {
        close(pipe_end[1]);
    }
    if (object_fd >= 0) {
        close(object_fd);
    }
    return rc;
}

// ---- launches ----

uint64_t arm_clock_ns(const struct arm *arm)
{
    struct timespec ts;
    if (arm->pid == 0 || clock_gettime(arm->clock, &ts) != 0) {
        return 0;
    }
    return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

// Whether the runner is gone; reaps it then.
static bool reap(struct arm *arm, int flags)
{
    if (arm->pid == 0) {
        return true;
    }
    pid_t pid;
    do {
        pid = waitpid(arm->pid, &arm->status, flags);
    } while (pid < 0 && errno == EINTR);
    if (pid == 0) {
        return false;
    }
    arm->pid = 0;
    arm->dead = true;
    return true;
}

void arm_kill(struct arm *arm)
{
    if (arm->pid != 0) {
        (void)kill(arm->pid, SIGKILL);
        (void)reap(arm, 0);
    }
    arm->pending = NULL;
}

static void charge(struct arm *arm, uint64_t now_ns)
{
    if (arm->pending && now_ns > arm->mark_ns) {
        arm->pending->cpu += (double)(now_ns - arm->mark_ns);
    }
    arm->mark_ns = now_ns;
}

// Lets the runner get from "done" into its wait, charging it; one that works on instead is given up
// on after a while.
static void drain(struct arm *arm)
{
    uint64_t before = arm->mark_ns, now;
    size_t yields = 0;

    do {
        now = before;
        (void)sched_yield();
        before = arm_clock_ns(arm);
    } while (before != now && ++yields < SETTLE_YIELDS);
    charge(arm, before);
}

void arm_settle(struct arm *arm)
{
    if (arm->pid != 0) {
        charge(arm, arm_clock_ns(arm));
    }
    arm->pending = NULL;
}

// Waits for the nonce in done. Nothing else that the runner writes matters.
static enum launch_outcome await(struct arm *arm, uint32_t nonce, uint64_t limit_ns)
{
    uint64_t start = clock_now_ns(&clock_system), start_cpu = arm->mark_ns;
    bool first = true;

    for (;;) {
        uint32_t seen = atomic_load(&arm->control->done);
        uint64_t elapsed, left;

        if (seen == nonce) {
            return LAUNCH_DONE;
        }
        if (!first) {
            if (reap(arm, WNOHANG)) {
                return LAUNCH_DIED;
            }
            elapsed = clock_now_ns(&clock_system) - start;
            if (elapsed >= limit_ns && (elapsed >= WALL_FACTOR * limit_ns ||
                                        arm_clock_ns(arm) - start_cpu >= limit_ns / 2)) {
                arm_kill(arm);
                return LAUNCH_TIMEOUT;
            }
            left = elapsed < limit_ns ? limit_ns - elapsed : WAIT_SLICE_NS;
        } else {
            left = limit_ns;
        }
        first = false;
        left = left < WAIT_SLICE_NS ? left : WAIT_SLICE_NS;
        struct timespec wait = (struct timespec){.tv_sec = 0, .tv_nsec = (long)left};
        (void)syscall(SYS_futex, &arm->control->done, FUTEX_WAIT, seen, &wait, NULL, 0);
    }
}

enum launch_outcome arm_ready(struct arm *arm, uint64_t limit_ns)
{
    enum launch_outcome outcome = await(arm, arm->hello, limit_ns);
    arm->mark_ns = arm_clock_ns(arm);
    return outcome;
}

enum launch_outcome arm_launch(struct arm *arm, enum control_command command,
                               const int64_t *integer, const double *scalar, uint64_t limit_ns,
                               struct launch_time *time)
{
    struct control *control = arm->control;

    if (arm->pid == 0) {
        return LAUNCH_DIED;
    }
    uint32_t nonce = next_nonce(arm);
    control->command = command;
    for (uint32_t i = 0; i < arm->pointer_count; i++) {
        control->offset[i] = arm->pointer[i].buffer->offset;
    }
    if (integer) {
        memcpy(control->integer, integer, sizeof(control->integer));
        memcpy(control->scalar, scalar, sizeof(control->scalar));
    }
    struct launch_time ignored = {0};
    time = time ? time : &ignored;
    *time = (struct launch_time){0};
    charge(arm, arm_clock_ns(arm)); // to the launch before
    arm->pending = time;
    uint64_t wall = clock_now_ns(&clock_system);
    atomic_store(&control->go, nonce);
    (void)syscall(SYS_futex, &control->go, FUTEX_WAKE, 1, NULL, NULL, 0);
    enum launch_outcome outcome = await(arm, nonce, limit_ns);
    time->wall = (double)(clock_now_ns(&clock_system) - wall);
    if (outcome == LAUNCH_DONE) {
        drain(arm);
    }
    if (time == &ignored || outcome != LAUNCH_DONE) {
        arm->pending = NULL;
    }
    return outcome;
}

void arm_release(struct arm *arm)
{
    arm_kill(arm);
    if (arm->control) {
        munmap(arm->control, sizeof(struct control));
        close(arm->control_fd);
    }
    if (arm->output > 0) {
        close(arm->output);
    }
    *arm = (struct arm){.output = -1};
}

// ---- what became of it ----

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

static char *describe_trap(const struct arm *arm, uint32_t trap, uint32_t *ret_verdict)
{
    if (trap == TRAP_CALL) {
        char *name = sandbox_call_name((int)arm->control->trap_value);
        char *sentence = xasprintf("the %s called %s, a system call that candidates may not use",
                                   arm->name, name);
        free(name);
        *ret_verdict = VERDICT_REJECTED;
        return sentence;
    }
    if (trap == TRAP_ABORT) {
        return xasprintf("the %s called abort", arm->name);
    }
    char text[CONTROL_TEXT_MAX];
    memcpy(text, arm->control->text, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    printable(text);
    *ret_verdict = VERDICT_REJECTED;
    return xasprintf(trap == TRAP_LOAD ? "the %s's object cannot be loaded: %s"
                                       : "the %s's sandbox cannot be set up: %s",
                     arm->name, text);
}

char *arm_describe(const struct arm *arm, uint32_t *ret_verdict)
{
    uint32_t trap = arm->control->trap;

    *ret_verdict = VERDICT_CRASH;
    if (!arm->dead) {
        return xasprintf("the %s does not run", arm->name);
    }
    if (WIFEXITED(arm->status)) {
        if (trap > TRAP_NONE && trap <= TRAP_SETUP) {
            return describe_trap(arm, trap, ret_verdict);
        }
        return xasprintf("the %s ended its process with exit status %d instead of returning",
                         arm->name, WEXITSTATUS(arm->status));
    }
    if (WTERMSIG(arm->status) == SIGSYS) {
        *ret_verdict = VERDICT_REJECTED;
        return xasprintf("the %s called a system call that candidates may not use", arm->name);
    }
    if (signal_meaning(WTERMSIG(arm->status))) {
        return xasprintf("the %s was ended by %s", arm->name,
                         signal_meaning(WTERMSIG(arm->status)));
    }
    return xasprintf("the %s was ended by signal %d", arm->name, WTERMSIG(arm->status));
}

char *arm_output(struct arm *arm)
{
    struct strbuf text;

    strbuf_init(&text, (size_t)1 << 17); // a pipe holds 64 KiB
    char chunk[4096];
    ssize_t n;
    while (arm->output >= 0 && !text.truncated &&
           (n = read(arm->output, chunk, sizeof(chunk))) > 0) {
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
    char *tail = xstrdup(text.data + (text.len > ARM_OUTPUT_MAX ? text.len - ARM_OUTPUT_MAX : 0));
    strbuf_release(&text);
    return tail;
}

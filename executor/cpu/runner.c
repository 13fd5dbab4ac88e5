#include "executor/cpu/runner.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RUNNER_STACK ((uint64_t)64 << 20) // bytes
#define RUNNER_FILES 64                   // open descriptors

// The control page, for the signal handlers, which get no argument of ours. A candidate that
// overwrites it only spoils the sentence about its own end.
static struct control *handler_control;

typedef void entry_function(void *const *pointer, const int64_t *integer, const double *scalar);

struct runner {
    struct control *control;
    entry_function *entry;
    uint32_t pointer_count;
    unsigned char *base[CONTROL_POINTER_MAX]; // where the tensors' memory is mapped
};

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

// Exits at once, without what this process has inherited to do at its end, such as flushing output
// buffers or a sanitizer's checks.
__attribute__((noreturn)) static void leave(int status, void *unused)
{
    (void)unused;
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)context;
    handler_control->trap_value = number == SIGSYS ? (uint32_t)info->si_syscall : 0;
    handler_control->trap = number == SIGSYS ? TRAP_CALL : TRAP_ABORT;
    leave(1, NULL);
}

// The first process of a pid namespace gets no signal from inside unless it has a handler. Without
// a handler abort() would go on to a halt instruction and look like a crash. Faults are forced by
// the kernel and get the default action, which also replaces a sanitizer's handler.
static void install_handlers(void)
{
    static const int fault[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};

    sigemptyset(&trap.sa_mask);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigemptyset(&plain.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(fault); i++) {
        (void)sigaction(fault[i], &plain, NULL);
    }
    (void)sigaction(SIGCHLD, &plain, NULL);
    (void)sigaction(SIGSYS, &trap, NULL);
    (void)sigaction(SIGABRT, &trap, NULL);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

// Maps fd with unmapped pages on both sides.
static int map_tensor(int fd, const struct runner_map *map, unsigned char **ret, struct err *err)
{
    size_t size = (size_t)map->size;
    unsigned char *edge = mmap(NULL, size + 2 * CONTROL_EDGE, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (edge == MAP_FAILED) {
        return err_set_errno(err, ERR_SYSTEM, errno, "address space for a tensor");
    }
    *ret = edge + CONTROL_EDGE;
    if (mmap(*ret, size, map->writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_FIXED,
             fd, 0) == MAP_FAILED) {
        return err_set_errno(err, ERR_SYSTEM, errno, "mapping a tensor");
    }
    return 0;
}

// Makes the object a file that dlopen can open, and returns its path: a copy on the sandbox's
// tmpfs; without a sandbox its descriptor in /proc, or, without /proc, a temporary file.
static int object_path(const struct zygote_child *child, const struct runner_spec *spec,
                       char path[static 64], struct err *err)
{
    int out;

    if (child->sandbox->off) {
        snprintf(path, 64, "/proc/self/fd/%d", child->fd[1]);
        if (access(path, R_OK) == 0) {
            return 0;
        }
        snprintf(path, 64, "/tmp/kcast-object.XXXXXX");
        out = mkostemp(path, O_CLOEXEC);
    } else {
        snprintf(path, 64, SANDBOX_DIR "/object%u.so", spec->index);
        out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    }
    unsigned char *data =
        mmap(NULL, (size_t)spec->object_size, PROT_READ, MAP_SHARED, child->fd[1], 0);
    if (data == MAP_FAILED || out < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "the object's file");
    }
    size_t at = 0;
    while (at < spec->object_size) {
        ssize_t n = write(out, data + at, (size_t)spec->object_size - at);
        if (n <= 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "writing the object's file");
        }
        at += (size_t)n;
    }
    close(out);
    munmap(data, (size_t)spec->object_size);
    return 0;
}

static int map_all(struct runner *runner, const struct zygote_child *child,
                   const struct runner_spec *spec, struct err *err)
{
    if (child->fd_count != spec->map_count + 3 || spec->map_count > CONTROL_POINTER_MAX) {
        return err_set(err, ERR_INTERNAL, "a runner was given the wrong descriptors");
    }
    runner->pointer_count = spec->map_count;
    int rc = 0;
    for (uint32_t i = 0; i < spec->map_count && rc == 0; i++) {
        rc = map_tensor(child->fd[3 + i], &spec->map[i], &runner->base[i], err);
    }
    return rc;
}

// Returns an estimate of the address space in use before the candidate adds its own.
static uint64_t mapped_bytes(const struct runner_spec *spec)
{
    uint64_t sum = (uint64_t)64 << 20; // this program and its libraries
    for (uint32_t i = 0; i < spec->map_count; i++) {
        sum += spec->map[i].size + 2 * CONTROL_EDGE;
    }
    return sum + spec->object_size;
}

static int confine(const struct zygote_child *child, const struct runner_spec *spec,
                   struct err *err)
{
    struct sandbox_limits limits = {
        .address_space = SANDBOX_SANITIZED ? 0 : spec->max_memory + mapped_bytes(spec),
        .file_size = spec->object_size + 1,
        .cpu_seconds = spec->cpu_seconds,
        // Without a sandbox this limit is useless: root is not bound by it, and the other processes
        // of any other user count.
        .processes = child->sandbox->off ? 0 : SANDBOX_NO_PROCESSES,
        .files = RUNNER_FILES,
        .stack = RUNNER_STACK,
    };
    int keep[1] = {child->sandbox->off ? child->fd[1] : -1};
    int rc = sandbox_drop(child->sandbox, child->alive_fd, err);

    if (rc != 0) {
        return rc;
    }
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(child->fd[2], 1) < 0 || dup2(child->fd[2], 2) < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "standard descriptors of a runner");
    }
    sandbox_close_files(keep, 1);
    return sandbox_limit(&limits, err);
}

static int load(struct runner *runner, const struct zygote_child *child,
                const struct runner_filters *filters, const char *path, struct err *err)
{
    int rc = 0;

    if (!child->sandbox->off) {
        rc = sandbox_filter_load(&filters->load, err);
    }
    if (rc != 0) {
        return rc;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    (void)unlink(path);
    if (!object) {
        const char *text = dlerror();
        return err_set(err, ERR_INVALID, "%s", text ? text : "dlopen failed");
    }
    *(void **)&runner->entry = dlsym(object, "kcast_entry");
    if (!runner->entry) {
        return err_set(err, ERR_INVALID, "it has no entry point");
    }
    return child->sandbox->off ? 0 : sandbox_filter_load(&filters->run, err);
}

__attribute__((noreturn)) static void serve(struct runner *runner, uint32_t hello)
{
    struct control *control = runner->control;
    uint32_t last = atomic_load(&control->go);

    atomic_store(&control->done, hello);
    futex_wake(&control->done);
    for (;;) {
        uint32_t nonce;
        while ((nonce = atomic_load(&control->go)) == last) {
            futex_wait(&control->go, last);
        }
        last = nonce;
        if (control->command == CONTROL_CALL) {
            void *pointer[CONTROL_POINTER_MAX];
            for (uint32_t i = 0; i < runner->pointer_count; i++) {
                pointer[i] = runner->base[i] + control->offset[i];
            }
            runner->entry(pointer, control->integer, control->scalar);
        }
        atomic_store(&control->done, nonce);
        futex_wake(&control->done);
    }
}

static int give_up(struct control *control, enum control_trap trap, const struct err *err)
{
    snprintf(control->text, sizeof(control->text), "%.*s", CONTROL_TEXT_MAX - 1, err->text);
    control->trap = trap;
    return 1;
}

int runner_main(const struct zygote_child *child, const struct runner_filters *filters)
{
    const struct runner_spec *spec = child->spec;

    if (child->fd_count < 3 || child->spec_len != sizeof(*spec)) {
        return 1;
    }
    struct runner runner = {0};
    runner.control =
        mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, child->fd[0], 0);
    if (runner.control == MAP_FAILED) {
        return 1;
    }
    handler_control = runner.control;
    install_handlers();
    (void)on_exit(leave, NULL); // a candidate may call exit
    if (spec->preload_vector_math) {
        (void)dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
    }
    struct err err = ERR_INIT;
    char path[64];
    if (map_all(&runner, child, spec, &err) != 0 || object_path(child, spec, path, &err) != 0 ||
        confine(child, spec, &err) != 0) {
        return give_up(runner.control, TRAP_SETUP, &err);
    }
    if (load(&runner, child, filters, path, &err) != 0) {
        return give_up(runner.control, err.code == ERR_INVALID ? TRAP_LOAD : TRAP_SETUP, &err);
    }
    serve(&runner, spec->hello);
}

#include "executor/cpu/runner.h"
#include "executor/cpu/own_pages.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE_LEAST 4096                   // bytes; no machine has smaller pages
#define RUNNER_STACK ((uint64_t)64 << 20) // bytes
#define RUNNER_FILES 64                   // open descriptors
#define FOLDER_EXTRA ((uint64_t)1 << 16)  // bytes of the object's folder beyond the object

// The control page in a child, NULL in the clean parent: for the signal handlers, which get no
// argument of ours. A candidate that overwrites it only spoils the sentence about its own end.
static struct control *handler_control;

// The socket, for the signal handlers as well.
static int harness_socket = -1;

typedef void entry_function(void *const *pointer, const int64_t *integer, const double *scalar);

struct runner {
    const struct zygote_child *process;
    const struct runner_filters *filters;
    struct control *control;
    entry_function *entry;
    uint32_t pointer_count;
    unsigned char *base[CONTROL_POINTER_MAX]; // where the tensors' memory is mapped
    const struct runner_map *map;             // what is mapped there
    int object;                               // descriptor of the object
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

// Tells the harness. It does not wait: there is room for the few messages of a runner. Without a
// harness the write ends this process.
static void tell(enum runner_message_kind kind, uint32_t value, const char *text)
{
    struct runner_message message = {.kind = kind, .value = value};

    snprintf(message.text, sizeof(message.text), "%.*s", RUNNER_TEXT_MAX - 1, text);
    if (write(harness_socket, &message, sizeof(message)) != sizeof(message)) {
        leave(1, NULL);
    }
}

// Returns whether a refused call was an attempt to raise SIGABRT. Children may not send signals,
// not even to themselves: they could send them to the clean parent as well.
static bool is_abort(const siginfo_t *info, const ucontext_t *machine)
{
#if defined(__x86_64__)
    return info->si_syscall == SYS_tgkill && machine->uc_mcontext.gregs[REG_RDX] == SIGABRT;
#elif defined(__aarch64__)
    return info->si_syscall == SYS_tgkill && machine->uc_mcontext.regs[2] == SIGABRT;
#else
    (void)info;
    (void)machine;
    return false;
#endif
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    bool aborted = number != SIGSYS || is_abort(info, context);
    uint32_t call = aborted ? 0 : (uint32_t)info->si_syscall;

    if (handler_control) {
        handler_control->trap_value = call;
        handler_control->trap = aborted ? TRAP_ABORT : TRAP_CALL;
    } else {
        tell(aborted ? MESSAGE_LOAD_ABORT : MESSAGE_LOAD_CALL, call, "");
    }
    leave(1, NULL);
}

// Faults get the default action, which also replaces a sanitizer's handler.
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

static int copy_object(int from, uint64_t size, int to, struct err *err)
{
    unsigned char *data = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, from, 0);

    if (data == MAP_FAILED || to < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "the object's file");
    }
    size_t at = 0;
    while (at < size) {
        ssize_t n = write(to, data + at, (size_t)size - at);
        if (n <= 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "writing the object's file");
        }
        at += (size_t)n;
    }
    munmap(data, (size_t)size);
    return 0;
}

// Makes the object a file that dlopen can open, and returns its path: a copy in a folder that no
// other process can reach; without a sandbox its descriptor in /proc, or, without /proc, a
// temporary file.
static int object_path(const struct runner *runner, const struct runner_spec *spec,
                       char path[static 64], struct err *err)
{
    int out, rc = 0;

    if (runner->process->sandbox->off) {
        snprintf(path, 64, "/proc/self/fd/%d", runner->object);
        if (access(path, R_OK) == 0) {
            return 0;
        }
        snprintf(path, 64, "/tmp/kcast-object.XXXXXX");
        out = mkostemp(path, O_CLOEXEC);
    } else {
        rc = sandbox_own_folder(spec->object_size + FOLDER_EXTRA, err);
        if (rc != 0) {
            return rc;
        }
        snprintf(path, 64, SANDBOX_DIR "/object%u.so", spec->index);
        out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    }
    rc = copy_object(runner->object, spec->object_size, out, err);
    if (out >= 0) {
        close(out);
    }
    return rc;
}

static int map_all(struct runner *runner, const struct zygote_child *child,
                   const struct runner_spec *spec, struct err *err)
{
    if (child->fd_count != spec->map_count + RUNNER_FIRST_MAP ||
        spec->map_count > CONTROL_POINTER_MAX) {
        return err_set(err, ERR_INTERNAL, "a runner was given the wrong descriptors");
    }
    runner->pointer_count = spec->map_count;
    runner->map = spec->map;
    int rc = 0;
    for (uint32_t i = 0; i < spec->map_count && rc == 0; i++) {
        rc = map_tensor(child->fd[RUNNER_FIRST_MAP + i], &spec->map[i], &runner->base[i], err);
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

// Leaves open the output, the socket, at the place that the filter knows, and the object.
static int keep_descriptors(struct runner *runner, struct err *err)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int output = runner->process->fd[RUNNER_OUTPUT];
    int keep[2] = {SANDBOX_SOCKET, runner->object};

    harness_socket = fcntl(harness_socket, F_DUPFD_CLOEXEC, SANDBOX_SOCKET + 1);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 ||
        harness_socket < 0 || dup2(harness_socket, SANDBOX_SOCKET) < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "descriptors of a runner");
    }
    harness_socket = SANDBOX_SOCKET;
    sandbox_close_files(keep, 2);
    return 0;
}

static int confine(struct runner *runner, const struct runner_spec *spec, struct err *err)
{
    const struct zygote_child *process = runner->process;
    struct sandbox_limits limits = {
        .address_space = SANDBOX_SANITIZED ? 0 : spec->max_memory + mapped_bytes(spec),
        .file_size = spec->object_size + 1,
        .cpu_seconds = spec->cpu_seconds,
        .files = RUNNER_FILES,
        .stack = RUNNER_STACK,
    };
    int rc = sandbox_drop(process->sandbox, process->alive_fd, err);

    if (rc != 0) {
        return rc;
    }
    rc = keep_descriptors(runner, err);
    if (rc != 0) {
        return rc;
    }
    rc = sandbox_limit(&limits, err);
    return rc == 0 && !process->sandbox->off ? sandbox_filter_load(&runner->filters->load, err)
                                             : rc;
}

static int load(struct runner *runner, const char *path, struct err *err)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    (void)unlink(path);
    if (!object) {
        const char *text = dlerror();
        return err_set(err, ERR_INVALID, "%s", text ? text : "dlopen failed");
    }
    *(void **)&runner->entry = dlsym(object, "kcast_entry");
    return runner->entry ? 0 : err_set(err, ERR_INVALID, "it has no entry point");
}

// ---- the child ----

// Fills the page tables for the tensors, which a fork leaves empty, so that no launch has to.
// Reading maps many pages at once; writing then finds them mapped.
static void populate(const struct runner *runner)
{
    for (uint32_t i = 0; i < runner->pointer_count; i++) {
        size_t size = runner->map[i].size;
        bool writable = runner->map[i].writable;
        volatile unsigned char *at = runner->base[i];

        if (madvise(runner->base[i], size, MADV_POPULATE_READ) == 0 &&
            (!writable || madvise(runner->base[i], size, MADV_POPULATE_WRITE) == 0)) {
            continue;
        }
        for (size_t byte = 0; byte < size; byte += PAGE_LEAST) {
            unsigned char value = at[byte];
            if (writable) {
                at[byte] = value;
            }
        }
    }
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

// Confines the child further than its parent and serves launches. The message comes first: it tells
// the harness which process this is, so that the harness can end it.
__attribute__((noreturn)) static void become_child(struct runner *runner, uint32_t hello)
{
    struct sandbox_limits limits = {.processes = SANDBOX_NO_PROCESSES};
    bool off = runner->process->sandbox->off;
    struct err ignored = ERR_INIT;

    // Not inherited by a fork. If the harness has ended before this, nobody holds the other end of
    // the socket, and the message ends this process.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    tell(MESSAGE_CHILD, 0, "");
    handler_control = runner->control;
    sandbox_close_files(NULL, 0);
    // Without a sandbox this limit is useless: root is not bound by it, and the other processes of
    // any other user count.
    if (!off && (sandbox_limit(&limits, &ignored) != 0)) {
        leave(RUNNER_EXIT_UNFILTERED, NULL);
    }
    populate(runner);
    if (!off && sandbox_filter_load(&runner->filters->run, &ignored) != 0) {
        leave(RUNNER_EXIT_UNFILTERED, NULL);
    }
    serve(runner, hello);
}

// ---- the clean parent ----

// Forks a child for each request, until the harness has closed its end.
static int serve_requests(struct runner *runner)
{
    struct runner_request request;

    while (read(harness_socket, &request, sizeof(request)) == sizeof(request)) {
        long pid = syscall(SYS_clone, SANDBOX_FORK_FLAGS, 0, 0, 0, 0);
        if (pid == 0) {
            become_child(runner, request.hello);
        }
        if (pid < 0) {
            struct err err = ERR_INIT;
            (void)err_set_errno(&err, ERR_SANDBOX, errno, "a fresh process");
            tell(MESSAGE_SETUP_FAILED, 0, err.text);
        }
    }
    return 0;
}

static int set_up(struct runner *runner, char path[static 64], struct err *err)
{
    const struct runner_spec *spec = runner->process->spec;
    int rc = map_all(runner, runner->process, spec, err);

    if (rc != 0) {
        return rc;
    }
    rc = object_path(runner, spec, path, err);
    return rc == 0 ? confine(runner, spec, err) : rc;
}

int runner_main(const struct zygote_child *child, const struct runner_filters *filters)
{
    const struct runner_spec *spec = child->spec;
    struct runner runner = {.process = child, .filters = filters};
    struct err err = ERR_INIT;
    char path[64];

    if (child->fd_count < RUNNER_FIRST_MAP || child->spec_len != sizeof(*spec)) {
        return 1;
    }
    harness_socket = child->fd[RUNNER_SOCKET];
    // Out of the way of the descriptors that are put in their places later.
    runner.object = fcntl(child->fd[RUNNER_OBJECT], F_DUPFD_CLOEXEC, SANDBOX_SOCKET + 1);
    runner.control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED,
                          child->fd[RUNNER_CONTROL], 0);
    if (runner.control == MAP_FAILED || runner.object < 0) {
        tell(MESSAGE_SETUP_FAILED, 0, "the control page or the object cannot be opened");
        return 1;
    }
    install_handlers();
    (void)on_exit(leave, NULL); // a candidate may call exit
    if (spec->preload_vector_math) {
        (void)dlopen("libmvec.so.1", RTLD_NOW | RTLD_GLOBAL);
    }
    if (own_pages(&err) != 0 || set_up(&runner, path, &err) != 0) {
        tell(MESSAGE_SETUP_FAILED, 0, err.text);
        return 1;
    }
    tell(MESSAGE_CONFINED, 0, "");
    if (load(&runner, path, &err) != 0) {
        tell(MESSAGE_LOAD_FAILED, 0, err.text);
        return 1;
    }
    tell(MESSAGE_LOADED, 0, "");
    return serve_requests(&runner);
}

#include "executor/cpu/confinement_check.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

const char *check_text(enum check check)
{
    static const char *const text[CHECK_COUNT] = {
#define X(id, meaning) [CHECK_##id] = meaning,
        CHECKS(X)
#undef X
    };
    return check < CHECK_COUNT ? text[check] : "?";
}

// Makes a refused call return EPERM to its caller, so that one process can try everything.
static void on_refused(int number, siginfo_t *info, void *context)
{
    ucontext_t *machine = context;

    (void)number;
    (void)info;
#if defined(__x86_64__)
    machine->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
    machine->uc_mcontext.regs[0] = (uint64_t)-EPERM;
#endif
}

static bool can_open(const char *path, int flags)
{
    return open(path, flags, 0600) >= 0;
}

static bool can_look_into(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0;
}

static bool knows_host(void)
{
    struct utsname name;

    return uname(&name) == 0 && strcmp(name.nodename, SANDBOX_HOST) != 0;
}

// Whether a membarrier that waits for all cores is made; asking what there is would wait for none.
static bool can_wait_for_cores(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

static bool can_open_by_handle(void)
{
    union {
        struct file_handle head;
        unsigned char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } handle = {.head = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount;

    return name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount, 0) == 0;
}

static bool can_ring(void)
{
    unsigned char parameters[120] = {0};
    return syscall(SYS_io_uring_setup, 1, parameters) >= 0;
}

static bool can_perf(void)
{
    struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE,
                                         .size = sizeof(attributes),
                                         .config = PERF_COUNT_SW_CPU_CLOCK,
                                         .exclude_kernel = 1,
                                         .exclude_hv = 1};
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) >= 0;
}

static bool can_bpf(void)
{
    // BPF_MAP_CREATE of an array with one entry: type, key size, value size, entries.
    uint32_t attributes[32] = {2, 4, 4, 1};
    return syscall(SYS_bpf, 0, attributes, sizeof(attributes)) >= 0;
}

static bool can_move(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof(all));
    return sched_setaffinity(0, sizeof(all), &all) == 0;
}

static bool can_fork(void)
{
    long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        _exit(0);
    }
    return pid > 0;
}

static bool can_exec(void)
{
    static char *const argv[] = {"/usr/bin/true", NULL};
    (void)execve(argv[0], argv, argv + 1);
    return false; // after a success this does not run, and the outcome stays unfinished
}

// variable: the first of kcast-exec's environment, as the process knew it before it was confined.
static bool possible(enum check check, const char *variable)
{
    switch (check) {
    case CHECK_passwd:
        return can_open("/etc/passwd", O_RDONLY);
    case CHECK_shadow:
        return can_open("/etc/shadow", O_RDONLY);
    case CHECK_etc:
        return can_look_into("/etc");
    case CHECK_sys:
        return can_look_into("/sys");
    case CHECK_var:
        return can_look_into("/var");
    case CHECK_share:
        return can_look_into("/usr/share");
    case CHECK_sbin:
        return can_look_into("/usr/sbin");
    case CHECK_host_name:
        return knows_host();
    case CHECK_environment:
        return variable && *variable != '\0';
    case CHECK_proc:
        return can_open("/proc/1/environ", O_RDONLY);
    case CHECK_disk:
        return mknod(SANDBOX_DIR "/disk", S_IFBLK | 0600, makedev(8, 0)) == 0;
    case CHECK_write_usr:
        return can_open("/usr/kcast-check", O_WRONLY | O_CREAT);
    case CHECK_write_root:
        return can_open("/kcast-check", O_WRONLY | O_CREAT);
    case CHECK_socket:
        return socket(AF_INET, SOCK_STREAM, 0) >= 0;
    case CHECK_unix_socket:
        return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
    case CHECK_ptrace:
        return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
    case CHECK_parent:
        return kill(-1, 0) == 0; // any process at all
    case CHECK_user_namespace:
        return unshare(CLONE_NEWUSER) == 0;
    case CHECK_mount:
        return mount("none", SANDBOX_DIR, "tmpfs", 0, NULL) == 0;
    case CHECK_io_uring:
        return can_ring();
    case CHECK_bpf:
        return can_bpf();
    case CHECK_perf:
        return can_perf();
    case CHECK_userfaultfd:
        return syscall(SYS_userfaultfd, O_CLOEXEC | 1) >= 0;
    case CHECK_memory_file:
        return memfd_create("check", MFD_CLOEXEC) >= 0;
    case CHECK_keys:
        return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) >= 0;
    case CHECK_handle:
        return can_open_by_handle();
    case CHECK_membarrier:
        return can_wait_for_cores();
    case CHECK_affinity:
        return can_move();
    case CHECK_fork:
        return can_fork();
    case CHECK_exec:
        return can_exec();
    case CHECK_COUNT:
        break;
    }
    return true;
}

static struct check_outcome *open_outcome(const struct zygote_child *child)
{
    if (child->fd_count != 1) {
        return NULL;
    }
    struct check_outcome *outcome =
        mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED, child->fd[0], 0);
    return outcome == MAP_FAILED ? NULL : outcome;
}

static int try_all(struct check_outcome *outcome, int status, const struct err *err, bool jail,
                   const char *variable)
{
    if (status != 0) {
        snprintf(outcome->setup, sizeof(outcome->setup), "%.*s", (int)sizeof(outcome->setup) - 1,
                 err->text);
        return 1;
    }
    for (enum check check = 0; check < CHECK_COUNT; check++) {
        if (!jail || (check != CHECK_fork && check != CHECK_exec)) {
            outcome->possible[check] = possible(check, variable);
        }
    }
    outcome->finished = true;
    return 0;
}

int check_jail_main(const struct zygote_child *child, const struct sandbox_filter *filter)
{
    struct check_outcome *outcome = open_outcome(child);

    if (!outcome) {
        return 1;
    }
    const char *variable = environ ? environ[0] : NULL;
    struct err err = ERR_INIT;
    int rc = sandbox_drop(child->sandbox, child->alive_fd, &err);
    sandbox_close_files(NULL, 0);
    if (rc == 0) {
        rc = sandbox_filter_load(filter, &err);
    }
    return try_all(outcome, rc, &err, true, variable);
}

int check_runner_main(const struct zygote_child *child, const struct runner_filters *filters)
{
    struct check_outcome *outcome = open_outcome(child);
    struct sigaction refused = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sandbox_limits limits = {.processes = SANDBOX_NO_PROCESSES};

    if (!outcome) {
        return 1;
    }
    sigemptyset(&refused.sa_mask);
    (void)sigaction(SIGSYS, &refused, NULL);
    const char *variable = environ ? environ[0] : NULL;
    struct err err = ERR_INIT;
    int rc = sandbox_drop(child->sandbox, child->alive_fd, &err);
    sandbox_close_files(NULL, 0);
    if (rc != 0) {
        goto out;
    }
    rc = sandbox_limit(&limits, &err);
    if (rc != 0) {
        goto out;
    }
    rc = sandbox_filter_load(&filters->load, &err);
    if (rc != 0) {
        goto out;
    }
    rc = sandbox_filter_load(&filters->run, &err);
out:
    return try_all(outcome, rc, &err, false, variable);
}

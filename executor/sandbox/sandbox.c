#include "executor/sandbox/sandbox.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- filters ----

// What no compiler needs. Namespaces take most of the teeth out of these already; the list also
// keeps the kernel's younger and larger interfaces out of reach.
static const char *const denied[] = {
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_getfd",
    "pidfd_open",
    "pidfd_send_signal",
    "kcmp",
    "process_madvise",
    "process_mrelease",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "fsconfig",
    "fspick",
    "mount_setattr",
    "unshare",
    "setns",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "io_setup",
    "io_submit",
    "io_destroy",
    "io_getevents",
    "io_cancel",
    "keyctl",
    "add_key",
    "request_key",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "fanotify_mark",
    "inotify_init",
    "inotify_init1",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "settimeofday",
    "personality",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "sethostname",
    "setdomainname",
    "iopl",
    "ioperm",
    "lookup_dcookie",
    "nfsservctl",
    "vhangup",
    "mknod",
    "mknodat",
    "socket",
    "socketpair",
    "connect",
    "bind",
    "listen",
    "accept",
    "accept4",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "flock",
    "memfd_create",
    "memfd_secret",
    "mbind",
    "set_mempolicy",
    "migrate_pages",
    "move_pages",
    "sched_setaffinity",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setattr",
    "setpriority",
    "ioprio_set",
    "seccomp",
    "landlock_create_ruleset",
    "shmget",
    "shmat",
    "shmctl",
    "semget",
    "semop",
    "semctl",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "mq_open",
    "timer_create",
    "signalfd",
    "signalfd4",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "copy_file_range",
};

// What a loaded candidate and the C library beneath it need.
static const char *const allowed_run[] = {
    "exit_group",    "exit",         "brk",          "munmap",
    "mremap",        "madvise",      "rt_sigreturn", "rt_sigprocmask",
    "clock_gettime", "clock_getres", "gettimeofday", "time",
    "getpid",        "gettid",       "getuid",       "geteuid",
    "getgid",        "getegid",      "getrandom",    "restart_syscall",
    "getcpu",        "tgkill",       "uname",        "membarrier",
    "rseq",          "sigaltstack"};

// What the C library may try and does without: the answer is EPERM.
static const char *const refused_run[] = {
    "fstat",         "newfstatat", "lseek",     "ioctl",       "fcntl",        "sched_getaffinity",
    "sysinfo",       "prlimit64",  "getrlimit", "sched_yield", "rt_sigaction", "close",
    "get_mempolicy", "arch_prctl",
};

// Beside allowed_run while the dynamic loader works. There is nothing to open but the object
// itself.
static const char *const allowed_load[] = {
    "open",
    "openat",
    "read",
    "pread64",
    "close",
    "fstat",
    "newfstatat",
    "fstatfs",
    "statx",
    "stat",
    "lseek",
    "mmap",
    "mprotect",
    "readlink",
    "readlinkat",
    "access",
    "faccessat",
    "faccessat2",
    "getcwd",
    "fcntl",
    "ioctl",
    "unlink",
    "unlinkat",
    "rt_sigaction",
    "seccomp",
    "prlimit64",
    "getrlimit",
    "setrlimit",
    "sched_getaffinity",
    "sysinfo",
    "arch_prctl",
    "sched_yield",
    "prctl",
};

// Adds a rule for a call by name; a call that this machine or this libseccomp does not know needs
// none.
static int add(scmp_filter_ctx context, uint32_t action, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR || number < 0) {
        return 0;
    }
    int status = seccomp_rule_add(context, action, number, 0);
    return status == -EACCES || status == -EEXIST ? 0 : status; // the same as the default action
}

static int add_all(scmp_filter_ctx context, uint32_t action, const char *const *name, size_t count)
{
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        status = add(context, action, name[i]);
    }
    return status;
}

static int compile_rules(scmp_filter_ctx context)
{
    static const uint64_t namespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                          CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    int status = add_all(context, SCMP_ACT_ERRNO(EPERM), denied, ARRAY_LEN(denied));

    for (size_t i = 0; i < ARRAY_LEN(namespaces) && status == 0; i++) {
        status = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
    }
    // clone3 hides its flags behind a pointer; the C library falls back to clone.
    if (status == 0) {
        status = seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    }
    if (status == 0) {
        status = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                                  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI));
    }
    return status;
}

// Futexes without a time limit: a candidate that sleeps until a time of its choice could run in
// another's turn.
static int futex_rules(scmp_filter_ctx context)
{
    static const uint64_t operation[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT | FUTEX_PRIVATE_FLAG,
                                         FUTEX_WAKE | FUTEX_PRIVATE_FLAG};
    int status = 0;

    for (size_t i = 0; i < ARRAY_LEN(operation) && status == 0; i++) {
        bool is_wake = (operation[i] & 127) == FUTEX_WAKE;
        status = is_wake ? seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(futex), 1,
                                            SCMP_A1(SCMP_CMP_EQ, operation[i], 0))
                         : seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(futex), 2,
                                            SCMP_A1(SCMP_CMP_EQ, operation[i], 0),
                                            SCMP_A3(SCMP_CMP_EQ, 0, 0));
    }
    return status;
}

static int runner_rules(scmp_filter_ctx context, enum sandbox_stage stage)
{
    int status = add_all(context, SCMP_ACT_ALLOW, allowed_run, ARRAY_LEN(allowed_run));

    if (status == 0) {
        status = futex_rules(context);
    }
    for (unsigned fd = 1; fd <= 2 && status == 0; fd++) {
        status = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
                                  SCMP_A0(SCMP_CMP_EQ, fd, 0));
        if (status == 0) {
            status = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(writev), 1,
                                      SCMP_A0(SCMP_CMP_EQ, fd, 0));
        }
    }
    if (status != 0) {
        return status;
    }
    if (stage == STAGE_LOAD) {
        return add_all(context, SCMP_ACT_ALLOW, allowed_load, ARRAY_LEN(allowed_load));
    }
    status = add_all(context, SCMP_ACT_ERRNO(EPERM), refused_run, ARRAY_LEN(refused_run));
    // Memory without a file behind it, never executable.
    if (status == 0) {
        status = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                                  SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
    }
    if (status == 0) {
        status = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                                  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    }
    return status;
}

static int filter_export(scmp_filter_ctx context, struct sandbox_filter *ret, struct err *err)
{
    int fd = memfd_create("filter", MFD_CLOEXEC), rc;

    if (fd < 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "memory for a system call filter");
    }
    rc = seccomp_export_bpf(context, fd);
    off_t size = lseek(fd, 0, SEEK_END);
    if (rc != 0 || size <= 0 || size % (off_t)sizeof(struct sock_filter) != 0 ||
        size / (off_t)sizeof(struct sock_filter) > BPF_MAXINSNS) {
        close(fd);
        return err_set(err, ERR_SANDBOX, "libseccomp cannot compile the system call filter");
    }
    ret->program = xmalloc((size_t)size);
    ret->length = (uint16_t)((size_t)size / sizeof(struct sock_filter));
    if (pread(fd, ret->program, (size_t)size, 0) != size) {
        sandbox_filter_release(ret);
        close(fd);
        return err_set(err, ERR_SANDBOX, "the system call filter cannot be read back");
    }
    close(fd);
    return 0;
}

int sandbox_filter_build(struct sandbox_filter *ret, enum sandbox_stage stage, struct err *err)
{
    scmp_filter_ctx context = seccomp_init(stage == STAGE_COMPILE ? SCMP_ACT_ALLOW : SCMP_ACT_TRAP);

    if (!context) {
        return err_set(err, ERR_SANDBOX, "libseccomp cannot be initialised");
    }
    (void)seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE,
                           2); // a tree: older libraries compile a list
    (void)seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    int rc = stage == STAGE_COMPILE ? compile_rules(context) : runner_rules(context, stage);
    struct sandbox_filter filter = {0};
    if (rc == 0) {
        rc = filter_export(context, &filter, err);
    } else {
        rc = err_set_errno(err, ERR_SANDBOX, -rc, "rules of the system call filter");
    }
    seccomp_release(context);
    if (rc == 0) {
        *ret = filter;
    }
    return rc;
}

void sandbox_filter_release(struct sandbox_filter *filter)
{
    free(filter->program);
    *filter = (struct sandbox_filter){0};
}

int sandbox_filter_load(const struct sandbox_filter *filter, struct err *err)
{
    struct sock_fprog program = {.len = filter->length, .filter = filter->program};

    // SPEC_ALLOW: before Linux 5.16 a filter would switch the mitigations of speculative execution
    // on and change what is timed.
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) !=
            0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno,
                             "the kernel does not take the system call filter");
    }
    return 0;
}

// ---- limits and privileges ----

static int limit_one(int resource, uint64_t value, const char *name, struct err *err)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value}, now;

    if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && now.rlim_max < limit.rlim_max) {
        limit.rlim_max = now.rlim_max; // an outer limit is tighter
        limit.rlim_cur = limit.rlim_cur < now.rlim_max ? limit.rlim_cur : now.rlim_max;
    }
    if (setrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "limit of %s", name);
    }
    return 0;
}

int sandbox_limit(const struct sandbox_limits *limits, struct err *err)
{
    const struct {
        int resource;
        uint64_t value;
        const char *name;
    } row[] = {
        {RLIMIT_AS, limits->address_space, "address space"},
        {RLIMIT_FSIZE, limits->file_size, "file size"},
        {RLIMIT_CPU, limits->cpu_seconds, "processor time"},
        {RLIMIT_NPROC, limits->processes, "processes"},
        {RLIMIT_NOFILE, limits->files, "open files"},
        {RLIMIT_STACK, limits->stack, "stack"},
    };
    int rc = limit_one(RLIMIT_CORE, 0, "core dumps", err);

    for (size_t i = 0; i < ARRAY_LEN(row) && rc == 0; i++) {
        if (row[i].value != 0) {
            rc = limit_one(row[i].resource, row[i].value == SANDBOX_NO_PROCESSES ? 0 : row[i].value,
                           row[i].name, err);
        }
    }
    return rc;
}

static int drop_capabilities(struct err *err)
{
    for (unsigned long capability = 0; capability <= 63; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EINVAL && errno != EPERM) {
            return err_set_errno(err, ERR_SANDBOX, errno, "dropping capability %lu", capability);
        }
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    if (syscall(SYS_capset, &header, none) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "dropping all capabilities");
    }
    return 0;
}

// Without a user namespace we are the outer root: become nobody, where that user exists.
static void drop_user(void)
{
    (void)syscall(SYS_setgroups, 0, NULL);
    (void)!setresgid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID);
    (void)!setresuid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID);
}

int sandbox_drop(const struct sandbox *sandbox, int alive_fd, struct err *err)
{
    struct pollfd alive = {.fd = alive_fd, .events = POLLIN};

    if (!sandbox->off) {
        (void)prctl(PR_SET_SECUREBITS, 0x2f, 0, 0,
                    0); // NOROOT, NO_SETUID_FIXUP, KEEP_CAPS off: all but KEEP_CAPS, locked
        if (!sandbox->user_namespace) {
            // The bounding set must go while the capability to do so is there; a plain setresuid
            // keeps them with NO_SETUID_FIXUP.
            drop_user();
        }
        int rc = drop_capabilities(err);
        if (rc != 0) {
            return rc;
        }
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "no_new_privs");
    }
    if (!sandbox->off && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "not dumpable");
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "death with the parent");
    }
    // getppid is 0 in a pid namespace of our own; a closed socket tells as well that the parent
    // died before the line above.
    if (alive_fd >= 0 && poll(&alive, 1, 0) == 1 && (alive.revents & (POLLHUP | POLLERR))) {
        _exit(0);
    }
    return 0;
}

static void close_from_to(unsigned first, unsigned last)
{
    if (first > last) {
        return;
    }
    if (syscall(SYS_close_range, first, last, 0) != 0) { // before Linux 5.9
        unsigned limit = last < 65536 ? last : 65536;
        for (unsigned fd = first; fd <= limit; fd++) {
            close((int)fd);
        }
    }
}

void sandbox_close_files(const int *keep, size_t count)
{
    unsigned from = 3;

    for (;;) {
        unsigned next = UINT32_MAX;
        for (size_t i = 0; i < count; i++) {
            if (keep[i] >= (int)from && (unsigned)keep[i] < next) {
                next = (unsigned)keep[i];
            }
        }
        if (next == UINT32_MAX) {
            close_from_to(from, ~0U);
            return;
        }
        if (next > from) {
            close_from_to(from, next - 1);
        }
        from = next + 1;
    }
}

char *sandbox_call_name(int number)
{
    char *resolved = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    char *name = resolved ? xstrdup(resolved) : xasprintf("call %d", number);
    free(resolved);
    return name;
}

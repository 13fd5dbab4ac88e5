// The system call filters: what a child may call in each stage. libseccomp compiles them.
#include "common/mem.h"
#include "executor/sandbox/sandbox.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

// Calls that no compiler needs. Namespaces make most of them harmless already. The list also keeps
// the kernel's newer and larger interfaces out of reach.
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

// Calls that a loaded candidate and its C library need.
static const char *const allowed_run[] = {
    "exit_group",   "exit",           "brk",           "munmap",          "mremap",
    "rt_sigreturn", "rt_sigprocmask", "clock_gettime", "clock_getres",    "gettimeofday",
    "time",         "getpid",         "gettid",        "getuid",          "geteuid",
    "getgid",       "getegid",        "getrandom",     "restart_syscall", "getcpu",
    "uname",        "rseq",           "sigaltstack"};

// Calls that the C library may try and can do without: they fail with EPERM.
static const char *const refused_run[] = {
    "fstat",         "newfstatat", "lseek",     "ioctl",       "fcntl",        "sched_getaffinity",
    "sysinfo",       "prlimit64",  "getrlimit", "sched_yield", "rt_sigaction", "close",
    "get_mempolicy", "arch_prctl",
};

// Calls that are allowed beside allowed_run while the dynamic loader works. There is no file to
// open but the object itself.
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
    "tgkill",
    "madvise",
    "close_range",
};

// Adds a rule for a call by name. A call that this machine or this libseccomp does not know needs
// no rule. Returns 0 or a negative errno, as the next functions do.
static int add(scmp_filter_ctx context, uint32_t action, const char *name)
{
    int number = seccomp_syscall_resolve_name(name);

    if (number == __NR_SCMP_ERROR || number < 0) {
        return 0;
    }
    int rc = seccomp_rule_add(context, action, number, 0);
    return rc == -EACCES || rc == -EEXIST ? 0 : rc; // the rule exists or is the default
}

static int add_all(scmp_filter_ctx context, uint32_t action, const char *const *name, size_t count)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = add(context, action, name[i]);
    }
    return rc;
}

static int compile_rules(scmp_filter_ctx context)
{
    static const uint64_t namespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                          CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    int rc = add_all(context, SCMP_ACT_ERRNO(EPERM), denied, ARRAY_LEN(denied));

    for (size_t i = 0; i < ARRAY_LEN(namespaces) && rc == 0; i++) {
        rc = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
    }
    if (rc != 0) {
        return rc;
    }
    // A filter cannot see the flags of clone3, which are behind a pointer. With ENOSYS the C
    // library uses clone instead.
    rc = seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (rc != 0) {
        return rc;
    }
    return seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                            SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI));
}

// Allows futexes without a time limit only. A candidate that could sleep until a time of its choice
// could run while another process is being timed.
static int futex_rules(scmp_filter_ctx context)
{
    static const uint64_t operation[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT | FUTEX_PRIVATE_FLAG,
                                         FUTEX_WAKE | FUTEX_PRIVATE_FLAG};
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(operation) && rc == 0; i++) {
        bool is_wake = (operation[i] & 127) == FUTEX_WAKE;
        rc = is_wake ? seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(futex), 1,
                                        SCMP_A1(SCMP_CMP_EQ, operation[i], 0))
                     : seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(futex), 2,
                                        SCMP_A1(SCMP_CMP_EQ, operation[i], 0),
                                        SCMP_A3(SCMP_CMP_EQ, 0, 0));
    }
    return rc;
}

// Allows a runner to write to its stdout and stderr, and the clean parent to write to its socket.
static int output_rules(scmp_filter_ctx context, enum sandbox_stage stage)
{
    unsigned last = stage == STAGE_LOAD ? SANDBOX_SOCKET : STDERR_FILENO;
    int rc = 0;

    for (unsigned fd = 1; fd <= last && rc == 0; fd++) {
        rc = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
                              SCMP_A0(SCMP_CMP_EQ, fd, 0));
        if (rc == 0) {
            rc = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(writev), 1,
                                  SCMP_A0(SCMP_CMP_EQ, fd, 0));
        }
    }
    return rc;
}

// Allows what a process may advise on its own memory. Other advice would reach the tensors, which
// processes share, or have the kernel work later and in nobody's time.
static int advice_rules(scmp_filter_ctx context)
{
    static const uint64_t advice[] = {MADV_NORMAL,        MADV_RANDOM,        MADV_SEQUENTIAL,
                                      MADV_WILLNEED,      MADV_DONTNEED,      MADV_FREE,
                                      MADV_HUGEPAGE,      MADV_NOHUGEPAGE,    MADV_DONTDUMP,
                                      MADV_POPULATE_READ, MADV_POPULATE_WRITE};
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(advice) && rc == 0; i++) {
        rc = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(madvise), 1,
                              SCMP_A2(SCMP_CMP_EQ, advice[i], 0));
    }
    return rc;
}

// Allows the clean parent to fork, and nothing else that clone can do.
static int fork_rule(scmp_filter_ctx context)
{
    return seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                            SCMP_A0(SCMP_CMP_EQ, SANDBOX_FORK_FLAGS, 0));
}

// Allows memory without a file behind it that is never executable.
static int memory_rules(scmp_filter_ctx context)
{
    int rc = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
                              SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                              SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));

    if (rc != 0) {
        return rc;
    }
    return seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                            SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

static int runner_rules(scmp_filter_ctx context, enum sandbox_stage stage)
{
    int rc = add_all(context, SCMP_ACT_ALLOW, allowed_run, ARRAY_LEN(allowed_run));

    if (rc != 0) {
        return rc;
    }
    rc = futex_rules(context);
    if (rc != 0) {
        return rc;
    }
    rc = output_rules(context, stage);
    if (rc != 0) {
        return rc;
    }
    if (stage == STAGE_LOAD) {
        rc = fork_rule(context);
        return rc != 0 ? rc
                       : add_all(context, SCMP_ACT_ALLOW, allowed_load, ARRAY_LEN(allowed_load));
    }
    rc = add_all(context, SCMP_ACT_ERRNO(EPERM), refused_run, ARRAY_LEN(refused_run));
    if (rc != 0) {
        return rc;
    }
    rc = advice_rules(context);
    return rc != 0 ? rc : memory_rules(context);
}

static int filter_export(scmp_filter_ctx context, struct sandbox_filter *ret, struct err *err)
{
    int fd = memfd_create("filter", MFD_CLOEXEC);

    if (fd < 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "memory for a system call filter");
    }
    int rc = seccomp_export_bpf(context, fd);
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
    // A binary tree; a library that does not know this attribute compiles a list.
    (void)seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
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

    // SPEC_ALLOW, because before Linux 5.16 a filter would turn on mitigations of speculative
    // execution, which change what is timed.
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) !=
            0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno,
                             "the kernel does not take the system call filter");
    }
    return 0;
}

char *sandbox_call_name(int number)
{
    char *resolved = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
    char *name = resolved ? xstrdup(resolved) : xasprintf("call %d", number);
    free(resolved);
    return name;
}

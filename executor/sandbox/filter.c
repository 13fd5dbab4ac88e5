// The system call filters: what a child may call in each stage. libseccomp compiles them.
#include "common/mem.h"
#include "executor/sandbox/filter_calls.h"
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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ // Linux 5.14
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

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
    static const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                       CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    int rc = add_all(context, SCMP_ACT_ALLOW, allowed_compile, ARRAY_LEN(allowed_compile));

    if (rc != 0) {
        return rc;
    }
    // clone3 is not among them: a filter cannot see its flags, which are behind a pointer. Without
    // it the C library uses clone.
    rc = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                          SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
    if (rc != 0) {
        return rc;
    }
    rc = seccomp_rule_add(
        context, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
        SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, TCGETS)); // whether it is a terminal
    if (rc != 0) {
        return rc;
    }
    return seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                            SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0)); // of a thread
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

// Allows advice about memory that an allocator gives. Other advice has the kernel write memory out,
// or work on it behind the process's back and on other cores, whose time nobody is charged for, or
// reaches the tensors, which processes share. Before the candidate's code runs a process may also
// have its page tables filled.
static int advice_rules(scmp_filter_ctx context, enum sandbox_stage stage)
{
    static const uint64_t advice[] = {
        MADV_NORMAL,   MADV_RANDOM,     MADV_SEQUENTIAL, MADV_DONTNEED,      MADV_FREE,
        MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP,   MADV_POPULATE_READ, MADV_POPULATE_WRITE};
    size_t count = stage == STAGE_LOAD ? ARRAY_LEN(advice) : ARRAY_LEN(advice) - 2;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(madvise), 1,
                              SCMP_A2(SCMP_CMP_EQ, advice[i], 0));
    }
    return rc;
}

static int runner_rules(scmp_filter_ctx context, enum sandbox_stage stage)
{
    int rc = add_all(context, SCMP_ACT_ALLOW, allowed_run, ARRAY_LEN(allowed_run));

    if (rc != 0) {
        return rc;
    }
    rc = advice_rules(context, stage);
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
    return rc != 0 ? rc : memory_rules(context);
}

static int record_rules(scmp_filter_ctx context)
{
    static const int space[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    int rc = add_all(context, SCMP_ACT_ERRNO(EPERM), denied_record, ARRAY_LEN(denied_record));

    for (size_t i = 0; i < ARRAY_LEN(space) && rc == 0; i++) {
        uint64_t flag = (uint64_t)space[i];

        rc = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                              SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
    }
    // Its flags are behind a pointer. Without it the C library uses clone.
    return rc == 0 ? seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) : rc;
}

static uint32_t default_action(enum sandbox_stage stage)
{
    switch (stage) {
    case STAGE_COMPILE:
        return SCMP_ACT_ERRNO(ENOSYS);
    case STAGE_RECORD:
        return SCMP_ACT_ALLOW;
    case STAGE_LOAD:
    case STAGE_RUN:
        break;
    }
    return SCMP_ACT_TRAP;
}

static int rules_of(scmp_filter_ctx context, enum sandbox_stage stage)
{
    switch (stage) {
    case STAGE_COMPILE:
        return compile_rules(context);
    case STAGE_RECORD:
        return record_rules(context);
    case STAGE_LOAD:
    case STAGE_RUN:
        break;
    }
    return runner_rules(context, stage);
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
    // To a compiler every other call is one that its kernel does not have: the C library then does
    // without, or by an older call. A runner has no use for them.
    scmp_filter_ctx context = seccomp_init(default_action(stage));

    if (!context) {
        return err_set(err, ERR_SANDBOX, "libseccomp cannot be initialised");
    }
    // A binary tree; a library that does not know this attribute compiles a list.
    (void)seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    (void)seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    int rc = rules_of(context, stage);
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

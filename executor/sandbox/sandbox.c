#include "executor/sandbox/sandbox.h"
#include "common/mem.h"
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define JAIL_FILES 256
#define RECORDER_FILES 4096

// Processor time gets a second more as its hard limit. Otherwise its end would be a SIGKILL, which
// is also how a lack of memory ends a process.
static int limit_one(int resource, uint64_t value, const char *name, struct err *err)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value + (resource == RLIMIT_CPU)}, now;

    if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && now.rlim_max < limit.rlim_max) {
        limit.rlim_max = now.rlim_max; // an inherited limit is tighter
        limit.rlim_cur = limit.rlim_cur < now.rlim_max ? limit.rlim_cur : now.rlim_max;
    }
    if (setrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "limit of %s", name);
    }
    return 0;
}

struct sandbox_limits sandbox_jail_limits(const struct sandbox *sandbox)
{
    // The kernel counts processes for each user namespace. Without a namespace of its own the jail
    // would share the limit with the user's other processes.
    bool counted = !sandbox->off && sandbox->user_namespace;
    bool recorder = sandbox->kind == SANDBOX_RECORDER;
    uint64_t most = recorder ? SANDBOX_RECORDER_PROCESSES : SANDBOX_JAIL_PROCESSES;

    return (struct sandbox_limits){.processes = counted ? most : 0,
                                   .files = recorder ? RECORDER_FILES : JAIL_FILES};
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

// Becomes the user nobody, where that user exists. Without a user namespace the process is the
// host's root.
static void drop_user(void)
{
    (void)syscall(SYS_setgroups, 0, NULL);
    (void)!setresgid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID);
    (void)!setresuid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID);
}

// Overwrites the variables, which the child could read in its memory however few are left to
// getenv. They may name folders, people and keys of the host.
static void wipe_environment(void)
{
    for (char **variable = environ; variable && *variable; variable++) {
        memset(*variable, 0, strlen(*variable));
    }
    (void)clearenv();
}

int sandbox_drop(const struct sandbox *sandbox, int alive_fd, struct err *err)
{
    struct pollfd alive = {.fd = alive_fd, .events = POLLIN};

    if (!sandbox->off) {
        wipe_environment();
        // NOROOT and NO_SETUID_FIXUP on and locked, KEEP_CAPS off and locked.
        (void)prctl(PR_SET_SECUREBITS, 0x2f, 0, 0, 0);
        if (!sandbox->user_namespace) {
            // NO_SETUID_FIXUP keeps the capabilities across setresuid. They are needed to drop the
            // bounding set below.
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
    // The parent may have died before the line above. A closed socket shows that. getppid does not,
    // because it is always 0 in a pid namespace of its own.
    if (alive_fd >= 0 && poll(&alive, 1, 0) == 1 && (alive.revents & (POLLHUP | POLLERR))) {
        _exit(0);
    }
    return 0;
}

int sandbox_own_folder(uint64_t bytes, struct err *err)
{
    char options[64];

    snprintf(options, sizeof(options), "size=%llu,nr_inodes=16,mode=0777",
             (unsigned long long)bytes);
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("job", SANDBOX_DIR, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0 ||
        chdir(SANDBOX_DIR) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "a folder of its own in the sandbox");
    }
    return 0;
}

int sandbox_own_proc(struct err *err)
{
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "a /proc of its own in the sandbox");
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

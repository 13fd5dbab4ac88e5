// The root is a small tmpfs. It is mounted over an existing directory, in a mount namespace of its
// own, and then made the root by pivot_root. It contains:
//
//   jail only        what executor/sandbox/toolchain.c binds, read-only
//   all              /dev/null and /dev/zero, each bound by itself; /job, a tmpfs of limited size
//                    and the only place to write
//   recorder only    what executor/sandbox/interpreter.c binds: /usr and the interpreter's folders,
//                    read-only, the devices of the GPUs, and /proc, over which each child mounts
//                    one of its own
//
// A jail and a runner have no /proc, no /sys and no /etc, and the host's name is replaced.
#include "executor/sandbox/root.h"
#include "common/mem.h"
#include "executor/sandbox/interpreter.h"
#include "executor/sandbox/mounts.h"
#include "executor/sandbox/toolchain.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROOT_BYTES "4m"
#define ROOT_INODES "4096"
#define JOB_INODES 4096
#define RECORDER_INODES 65536 // caches of compilers have many files

// ---- id maps ----

// Returns 0 or an errno, as write_map does.
static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0) {
        return errno;
    }
    ssize_t n = write(fd, text, strlen(text));
    int failed = n == (ssize_t)strlen(text) ? 0 : errno;
    close(fd);
    return failed;
}

static int write_map(pid_t pid, const char *file, unsigned outside)
{
    char path[64], text[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    snprintf(text, sizeof(text), "%d %u 1", SANDBOX_ID, outside);
    return write_text(path, text);
}

int root_write_maps(pid_t pid, struct err *err)
{
    // This fails where that user does not exist, as in a nested namespace.
    int failed = geteuid() == 0 ? write_map(pid, "uid_map", SANDBOX_ID) : EPERM;

    if (failed != 0) {
        failed = write_map(pid, "uid_map", geteuid());
    }
    if (failed != 0) {
        return err_set_errno(err, ERR_SANDBOX, failed, "user map of the sandbox's namespace");
    }
    failed = geteuid() == 0 ? write_map(pid, "gid_map", SANDBOX_ID) : EPERM;
    if (failed != 0) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
        (void)write_text(path, "deny");
        failed = write_map(pid, "gid_map", getegid());
    }
    if (failed != 0) {
        return err_set_errno(err, ERR_SANDBOX, failed, "group map of the sandbox's namespace");
    }
    return 0;
}

// *ret_entered is set once the process is in the namespace and cannot go back.
static int enter_user_namespace(const struct root_mapper *mapper, bool *ret_entered,
                                struct err *err)
{
    char text[32] = "";

    // The parent needs our pid as /proc shows it. getpid may give another, because /proc can belong
    // to an outer pid namespace.
    ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
    pid_t pid = n > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
    if (pid <= 0) {
        return err_set(err, ERR_SANDBOX,
                       "/proc is not mounted here, and a user namespace needs /proc/PID/uid_map");
    }
    if (unshare(CLONE_NEWUSER) != 0) {
        return err_set_errno(
            err, ERR_SANDBOX, errno,
            "user namespaces are not available (see user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)");
    }
    *ret_entered = true;
    int rc = mapper->map(mapper->context, pid, err);
    if (rc != 0) {
        return rc;
    }
    if (setresgid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID) != 0 ||
        setresuid(SANDBOX_ID, SANDBOX_ID, SANDBOX_ID) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "becoming the sandbox's user");
    }
    return 0;
}

// ---- the root directory ----

static int mount_scratch(const struct sandbox *sandbox, struct err *err)
{
    int inodes = sandbox->kind == SANDBOX_RECORDER ? RECORDER_INODES : JOB_INODES;
    int rc = mounts_make_dir("." SANDBOX_DIR, 0777, err);

    if (rc != 0) {
        return rc;
    }
    char options[128];
    snprintf(options, sizeof(options), "size=%llu,nr_inodes=%d,mode=0777",
             (unsigned long long)sandbox->scratch, inodes);
    if (mount("job", "." SANDBOX_DIR, "tmpfs", MS_NOSUID | MS_NODEV, options) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "mounting the sandbox's scratch directory");
    }
    return 0;
}

// Whether something lies below the place that is to be bound into the new root.
static bool is_needed(const struct sandbox *sandbox, const char *place)
{
    size_t len = strlen(place);

    for (size_t i = 0; i < SANDBOX_FOLDERS_MAX; i++) {
        if (strncmp(sandbox->folder[i], place, len) == 0 &&
            (sandbox->folder[i][len] == '/' || sandbox->folder[i][len] == '\0')) {
            return true;
        }
    }
    return false;
}

// Mounts the tmpfs that becomes the root over some directory that exists, and enters it.
static int mount_root(const struct sandbox *sandbox, struct err *err)
{
    static const char *const place[] = {"/tmp", "/run", "/mnt", "/var", "/dev"};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(place); i++) {
        if (stat(place[i], &st) != 0 || !S_ISDIR(st.st_mode) || is_needed(sandbox, place[i])) {
            continue;
        }
        if (mount("kcast", place[i], "tmpfs", MS_NOSUID | MS_NODEV,
                  "size=" ROOT_BYTES ",nr_inodes=" ROOT_INODES ",mode=0755") != 0) {
            return err_set_errno(err, ERR_SANDBOX, errno,
                                 "a tmpfs for the sandbox's root cannot be mounted");
        }
        if (chdir(place[i]) != 0) {
            return err_set_errno(err, ERR_SANDBOX, errno, "entering %s", place[i]);
        }
        return 0;
    }
    return err_set(err, ERR_SANDBOX, "there is no directory to mount the sandbox's root on");
}

static int build_root(const struct sandbox *sandbox, struct err *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "making mounts private");
    }
    int toolkit = -1;
    if (sandbox->toolkit[0] != '\0') {
        toolkit = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC); // enter_toolkit went there
        if (toolkit < 0) {
            return err_set_errno(err, ERR_SANDBOX, errno, "%s", sandbox->toolkit);
        }
    }
    int rc = mount_root(sandbox, err);
    if (rc != 0) {
        goto out;
    }
    rc = mounts_make_dir("./dev", 0755, err);
    if (rc != 0) {
        goto out;
    }
    rc = mounts_bind_device("/dev/null", "./dev/null", err);
    if (rc != 0) {
        goto out;
    }
    rc = mounts_bind_device("/dev/zero", "./dev/zero", err);
    if (rc != 0) {
        goto out;
    }
    if (toolkit >= 0) {
        rc = toolchain_bind_toolkit(toolkit, &SANDBOX_TOOLKIT[1], err);
    } else if (sandbox->kind == SANDBOX_JAIL) {
        rc = toolchain_bind(err);
    } else if (sandbox->kind == SANDBOX_RECORDER) {
        rc = interpreter_bind(sandbox, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = mount_scratch(sandbox, err);
out:
    if (toolkit >= 0) {
        close(toolkit);
    }
    return rc;
}

// Makes the working directory the root and drops the old root.
static int pivot(struct err *err)
{
    if (syscall(SYS_pivot_root, ".", ".") != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "pivot_root");
    }
    if (umount2(".", MNT_DETACH) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "dropping the old root");
    }
    if (chdir("/") != 0 ||
        mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) !=
            0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "making the sandbox's root read-only");
    }
    if (chdir(SANDBOX_DIR) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "entering " SANDBOX_DIR);
    }
    return 0;
}

// Changes to the toolkit's folder before any privilege is dropped. The folder may lie below root's
// home, where the sandbox's user may not go; a working directory stays valid in the new namespaces.
static int enter_toolkit(const struct sandbox *sandbox, struct err *err)
{
    if (sandbox->toolkit[0] != '\0' && chdir(sandbox->toolkit) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "%s", sandbox->toolkit);
    }
    return 0;
}

int root_enter(struct sandbox *sandbox, const struct root_mapper *mapper, struct err *err)
{
    if (sandbox->off) {
        return 0;
    }
    int rc = enter_toolkit(sandbox, err);
    if (rc != 0) {
        return rc;
    }
    umask(0);
    struct err reason = ERR_INIT;
    bool entered = false;
    sandbox->user_namespace = enter_user_namespace(mapper, &entered, &reason) == 0;
    if (entered && !sandbox->user_namespace) {
        return err_set(err, ERR_SANDBOX, "%s", reason.text);
    }
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) != 0) {
        int failed = errno;
        if (reason.code != ERR_NONE) {
            return err_set(err, ERR_SANDBOX, "%s", reason.text);
        }
        return err_set_errno(err, ERR_SANDBOX, failed, "namespaces for the sandbox");
    }
    // The new uts namespace begins with the host's names.
    if (sethostname(SANDBOX_HOST, strlen(SANDBOX_HOST)) != 0 || setdomainname("", 0) != 0) {
        return err_set_errno(
            err, ERR_SANDBOX, errno,
            "a host name for the sandbox cannot be set (a service needs sethostname and"
            " setdomainname, and no ProtectHostname=)");
    }
    rc = build_root(sandbox, err);
    return rc == 0 ? pivot(err) : rc;
}

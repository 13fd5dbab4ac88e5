#include "executor/sandbox/cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

int cgroup_enter(const char *dir, struct err *err)
{
    int group = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int procs = -1;

    if (group < 0) {
        return err_set_errno(err, ERR_INVALID, errno, "--cgroup %s", dir);
    }
    struct statfs info;
    int rc = 0;
    if (fstatfs(group, &info) != 0 || info.f_type != CGROUP2_SUPER_MAGIC) {
        rc = err_set(err, ERR_INVALID,
                     "--cgroup %s: no control group of version 2; name a directory below the "
                     "cgroup2 mount",
                     dir);
        goto out;
    }
    procs = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs < 0 || write(procs, "0", 1) != 1) {
        rc = err_set_errno(err, ERR_SANDBOX, errno, "--cgroup %s: cannot be entered", dir);
    }
out:
    if (procs >= 0) {
        close(procs);
    }
    close(group);
    return rc;
}

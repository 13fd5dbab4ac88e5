#include "executor/sandbox/mounts.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int mounts_make_dir(const char *path, mode_t mode, struct err *err)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST) {
        return err_set_errno(err, ERR_SANDBOX, errno, "making %s in the sandbox", path);
    }
    return 0;
}

int mounts_make_parents(const char *path, struct err *err)
{
    char parent[PATH_MAX];
    int rc = 0;

    for (const char *slash = strchr(path, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        if (slash > path && snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) <
                                (int)sizeof(parent)) {
            rc = mounts_make_dir(parent, 0755, err);
        }
    }
    return rc;
}

// Makes a mount and all mounts below it read-only. Without mount_setattr it is the top mount alone,
// and the flags that a more privileged namespace has locked are repeated, or the kernel refuses.
static int make_read_only(const char *path, struct err *err)
{
    struct mount_attr attributes = {.attr_set =
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;

    if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof(attributes)) ==
        0) {
        return 0;
    }
    struct statvfs fs;
    if (statvfs(path, &fs) == 0) {
        flags |= (fs.f_flag & ST_NOEXEC ? MS_NOEXEC : 0) |
                 (fs.f_flag & ST_NOATIME ? MS_NOATIME : 0) |
                 (fs.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0) |
                 (fs.f_flag & ST_RELATIME ? MS_RELATIME : 0);
    }
    if (mount(NULL, path, NULL, flags, NULL) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "making %s read-only in the sandbox", path);
    }
    return 0;
}

static int make_link(const char *source, const char *name, struct err *err)
{
    char link[PATH_MAX];
    ssize_t n = readlink(source, link, sizeof(link) - 1);

    if (n <= 0) {
        return 0;
    }
    link[n] = '\0';
    return symlink(link, name) == 0 || errno == EEXIST
               ? 0
               : err_set_errno(err, ERR_SANDBOX, errno, "link %s in the sandbox", source);
}

static int make_file(const char *name, struct err *err)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "making %s in the sandbox", name);
    }
    close(fd);
    return 0;
}

static int mount_at(const char *source, const char *name, struct err *err)
{
    if (mount(source, name, NULL, MS_BIND | MS_REC, NULL) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "binding %s into the sandbox", source);
    }
    return 0;
}

int mounts_bind_as(const char *source, const char *name, struct err *err)
{
    struct stat st;

    if (lstat(source, &st) != 0) {
        return 0;
    }
    int rc = mounts_make_parents(name, err);
    if (rc != 0) {
        return rc;
    }
    if (S_ISLNK(st.st_mode)) {
        return make_link(source, name, err);
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
        return 0;
    }
    rc = S_ISDIR(st.st_mode) ? mounts_make_dir(name, 0755, err) : make_file(name, err);
    if (rc != 0) {
        return rc;
    }
    rc = mount_at(source, name, err);
    return rc == 0 ? make_read_only(name, err) : rc;
}

int mounts_bind(const char *name, struct err *err)
{
    char source[PATH_MAX];

    snprintf(source, sizeof(source), "/%s", name);
    return mounts_bind_as(source, name, err);
}

int mounts_bind_device(const char *source, const char *name, struct err *err)
{
    if (access(source, F_OK) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "%s for the sandbox", source);
    }
    int rc = make_file(name, err);
    return rc == 0 ? mount_at(source, name, err) : rc;
}

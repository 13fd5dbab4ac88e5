// Folders: creating a path of them, creating a temporary one, removing a whole tree.
//
// Removing descends by openat with O_NOFOLLOW: a symbolic link that appears in the tree while it is
// being removed is itself removed and never followed. Other file systems are refused. After an
// error the removal goes on, so that as much as possible is gone, and returns the first error.
#include "common/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_DEPTH_MAX 128

static int make_dir(const char *path, struct err *err)
{
    if (mkdir(path, 0700) == 0) {
        return 0;
    }
    struct stat info;
    if (errno != EEXIST) {
        // EROFS and EACCES may be answered for a folder that exists as well.
        int saved_errno = errno;

        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            return 0;
        }
        return err_set_errno(err, ERR_SYSTEM, saved_errno, "%s: cannot be created", path);
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return err_set(err, ERR_SYSTEM, "%s: exists and is not a folder", path);
    }
    return 0;
}

int file_make_dirs(const char *path, struct err *err)
{
    if (path[0] == '\0') {
        return err_set(err, ERR_INVALID, "a folder needs a name");
    }
    char *copy = xstrdup(path);
    int rc = 0;
    for (char *p = copy + 1; rc == 0 && *p != '\0'; p++) {
        if (*p == '/' && p[-1] != '/') {
            *p = '\0';
            rc = make_dir(copy, err);
            *p = '/';
        }
    }
    if (rc == 0) {
        rc = make_dir(copy, err);
    }
    free(copy);
    return rc;
}

static int remove_at(int parent, const char *name, dev_t device, int depth, const char *root,
                     struct err *err);

// Removes everything in the folder dir_fd, and closes dir_fd.
static int remove_content(int dir_fd, dev_t device, int depth, const char *root, struct err *err)
{
    DIR *dir = fdopendir(dir_fd);
    int first = 0;

    if (!dir) {
        first = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be listed", root);
        close(dir_fd);
        return first;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry) {
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int rc = remove_at(dirfd(dir), entry->d_name, device, depth, root, err);
        first = first ? first : rc;
    }
    if (errno != 0 && first == 0) {
        first = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be listed", root);
    }
    closedir(dir);
    return first;
}

static int remove_at(int parent, const char *name, dev_t device, int depth, const char *root,
                     struct err *err)
{
    struct stat info;

    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "%s: %s", root, name);
    }
    if (!S_ISDIR(info.st_mode)) {
        if (unlinkat(parent, name, 0) != 0 && errno != ENOENT) {
            return err_set_errno(err, ERR_SYSTEM, errno, "%s: %s cannot be removed", root, name);
        }
        return 0;
    }
    if (info.st_dev != device) {
        return err_set(err, ERR_SYSTEM, "%s: %s is another file system", root, name);
    }
    if (depth >= TREE_DEPTH_MAX) {
        return err_set(err, ERR_LIMIT, "%s: more than %d folders deep", root, TREE_DEPTH_MAX);
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: %s cannot be opened", root, name);
    }
    int rc = remove_content(fd, device, depth + 1, root, err);
    if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: %s cannot be removed", root, name);
    }
    return rc;
}

int file_remove_tree(const char *path, struct err *err)
{
    struct stat info;

    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    }
    return remove_at(AT_FDCWD, path, info.st_dev, 0, path, err);
}

const char *file_temp_folder(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && folder[0] != '\0' ? folder : "/tmp";
}

int file_make_temp_dir(char **ret, const char *prefix, struct err *err)
{
    char *path = xasprintf("%s/%s.XXXXXX", file_temp_folder(), prefix);

    if (!mkdtemp(path)) {
        int rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be created", path);

        free(path);
        return rc;
    }
    *ret = path;
    return 0;
}

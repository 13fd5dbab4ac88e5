// Design note. A jail for a compiler names each file that it has. An interpreter with PyTorch reads
// thousands, and the compilers that its packages start read as many, so that whole folders are
// bound here: /usr, and what the interpreter says are its own. Of /etc there is what the dynamic
// loader reads. A fresh /proc can only be mounted where one can be seen already, hence the host's,
// which lies below the child's own before anything hostile runs.
#include "executor/sandbox/interpreter.h"
#include "common/mem.h"
#include "executor/sandbox/mounts.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether the name is that of a GPU's device file, or of one that all GPUs need.
static bool is_gpu(const char *name)
{
    static const char *const shared[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools",
                                         "nvidia-modeset"};

    for (size_t i = 0; i < ARRAY_LEN(shared); i++) {
        if (strcmp(name, shared[i]) == 0) {
            return true;
        }
    }
    return strncmp(name, "nvidia", 6) == 0 && name[6] != '\0' &&
           strspn(name + 6, "0123456789") == strlen(name + 6);
}

static int bind_gpus(struct err *err)
{
    DIR *folder = opendir("/dev");
    const struct dirent *entry;
    int rc = 0;

    if (!folder) {
        return err_set_errno(err, ERR_SANDBOX, errno, "/dev for the sandbox");
    }
    while (rc == 0 && (entry = readdir(folder))) {
        char source[300], name[300];

        if (is_gpu(entry->d_name)) {
            snprintf(source, sizeof(source), "/dev/%s", entry->d_name);
            snprintf(name, sizeof(name), "./dev/%s", entry->d_name);
            rc = mounts_bind_device(source, name, err);
        }
    }
    closedir(folder);
    return rc;
}

static int bind_proc(struct err *err)
{
    int rc = mounts_make_dir("./proc", 0755, err);

    if (rc == 0 && mount("/proc", "./proc", NULL, MS_BIND | MS_REC, NULL) != 0) {
        rc = err_set_errno(err, ERR_SANDBOX, errno, "binding /proc into the sandbox");
    }
    return rc;
}

bool interpreter_is_reachable(const char *path)
{
    char folder[PATH_MAX];
    struct stat st;

    if (geteuid() != 0) {
        return true; // who could not go there has not found it
    }
    for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
        if (stat(folder, &st) != 0 || (st.st_mode & S_IXOTH) == 0) {
            return false;
        }
    }
    return true;
}

int interpreter_bind(const struct sandbox *sandbox, struct err *err)
{
    static const char *const part[] = {"usr",
                                       "bin",
                                       "sbin",
                                       "lib",
                                       "lib64",
                                       "lib32",
                                       "libx32",
                                       "etc/ld.so.cache",
                                       "etc/ld.so.conf",
                                       "etc/alternatives"};
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(part) && rc == 0; i++) {
        rc = mounts_bind(part[i], err);
    }
    for (size_t i = 0; i < SANDBOX_FOLDERS_MAX && rc == 0; i++) {
        if (sandbox->folder[i][0] == '/') {
            rc = mounts_bind(sandbox->folder[i] + 1, err);
        }
    }
    for (const char *const *each = (const char *const[]){"urandom", "random", NULL};
         *each && rc == 0; each++) {
        char source[32], name[32];

        snprintf(source, sizeof(source), "/dev/%s", *each);
        snprintf(name, sizeof(name), "./dev/%s", *each);
        rc = mounts_bind_device(source, name, err);
    }
    if (rc == 0) {
        rc = bind_gpus(err);
    }
    // It is there already when the interpreter lies below it.
    if (rc == 0 && symlink(&SANDBOX_DIR[1], "./tmp") != 0 && errno != EEXIST) {
        rc = err_set_errno(err, ERR_SANDBOX, errno, "/tmp of the sandbox");
    }
    return rc == 0 ? bind_proc(err) : rc;
}

// Design note. The owner of a group may do to it whatever it likes, so only a group that is marked
// as delegated is touched. The group of a session or a container may be writable too, and belongs
// to somebody else all the same.
//
// A lock on the directory keeps a second daemon in the same group from taking the first one's
// children for leftovers. It is gone when the process has ended, however that happens.
//
// To take a group over, the daemon first leaves it for a group of its own below it, because a group
// that holds processes cannot hand controllers on. If they cannot be handed on (somebody else is in
// the group), the daemon goes back.
//
// New groups get higher numbers than leftovers, so that a leftover which cannot be removed blocks
// nothing.
#include "daemon/run/cgroup.h"
#include "common/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utlist.h>

#define OWN_LEAF "kcastd"
#define CHILD_PREFIX "exec-"
#define CHILD_PREFIX_LEN (sizeof(CHILD_PREFIX) - 1)
#define FILE_MAX ((size_t)1 << 20) // bytes of a file of the kernel

static const char *const wanted_controllers[] = {"memory", "pids"};

struct cgroups {
    char *dir;
    int fd;                 // of dir; it holds the lock
    char controllers[32];   // that are handed on to children; "": none
    uint64_t last;          // number of the newest group
    struct cgroup *leaving; // list of groups that have ended and are not removed yet
};

struct cgroup {
    struct cgroups *cgroups;
    char *dir;
    struct cgroup *prev;
    struct cgroup *next;
};

// --- files of a group

// Writes a file of a group. Returns 0 or an errno value. Never creates a file: ENOENT says that
// this kernel or group has no such file.
static int put(const char *dir, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int failed = fd < 0 || write(fd, text, strlen(text)) < 0 ? errno : 0;

    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return failed;
}

// Returns the text of a file of a group, malloc'd; "" when it cannot be read.
static char *get(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name);
    struct bytes text = {0};

    if (file_read(&text, path, FILE_MAX, NULL) != 0) {
        text.data = (unsigned char *)xstrdup("");
    }
    free(path);
    return (char *)text.data; // NUL-terminated
}

// --- where this process is

// Returns the directory that shows the group `path`, malloc'd, if this line of mountinfo mounts a
// hierarchy of version 2 that contains it; else NULL. Changes the line.
static char *directory_in(char *line, const char *path)
{
    enum { ROOT = 3, MOUNT_POINT = 4, FIELDS = 5 };
    char *type = strstr(line, " - ");

    if (!type || strncmp(type + 3, "cgroup2 ", 8) != 0) {
        return NULL;
    }
    *type = '\0';
    char *field[FIELDS] = {NULL};
    char *save = NULL;
    for (size_t i = 0; i < FIELDS; i++) {
        field[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
    }
    if (!field[MOUNT_POINT]) {
        return NULL;
    }
    size_t root_len = strcmp(field[ROOT], "/") == 0 ? 0 : strlen(field[ROOT]);
    if (strncmp(path, field[ROOT], root_len) != 0 ||
        (path[root_len] != '/' && path[root_len] != '\0')) {
        return NULL; // it mounts another part of the hierarchy
    }
    path += root_len;
    return xasprintf("%s%s", field[MOUNT_POINT], strcmp(path, "/") == 0 ? "" : path);
}

int cgroup_find_own(char **ret_dir, const char *proc_dir, struct err *err)
{
    char *groups = get(proc_dir, "cgroup");
    char *mounts = get(proc_dir, "mountinfo");
    char *own = NULL;
    char *dir = NULL;
    char *save = NULL;

    for (char *line = strtok_r(groups, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "0::/", 4) == 0) {
            own = line + 3;
        }
    }
    int rc = 0;
    if (!own) {
        rc = err_set(err, ERR_NOT_FOUND, "%s/cgroup names no control group of version 2", proc_dir);
        goto out;
    }
    // "/../x" stands for a group outside of the cgroup namespace of this process.
    for (char *line = strncmp(own, "/..", 3) == 0 ? NULL : strtok_r(mounts, "\n", &save);
         line && !dir; line = strtok_r(NULL, "\n", &save)) {
        dir = directory_in(line, own);
    }
    if (!dir) {
        rc = err_set(err, ERR_NOT_FOUND, "no cgroup2 mount shows the control group %s", own);
        goto out;
    }
    *ret_dir = dir;
out:
    free(mounts);
    free(groups);
    return rc;
}

// --- taking over

static bool is_marked(int fd)
{
    static const char *const name[] = {"user.delegate", "trusted.delegate"};

    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        char value[2];

        if (fgetxattr(fd, name[i], value, sizeof(value)) == 1 && value[0] == '1') {
            return true;
        }
    }
    return false;
}

static int claim(struct cgroups *cgroups, struct err *err)
{
    const char *dir = cgroups->dir;

    cgroups->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroups->fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s", dir);
    }
    if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) != 0) {
        return err_set_errno(err, ERR_DENIED, errno, "%s is not delegated: not writable", dir);
    }
    if (!is_marked(cgroups->fd)) {
        return err_set(err, ERR_DENIED,
                       "%s is not delegated: neither user.delegate nor trusted.delegate is 1", dir);
    }
    if (flock(cgroups->fd, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? err_set(err, ERR_BUSY, "%s is in use by another kcastd", dir)
                   : err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be locked", dir);
    }
    return 0;
}

static int enter_leaf(const char *dir, const char *leaf, struct err *err)
{
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be made", leaf);
    }
    int failed = put(leaf, "cgroup.procs", "0");
    if (failed != 0) {
        (void)rmdir(leaf);
        return err_set_errno(err, ERR_SYSTEM, failed, "%s: kcastd cannot move there from %s", leaf,
                             dir);
    }
    return 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
        size_t here = strcspn(text, " \n");

        if (here == len && strncmp(text, word, len) == 0) {
            return true;
        }
        text += here;
    }
    return false;
}

static int hand_on_controllers(struct cgroups *cgroups, struct err *err)
{
    char *have = get(cgroups->dir, "cgroup.controllers");
    char order[64] = "";

    for (size_t i = 0; i < ARRAY_LEN(wanted_controllers); i++) {
        const char *name = wanted_controllers[i];
        const char *gap = order[0] ? " " : "";

        if (has_word(have, name)) {
            size_t used = strlen(order);
            size_t known = strlen(cgroups->controllers);

            (void)snprintf(order + used, sizeof(order) - used, "%s+%s", gap, name);
            (void)snprintf(cgroups->controllers + known, sizeof(cgroups->controllers) - known,
                           "%s%s", gap, name);
        }
    }
    free(have);
    int failed = order[0] ? put(cgroups->dir, "cgroup.subtree_control", order) : 0;
    if (failed == EBUSY) {
        return err_set(err, ERR_BUSY, "%s holds other processes beside kcastd", cgroups->dir);
    }
    return failed == 0 ? 0
                       : err_set_errno(err, ERR_SYSTEM, failed,
                                       "%s: its controllers cannot be handed on", cgroups->dir);
}

static struct cgroup *new_group(struct cgroups *cgroups, uint64_t number)
{
    struct cgroup *cgroup = xcalloc(1, sizeof(*cgroup));

    cgroup->cgroups = cgroups;
    cgroup->dir = xasprintf("%s/" CHILD_PREFIX "%" PRIu64, cgroups->dir, number);
    return cgroup;
}

// Whether name is the name of a child's group; sets *ret_number to its number then.
static bool is_child(const char *name, uint64_t *ret_number)
{
    const char *digits = name + CHILD_PREFIX_LEN;

    if (strncmp(name, CHILD_PREFIX, CHILD_PREFIX_LEN) != 0 || strlen(digits) == 0 ||
        strlen(digits) > 18 || strspn(digits, "0123456789") != strlen(digits)) {
        return false;
    }
    *ret_number = strtoull(digits, NULL, 10);
    return true;
}

static void end_leftovers(struct cgroups *cgroups)
{
    DIR *stream = opendir(cgroups->dir);
    struct dirent *entry;
    uint64_t number;

    while (stream && (entry = readdir(stream))) {
        if (is_child(entry->d_name, &number)) {
            struct cgroup *cgroup = new_group(cgroups, number);

            cgroups->last = number > cgroups->last ? number : cgroups->last;
            cgroup_kill(cgroup);
            DL_APPEND(cgroups->leaving, cgroup);
        }
    }
    if (stream) {
        (void)closedir(stream);
    }
    cgroups_sweep(cgroups);
}

int cgroups_create(struct cgroups **ret, const char *dir, struct err *err)
{
    struct cgroups *cgroups = xcalloc(1, sizeof(*cgroups));
    char *leaf = xasprintf("%s/" OWN_LEAF, dir);

    cgroups->dir = xstrdup(dir);
    cgroups->fd = -1;
    int rc = claim(cgroups, err);
    if (rc != 0) {
        goto out;
    }
    rc = enter_leaf(dir, leaf, err);
    if (rc != 0) {
        goto out;
    }
    rc = hand_on_controllers(cgroups, err);
    if (rc != 0) {
        (void)put(dir, "cgroup.procs", "0");
        (void)rmdir(leaf);
        goto out;
    }
    end_leftovers(cgroups);
    *ret = cgroups;
    cgroups = NULL;
out:
    free(leaf);
    cgroups_free(cgroups);
    return rc;
}

static void free_group(struct cgroup *cgroup)
{
    free(cgroup->dir);
    free(cgroup);
}

void cgroups_free(struct cgroups *cgroups)
{
    if (!cgroups) {
        return;
    }
    cgroups_sweep(cgroups);
    struct cgroup *cgroup;
    struct cgroup *next;
    DL_FOREACH_SAFE (cgroups->leaving, cgroup, next) {
        free_group(cgroup);
    }
    if (cgroups->fd >= 0) {
        close(cgroups->fd);
    }
    free(cgroups->dir);
    free(cgroups);
}

const char *cgroups_dir(const struct cgroups *cgroups)
{
    return cgroups->dir;
}

const char *cgroups_controllers(const struct cgroups *cgroups)
{
    return cgroups->controllers[0] ? cgroups->controllers : "none";
}

void cgroups_sweep(struct cgroups *cgroups)
{
    struct cgroup *cgroup;
    struct cgroup *next;

    if (!cgroups) {
        return;
    }
    DL_FOREACH_SAFE (cgroups->leaving, cgroup, next) {
        if (rmdir(cgroup->dir) == 0 || errno == ENOENT) {
            DL_DELETE(cgroups->leaving, cgroup);
            free_group(cgroup);
        }
    }
}

// --- one child

int cgroup_limit(const char *dir, const struct cgroup_limits *limits, struct err *err)
{
    char memory[32] = "";
    char processes[32] = "";
    const struct {
        const char *name;
        const char *text; // "": the file is not written
    } file[] = {
        {"memory.max", memory},
        {"memory.swap.max", limits->memory > 0 ? "0" : ""},
        {"memory.oom.group", limits->memory > 0 ? "1" : ""},
        {"pids.max", processes},
    };

    if (limits->memory > 0) {
        (void)snprintf(memory, sizeof(memory), "%" PRIu64, limits->memory);
    }
    if (limits->processes > 0) {
        (void)snprintf(processes, sizeof(processes), "%" PRIu64, limits->processes);
    }
    for (size_t i = 0; i < ARRAY_LEN(file); i++) {
        int failed = file[i].text[0] ? put(dir, file[i].name, file[i].text) : 0;

        if (failed != 0 && failed != ENOENT) {
            return err_set_errno(err, ERR_SYSTEM, failed, "%s/%s: cannot be set to %s", dir,
                                 file[i].name, file[i].text);
        }
    }
    return 0;
}

int cgroup_create(struct cgroup **ret, struct cgroups *cgroups, const struct cgroup_limits *limits,
                  struct err *err)
{
    struct cgroup *cgroup = new_group(cgroups, ++cgroups->last);
    int rc;

    if (mkdir(cgroup->dir, 0755) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be made", cgroup->dir);
        free_group(cgroup);
        return rc;
    }
    rc = cgroup_limit(cgroup->dir, limits, err);
    if (rc != 0) {
        cgroup_end(cgroup);
        return rc;
    }
    *ret = cgroup;
    return 0;
}

const char *cgroup_dir(const struct cgroup *cgroup)
{
    return cgroup->dir;
}

bool cgroup_out_of_memory(const struct cgroup *cgroup)
{
    char *events = get(cgroup->dir, "memory.events");
    const char *kills = strstr(events, "oom_kill ");
    bool any = kills && strtoull(kills + strlen("oom_kill "), NULL, 10) > 0;

    free(events);
    return any;
}

void cgroup_kill(const struct cgroup *cgroup)
{
    (void)put(cgroup->dir, "cgroup.kill", "1");
}

void cgroup_end(struct cgroup *cgroup_taken)
{
    if (cgroup_taken) {
        cgroup_kill(cgroup_taken);
        DL_APPEND(cgroup_taken->cgroups->leaving, cgroup_taken);
        cgroups_sweep(cgroup_taken->cgroups);
    }
}

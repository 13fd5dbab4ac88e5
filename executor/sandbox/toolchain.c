// Design note. A jail has no /etc: the dynamic loader looks into its default folders, and programs
// need not be looked up among alternatives, because what a program's links lead to is bound under
// the program's own name. gcc finds the rest of itself from the folder that it lies in, so one that
// lies elsewhere is bound at its own path, with a link to it.
#include "executor/sandbox/toolchain.h"
#include "common/file.h"
#include "common/mem.h"
#include "executor/sandbox/mounts.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define COPIES_CPUINFO false
#define TRIPLE "x86_64-linux-gnu"
#define INTERPRETER "ld-linux-x86-64.so.2"
#else
#define COPIES_CPUINFO true
#define TRIPLE "aarch64-linux-gnu"
#define INTERPRETER "ld-linux-aarch64.so.1"
#endif

#define CPUINFO_MAX ((size_t)1 << 20)

// ---- libraries ----

static bool is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

// Binds the libraries below one folder: those of this machine's kind where they have a folder of
// their own, and otherwise, where the C library lies among them, all.
static int bind_libraries_of(const char *folder, struct err *err)
{
    char name[64];
    int rc;

    snprintf(name, sizeof(name), "/%s/libc.so.6", folder);
    if (access(name, F_OK) == 0) {
        return mounts_bind(folder, err);
    }
    snprintf(name, sizeof(name), "%s/" TRIPLE, folder);
    rc = mounts_bind(name, err);
    if (rc != 0) {
        return rc;
    }
    snprintf(name, sizeof(name), "%s/" INTERPRETER, folder);
    return mounts_bind(name, err);
}

static int bind_libraries(struct err *err)
{
    int rc = bind_libraries_of("usr/lib", err);

    if (rc == 0) {
        rc = is_link("/lib") ? mounts_bind("lib", err) : bind_libraries_of("lib", err);
    }
    if (rc == 0) {
        rc = mounts_bind("usr/lib64", err);
    }
    return rc == 0 ? mounts_bind("lib64", err) : rc;
}

// ---- gcc ----

// On machines other than x86 gcc's -march=native finds the processor in /proc/cpuinfo. The jail has
// a copy of the lines about the kind of processor; others may have a serial number.
static int copy_cpuinfo(struct err *err)
{
    static const char *const kept[] = {"processor", "CPU ", "Features"};
    struct bytes text = {.data = NULL};
    struct err ignored = ERR_INIT;
    int in = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC), out = -1, rc = 0;

    if (in < 0 || file_read_fd(&text, in, CPUINFO_MAX, "/proc/cpuinfo", &ignored) != 0) {
        goto out; // gcc then says that it does not know the processor
    }
    rc = mounts_make_dir("proc", 0755, err);
    if (rc != 0) {
        goto out;
    }
    out = open("proc/cpuinfo", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
    for (size_t at = 0, len; out >= 0 && at < text.len && rc == 0; at += len) {
        const char *line = (const char *)text.data + at;
        const char *end = memchr(line, '\n', text.len - at);
        len = end ? (size_t)(end - line) + 1 : text.len - at;
        bool wanted = false;
        for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
            wanted |= len > strlen(kept[i]) && strncmp(line, kept[i], strlen(kept[i])) == 0;
        }
        rc = wanted ? file_write_fd(out, line, len, "the sandbox's cpuinfo", err) : 0;
    }
out:
    if (out >= 0) {
        close(out);
    }
    if (in >= 0) {
        close(in);
    }
    bytes_clear(&text);
    return rc;
}

// Binds gcc's own folders of a prefix that is not /usr.
static int bind_prefix(const char *prefix, struct err *err)
{
    static const char *const folder[] = {"lib/gcc", "libexec/gcc", "lib64", TRIPLE "/bin"};
    char path[PATH_MAX];
    int rc = 0;

    for (size_t i = 0; i < ARRAY_LEN(folder) && rc == 0; i++) {
        if (snprintf(path, sizeof(path), "%s/%s", prefix, folder[i]) < (int)sizeof(path)) {
            rc = mounts_bind(path + 1, err);
        }
    }
    return rc;
}

// A jail has no shell. Without this check the next folder's program would be taken in silence.
static bool is_script(const char *path)
{
    char begin[2] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool script = fd >= 0 && read(fd, begin, sizeof(begin)) == sizeof(begin) &&
                  memcmp(begin, "#!", sizeof(begin)) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return script;
}

// Makes a program that may lie elsewhere one that can be started as folder/tool.
static int bind_tool(const char *folder, const char *tool, struct err *err)
{
    char path[PATH_MAX], real[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", folder, tool);
    struct stat st;
    if (lstat(path, &st) != 0) {
        return 0;
    }
    if (!realpath(path, real) || access(real, R_OK | X_OK) != 0) {
        return err_set_errno(
            err, ERR_SANDBOX, errno,
            "%s is not for the sandbox's user; move what it leads to, or remove it", path);
    }
    if (is_script(real)) {
        return err_set(err, ERR_SANDBOX,
                       "%s is a script, and the compile jail has no shell; put the program there",
                       path);
    }
    char *slash = strrchr(real, '/');
    size_t len = (size_t)(slash - real);
    bool in_bin = len >= 4 && strncmp(slash - 4, "/bin", 4) == 0;
    bool here = len == strlen(folder) && strncmp(real, folder, len) == 0;
    bool in_usr = strncmp(real, "/usr/bin/", 9) == 0 || strncmp(real, "/bin/", 5) == 0;
    int rc = here || in_usr ? mounts_bind_as(real, path + 1, err) : mounts_bind(real + 1, err);
    if (rc != 0 || in_usr) {
        return rc;
    }
    if (!here) {
        rc = mounts_make_parents(path + 1, err);
        if (rc == 0 && symlink(real, path + 1) != 0 && errno != EEXIST) {
            rc = err_set_errno(err, ERR_SANDBOX, errno, "link %s in the sandbox", path);
        }
    }
    if (rc == 0 && in_bin && strcmp(tool, "gcc") == 0) {
        slash[-4] = '\0';
        rc = bind_prefix(real, err);
    }
    return rc;
}

int toolchain_bind(struct err *err)
{
    // On Debian 13 the kernel's headers are links into usr/lib/linux.
    static const char *const folder[] = {"usr/include", "usr/lib/linux/uapi", "usr/lib/gcc",
                                         "usr/libexec/gcc"};
    static const char *const bin[] = {"/usr/local/bin", "/usr/bin"};
    static const char *const tool[] = {"gcc",     "as",         "ld",         "ld.bfd",
                                       "objdump", TRIPLE "-as", TRIPLE "-ld", TRIPLE "-ld.bfd"};
    int rc = bind_libraries(err);

    for (size_t i = 0; i < ARRAY_LEN(folder) && rc == 0; i++) {
        rc = mounts_bind(folder[i], err);
    }
    for (size_t i = 0; i < ARRAY_LEN(bin) * ARRAY_LEN(tool) && rc == 0; i++) {
        rc = bind_tool(bin[i / ARRAY_LEN(tool)], tool[i % ARRAY_LEN(tool)], err);
    }
    return rc == 0 && COPIES_CPUINFO ? copy_cpuinfo(err) : rc;
}

// ---- NVRTC ----

// What a part leads to is bound under the part's name, because a toolkit may be a folder of links.
int toolchain_bind_toolkit(int folder, const char *name, struct err *err)
{
    static const char *const part[] = {"include", "lib", "lib64", "targets", "bin/nvdisasm"};
    char source[64], target[64], link[PATH_MAX], real[PATH_MAX];
    int rc = bind_libraries(err);

    for (size_t i = 0; i < ARRAY_LEN(part) && rc == 0; i++) {
        snprintf(source, sizeof(source), "/proc/self/fd/%d/%s", folder, part[i]);
        snprintf(target, sizeof(target), "%s/%s", name, part[i]);
        ssize_t n = readlink(source, link, sizeof(link) - 1);
        link[n > 0 ? n : 0] = '\0';
        if (link[0] == '/' && realpath(link, real)) {
            rc = mounts_bind_as(real, target, err);
        } else {
            rc = mounts_bind_as(source, target, err);
        }
    }
    return rc;
}

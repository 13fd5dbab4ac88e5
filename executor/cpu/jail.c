#include "executor/cpu/jail.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/sandbox/toolchain.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_FILE "out.so" // the object that gcc writes

static int copy_file(int from, const char *to, struct err *err)
{
    struct stat st;
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 0;

    if (out < 0 || fstat(from, &st) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "writing %s", to);
    }
    if (st.st_size > 0) {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, from, 0);
        if (data == MAP_FAILED || write(out, data, (size_t)st.st_size) != st.st_size) {
            rc = err_set_errno(err, ERR_SANDBOX, errno, "writing %s", to);
        }
        if (data != MAP_FAILED) {
            munmap(data, (size_t)st.st_size);
        }
    }
    close(out);
    return rc;
}

static int set_up(const struct zygote_child *child, const struct jail_spec *spec,
                  const struct sandbox_filter *filter, struct err *err)
{
    struct sandbox_limits limits = sandbox_jail_limits(child->sandbox);

    limits.file_size = spec->max_output;
    limits.cpu_seconds = spec->cpu_seconds;
    if (child->sandbox->off) {
        (void)setsid(); // a session that the parent can kill as a whole
        if (chdir(spec->dir) != 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "%s", spec->dir);
        }
    }
    int rc = sandbox_drop(child->sandbox, child->alive_fd, err);
    if (rc != 0) {
        return rc;
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "/dev/null in the jail");
    }
    sandbox_close_files(child->fd, child->fd_count);
    if (copy_file(child->fd[JAIL_SOURCE], spec->name, err) != 0 ||
        copy_file(child->fd[JAIL_HEADER], "problem.h", err) != 0 ||
        copy_file(child->fd[JAIL_GLUE], "glue.c", err) != 0) {
        return err->code;
    }
    rc = sandbox_limit(&limits, err);
    return rc == 0 && !child->sandbox->off ? sandbox_filter_load(filter, err) : rc;
}

// Runs a program with stdout and stderr written to the descriptor `out`, with files of at most
// file_size bytes and `memory` bytes of address space. Returns its wait status, JAIL_NO_COMPILER
// when there is none.
static int run(char *const *argv, int out, uint64_t file_size, uint64_t memory)
{
    static char *const environment[] = {"PATH=" TOOLCHAIN_PATH, "LC_ALL=C", "TMPDIR=.", "HOME=.",
                                        NULL};
    pid_t pid = fork();

    if (pid < 0) {
        return JAIL_NO_COMPILER;
    }
    if (pid == 0) {
        struct sandbox_limits limits = {.file_size = file_size, .address_space = memory};
        struct err ignored = ERR_INIT;
        if (dup2(out, 1) < 0 || dup2(out, 2) < 0 || sandbox_limit(&limits, &ignored) != 0) {
            dprintf(2, "%s: its limits cannot be set\n", argv[0]);
            _exit(JAIL_EXIT_NO_LIMITS);
        }
        environ = (char **)(uintptr_t)environment;
        execvpe(argv[0], argv, environment);
        dprintf(2, "%s: %s\n", argv[0], strerror(errno));
        _exit(JAIL_EXIT_NO_PROGRAM);
    }
    pid_t ended;
    int status = JAIL_NO_COMPILER;
    // Process 1 of a namespace must also reap processes whose parents have ended.
    do {
        ended = waitpid(-1, &status, 0);
    } while ((ended < 0 && errno == EINTR) || (ended > 0 && ended != pid));
    return ended == pid ? status : JAIL_NO_COMPILER;
}

static int compile(const struct zygote_child *child, const struct jail_spec *spec, char *flags)
{
    static const char *const first[] = {
        "gcc",
        "-pipe",
        "-std=gnu11",
        "-O3",
        "-march=native",
        "-ffp-contract=fast",
        "-fPIC",
        "-shared",
        "-nostartfiles",
        "-Wl,-z,defs",
        "-Wl,-Bsymbolic", // for an entry with the name of a libc function
        "-Wl,--build-id=none",
        "-fno-ident",
        "-fmax-errors=20",
        "-fdiagnostics-color=never"};
    const char *argv[JAIL_WORDS_MAX + 32];
    size_t count = 0;

    for (; count < ARRAY_LEN(first); count++) {
        argv[count] = first[count];
    }
    char *save = NULL;
    for (char *word = strtok_r(flags, " \t\n", &save); word && count < JAIL_WORDS_MAX;
         word = strtok_r(NULL, " \t\n", &save)) {
        argv[count++] = word;
    }
    argv[count++] = "-include";
    argv[count++] = "problem.h";
    argv[count++] = "-o";
    argv[count++] = OUT_FILE;
    argv[count++] = spec->name;
    argv[count++] = "glue.c";
    argv[count++] = "-lm";
    argv[count] = NULL;
    return run((char *const *)(uintptr_t)argv, child->fd[JAIL_LOG], spec->max_output,
               spec->max_memory);
}

// Copies the object, if there is a plausible one, to its descriptor.
static void take_object(const struct zygote_child *child, const struct jail_spec *spec,
                        struct jail_outcome *outcome)
{
    struct stat st;
    int in = open(OUT_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (in < 0 || fstat(in, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
        return;
    }
    if ((uint64_t)st.st_size > spec->max_output) {
        outcome->too_large = true;
        return;
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, in, 0);
    if (data != MAP_FAILED) {
        outcome->compiled =
            pwrite(child->fd[JAIL_OBJECT], data, (size_t)st.st_size, 0) == st.st_size;
        munmap(data, (size_t)st.st_size);
    }
    close(in);
}

static void ask_version(const struct jail_spec *spec, struct jail_outcome *outcome)
{
    static const char *const argv[] = {"gcc", "-dumpfullversion", NULL};
    int fd = open("version", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        return;
    }
    (void)run((char *const *)(uintptr_t)argv, fd, 4096, spec->max_memory);
    ssize_t n = pread(fd, outcome->version, sizeof(outcome->version) - 1, 0);
    outcome->version[n > 0 ? n : 0] = '\0';
    outcome->version[strspn(outcome->version, "0123456789.")] = '\0';
    close(fd);
}

int jail_main(const struct zygote_child *child, const struct sandbox_filter *filter)
{
    static const char *const objdump[] = {"objdump", "-d", "-w", "--no-show-raw-insn",
                                          OUT_FILE,  NULL};
    struct jail_spec spec;

    if (child->spec_len != sizeof(spec) || child->fd_count != JAIL_FILE_COUNT) {
        return 1;
    }
    memcpy(&spec, child->spec, sizeof(spec));
    (void)signal(SIGCHLD, SIG_DFL);
    struct jail_outcome outcome = {0};
    struct err err = ERR_INIT;
    if (set_up(child, &spec, filter, &err) != 0) {
        snprintf(outcome.setup, sizeof(outcome.setup), "%.*s", JAIL_TEXT_MAX - 1, err.text);
    } else {
        outcome.compiler_status = compile(child, &spec, spec.flags);
        ask_version(&spec, &outcome);
        if (outcome.compiler_status == 0) {
            take_object(child, &spec, &outcome);
        }
        if (outcome.compiled) {
            (void)run((char *const *)(uintptr_t)objdump, child->fd[JAIL_LISTING], JAIL_LISTING_MAX,
                      spec.max_memory);
        }
    }
    outcome.finished = true;
    return pwrite(child->fd[JAIL_OUTCOME], &outcome, sizeof(outcome), 0) == sizeof(outcome) ? 0 : 1;
}

// Design note. Process 1 of the jail waits for gcc and objdump and knows how much processor time
// they have used, so it also ends them when the wall time is over: a timer interrupts its waiting,
// once a second from then on, so that none is missed. Without a sandbox there is no pid namespace.
// Then only the program that it waits for is killed, and the parent kills the session; where the
// parent has been killed, this process does.
#include "executor/cpu/jail.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/sandbox/process.h"
#include "executor/sandbox/toolchain.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_FILE "out.so" // the object that gcc writes

struct jail {
    const struct zygote_child *child;
    struct jail_spec spec;
    uint64_t end_ns; // when the wall time is over
    struct jail_outcome outcome;
};

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

// Ends the session: this process, the compiler, and what the compiler has started.
static void on_parent_death(int signal)
{
    (void)signal;
    (void)kill(0, SIGKILL);
}

// Without a pid namespace, with which everything would end, the death of kcast-exec has to end the
// compiler as well. Until here it has killed this process, as sandbox_drop has asked for.
static void die_as_a_session(void)
{
    const struct sigaction end = {.sa_handler = on_parent_death};

    (void)sigaction(SIGTERM, &end, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
}

static void on_alarm(int signal)
{
    (void)signal; // it has interrupted a call
}

// Has waiting interrupted when the wall time is over. Children inherit neither timer nor handler.
static void set_alarm(struct jail *jail)
{
    uint64_t ns = (uint64_t)(jail->spec.wall_seconds * 1e9);
    uint64_t us = ns / 1000 + 1000; // a little later, so that the wall time is over then
    const struct sigaction wake = {.sa_handler = on_alarm};
    const struct itimerval timer = {
        .it_interval = {.tv_sec = 1},
        .it_value = {.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)},
    };

    jail->end_ns = clock_now_ns(&clock_system) + ns;
    (void)sigaction(SIGALRM, &wake, NULL);
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

static int set_up(struct jail *jail, const struct sandbox_filter *filter, struct err *err)
{
    const struct zygote_child *child = jail->child;
    const struct jail_spec *spec = &jail->spec;
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
    if (child->sandbox->off) {
        die_as_a_session();
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
    set_alarm(jail);
    rc = sandbox_limit(&limits, err);
    return rc == 0 && !child->sandbox->off ? sandbox_filter_load(filter, err) : rc;
}

// Becomes the program, with stdout and stderr written to the descriptor `out`, and with these
// limits.
static void become(char *const *argv, int out, const struct sandbox_limits *limits)
{
    static char *const environment[] = {"PATH=" TOOLCHAIN_PATH, "LC_ALL=C", "TMPDIR=.", "HOME=.",
                                        NULL};
    struct err ignored = ERR_INIT;

    if (dup2(out, 1) < 0 || dup2(out, 2) < 0 || sandbox_limit(limits, &ignored) != 0) {
        dprintf(2, "%s: its limits cannot be set\n", argv[0]);
        _exit(JAIL_EXIT_NO_LIMITS);
    }
    environ = (char **)(uintptr_t)environment;
    execvpe(argv[0], argv, environment);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(JAIL_EXIT_NO_PROGRAM);
}

// Kills everything when the wall time is over.
static void look_at_the_time(struct jail *jail, pid_t pid)
{
    if (!jail->outcome.timed_out && clock_now_ns(&clock_system) >= jail->end_ns) {
        jail->outcome.timed_out = true;
        (void)kill(jail->child->sandbox->off ? pid : -1, SIGKILL);
    }
}

// Waits for the process, and reaps those whose parents have ended, as process 1 of a namespace
// must. Returns its wait status, JAIL_NO_COMPILER when there is none.
static int await(struct jail *jail, pid_t pid)
{
    pid_t ended;
    int status = JAIL_NO_COMPILER;

    do {
        look_at_the_time(jail, pid);
        ended = waitpid(-1, &status, 0);
    } while ((ended < 0 && errno == EINTR) || (ended > 0 && ended != pid));
    return ended == pid ? status : JAIL_NO_COMPILER;
}

// Runs a program with files of at most file_size bytes, see become(). Returns its wait status,
// JAIL_NO_COMPILER when there is none.
static int run(struct jail *jail, char *const *argv, int out, uint64_t file_size)
{
    const struct sandbox_limits limits = {.file_size = file_size,
                                          .address_space = jail->spec.max_memory};
    pid_t pid = fork();

    if (pid == 0) {
        become(argv, out, &limits);
    }
    return pid < 0 ? JAIL_NO_COMPILER : await(jail, pid);
}

static int compile(struct jail *jail)
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
        "-fdiagnostics-color=never"};
    const char *argv[JAIL_WORDS_MAX + 32];
    size_t count = 0;

    for (; count < ARRAY_LEN(first); count++) {
        argv[count] = first[count];
    }
    const struct jail_spec *spec = &jail->spec;
    char *save = NULL;
    for (char *word = strtok_r(jail->spec.flags, " \t\n", &save); word && count < JAIL_WORDS_MAX;
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
    return run(jail, (char *const *)(uintptr_t)argv, jail->child->fd[JAIL_LOG], spec->max_output);
}

// Copies the object, if there is a plausible one, to its descriptor.
static void take_object(struct jail *jail)
{
    struct jail_outcome *outcome = &jail->outcome;
    struct stat st;
    int in = open(OUT_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (in < 0 || fstat(in, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0) {
        return;
    }
    if ((uint64_t)st.st_size > jail->spec.max_output) {
        outcome->too_large = true;
        return;
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, in, 0);
    if (data != MAP_FAILED) {
        outcome->compiled =
            pwrite(jail->child->fd[JAIL_OBJECT], data, (size_t)st.st_size, 0) == st.st_size;
        munmap(data, (size_t)st.st_size);
    }
    close(in);
}

static void ask_version(struct jail *jail)
{
    struct jail_outcome *outcome = &jail->outcome;
    static const char *const argv[] = {"gcc", "-dumpfullversion", NULL};
    int fd = open("version", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0) {
        return;
    }
    (void)run(jail, (char *const *)(uintptr_t)argv, fd, 4096);
    ssize_t n = pread(fd, outcome->version, sizeof(outcome->version) - 1, 0);
    outcome->version[n > 0 ? n : 0] = '\0';
    outcome->version[strspn(outcome->version, "0123456789.")] = '\0';
    close(fd);
}

// Reaps what the end of the wall time has killed, so that its processor time counts.
static void reap_all(const struct jail *jail)
{
    if (jail->outcome.timed_out && !jail->child->sandbox->off) {
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
        }
    }
}

static void work(struct jail *jail)
{
    static const char *const objdump[] = {"objdump", "-d", "-w", "--no-show-raw-insn",
                                          OUT_FILE,  NULL};
    struct jail_outcome *outcome = &jail->outcome;

    outcome->compiler_status = compile(jail);
    if (!outcome->timed_out) {
        ask_version(jail);
    }
    if (outcome->compiler_status == 0) {
        take_object(jail);
    }
    if (outcome->compiled && !outcome->timed_out) {
        (void)run(jail, (char *const *)(uintptr_t)objdump, jail->child->fd[JAIL_LISTING],
                  JAIL_LISTING_MAX);
    }
    reap_all(jail);
    outcome->cpu_seconds = process_children_seconds();
}

int jail_main(const struct zygote_child *child, const struct sandbox_filter *filter)
{
    struct jail jail = {.child = child};
    struct jail_outcome *outcome = &jail.outcome;

    if (child->spec_len != sizeof(jail.spec) || child->fd_count != JAIL_FILE_COUNT) {
        return 1;
    }
    memcpy(&jail.spec, child->spec, sizeof(jail.spec));
    (void)signal(SIGCHLD, SIG_DFL);
    struct err err = ERR_INIT;
    if (set_up(&jail, filter, &err) != 0) {
        snprintf(outcome->setup, sizeof(outcome->setup), "%.*s", JAIL_TEXT_MAX - 1, err.text);
    } else {
        work(&jail);
    }
    outcome->finished = true;
    return pwrite(child->fd[JAIL_OUTCOME], outcome, sizeof(*outcome), 0) == sizeof(*outcome) ? 0
                                                                                             : 1;
}

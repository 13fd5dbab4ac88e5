// Loading objects as a runner does, in processes of their own, to see whether code of theirs runs:
// every function of an object writes a mark to a page that the test shares with the process.
#ifndef TESTS_EXECUTOR_SANDBOX_ELF_TRY_H
#define TESTS_EXECUTOR_SANDBOX_ELF_TRY_H

#include "common/clock.h"
#include "common/file.h"
#include "common/stats.h"
#include "executor/sandbox/elf_rules.h"
#include "executor/sandbox/process.h"
#include "executor/sandbox/sandbox.h"
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MARK_ADDRESS 0x7e9000000000
#define MARK_TEXT "0x7e9000000000"

enum try_end {
    TRY_LOADED,  // and its entry was found; no code ran
    TRY_REFUSED, // by the loader, with a sentence; no code ran
    TRY_CRASHED, // the loader came to grief; no code ran
    TRY_RAN,     // code of the object ran
};

struct try_place {
    volatile int *mark;
    struct sandbox_filter filter; // what a runner has while it loads
};

static inline void try_place_init(struct try_place *place)
{
    struct err err = ERR_INIT;

    place->mark = mmap((void *)MARK_ADDRESS, 4096, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_true((uint64_t)(uintptr_t)place->mark == MARK_ADDRESS);
    assert_int_equal(sandbox_filter_build(&place->filter, STAGE_LOAD, &err), 0);
}

static inline void try_place_release(struct try_place *place)
{
    munmap((void *)MARK_ADDRESS, 4096);
    sandbox_filter_release(&place->filter);
}

// Does not return. Leaves without what this process has inherited to do at its end, and without the
// object's own: the mark says whether code of the object ran before the call of its entry.
static inline void try_child(const struct try_place *place, const char *path)
{
    struct sandbox_limits limits = {.cpu_seconds = 5};
    struct sigaction plain = {.sa_handler = SIG_DFL};
    struct err err = ERR_INIT;

    for (int number = 1; number < 32; number++) { // a sanitizer's, and the test's
        (void)sigaction(number, &plain, NULL);
    }
    (void)dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 2);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (sandbox_limit(&limits, &err) != 0 ||
        (!SANDBOX_SANITIZED && sandbox_filter_load(&place->filter, &err) != 0)) {
        (void)syscall(SYS_exit_group, 3);
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *entry = object ? dlsym(object, "kcast_entry") : NULL;
    (void)syscall(SYS_exit_group, entry ? 0 : 2);
}

static inline enum try_end try_load(const struct try_place *place, const struct bytes *object)
{
    struct err err = ERR_INIT;
    char path[64];
    int fd = memfd_create("object", MFD_CLOEXEC), status = -1;

    assert_true(fd >= 0);
    assert_int_equal(file_write_fd(fd, object->data, object->len, "object", &err), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    *place->mark = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        try_child(place, path);
    }
    process_reap(pid, &status);
    close(fd);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    if (*place->mark != 0) {
        return TRY_RAN;
    }
    return !WIFEXITED(status) ? TRY_CRASHED : WEXITSTATUS(status) == 0 ? TRY_LOADED : TRY_REFUSED;
}

// Returns an object that gcc makes of the source, with our flags and a few more.
static inline struct bytes try_compile(const char *source, const char *const *more)
{
    struct err err = ERR_INIT;
    char *dir;
    assert_int_equal(file_make_temp_dir(&dir, "kcast-elf", &err), 0);
    char *in = xasprintf("%s/in.c", dir), *out = xasprintf("%s/out.so", dir);
    assert_int_equal(file_replace(in, source, strlen(source), false, &err), 0);
    const char *argv[32] = {"gcc",
                            "-O1",
                            "-fPIC",
                            "-shared",
                            "-nostartfiles",
                            "-Wl,-z,defs",
                            "-Wl,-Bsymbolic",
                            "-Wl,--build-id=none",
                            "-fno-ident",
                            "-DMARK=(*(volatile int *)" MARK_TEXT " = 1)",
                            "-o",
                            out,
                            in,
                            "-lm"};
    size_t count = 14;
    for (; *more; more++) {
        argv[count++] = *more;
    }
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = -1;
    process_reap(pid, &status);
    struct bytes object = {.data = NULL};
    if (status == 0) {
        assert_int_equal(file_read(&object, out, 1 << 20, &err), 0);
    }
    assert_int_equal(file_remove_tree(dir, &err), 0);
    free(dir);
    free(in);
    free(out);
    return object;
}

#endif

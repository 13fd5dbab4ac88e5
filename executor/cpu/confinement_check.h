// The probe's children that test the confinement: from inside a jail and a runner they try what
// must be impossible, and report what was possible. executor/cpu/child.c starts them,
// executor/cpu/probe.c reads the outcome. It must not know what follows from it.
#ifndef EXECUTOR_CPU_CONFINEMENT_CHECK_H
#define EXECUTOR_CPU_CONFINEMENT_CHECK_H

#include "executor/cpu/runner.h"
#include "executor/sandbox/zygote.h"
#include <stdbool.h>

// The name of each check and what it tries. Each must fail in a jail and in a runner, except that a
// jail may fork and start programs, which a compiler needs.
#define CHECKS(X)                                                                                  \
    X(passwd, "read /etc/passwd")                                                                  \
    X(shadow, "read /etc/shadow")                                                                  \
    X(etc, "look into /etc")                                                                       \
    X(proc, "read /proc/1/environ")                                                                \
    X(sys, "look into /sys")                                                                       \
    X(var, "look into /var")                                                                       \
    X(share, "look into /usr/share")                                                               \
    X(sbin, "look into /usr/sbin")                                                                 \
    X(host_name, "learn the host's name")                                                          \
    X(environment, "read the environment of kcast-exec")                                           \
    X(disk, "make a device node")                                                                  \
    X(write_usr, "write to /usr")                                                                  \
    X(write_root, "write to the root directory")                                                   \
    X(socket, "open a network socket")                                                             \
    X(unix_socket, "open a local socket")                                                          \
    X(ptrace, "trace a process")                                                                   \
    X(parent, "send a signal to its parent")                                                       \
    X(user_namespace, "make a user namespace")                                                     \
    X(mount, "mount a file system")                                                                \
    X(io_uring, "make an io_uring")                                                                \
    X(bpf, "load a BPF program")                                                                   \
    X(perf, "open a performance counter")                                                          \
    X(userfaultfd, "handle page faults of its own")                                                \
    X(memory_file, "make a file in memory")                                                        \
    X(keys, "use the kernel's key rings")                                                          \
    X(handle, "open a file by its handle")                                                         \
    X(membarrier, "have the kernel wait for all cores")                                            \
    X(affinity, "move to another core")                                                            \
    X(fork, "fork")                                                                                \
    X(exec, "start a program")

enum check {
#define X(id, text) CHECK_##id,
    CHECKS(X)
#undef X
        CHECK_COUNT
};

// In memory shared with the parent, which is descriptor 0 of the child.
struct check_outcome {
    bool finished;              // all checks have been tried
    bool possible[CHECK_COUNT]; // what should have failed and did not
    char setup[256];            // why the sandbox could not be set up; "" when it could
};

// Returns what a check tries, as in CHECKS.
const char *check_text(enum check check);

struct check_spec {
    enum child_role role;
};

// Both return the exit status of the child.
int check_jail_main(const struct zygote_child *child, const struct sandbox_filter *filter);
int check_runner_main(const struct zygote_child *child, const struct runner_filters *filters);

#endif

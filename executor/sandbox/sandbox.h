// What a sandboxed child may do: resource limits and capabilities (executor/sandbox/sandbox.c) and
// system calls (executor/sandbox/filter.c). Namespaces and the root directory are in
// executor/sandbox/root.h, the processes in executor/sandbox/zygote.h. The children call this on
// themselves. It must not know which compiler or candidate they run.
//
// Theory of operation. A child is confined in this order:
//   1. namespaces;
//   2. a root directory of its own;
//   3. descriptors and limits;
//   4. no capabilities, no_new_privs;
//   5. a system call filter;
//   6. for a runner a second, tighter filter once the candidate's object is loaded.
// The kernel keeps every filter that a process has loaded, so a later one can only forbid more.
// With `off`, which is for development, steps 1, 2, 4, 5 and 6 are left out.
#ifndef EXECUTOR_SANDBOX_SANDBOX_H
#define EXECUTOR_SANDBOX_SANDBOX_H

#include "common/err.h"
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SANDBOX_ID 65534       // user and group inside; also outside when kcast-exec runs as root
#define SANDBOX_DIR "/job"     // the only writable directory
#define SANDBOX_HOST "sandbox" // what uname says the host is called
#define SANDBOX_TOOLKIT "/toolkit" // where the CUDA toolkit is mounted

// The descriptor to which a process may write in STAGE_LOAD beside stdout and stderr.
#define SANDBOX_SOCKET 3
// The only flags of clone in STAGE_LOAD: a fork whose parent is the caller's parent.
#define SANDBOX_FORK_FLAGS ((unsigned long)CLONE_PARENT | SIGCHLD)

// Whether this build has a sanitizer. A sanitizer reserves terabytes of address space, so a runner
// has no limit of address space then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANDBOX_SANITIZED 1
#endif
#endif
#ifndef SANDBOX_SANITIZED
#define SANDBOX_SANITIZED 0
#endif

enum sandbox_kind {
    SANDBOX_JAIL,     // runs the compiler, which may fork
    SANDBOX_RUNNER,   // runs one candidate
    SANDBOX_RECORDER, // runs Python and what it needs, on the host's GPUs
};

#define SANDBOX_FOLDERS_MAX 12
#define SANDBOX_FOLDER_BYTES 256

struct sandbox {
    enum sandbox_kind kind;
    bool off;            // apply nothing but limits
    bool user_namespace; // set by root_enter when there is a user namespace of its own
    uint64_t scratch;    // bytes that may be written below SANDBOX_DIR
    char toolkit[512];   // for a jail: the host's folder to mount at SANDBOX_TOOLKIT; "": none
    // For a recorder: folders of the host that it sees at the same paths, beside /usr; "": none.
    char folder[SANDBOX_FOLDERS_MAX][SANDBOX_FOLDER_BYTES];
};

// Resource limits of a child. 0 leaves a limit as it is.
struct sandbox_limits {
    uint64_t address_space; // bytes
    uint64_t file_size;     // bytes of one file
    uint64_t cpu_seconds;   // SIGXCPU comes then, and SIGKILL a second later
    uint64_t processes;     // SANDBOX_NO_PROCESSES: no process beside this one
    uint64_t files;         // open descriptors
    uint64_t stack;         // bytes
};
#define SANDBOX_NO_PROCESSES UINT64_MAX
#define SANDBOX_JAIL_PROCESSES 64      // of a compile jail
#define SANDBOX_RECORDER_PROCESSES 256 // of a recorder, threads included

// A compiled system call filter. The trusted parent builds it once, its children load it.
struct sandbox_filter {
    void *program;   // array of struct sock_filter, malloc'd; NULL: not built
    uint16_t length; // instructions
};

enum sandbox_stage {
    STAGE_COMPILE, // for a compiler: only listed calls, all others fail with ENOSYS
    STAGE_LOAD,    // for the dynamic loader: only listed calls; and to fork
    STAGE_RUN,     // for a loaded candidate: only memory, futexes, its output and exit
    STAGE_RECORD,  // for a recorder: all calls but those that change the system or look into others
};

// ERR_SANDBOX when libseccomp or the kernel's limits do not allow it. On failure *ret is unchanged.
MUST_CHECK int sandbox_filter_build(struct sandbox_filter *ret, enum sandbox_stage stage,
                                    struct err *err);
void sandbox_filter_release(struct sandbox_filter *filter);

// Called in the child. A call that STAGE_LOAD or STAGE_RUN refuses raises SIGSYS, which ends the
// process unless it has a handler.
MUST_CHECK int sandbox_filter_load(const struct sandbox_filter *filter, struct err *err);

// Returns the limits of every compile jail, and of every recorder: processes and open files.
struct sandbox_limits sandbox_jail_limits(const struct sandbox *sandbox);

// Called in the child: sets hard and soft limits, which are the same but for processor time.
MUST_CHECK int sandbox_limit(const struct sandbox_limits *limits, struct err *err);

// Called in the child: wipes the environment, drops every capability and the bounding set, changes
// the user where there is no user namespace, sets no_new_privs, and has the child die with its
// parent. alive_fd is a descriptor whose other end only the parent holds: the child exits at once
// if that is closed already. -1: there is none.
MUST_CHECK int sandbox_drop(const struct sandbox *sandbox, int alive_fd, struct err *err);

// Called in the child, before sandbox_drop: mounts a tmpfs of this many bytes over SANDBOX_DIR in a
// mount namespace of its own, so that no other process can reach what is in it, and enters it.
MUST_CHECK int sandbox_own_folder(uint64_t bytes, struct err *err);

// Called in the child, before sandbox_drop: makes /proc show the processes of the child's own
// namespace only, in a mount namespace of its own.
MUST_CHECK int sandbox_own_proc(struct err *err);

// Called in the child: closes every descriptor from 3 on except keep[0 .. count).
void sandbox_close_files(const int *keep, size_t count);

// Returns the name of a system call of this machine, malloc'd; "call 4711" when it has none.
char *sandbox_call_name(int number);

#endif

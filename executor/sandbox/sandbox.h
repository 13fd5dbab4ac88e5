// What a sandboxed child may do: resource limits and capabilities (executor/sandbox/sandbox.c), system calls
// (executor/sandbox/filter.c). Namespaces and the root directory are executor/sandbox/root.h's, the processes
// exec/zygote.h's.
//
// Theory of operation. A child is confined in this order: (1) namespaces, (2) own root directory,
// (3) descriptors, limits, (4) no capabilities, no_new_privs, (5) a system call filter, (6) for a
// runner a second, tighter filter once the candidate's object is loaded. Filters only ever add up.
// With `off` (development only) 1, 2, 4, 5, 6 are left out.
#ifndef EXECUTOR_SANDBOX_SANDBOX_H
#define EXECUTOR_SANDBOX_SANDBOX_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SANDBOX_ID 65534 // user and group inside, and outside when we are root
#define SANDBOX_DIR "/job"
#define SANDBOX_TOOLKIT "/toolkit"

// Whether this is a build with a sanitizer, which reserves terabytes of address space for itself: a
// runner has no limit of it then.
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
    SANDBOX_JAIL,   // runs the compiler: deny-list, may fork
    SANDBOX_RUNNER, // runs one candidate: allow-list
};

struct sandbox {
    enum sandbox_kind kind;
    bool off;            // nothing but limits
    bool user_namespace; // set by root_enter: there is a user namespace of our own
    uint64_t scratch;    // bytes that may be written below SANDBOX_DIR
    char toolkit[512];   // jail: this folder of the host is seen at SANDBOX_TOOLKIT; "": none
};

// Resource limits of a child; 0 leaves a limit alone.
struct sandbox_limits {
    uint64_t address_space; // bytes
    uint64_t file_size;     // bytes of one file
    uint64_t cpu_seconds;
    uint64_t processes; // SANDBOX_NO_PROCESSES: none beside this one
    uint64_t files;     // open descriptors
    uint64_t stack;     // bytes
};
#define SANDBOX_NO_PROCESSES UINT64_MAX

// A compiled filter. Built once by the trusted parent, loaded by its children.
struct sandbox_filter {
    void *program;   // array of struct sock_filter, malloc'd; NULL when the sandbox is off
    uint16_t length; // instructions
};

enum sandbox_stage {
    STAGE_COMPILE, // deny-list: EPERM for what a compiler never needs
    STAGE_LOAD,    // allow-list for the dynamic loader
    STAGE_RUN,     // allow-list for a loaded candidate: memory, futexes, its output, exit
};

MUST_CHECK int sandbox_filter_build(struct sandbox_filter *ret, enum sandbox_stage stage,
                                    struct err *err);
void sandbox_filter_release(struct sandbox_filter *filter);

// In the child. Refused calls of STAGE_LOAD and STAGE_RUN raise SIGSYS, by which the process ends
// unless it has a handler.
MUST_CHECK int sandbox_filter_load(const struct sandbox_filter *filter, struct err *err);

// What every process of a compile jail is limited to: processes and open files.
struct sandbox_limits sandbox_jail_limits(const struct sandbox *sandbox);

// In the child: limits (hard and soft).
MUST_CHECK int sandbox_limit(const struct sandbox_limits *limits, struct err *err);

// In the child: drops every capability, the bounding set and the user (when there is no user
// namespace), no_new_privs, dies with its parent. alive_fd is a descriptor whose other end only the
// parent holds: the child leaves at once if that is closed already.
MUST_CHECK int sandbox_drop(const struct sandbox *sandbox, int alive_fd, struct err *err);

// In the child: closes every descriptor from 3 on but keep[0 .. count).
void sandbox_close_files(const int *keep, size_t count);

// Name of a system call of this machine, malloc'd; "call 4711" when there is none.
char *sandbox_call_name(int number);

#endif

// Parts of the host's file system in the root that is being built, which is the working directory;
// for executor/sandbox/root.c and executor/sandbox/toolchain.c. Paths of the new root are relative.
// What is bound is read-only, without devices and without set-user-ID. It must not know what a
// compiler needs. Errors are ERR_SANDBOX.
#ifndef EXECUTOR_SANDBOX_MOUNTS_H
#define EXECUTOR_SANDBOX_MOUNTS_H

#include "common/err.h"
#include <stdbool.h>
#include <sys/types.h>

// Makes a directory in a directory that is there. It is no error when it is there already.
MUST_CHECK int mounts_make_dir(const char *path, mode_t mode, struct err *err);

// Makes the directories above a path: "usr" and "usr/lib" for "usr/lib/gcc".
MUST_CHECK int mounts_make_parents(const char *path, struct err *err);

// Makes `name` what the host has at /name: the same link, or the same file or directory with what
// is mounted below it. Makes nothing, and no error, where the host has nothing.
MUST_CHECK int mounts_bind(const char *name, struct err *err);

// The same for a host's path that is not that of the new root.
MUST_CHECK int mounts_bind_as(const char *source, const char *name, struct err *err);

// Makes a device file what the host has there, which must be something.
MUST_CHECK int mounts_bind_device(const char *source, const char *name, struct err *err);

#endif

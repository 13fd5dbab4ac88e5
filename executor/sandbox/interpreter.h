// What of the host a recorder has: an interpreter, the libraries that it loads, compilers that it
// may start, and the GPUs; for executor/sandbox/root.c only. Everything but the devices is
// read-only in the root that is being built, which is the working directory. It must not know what
// is run.
#ifndef EXECUTOR_SANDBOX_INTERPRETER_H
#define EXECUTOR_SANDBOX_INTERPRETER_H

#include "common/err.h"
#include "executor/sandbox/sandbox.h"
#include <stdbool.h>

// Whether the user that a sandbox of ours has may go to the file, through all folders above it.
// That user is nobody when we are root, and else who we are.
bool interpreter_is_reachable(const char *path);
// Binds /usr and what leads into it, the loader's list of libraries, the folders of *sandbox, the
// devices of GPUs, and /proc. ERR_SANDBOX.
MUST_CHECK int interpreter_bind(const struct sandbox *sandbox, struct err *err);

#endif

// What of the host's file system a compile jail has; for executor/sandbox/root.c only. Everything
// is bound read-only into the root that is being built, which is the working directory. It must not
// know how a compiler is called.
#ifndef EXECUTOR_SANDBOX_TOOLCHAIN_H
#define EXECUTOR_SANDBOX_TOOLCHAIN_H

#include "common/err.h"

// Where programs are looked for in a jail; they are looked for in the same places of the host.
#define TOOLCHAIN_PATH "/usr/local/bin:/usr/bin"

// For gcc: the C library's folder and headers, gcc's own folders, and the programs gcc, as, ld and
// objdump. A gcc that lies elsewhere (/usr/local/bin/gcc, or a link to /opt/gcc/bin/gcc) brings its
// own folders of the same names. ERR_SANDBOX.
MUST_CHECK int toolchain_bind(struct err *err);

// For NVRTC: the C library's folder, and of the toolkit whose folder is open as this descriptor,
// headers, libraries and the disassembler, below `name`. ERR_SANDBOX.
MUST_CHECK int toolchain_bind_toolkit(int folder, const char *name, struct err *err);

#endif

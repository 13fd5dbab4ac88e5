// Where a program that serves keeps its state when nobody says where. Used by kcastd and
// kcast-worker, whose --help says the same.
#ifndef COMMON_STATE_DIR_H
#define COMMON_STATE_DIR_H

#include "common/err.h"

// The first of: the first folder of $STATE_DIRECTORY, which a service manager sets;
// $XDG_STATE_HOME/kernelcast/<name>; for root root_dir; ~/.local/state/kernelcast/<name>. Variables
// that hold no absolute path do not count. The caller frees *ret. ERR_USAGE when there is none.
MUST_CHECK int state_dir_default(char **ret, const char *name, const char *root_dir,
                                 struct err *err);

#endif

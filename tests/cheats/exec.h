// Runs kcast-exec as the daemon does: a process for each compilation and each measurement, one
// packed plan on its standard input, one packed outcome on its standard output. The battery calls
// this. It knows nothing of cheats.
#ifndef TESTS_CHEATS_EXEC_H
#define TESTS_CHEATS_EXEC_H

#include "common/err.h"
#include "proto/messages.h"

// A process that has not answered after so many seconds is killed.
#define EXEC_SECONDS_MAX 240

// Runs $KCAST_BIN/kcast-exec with this mode. *outcome may be uninitialised; on success the caller
// owns its parts. ERR_SYSTEM, with what the process said on stderr, when there is no outcome.
MUST_CHECK int exec_run(const char *mode, const struct message *plan_message, const void *plan,
                        const struct message *answer_message, void *outcome, struct err *err);

// Whether the sandbox works here. When not, *ret_reason, which the caller frees, says why.
bool exec_has_sandbox(char **ret_reason);

#endif

// The recorder: a process in a sandbox with a Python interpreter that has PyTorch imported, which
// forks a child for each candidate; the child runs the candidate on the GPU and writes what it has
// launched (executor/recorder), or with its host code as often as it is told to.
// executor/gpu/record/record.c and executor/gpu/unsealed call it. It must not know plans and
// problems. This side trusts nothing that comes out of it.
#ifndef EXECUTOR_GPU_RECORD_RECORDER_H
#define EXECUTOR_GPU_RECORD_RECORDER_H

#include "common/err.h"
#include "common/mem.h"
#include "executor/sandbox/zygote.h"
#include <stdbool.h>
#include <sys/types.h>

#define RECORDER_PATH_MAX 512

struct recorder {
    struct sandbox_filter filter; // not built yet when its program is NULL
    struct zygote zygote;         // socket -1: there is none
    bool sandbox_off;
    bool entered;                   // the zygote is in its sandbox
    char python[RECORDER_PATH_MAX]; // the interpreter
    pid_t pid;                      // of the process that forks; 0: it is not running
    bool starting;                  // it has not said yet that it can record
    int control;                    // to it; -1: none
    char folder[RECORDER_PATH_MAX]; // without a sandbox: its working directory; "": none
};

// How one recording has ended.
enum recorder_end {
    RECORDER_DONE,    // there is a reply, which may be anything
    RECORDER_DIED,    // the candidate's process ended without one
    RECORDER_TIMEOUT, // it did not end in time
    RECORDER_LARGE,   // its reply is larger than `most`
};

struct recorder_report {
    enum recorder_end end;
    bool began;         // the candidate's code may have run, and have written the reply
    int status;         // wait status of the candidate's process
    double cpu_seconds; // that it and its children have used
};

#define RECORDER_INIT                                                                              \
    {                                                                                              \
        .zygote = {.socket = -1}, .control = -1                                                    \
    }

// Forks what starts the interpreter, for a process that will use the GPU or hold secrets before it
// knows whether it needs one: such a process must not be copied.
MUST_CHECK int recorder_fork(struct recorder *recorder, struct err *err);
// Begins to start the interpreter unless it runs already, as asked for, and does not wait. After a
// failure none is running.
MUST_CHECK int recorder_begin(struct recorder *recorder, const char *python, bool sandbox_off,
                              struct err *err);
// As recorder_begin, and waits until it can record. Takes seconds: it imports PyTorch.
// ERR_UNSUPPORTED says what the interpreter lacks, ERR_SANDBOX what the sandbox does.
MUST_CHECK int recorder_start(struct recorder *recorder, const char *python, bool sandbox_off,
                              struct err *err);
// Ends it, with everything that it has started.
void recorder_stop(struct recorder *recorder);

// Has a request recorded on a device (uuid or number; NULL: the first). *ret, the reply, is set
// when ret_report->end is RECORDER_DONE; the caller clears it. After `seconds` it is given up, and
// the next recorder_start starts another one. An error is a failure of the machine.
MUST_CHECK int recorder_ask(struct recorder *recorder, const struct bytes *request,
                            const char *device, double seconds, size_t most,
                            struct recorder_report *ret_report, struct bytes *ret, struct err *err);

// Has a candidate run in a process of its own, which is told by messages on *ret_socket what to do
// (executor/gpu/unsealed/wire.h); the caller closes it. `memory` is a descriptor of memory of the
// GPU, which stays the caller's, for the tensors. The recorder must be running.
// recorder_end_unsealed follows.
MUST_CHECK int recorder_begin_unsealed(struct recorder *recorder, const struct bytes *request,
                                       int memory, int *ret_socket, struct err *err);
// Waits for the end of the process, which comes when the socket has been closed or by itself. When
// it has not come after `seconds`, everything is killed and false returned; the next recorder_start
// starts another interpreter.
bool recorder_end_unsealed(struct recorder *recorder, double seconds, struct recorder_report *ret);

// Where the library lies for the process that records, whose memory comes from it.
#define RECORDER_LIBRARY "/proc/self/fd/4"

#endif

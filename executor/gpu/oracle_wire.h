// What the caller and the oracle's process send each other over their socket: fixed structs,
// because both ends are trusted code of one program. Included by oracle.c and
// oracle_process.h only.
//
//   request                   reply
//   READY                     empty, when the context is there
//   USE setup                 whether the problem and object of that setup are still loaded; if so
//                             they are the ones in use
//   SETUP problem, object     empty, when both are loaded and in use
//   SHARE count, bytes, fd    empty, when the caller's open arena is mapped here as far as it has
//                             changed: the first chunks stay, and one may be added
//   CHECK count               what the comparison of each output has found: `count` times a struct
//                             oracle_output follows the struct, and an oracle_answer the reply
//   ALONE input set, baseline whether the baseline fails where no candidate has ever run
#ifndef EXECUTOR_GPU_ORACLE_WIRE_H
#define EXECUTOR_GPU_ORACLE_WIRE_H

#include "common/err.h"
#include "executor/gpu/oracle.h"
#include <stdbool.h>
#include <stdint.h>

enum oracle_operation {
    ORACLE_READY,
    ORACLE_USE,
    ORACLE_SETUP,
    ORACLE_SHARE,
    ORACLE_CHECK,
    ORACLE_ALONE
};

struct oracle_request {
    enum oracle_operation operation;
    struct digest setup;  // USE and SETUP: names the problem and the object
    struct input_set set; // ALONE
    uint64_t count;       // CHECK: of the outputs, at most ORACLE_OUTPUTS
    uint64_t hash_key;    // CHECK: of their digests
    uint64_t chunks;      // SHARE: how many chunks stay
    uint64_t bytes;       // SHARE: of the chunk that is added; 0: none is. One more byte
                          // follows the struct, with the descriptor
    uint64_t problem_len, object_len; // SETUP: the two follow the struct, in this order; ALONE: the
                                      // object follows it
    uint64_t limit_ns;                // ALONE: of the baseline's run
};

struct oracle_reply {
    int code;                // an error code; 0: the request succeeded
    char text[ERR_TEXT_MAX]; // the error's sentence; ALONE: why the baseline failed
    bool loaded;             // USE: the setup is there
    bool failed;             // ALONE: the baseline failed
};

// Sends or receives exactly len bytes. The error says that the other side has gone.
MUST_CHECK int oracle_send(int socket, const void *data, size_t len, struct err *err);
MUST_CHECK int oracle_receive(int socket, void *data, size_t len, struct err *err);

// The oracle's process: opens the GPU, serves requests until the socket is closed, and ends by
// _exit.
void oracle_main(const char *uuid, int socket) __attribute__((noreturn));

#endif

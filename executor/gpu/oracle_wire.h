// What the caller and the oracle's process say to each other: fixed structs of trusted code on both sides
// of one program.
//
//   SUBJECT problem, object  -> answer
//   EXPECT  content          -> nothing: computed at once, failures are told at the next CHECK
//   CHECK   content, tensor  -> answer; a tensor larger than the window comes in pieces
#ifndef EXECUTOR_GPU_ORACLE_WIRE_H
#define EXECUTOR_GPU_ORACLE_WIRE_H

#include "common/err.h"
#include "executor/gpu/oracle.h"
#include <stdbool.h>
#include <stdint.h>

enum oracle_operation { ORACLE_READY, ORACLE_SETUP, ORACLE_EXPECT, ORACLE_CHECK };

struct oracle_request {
    enum oracle_operation operation;
    struct oracle_content content;
    uint64_t tensor, offset, bytes;   // CHECK: this piece is in the window
    bool last;                        // CHECK: no more pieces
    uint64_t problem_len, object_len; // SUBJECT: follow
};

struct oracle_reply {
    int code; // of the error, 0: none
    char text[ERR_TEXT_MAX];
    struct oracle_answer answer;
};

// All of it, or an error that says that the other side has gone.
MUST_CHECK int oracle_send(int socket, const void *data, size_t len, struct err *err);
MUST_CHECK int oracle_receive(int socket, void *data, size_t len, struct err *err);

// The oracle's process: serves requests on the socket until it is closed, and leaves by _exit.
// window: ORACLE_WINDOW bytes that it shares with the caller.
void oracle_main(const char *uuid, int socket, unsigned char *window) __attribute__((noreturn));

#endif

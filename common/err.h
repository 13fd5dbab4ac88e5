// The one error type of all programs. An error is a code and a sentence. A function that can fail
// returns 0 or a negative code and fills the caller's struct err. Nothing here allocates or logs.
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include "common/exit.h"
#include <stddef.h>

// Each row: code, name on the wire and in --json, exit code of a program that ends because of it,
// meaning.
#define ERR_CODES(X)                                                                               \
    X(INTERNAL, "internal", EXIT_INTERNAL, "a defect of kernelcast itself")                        \
    X(SYSTEM, "system", EXIT_SYSTEM, "the operating system refused something")                     \
    X(USAGE, "usage", EXIT_USAGE, "the command line is wrong")                                     \
    X(INVALID, "invalid", EXIT_INVALID, "an input file or value is wrong")                         \
    X(CORRUPT, "corrupt", EXIT_INVALID, "stored data is damaged")                                  \
    X(VERSION, "version", EXIT_VERSION, "made by another, incompatible version")                   \
    X(PROTOCOL, "protocol", EXIT_PROTOCOL, "a peer sent something that is no valid message")       \
    X(UNSUPPORTED, "unsupported", EXIT_VERSION, "the peer does not know this operation")           \
    X(UNREACHABLE, "unreachable", EXIT_UNREACHABLE, "a daemon or worker does not answer")          \
    X(TIMED_OUT, "timed-out", EXIT_UNREACHABLE, "no answer within the deadline")                   \
    X(BUSY, "busy", EXIT_BUSY, "held by something else, or a limit is reached; try again later")   \
    X(NEED_BLOB, "need-blob", EXIT_PROTOCOL, "a named blob has not been sent yet")                 \
    X(CONFLICT, "conflict", EXIT_INVALID, "the same key was used for something else")              \
    X(NOT_FOUND, "not-found", EXIT_INVALID, "the named thing does not exist")                      \
    X(LIMIT, "limit", EXIT_INVALID, "larger or longer than allowed")                               \
    X(NO_SPACE, "no-space", EXIT_NO_SPACE, "a disk is full")                                       \
    X(SANDBOX, "sandbox", EXIT_SANDBOX, "the sandbox cannot be set up")                            \
    X(BUDGET, "budget", EXIT_BUDGET, "a budget of device time is used up")                         \
    X(DENIED, "denied", EXIT_DENIED, "not permitted")                                              \
    X(NO_DEVICE, "no-device", EXIT_NO_DEVICE, "no device is in service that can do this")          \
    X(STOPPED, "stopped", EXIT_INTERRUPTED, "ended by a signal or by its user")

enum err_index {
#define X(id, name, exit, text) ERR_INDEX_##id,
    ERR_CODES(X)
#undef X
        ERR_COUNT
};

// Error codes are negative, so that a return value is either 0 or an error.
enum err_code {
    ERR_NONE = 0,
#define X(id, name, exit, text) ERR_##id = -1 - (int)ERR_INDEX_##id,
    ERR_CODES(X)
#undef X
};

// The index of a code in a table of ERR_COUNT rows. The index of ERR_INTERNAL for an unknown code.
static inline size_t err_index(enum err_code code)
{
    return code < 0 && code >= -(int)ERR_COUNT ? (size_t)(-1 - (int)code) : ERR_INDEX_INTERNAL;
}

#define ERR_TEXT_MAX 1024

struct err {
    enum err_code code;      // ERR_NONE until something fails
    char text[ERR_TEXT_MAX]; // one sentence without a newline, empty while code is ERR_NONE
};

// The state "no error": struct err err = ERR_INIT;
#define ERR_INIT                                                                                   \
    {                                                                                              \
        .code = ERR_NONE                                                                           \
    }

// Marks functions whose result must not be ignored.
#define MUST_CHECK __attribute__((warn_unused_result))

// Records an error, unless err is NULL or holds one already: the first error wins. Returns code in
// every case.
int err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Like err_set, with ": " and the text of the errno value errnum appended. ENOSPC and EDQUOT
// replace code by ERR_NO_SPACE.
int err_set_errno(struct err *err, enum err_code code, int errnum, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Puts "<context>: " in front of the text of a recorded error and returns its code. Does nothing
// and returns ERR_NONE when no error is recorded. Returns ERR_INTERNAL when err is NULL.
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Back to "no error". err may be NULL.
void err_clear(struct err *err);

// The name of a code, such as "invalid" or "no-space". "none" for 0, "unknown" for anything else.
const char *err_name(int code);

// The meaning of a code, from the table above. Also defined for 0 and for unknown codes.
const char *err_meaning(int code);

// The code of a name that was read from the wire or a file. ERR_INTERNAL for an unknown name.
enum err_code err_from_name(const char *name);

// The exit code of a program that ends because of this error. 0 for ERR_NONE.
int err_exit(int code);

#endif

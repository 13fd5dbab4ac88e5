// The exit codes of all programs. docs/commands.md lists them, and a test compares the two.
#ifndef COMMON_EXIT_H
#define COMMON_EXIT_H

// Each row: name, exit code, meaning.
#define EXIT_CODES(X)                                                                              \
    X(OK, 0, "done")                                                                               \
    X(NEGATIVE, 1, "done, and the answer is no (a check failed, no candidate was correct)")        \
    X(USAGE, 2, "wrong command line")                                                              \
    X(INVALID, 3, "an input file or value is wrong, damaged or missing")                           \
    X(VERSION, 4, "a file or peer of another, incompatible version")                               \
    X(PROTOCOL, 5, "a peer sent something that is no valid message")                               \
    X(UNREACHABLE, 6, "a daemon or worker does not answer")                                        \
    X(NO_SPACE, 7, "a disk is full")                                                               \
    X(SANDBOX, 8, "the sandbox cannot be set up here")                                             \
    X(SYSTEM, 9, "the operating system refused something")                                         \
    X(INTERNAL, 10, "a defect of kernelcast itself")                                               \
    X(BUDGET, 11, "a budget of device time is used up; what was done is kept")                     \
    X(BUSY, 12, "something else holds what is needed (an address, a lock, a limit of the daemon)") \
    X(DENIED, 13, "not permitted: token, certificate, role, address or access to a secret")        \
    X(NO_DEVICE, 14, "no device is in service that can do this")                                   \
    X(INTERRUPTED, 130, "ended by a signal or by its user; what was done is kept")

enum exit_code {
#define X(id, value, text) EXIT_##id = value,
    EXIT_CODES(X)
#undef X
};

#endif

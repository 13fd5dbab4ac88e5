// What the modes of fake_exec.c share: the words in a candidate, the log and the gates that tests
// see, plans from stdin and outcomes to stdout.
#ifndef TESTS_SUPPORT_EXEC_STUB_H
#define TESTS_SUPPORT_EXEC_STUB_H

#include "common/mem.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

// Of this process.
struct exec_stub {
    const char *mode;  // "cuda-measure"
    const char *uuid;  // of the GPU; NULL: none
    bool framed;       // it answers plans in frames
    unsigned answered; // plans
    char **arguments;  // of main
};

extern struct exec_stub exec_stub;

void exec_die(const char *text) __attribute__((noreturn));
void exec_sleep_forever(void) __attribute__((noreturn));

// The argument of "//! word" in text, malloc'd; NULL when the word is not there.
char *exec_word(const char *text, const char *name);
bool exec_has(const char *text, const char *name);

// Appends a line to $KCAST_FAKE_LOG: what, and the digest of the text.
void exec_note(const char *what, const char *text);
// Passes the gate that the word names, if the text has it.
void exec_gate(const char *text, const char *name);

// The next plan; leaves the process when there will be none.
struct bytes exec_plan(void);
void exec_put(const struct message *message, const void *value);
// The head of a frame of so many bytes.
void exec_put_head(size_t len);

// Fails as the text says, before the compilation or the measurement; returns when it says nothing
// of it.
void exec_bad_compile(const char *text);
void exec_bad_run(const char *text);

// A hill over what the lines "#define NAME VALUE" at the beginning of a source say, that is over a
// template's parameters: its top is where the i-th value is one less than 2 to the power of
// 1 + i % 3.
double exec_hill(const char *text);

#endif

// What a client of the soak test has done, in a file that outlives it. There is one line for each
// step. It is appended before the step when the client must not forget the step, and after the step
// when the daemon promised something.
//
//  s INDEX              SUBMIT is sent
//  a INDEX JOB          it was accepted as this job
//  b INDEX              it was refused, because its search has used up its budget
//  c INDEX              CANCEL is sent
//  C INDEX STATE        the state in CANCEL's answer
//  r INDEX STATE HASH   the job's end was delivered; HASH of all that was said about it
//  k INDEX              ACK is sent
//  K INDEX              ACK was answered
//  v INDEX SENTENCE     a violation
#ifndef TESTS_SOAK_JOURNAL_H
#define TESTS_SOAK_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

// DIR/client-N; the caller frees it.
char *journal_path(const char *dir, unsigned client);
int journal_open(const char *dir, unsigned client);
// Appends one line, which ends with a newline, in one write: a SIGKILL leaves all of it or nothing.
void journal_add(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct journal_line {
    char what;
    unsigned index;
    uint64_t first;   // JOB or STATE
    uint64_t second;  // HASH
    const char *text; // what follows INDEX
};
// Visits every line. A missing file is the journal of a client that has not begun.
void journal_read(const char *dir, unsigned client,
                  void (*visit)(void *owner, const struct journal_line *line), void *owner);

#endif

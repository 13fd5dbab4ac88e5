// What a client of the soak test has done, in a file that outlives it: one line per step, appended
// before the step where the step promises something, after it where the daemon did.
//
//   s INDEX              SUBMIT is sent
//   a INDEX JOB          it was accepted as this job
//   b INDEX              it was refused, because its search has used up its budget
//   c INDEX              CANCEL is sent
//   C INDEX STATE        the state that the answer told
//   r INDEX STATE HASH   the job's end was delivered; HASH of all that was said
//   k INDEX              ACK is sent
//   K INDEX              it was answered
//   v INDEX SENTENCE     what must not be
#ifndef TESTS_SOAK_JOURNAL_H
#define TESTS_SOAK_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

// DIR/client-N, malloc'd.
char *journal_path(const char *dir, unsigned client);
int journal_open(const char *dir, unsigned client);
// One line, with a newline, in one write: a SIGKILL leaves all of it or nothing.
void journal_add(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct journal_line {
    char what;
    unsigned index;
    uint64_t first;   // JOB or STATE
    uint64_t second;  // HASH
    const char *text; // of what follows INDEX
};
// Visits every line. No such file is a client that has not begun.
void journal_read(const char *dir, unsigned client,
                  void (*visit)(void *owner, const struct journal_line *line), void *owner);

#endif

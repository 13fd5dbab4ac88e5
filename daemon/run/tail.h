// Keeps the last bytes of a stream, whose last line says why a program failed. Called by
// child_pipes.c and child.c for the stderr of kcast-exec.
#ifndef DAEMON_RUN_TAIL_H
#define DAEMON_RUN_TAIL_H

#include <stddef.h>

#define TAIL_MAX 4096     // bytes kept
#define TAIL_LINE_MAX 256 // bytes of a line, its NUL included

// Empty when zeroed.
struct tail {
    char ring[TAIL_MAX];
    size_t len; // bytes ever added
};

void tail_add(struct tail *tail, const char *data, size_t len);
// Copies the last non-empty line, cut to its buffer, with '?' for each byte that is not printable
// ASCII. "" when there is none.
void tail_last_line(const struct tail *tail, char out[static TAIL_LINE_MAX]);

#endif

// The last bytes of a stream, for the one line of it that says why.
#ifndef DAEMON_RUN_TAIL_H
#define DAEMON_RUN_TAIL_H

#include <stddef.h>

#define TAIL_MAX 4096     // bytes kept
#define TAIL_LINE_MAX 256 // bytes of a line, its NUL included

// Zeroed: empty.
struct tail {
    char ring[TAIL_MAX];
    size_t len; // bytes ever added
};

void tail_add(struct tail *tail, const char *data, size_t len);
// The last non-empty line, cut, with '?' for what is not printable; "" when there is none.
void tail_last_line(const struct tail *tail, char out[static TAIL_LINE_MAX]);

#endif

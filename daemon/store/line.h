// A line in front of something that does only a few things at once, such as libuv's threads. Those
// who wait are taken from each caller in turn, and no caller has all places. Pure; runs on the loop
// thread. Called by blob.c. Knows nothing of what is done.
#ifndef DAEMON_STORE_LINE_H
#define DAEMON_STORE_LINE_H

#include <stddef.h>

struct line;
struct line_caller;

// One thing to be done; embedded in what its owner knows of it.
struct line_place {
    struct line *line;
    struct line_caller *caller;
    void (*start)(void *owner);
    void *owner;
    struct line_place *prev;
    struct line_place *next;
};

// At most `max` things at once, and `caller_max` of them of one caller.
struct line *line_create(size_t max, size_t caller_max);
void line_free(struct line *line); // nothing may wait or be under way; NULL is fine
// Calls start(owner) when there is a place for this caller, perhaps before this function returns.
void line_enter(struct line *line, struct line_place *place, const char *caller,
                void (*start)(void *owner), void *owner);
// What was started is done; starts others. The place may be used again or freed.
void line_leave(struct line_place *place);

#endif

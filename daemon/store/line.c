// Design note. The callers that have something waiting are a list. The first one that may start
// something does so and goes to the end of the list.
#include "daemon/store/line.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

// Exists as long as something of it waits or is under way.
struct line_caller {
    char *name;
    struct line_place *waiting; // list, oldest first
    size_t running;
    struct line_caller *prev; // in line->waiting
    struct line_caller *next;
    UT_hash_handle hh;
};

struct line {
    size_t max;
    size_t caller_max;
    size_t running;
    struct line_caller *callers; // by name
    struct line_caller *waiting; // list of those that have something waiting, the next one first
};

struct line *line_create(size_t max, size_t caller_max)
{
    struct line *line = xcalloc(1, sizeof(*line));

    line->max = max;
    line->caller_max = caller_max;
    return line;
}

void line_free(struct line *line)
{
    free(line);
}

static struct line_caller *get_caller(struct line *line, const char *name)
{
    struct line_caller *caller;

    HASH_FIND_STR(line->callers, name, caller);
    if (!caller) {
        caller = xcalloc(1, sizeof(*caller));
        caller->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, line->callers, caller->name, strlen(caller->name), caller);
    }
    return caller;
}

// Starts what may be started. `start` may enter the line again, or leave it.
static void start_next(struct line *line)
{
    struct line_caller *caller = line->waiting;

    while (line->running < line->max && caller) {
        if (caller->running >= line->caller_max) {
            caller = caller->next;
            continue;
        }
        struct line_place *place = caller->waiting;
        DL_DELETE(caller->waiting, place);
        DL_DELETE(line->waiting, caller);
        if (caller->waiting) {
            DL_APPEND(line->waiting, caller);
        }
        caller->running++;
        line->running++;
        place->start(place->owner);
        caller = line->waiting;
    }
}

void line_enter(struct line *line, struct line_place *place, const char *caller_name,
                void (*start)(void *owner), void *owner)
{
    struct line_caller *caller = get_caller(line, caller_name);

    *place = (struct line_place){.line = line, .caller = caller, .start = start, .owner = owner};
    if (!caller->waiting) {
        DL_APPEND(line->waiting, caller);
    }
    DL_APPEND(caller->waiting, place);
    start_next(line);
}

void line_leave(struct line_place *place)
{
    struct line *line = place->line;
    struct line_caller *caller = place->caller;

    line->running--;
    caller->running--;
    if (caller->running == 0 && !caller->waiting) {
        HASH_DEL(line->callers, caller);
        free(caller->name);
        free(caller);
    }
    start_next(line);
}

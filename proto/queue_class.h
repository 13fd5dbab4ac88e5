// The classes of jobs that wait for devices. A client chooses one for its jobs, and the daemon's
// queue treats each class differently.
#ifndef PROTO_QUEUE_CLASS_H
#define PROTO_QUEUE_CLASS_H

#include <stdbool.h>

// Each row: id, name on command lines. On the wire a class is its position in this list.
#define QUEUE_CLASSES(X)                                                                           \
    X(NORMAL, "normal")           /* shared by weight */                                           \
    X(INTERACTIVE, "interactive") /* before the others, for at most a fifth of the time in all */  \
    X(SCAVENGE, "scavenge")       /* only when no other job could start */

#define QUEUE_CLASS_CHOICES "normal|interactive|scavenge" // for an OPTION_CHOICE

enum queue_class {
#define X(id, name) QUEUE_##id,
    QUEUE_CLASSES(X)
#undef X
        QUEUE_CLASS_COUNT
};

// The name of a class, "unknown" for any other value.
const char *queue_class_name(enum queue_class in);
// Finds the class of this name. False, and *ret unchanged, when there is none.
bool queue_class_find(enum queue_class *ret, const char *name);

#endif

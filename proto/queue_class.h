// The classes of jobs that wait for devices, as clients choose them and the daemon's queue keeps
// them apart.
#ifndef PROTO_QUEUE_CLASS_H
#define PROTO_QUEUE_CLASS_H

#include <stdbool.h>

// id, name on command lines; on the wire they are numbered as they stand here.
#define QUEUE_CLASSES(X)                                                                           \
    X(NORMAL, "normal")           /* by weight */                                                  \
    X(INTERACTIVE, "interactive") /* first, on the whole for a fifth of the time at most */        \
    X(SCAVENGE, "scavenge")       /* only where nothing else could begin */

#define QUEUE_CLASS_CHOICES "normal|interactive|scavenge" // of an option

enum queue_class {
#define X(id, name) QUEUE_##id,
    QUEUE_CLASSES(X)
#undef X
        QUEUE_CLASS_COUNT
};

const char *queue_class_name(enum queue_class in); // "unknown" for what is none
// The class of this name. False for unknown ones.
bool queue_class_find(enum queue_class *ret, const char *name);

#endif

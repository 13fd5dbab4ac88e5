#include "proto/queue_class.h"
#include <string.h>

static const char *const class_name[QUEUE_CLASS_COUNT] = {
#define X(id, name) [QUEUE_##id] = (name),
    QUEUE_CLASSES(X)
#undef X
};

const char *queue_class_name(enum queue_class in)
{
    return in < QUEUE_CLASS_COUNT ? class_name[in] : "unknown";
}

bool queue_class_find(enum queue_class *ret, const char *name)
{
    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        if (strcmp(class_name[i], name) == 0) {
            *ret = (enum queue_class)i;
            return true;
        }
    }
    return false;
}

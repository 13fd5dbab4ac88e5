// Design note. uthash keeps the order of insertion. A search that becomes active again is taken out
// of the table and inserted again, so that the first element is the least recently active search.
#include "daemon/state/counters.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

static void drop(struct counters *counters, struct counters_search *search)
{
    HASH_DEL(counters->searches, search);
    free(search->tenant);
    free(search->name);
    free(search->path);
    free(search->problem);
    free(search);
}

void counters_release(struct counters *counters)
{
    while (counters->searches) {
        drop(counters, counters->searches);
    }
}

static void make_room(struct counters *counters)
{
    struct counters_search *oldest = counters->searches;

    if (HASH_COUNT(counters->searches) >= COUNTERS_SEARCHES_MAX) {
        counters->others.device_seconds += oldest->device_seconds;
        counters->others.compile_seconds += oldest->compile_seconds;
        counters->others.measured += oldest->measured;
        drop(counters, oldest);
    }
}

struct counters_search *counters_search(struct counters *counters, const char *tenant,
                                        const char *name)
{
    char *path = xasprintf("%s/%s", tenant, name);
    struct counters_search *search;

    HASH_FIND_STR(counters->searches, path, search);
    if (search) {
        HASH_DEL(counters->searches, search);
        free(path);
    } else {
        make_room(counters);
        search = xcalloc(1, sizeof(*search));
        search->tenant = xstrdup(tenant);
        search->name = xstrdup(name);
        search->path = path;
        search->best[0] = search->best[1] = search->best[2] = NAN;
        search->planned_seconds = NAN;
    }
    HASH_ADD_KEYPTR(hh, counters->searches, search->path, strlen(search->path), search);
    return search;
}

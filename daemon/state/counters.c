// The table of searches is in the order in which they were heard of: uthash keeps the order of
// insertion, and who is heard of again is taken out and put back.
#include "daemon/state/counters.h"
#include "common/mem.h"
#include <stdlib.h>

static void drop(struct counters *counters, struct counters_search *search)
{
    HASH_DEL(counters->searches, search);
    free(search->tenant);
    free(search->name);
    free(search->place);
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
    char *place = xasprintf("%s/%s", tenant, name);
    struct counters_search *search;

    HASH_FIND_STR(counters->searches, place, search);
    if (search) {
        HASH_DEL(counters->searches, search);
        free(place);
    } else {
        make_room(counters);
        search = xcalloc(1, sizeof(*search));
        search->tenant = xstrdup(tenant);
        search->name = xstrdup(name);
        search->place = place;
    }
    HASH_ADD_KEYPTR(hh, counters->searches, search->place, strlen(search->place), search);
    return search;
}

// The table of searches is in the order in which they were heard of: uthash keeps the order of
// insertion, and who is heard of again is taken out and put back.
#include "daemon/tally.h"
#include "common/mem.h"
#include <stdlib.h>

static void drop(struct tally *tally, struct tally_search *search)
{
    HASH_DEL(tally->searches, search);
    free(search->tenant);
    free(search->name);
    free(search->place);
    free(search);
}

void tally_release(struct tally *tally)
{
    while (tally->searches) {
        drop(tally, tally->searches);
    }
}

static void make_room(struct tally *tally)
{
    struct tally_search *oldest = tally->searches;

    if (HASH_COUNT(tally->searches) >= TALLY_SEARCHES_MAX) {
        tally->others.device_seconds += oldest->device_seconds;
        tally->others.compile_seconds += oldest->compile_seconds;
        tally->others.measured += oldest->measured;
        drop(tally, oldest);
    }
}

struct tally_search *tally_search(struct tally *tally, const char *tenant, const char *name)
{
    char *place = xasprintf("%s/%s", tenant, name);
    struct tally_search *search;

    HASH_FIND_STR(tally->searches, place, search);
    if (search) {
        HASH_DEL(tally->searches, search);
        free(place);
    } else {
        make_room(tally);
        search = xcalloc(1, sizeof(*search));
        search->tenant = xstrdup(tenant);
        search->name = xstrdup(name);
        search->place = place;
    }
    HASH_ADD_KEYPTR(hh, tally->searches, search->place, strlen(search->place), search);
    return search;
}

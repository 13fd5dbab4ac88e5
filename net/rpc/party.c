// Design note. A limit is shared by dynamic thresholds (Choudhury and Hahne, IEEE/ACM Transactions
// on Networking 6, 1998): a party may have eight times as much as is left. One alone gets nearly
// everything, and there is always something left for the next one.
#include "net/rpc/service_state.h"

#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_FACTOR 8 // what a party may have for each unit that is left

struct party *party_of_new(struct service *service, const struct stream *stream)
{
    char name[TENANT_MAX + 1];

    if (service->identity.tokens) { // no tenant's name has such a character
        (void)snprintf(name, sizeof(name), "@%.*s", (int)stream_host_len(stream),
                       stream_peer(stream));
        return party_of_tenant(service, name);
    }
    struct party *party = xcalloc(1, sizeof(*party));
    turns_party_init(&party->turns, &service->turns);
    return party;
}

struct party *party_of_tenant(struct service *service, const char *tenant)
{
    struct party *party;

    HASH_FIND_STR(service->parties, tenant, party);
    if (!party) {
        party = xcalloc(1, sizeof(*party));
        turns_party_init(&party->turns, &service->turns);
        party->shared = true;
        (void)snprintf(party->name, sizeof(party->name), "%s", tenant);
        HASH_ADD_STR(service->parties, name, party);
    }
    return party;
}

void party_release(struct service *service, struct party *party)
{
    if (party->uses > 0 || party->exchanges > 0) {
        return;
    }
    if (party->shared) {
        HASH_DEL(service->parties, party);
    }
    turns_party_release(&party->turns);
    free(party);
}

bool party_may_have(size_t used, size_t total, size_t max)
{
    return total < max && used / SHARE_FACTOR < max - total;
}

static void count(size_t *total, size_t *parties, size_t *counted, size_t now)
{
    *total = *total - *counted + now;
    *parties = *parties - *counted + now;
    *counted = now;
}

void party_count_incoming(struct service *service, struct party *party, size_t *counted, size_t now)
{
    bool less = now < *counted;

    count(&service->incoming, &party->incoming, counted, now);
    if (less) {
        serving_released(service);
    }
}

void party_count_unsent(struct service *service, struct party *party, size_t *counted, size_t now)
{
    bool less = now < *counted;

    count(&service->unsent, &party->unsent, counted, now);
    if (less) {
        serving_released(service);
    }
}

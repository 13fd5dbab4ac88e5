// Whose work is next, in two levels: parties (tenants) share a loop's time equally, and within a
// party its members do (connections, and requests whose answer is made in pieces). The one that has
// been charged least goes first, and one that comes back after a pause has no credit for it. So
// whoever asks little is served next, however many others have work waiting. Pure: work is measured
// by the caller. net/rpc/service.c has one of these. Knows no sockets.
#ifndef NET_RPC_TURNS_H
#define NET_RPC_TURNS_H

#include "common/heap.h"
#include <stdbool.h>
#include <stdint.h>

// All parties whose members wait.
struct turns {
    struct heap parties; // those that have a member waiting, by start
    uint64_t start;      // of the party that was chosen last
};

struct turns_party {
    struct turns *turns;
    struct heap members;   // those that wait, by start
    uint64_t member_start; // of the member that was chosen last
    uint64_t start;        // nanoseconds charged, moved on to turns->start after a pause
    size_t index;          // in turns->parties
};

struct turns_member {
    struct turns_party *party;
    uint64_t start; // as in the party
    size_t index;   // in party->members; HEAP_NOT_IN: it does not wait
};

void turns_init(struct turns *turns);
void turns_release(struct turns *turns); // no party may be waiting
void turns_party_init(struct turns_party *party, struct turns *turns);
void turns_party_release(struct turns_party *party); // no member may be waiting
void turns_member_init(struct turns_member *member, struct turns_party *party);

// The member has work. No-op when it waits already.
void turns_wait(struct turns_member *member);
// It has no work any more. No-op when it does not wait.
void turns_leave(struct turns_member *member);
bool turns_is_waiting(const struct turns_member *member);
// Moves a member that does not wait to another party of the same turns.
void turns_move(struct turns_member *member, struct turns_party *party);
// Returns the member whose turn it is, which waits no more. NULL when none waits.
struct turns_member *turns_next(struct turns *turns);
// Charges work that was done for the member, in nanoseconds, whether it waits again or not.
void turns_charge(struct turns_member *member, uint64_t work_ns);
// Charges a party alone, for work of a member that is gone.
void turns_charge_party(struct turns_party *party, uint64_t work_ns);
// Returns whether anybody waits.
bool turns_any(const struct turns *turns);

#endif

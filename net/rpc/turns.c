// Design note. This is start-time fair queueing (Goyal, Vin and Cheng, IEEE/ACM Transactions on
// Networking 5, 1997), once between parties and once within each. The start of an entity is what it
// has been charged. When it begins to wait, its start becomes at least that of the entity that was
// chosen last, so a pause earns no credit and a newcomer is not behind anybody's history.
#include "net/rpc/turns.h"

static bool party_less(const void *a, const void *b)
{
    return ((const struct turns_party *)a)->start < ((const struct turns_party *)b)->start;
}

static void party_set_index(void *item, size_t index)
{
    ((struct turns_party *)item)->index = index;
}

static bool member_less(const void *a, const void *b)
{
    return ((const struct turns_member *)a)->start < ((const struct turns_member *)b)->start;
}

static void member_set_index(void *item, size_t index)
{
    ((struct turns_member *)item)->index = index;
}

void turns_init(struct turns *turns)
{
    turns->start = 0;
    heap_init(&turns->parties, party_less, party_set_index);
}

void turns_release(struct turns *turns)
{
    heap_release(&turns->parties);
}

void turns_party_init(struct turns_party *party, struct turns *turns)
{
    *party = (struct turns_party){.turns = turns, .index = HEAP_NOT_IN};
    heap_init(&party->members, member_less, member_set_index);
}

void turns_party_release(struct turns_party *party)
{
    heap_release(&party->members);
}

void turns_member_init(struct turns_member *member, struct turns_party *party)
{
    *member = (struct turns_member){.party = party, .index = HEAP_NOT_IN};
}

bool turns_is_waiting(const struct turns_member *member)
{
    return member->index != HEAP_NOT_IN;
}

void turns_wait(struct turns_member *member)
{
    struct turns_party *party = member->party;
    struct turns *turns = party->turns;

    if (turns_is_waiting(member)) {
        return;
    }
    member->start = member->start > party->member_start ? member->start : party->member_start;
    heap_insert(&party->members, member);
    if (party->index == HEAP_NOT_IN) {
        party->start = party->start > turns->start ? party->start : turns->start;
        heap_insert(&turns->parties, party);
    }
}

void turns_leave(struct turns_member *member)
{
    struct turns_party *party = member->party;

    if (turns_is_waiting(member)) {
        (void)heap_remove(&party->members, member->index);
        if (party->members.count == 0) {
            (void)heap_remove(&party->turns->parties, party->index);
        }
    }
}

void turns_move(struct turns_member *member, struct turns_party *party)
{
    turns_leave(member);
    member->party = party;
    member->start = 0;
}

struct turns_member *turns_next(struct turns *turns)
{
    struct turns_party *party = heap_top(&turns->parties);

    if (!party) {
        return NULL;
    }
    struct turns_member *member = heap_top(&party->members);
    turns->start = party->start;
    party->member_start = member->start;
    turns_leave(member);
    return member;
}

void turns_charge_party(struct turns_party *party, uint64_t work_ns)
{
    party->start += work_ns;
    if (party->index != HEAP_NOT_IN) {
        heap_rekey(&party->turns->parties, party->index);
    }
}

void turns_charge(struct turns_member *member, uint64_t work_ns)
{
    member->start += work_ns;
    if (turns_is_waiting(member)) {
        heap_rekey(&member->party->members, member->index);
    }
    turns_charge_party(member->party, work_ns);
}

bool turns_any(const struct turns *turns)
{
    return turns->parties.count > 0;
}

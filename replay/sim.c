#include "replay/sim.h"

#include "common/mem.h"
#include <stddef.h>
#include <stdlib.h>

struct event {
    double at;       // simulated seconds
    uint64_t number; // decides between events that are due at the same time
    void (*run)(void *owner, uint64_t tag);
    void *owner;
    uint64_t tag;
};

struct sim {
    double now;
    uint64_t scheduled; // events so far
    struct event *heap; // a binary heap, the earliest first
    size_t count, room;
};

struct sim *sim_create(void)
{
    return xcalloc(1, sizeof(struct sim));
}

void sim_free(struct sim *sim)
{
    if (sim) {
        free(sim->heap);
        free(sim);
    }
}

double sim_now(const struct sim *sim)
{
    return sim->now;
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void sim_after(struct sim *sim, double seconds, void (*run)(void *owner, uint64_t tag), void *owner,
               uint64_t tag)
{
    struct event event = {.at = sim->now + (seconds > 0 ? seconds : 0),
                          .number = sim->scheduled++,
                          .run = run,
                          .owner = owner,
                          .tag = tag};
    size_t at = sim->count++;

    if (sim->count > sim->room) {
        sim->room = sim->room == 0 ? 64 : 2 * sim->room;
        sim->heap = xrealloc(sim->heap, sim->room, sizeof(*sim->heap));
    }
    while (at > 0 && is_before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

bool sim_step(struct sim *sim)
{
    if (sim->count == 0) {
        return false;
    }
    struct event first = sim->heap[0];
    struct event last = sim->heap[--sim->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < sim->count && is_before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (child >= sim->count || is_before(&last, &sim->heap[child])) {
            break;
        }
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    sim->now = first.at;
    first.run(first.owner, first.tag);
    return true;
}

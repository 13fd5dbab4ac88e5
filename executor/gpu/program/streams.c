// Design note. Every launch has a position on its stream, from 1 on. Of each launch is noted how
// many launches of every stream are certain to have ended when it has: those that it comes after,
// those before it on its stream, and what they say. This tells which streams are free for the next
// launch, and which of its waits are needless because another one implies them.
#include "executor/gpu/program/streams.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

struct maker {
    struct stream_plan *plan;
    uint32_t (*ended)[GPU_STREAMS]; // of each launch: as many of every stream have ended with it
    uint32_t length[GPU_STREAMS];   // launches of each stream so far
    size_t tail[GPU_STREAMS];       // the last of them
    size_t wait_room;
};

static bool contains(const uint64_t *list, size_t count, size_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == number) {
            return true;
        }
    }
    return false;
}

static void unite(uint32_t ended[static GPU_STREAMS], const uint32_t other[static GPU_STREAMS])
{
    for (unsigned s = 0; s < GPU_STREAMS; s++) {
        ended[s] = other[s] > ended[s] ? other[s] : ended[s];
    }
}

// Whether the launch has ended, by what is noted.
static bool has_ended(const struct maker *m, const uint32_t ended[static GPU_STREAMS],
                      size_t launch)
{
    unsigned stream = m->plan->step[launch].stream;

    return ended[stream] >= m->ended[launch][stream];
}

// Chooses the stream for a launch that comes after these, and for which all of `before` has ended.
static unsigned choose(const struct maker *m, const struct recorded_node *node,
                       const uint32_t before[static GPU_STREAMS])
{
    unsigned used = m->plan->streams, oldest = 0;

    for (unsigned s = 0; s < used; s++) {
        if (contains(node->after, node->after_count, m->tail[s])) {
            return s;
        }
    }
    for (unsigned s = 0; s < used; s++) {
        if (before[s] == m->length[s]) {
            return s;
        }
        oldest = m->tail[s] < m->tail[oldest] ? s : oldest;
    }
    return used < GPU_STREAMS ? used : oldest;
}

// Whether the launch number `index` of the list need not be waited for on this stream: it is on it,
// has ended before the last launch of it, or stands in the list before; or another one implies it.
static bool is_needless(const struct maker *m, unsigned stream, const uint64_t *after, size_t count,
                        size_t index)
{
    size_t launch = after[index];

    if (contains(after, index, launch) || m->plan->step[launch].stream == stream ||
        (m->length[stream] > 0 && has_ended(m, m->ended[m->tail[stream]], launch))) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        if (after[i] != launch && has_ended(m, m->ended[after[i]], launch)) {
            return true;
        }
    }
    return false;
}

static void add_wait(struct maker *m, struct stream_step *step, size_t wait)
{
    struct stream_plan *plan = m->plan;

    if (plan->wait_count == m->wait_room) {
        m->wait_room = 2 * m->wait_room + 16;
        plan->wait = xrealloc(plan->wait, m->wait_room, sizeof(*plan->wait));
    }
    plan->wait[plan->wait_count++] = wait;
    step->waits++;
}

// Sets what a step waits for that is the next one on its stream and comes after these launches.
static void add_waits(struct maker *m, struct stream_step *step, const uint64_t *after,
                      size_t count)
{
    step->wait = m->plan->wait_count;
    for (size_t i = 0; i < count; i++) {
        if (!is_needless(m, step->stream, after, count, i)) {
            m->plan->step[after[i]].awaited = true;
            add_wait(m, step, after[i]);
        }
    }
    if (step->waits == 0 && step->stream != 0 && m->length[step->stream] == 0) {
        add_wait(m, step, STREAM_BEGIN);
        m->plan->begins_apart = true;
    }
}

static void add_launch(struct maker *m, const struct recorded_node *node, size_t number)
{
    struct stream_plan *plan = m->plan;
    struct stream_step *step = &plan->step[number];
    uint32_t *ended = m->ended[number];

    for (size_t i = 0; i < node->after_count; i++) {
        unite(ended, m->ended[node->after[i]]);
    }
    unsigned s = step->stream = choose(m, node, ended);
    add_waits(m, step, node->after, node->after_count);
    if (m->length[s] > 0) {
        unite(ended, m->ended[m->tail[s]]);
        step->follows_one = node->after_count == 1 && node->after[0] == m->tail[s];
    }
    plan->streams = s < plan->streams ? plan->streams : s + 1;
    m->tail[s] = number;
    ended[s] = ++m->length[s];
}

void stream_plan_make(struct stream_plan *ret, const struct recorded_case *of)
{
    struct maker m = {.plan = ret};
    uint64_t tail[GPU_STREAMS];

    *ret = (struct stream_plan){.count = of->nodes_count};
    ret->step = xcalloc(ret->count + 1, sizeof(*ret->step));
    m.ended = xcalloc(ret->count + 1, sizeof(*m.ended));
    for (size_t i = 0; i < ret->count; i++) {
        add_launch(&m, &of->nodes[i], i);
    }
    for (unsigned s = 0; s < ret->streams; s++) {
        tail[s] = m.tail[s];
    }
    add_waits(&m, &ret->step[ret->count], tail, ret->streams);
    free(m.ended);
}

void stream_plan_release(struct stream_plan *plan)
{
    free(plan->step);
    free(plan->wait);
    *plan = (struct stream_plan){.streams = 0};
}

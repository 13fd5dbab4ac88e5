// Whether a plan of streams (executor/gpu/program/streams.h) keeps the order of a recording. It
// does what the plan says with streams and events that only note what is certain to have ended. For
// a test and a fuzz target, which has nothing of tests/support linked with it, so it is a header
// only.
#ifndef TESTS_SUPPORT_STREAM_PLAN_CHECK_H
#define TESTS_SUPPORT_STREAM_PLAN_CHECK_H

#include "executor/gpu/program/streams.h"
#include <string.h>

#define PLAN_CHECK_MAX 64 // launches of a recording that is checked

// What is certain to have ended: the begin of the run and launches, a bit each.
struct plan_ended {
    bool begin;
    uint64_t launches;
};

static inline struct plan_ended plan_both(struct plan_ended a, struct plan_ended b)
{
    return (struct plan_ended){.begin = a.begin || b.begin, .launches = a.launches | b.launches};
}

// What has ended when a step begins. False: it waits for an event that is not recorded before it.
static inline bool plan_wait(const struct stream_plan *plan, size_t number,
                             const struct plan_ended *with, struct plan_ended *ended)
{
    const struct stream_step *step = &plan->step[number];

    for (size_t i = 0; i < step->waits; i++) {
        size_t wait = plan->wait[step->wait + i];

        if (wait == STREAM_BEGIN ? !plan->begins_apart
                                 : wait >= number || !plan->step[wait].awaited) {
            return false;
        }
        *ended = plan_both(*ended,
                           wait == STREAM_BEGIN ? (struct plan_ended){.begin = true} : with[wait]);
    }
    return true;
}

// Returns what is wrong with the plan, NULL when nothing is: each launch begins after the run has
// and after all that the recording says, and all have ended when the run has.
static inline const char *plan_fault(const struct recorded_case *of, const struct stream_plan *plan)
{
    struct plan_ended stream[GPU_STREAMS] = {{.begin = true}}, with[PLAN_CHECK_MAX];
    uint64_t tail[GPU_STREAMS] = {0}, all = 0;

    for (size_t i = 0; i < plan->count; i++) {
        const struct stream_step *step = &plan->step[i];
        const struct recorded_node *node = &of->nodes[i];
        struct plan_ended ended = step->stream < GPU_STREAMS ? stream[step->stream] : stream[0];

        if (step->stream >= plan->streams || plan->streams > GPU_STREAMS) {
            return "a launch is on a stream that there is not";
        }
        if (!plan_wait(plan, i, with, &ended)) {
            return "a launch waits for what never comes";
        }
        if (!ended.begin) {
            return "a launch may begin before the run";
        }
        for (size_t k = 0; k < node->after_count; k++) {
            if ((ended.launches >> node->after[k] & 1) == 0) {
                return "a launch may begin before one that it comes after has ended";
            }
        }
        if (step->follows_one &&
            (step->waits > 0 || tail[step->stream] != (uint64_t)1 << node->after[0])) {
            return "a launch does not follow the one before it on its stream";
        }
        tail[step->stream] = (uint64_t)1 << i;
        all |= (uint64_t)1 << i;
        ended.launches |= (uint64_t)1 << i;
        stream[step->stream] = with[i] = ended;
    }
    if (plan->step[plan->count].stream != 0 || !plan_wait(plan, plan->count, with, &stream[0])) {
        return "the end waits for what never comes";
    }
    return stream[0].launches == all ? NULL : "the run may end before a launch";
}

#endif

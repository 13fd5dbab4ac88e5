// Which launch of a recording is queued on which stream, and what it waits for there: so what
// overlapped when it was recorded may overlap when it is replayed. executor/gpu/program makes a
// plan for each case and queues by it. Pure.
//
// A recording is a graph: each node lists the earlier ones that it comes after. A node is queued
// behind one of those where that one is the last on its stream; else on a stream all of whose
// launches have ended by then, or on one that has none; else, when there is no stream left, behind
// what was queued first. What it comes after on other streams it waits for by events. So launches
// that nothing orders are on different streams unless GPU_STREAMS are busy with others. When they
// do overlap is the GPU's choice, as it is without a recording.
#ifndef EXECUTOR_GPU_PROGRAM_STREAMS_H
#define EXECUTOR_GPU_PROGRAM_STREAMS_H

#include "executor/gpu/gpu.h"

#define STREAM_BEGIN SIZE_MAX // a wait for the begin of the run instead of a launch

// One launch, or the end of the run.
struct stream_step {
    unsigned stream;  // 0: the stream on which a run begins and ends
    size_t wait;      // the first of its waits, in the plan's list
    size_t waits;     // how many it has
    bool awaited;     // a step on another stream waits for its end
    bool follows_one; // it comes after the launch before it on its stream, and after nothing else
};

struct stream_plan {
    unsigned streams;         // as many are used; 1: all launches follow each other
    bool begins_apart;        // a step waits for STREAM_BEGIN
    size_t count;             // launches
    struct stream_step *step; // owned; of each launch, in the order of the recording, and of the
                              // end, which is on stream 0
    size_t *wait;             // owned; numbers of launches before the step, or STREAM_BEGIN
    size_t wait_count;
};

// Overwrites *ret with the plan for the nodes of a case that recording_check has passed.
// stream_plan_release frees it. Whoever queues the launches in their order, has the stream of each
// step wait for what the step waits for before it, and has the end wait likewise, runs every node
// after all that it comes after, begins none before the run has begun, and ends the run after the
// last. One stream is used exactly when each node comes after the one before it.
void stream_plan_make(struct stream_plan *ret, const struct recorded_case *of);
// An empty plan, and one that is released, are all zero.
void stream_plan_release(struct stream_plan *plan);

#endif

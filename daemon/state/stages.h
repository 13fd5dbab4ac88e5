// Where the time of searches went, as their daemon sees it: at each moment a search is in one
// stage, that of its most advanced job. job.c says when jobs change their states, status.c reads
// the seconds. A search that has no jobs any more is remembered, so that the time until its next
// job is counted, too. This module knows nothing of what is in a job; time comes in.
#ifndef DAEMON_STATE_STAGES_H
#define DAEMON_STATE_STAGES_H

#include "proto/verdict.h"
#include <stdint.h>

#define STAGES_SEARCHES_MAX 256 // searches that are remembered, unless more have jobs

// The first of these that applies.
enum search_stage {
    STAGE_MEASURING, // a device is held for one of its jobs
    STAGE_WAITING,   // one of its jobs is compiled and waits for a device
    STAGE_COMPILING, // one of its jobs is being compiled, or next for a compile slot
    STAGE_QUEUED,    // one of its jobs waits to be compiled
    STAGE_AWAY, // it has no unfinished job here: its client proposes, forecasts or is elsewhere
    STAGE_COUNT
};

struct stages; // of one search

struct stage_table {
    struct stages *searches; // by path; who lost its last job longest ago is before the others
};

// Frees everything in the table. The struct itself belongs to the caller.
void stage_table_release(struct stage_table *table);
// The search of this path ("tenant/name") has jobs from now on. Remembers it, or makes a new one.
// What is returned stays valid until stages_leave.
struct stages *stages_enter(struct stage_table *table, const char *path);
// It has no jobs any more. When there is no room the one that left first is forgotten.
void stages_leave(struct stage_table *table, struct stages *stages);
// A job of the search went from one state to another at this monotonic time. JOB_STATE_COUNT as
// from: it is new; as to: it is removed.
void stages_move(struct stages *stages, enum job_state from, enum job_state to, uint64_t now_ns);
// Sets ret to the seconds that the search was in each stage since its first unfinished job, up to
// now or, without unfinished jobs, up to the end of the last one. All are 0 for a search that is
// not known.
void stages_seconds(const struct stage_table *table, const char *path, uint64_t now_ns,
                    double ret[STAGE_COUNT]);

#endif

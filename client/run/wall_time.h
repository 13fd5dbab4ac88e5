// Where the wall time of a search went. Its stages overlap, so its time at work is divided by what
// it waited for: at each moment it is in one part, the first in WALL_PARTS that applies. The parts
// sum to run_state.wall_seconds. Beside them the seconds that the stages took, which overlap. Pure,
// like the run state that it reads.
#ifndef CLIENT_RUN_WALL_TIME_H
#define CLIENT_RUN_WALL_TIME_H

#include "client/run/run_state.h"

// Each row: id, name in JSON, name for people.
#define WALL_PARTS(X)                                                                              \
    X(NOT_RECORDED, "not_recorded", "not recorded") /* by a kcast that recorded no times */        \
    X(START_UP, "start_up", "start-up")             /* before its first SUBMIT */                  \
    X(MEASURING, "measuring", "measuring")          /* a device is held for one of its jobs */     \
    X(WAITING, "waiting_device", "waiting for a device")  /* one of its jobs is ready for one */   \
    X(COMPILING, "compiling", "compiling")                /* one of its jobs is in preparation */  \
    X(QUEUED, "waiting_daemon", "waiting for the daemon") /* one of its jobs has no answer yet */  \
    X(FORECASTING, "forecasting", "forecasting")          /* the worker forecasts or is told */    \
    X(PROPOSING, "proposing", "proposing") /* else: it proposes, decides and records */

enum wall_part {
#define X(id, name, text) WALL_##id,
    WALL_PARTS(X)
#undef X
        WALL_PART_COUNT
};

// "waiting_device", for machines.
const char *wall_part_name(enum wall_part part);
// "waiting for a device", for people.
const char *wall_part_text(enum wall_part part);

// Calls visit for each stretch of one part, in order. begin and end are seconds at work: the pauses
// between sessions are left out, and the first stretch begins at 0. A job that was never answered
// is not counted, since nobody said what became of it.
void wall_time_visit(const struct run_state *run_state,
                     void (*visit)(void *owner, enum wall_part part, double begin, double end),
                     void *owner);
// Sets ret to the seconds of each part.
void wall_time_parts(const struct run_state *run_state, double ret[WALL_PART_COUNT]);
// Whether a session of the run recorded when its jobs reached their states.
bool wall_time_is_recorded(const struct run_state *run_state);

// The seconds that the stages of a search took, by the results that are not from a cache. They
// overlap: several jobs are compiled, wait and are measured at once.
struct work_seconds {
    double asking;      // language models were asked for candidates
    double forecasting; // the worker worked on forecasts
    double compiling;   // compile slots were held
    double queued;      // jobs to be measured waited: to be compiled, and for a device
    double held;        // devices were held; of these:
    double start;       // starting processes, loading
    double inputs;      // inputs and expected outputs
    double verify;
    double time; // timed launches
};
struct work_seconds work_seconds_of(const struct run_state *run_state);

#endif

// The part of the run state that says when: the time at work, what the worker was asked, which
// devices were held. run_state.c alone calls this; client/run/wall_time.h reads what it makes.
#ifndef CLIENT_RUN_RUN_STATE_TIME_H
#define CLIENT_RUN_RUN_STATE_TIME_H

#include "client/run/run_state.h"

// Counts the time at work up to an event that was applied at this time (seconds since 1970), while
// last_at and last_sequence are still those of the event before. Pauses between sessions are not
// time at work, and clocks that jump back are ignored.
void run_state_add_time(struct run_state *run_state, enum run_event_kind kind, double at);
// The worker was busy with a request of the search. A `from` that is NaN or not before `to` is
// ignored; several events of one request are one span.
void run_state_add_worker(struct run_state *run_state, double from, double to);
// Counts a measurement for its device. pool is its daemon, NULL where there was only one.
void run_state_add_run(struct run_state *run_state, const char *pool, const struct result *result);
void run_state_release_time(struct run_state *run_state);

#endif

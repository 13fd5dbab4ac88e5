// JSON objects about a run that both the summary and the report of a search contain.
#ifndef CLIENT_REPORT_RUN_JSON_H
#define CLIENT_REPORT_RUN_JSON_H

#include "client/run/run_state.h"
#include <jansson.h>

// What policy risk promises beforehand: {kind, alpha, delta, threshold, alarms, changes, text};
// null for other policies. threshold is null where none holds. changes counts the changes of the
// threshold. A new reference.
json_t *run_json_guarantee(const struct run_state *run_state);
// What each forecaster has shown (client/policy/trust.h), the latest change last; an empty array
// where nothing was recorded.
json_t *run_json_trust(const struct run_state *run_state);

// What is said of everything that was never measured (client/policy/guarantee.h): {unmeasured,
// forecast, none_faster_than (a ratio; null: nothing is said), estimate (as before, not rounded up
// to 5 %), confidence, text}; null without a survey. A new reference.
json_t *run_json_left(const struct run_state *run_state);

// The play-off (client/policy/play_off.h): {candidates: [{candidate, place, games, over_leader,
// interval}], games, over, winner, reason (why it ended early), device_seconds, device_seconds_max,
// text}; null without one. A new reference.
json_t *run_json_play_off(const struct run_state *run_state);

// What each generator of the search contributed and cost (client/policy/allocation.h), in the order
// of their names. A new reference.
json_t *run_json_generators(const struct run_state *run_state);

// Where the wall time of the search went: {recorded, and the seconds of each part}
// (client/run/wall_time.h). The parts are null when no session recorded them. A new reference.
json_t *run_json_wall(const struct run_state *run_state);
// The seconds that the stages took, which overlap. A new reference.
json_t *run_json_work(const struct run_state *run_state);
// The devices that were held: [{pool, device, runs, held_seconds, utilisation}], where utilisation
// is the part of the wall time. A new reference.
json_t *run_json_devices(const struct run_state *run_state);

#endif

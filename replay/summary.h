// What many replays say together: a table per space, and each variant against the first, the control
// (replay/compare.h).
#ifndef REPLAY_SUMMARY_H
#define REPLAY_SUMMARY_H

#include "replay/tasks.h"
#include <stdio.h>

void summary_print(const struct tasks *tasks, const struct player_outcome *outcome, FILE *out);
// One JSON object per search and line.
void summary_json(const struct tasks *tasks, const struct player_outcome *outcome, FILE *out);

#endif

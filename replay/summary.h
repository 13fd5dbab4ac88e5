// Prints the outcomes of many replays as text or JSON: a table of every space, and each variant
// against the first one, which is the control (replay/compare.h). replay/main.c is the only caller.
#ifndef REPLAY_SUMMARY_H
#define REPLAY_SUMMARY_H

#include "replay/tasks.h"
#include <stdio.h>

void summary_print(const struct tasks *tasks, const struct search_outcome *outcome, FILE *out);
// Prints one JSON object per search, each on a line of its own.
void summary_json(const struct tasks *tasks, const struct search_outcome *outcome, FILE *out);

#endif

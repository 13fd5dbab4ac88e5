// The tables of docs/evaluation.md.
#ifndef REPLAY_SUMMARY_MARKDOWN_H
#define REPLAY_SUMMARY_MARKDOWN_H

#include "replay/arms.h"
#include "replay/tasks.h"
#include <stdio.h>

// What each arm found on each space; then, for each of against, every other arm compared with it.
void summary_markdown(const struct tasks *tasks, const struct player_outcome *outcome,
                      const struct against *against, FILE *out);

#endif

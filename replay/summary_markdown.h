// The tables of docs/evaluation.md.
#ifndef REPLAY_SUMMARY_MARKDOWN_H
#define REPLAY_SUMMARY_MARKDOWN_H

#include "replay/tasks.h"
#include "replay/variants.h"
#include <stdio.h>

// What each variant found on each space; then, for each of against, every other variant compared with it.
void summary_markdown(const struct tasks *tasks, const struct player_outcome *outcome,
                      const struct against *against, FILE *out);

#endif

// Prints the outcomes of many replays as the Markdown tables of docs/evaluation.md. replay/main.c
// is the only caller outside of tests.
#ifndef REPLAY_SUMMARY_MARKDOWN_H
#define REPLAY_SUMMARY_MARKDOWN_H

#include "replay/tasks.h"
#include "replay/variants.h"
#include <stdio.h>

// Prints what each variant found on each space; then, for each variant of against, a table that
// compares every other variant with it.
void summary_markdown(const struct tasks *tasks, const struct search_outcome *outcome,
                      const struct against *against, FILE *out);

#endif

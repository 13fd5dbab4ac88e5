// Prints the outcomes of many replays as text or JSON: a table of every space, and each variant
// against the first one, which is the control (replay/compare.h). replay/main.c calls this, and
// replay/summary_markdown.c for the warnings.
#ifndef REPLAY_SUMMARY_H
#define REPLAY_SUMMARY_H

#include "replay/tasks.h"
#include <stdbool.h>
#include <stdio.h>

void summary_print(const struct tasks *tasks, const struct search_outcome *outcome, FILE *out);
// Prints one JSON object per search, each on a line of its own.
void summary_json(const struct tasks *tasks, const struct search_outcome *outcome, FILE *out);
// Prints a sentence for each space whose costs are not those of measuring, in parentheses or as a
// paragraph of Markdown. Both kinds of tables have them; objects of such a space have
// "launch_costs", the number of candidates that it is about.
void summary_print_cost_warnings(const struct tasks *tasks, bool markdown, FILE *out);

#endif

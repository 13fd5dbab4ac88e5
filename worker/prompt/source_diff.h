// The lines in which one source differs from another, as text for prompts. Called by the writers of
// prompts. Pure.
#ifndef WORKER_PROMPT_SOURCE_DIFF_H
#define WORKER_PROMPT_SOURCE_DIFF_H

#include "common/strbuf.h"
#include "proto/messages.h"
#include <stdbool.h>

#define SOURCE_DIFF_LINES_MAX 1500 // of each of the two sources; longer ones are not compared

// Appends, in the order of the sources, "- LINE" for each line that only `from` has and "+ LINE"
// for each that only `to` has, so that the fewest lines are named; between changes that do not
// follow each other stands a line "@ N", the number of the next line of `from`, from 1. Lines are
// compared byte by byte. Appends nothing when they are equal. False, and nothing is appended, when
// one of them has more than SOURCE_DIFF_LINES_MAX lines.
bool source_diff(struct strbuf *out, const struct bytes *from, const struct bytes *to);

#endif

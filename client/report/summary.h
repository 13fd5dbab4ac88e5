// The end of a search as the user sees it: one line on stderr, and on stdout a short table or, with
// --json, one object. Called by the commands that search.
#ifndef CLIENT_REPORT_SUMMARY_H
#define CLIENT_REPORT_SUMMARY_H

#include "client/run/run_state.h"
#include "client/session.h"

// Prints the summary. path names the run file. Returns the exit code, which is EXIT_NEGATIVE when
// no candidate was correct.
int summary_print(const struct session_options *options, const struct run_state *run_state,
                  const char *path);
// Says on stderr, after a search ended early, that everything is kept and how to go on.
void summary_print_resume(const struct session_options *options, const char *path);

#endif

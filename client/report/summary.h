// What a search ends with: one line on stderr, and on stdout a short table or, with --json, one
// object.
#ifndef CLIENT_REPORT_SUMMARY_H
#define CLIENT_REPORT_SUMMARY_H

#include "client/run/run_state.h"
#include "client/session.h"

// Prints it. path: of the run file. Returns the exit code: EXIT_NEGATIVE when no candidate was
// correct.
int summary_print(const struct session_options *options, const struct run_state *run_state,
                  const char *path);
// After a search ended early: says on stderr that everything is kept and how to go on.
void summary_print_resume(const struct session_options *options, const char *path);

#endif

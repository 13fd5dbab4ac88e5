// A subcommand of kcast: one file cmd_<name>.c with one const struct command. main.c finds it, parses its options and runs it.
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "common/err.h"
#include "common/options.h"
#include <stdbool.h>

struct session; // client/session.h: pool, worker, --local

struct command {
    const char *name;                // "search", "problem check"
    const char *arguments;           // "PROBLEM", "RUN", for --help
    const char *help;                // one sentence
    const struct option_row *option; // ends with a NULL name; NULL when there are none
    size_t options_size;             // of the struct that the rows fill
    size_t argument_min, argument_max;
    const char *program; // which does it, with all that follows on the command line; NULL: run does
    // Returns an exit code. On failure err holds the sentence, which main prints to stderr.
    // options: filled struct; argument[0..count).
    int (*run)(struct session *session, const void *options, char **argument, size_t count,
               struct err *err);
};

extern const struct command cmd_search, cmd_resume, cmd_tune, cmd_wisdom, cmd_measure, cmd_forecast,
    cmd_status, cmd_jobs, cmd_job, cmd_cancel, cmd_drain, cmd_undrain, cmd_quarantine, cmd_probe,
    cmd_top, cmd_budget, cmd_budget_set, cmd_report, cmd_export, cmd_import, cmd_replay, cmd_eval,
    cmd_problem_list, cmd_problem_check, cmd_problem_new, cmd_token_add, cmd_token_revoke,
    cmd_token_list, cmd_tls_init;

#endif

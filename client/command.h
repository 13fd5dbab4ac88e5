// A subcommand of kcast. Each is a file client/cmd/cmd_<name>.c with one const struct command.
// client/main.c finds it, parses its options and runs it.
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include "common/err.h"
#include "common/options.h"
#include <stdbool.h>

struct session; // client/session.h

struct command {
    const char *name;                // "search", "problem check"
    const char *arguments;           // for --help: "PROBLEM", "RUN"
    const char *help;                // one sentence
    const struct option_row *option; // ends with a NULL name; NULL: no options
    size_t options_size;             // size of the struct that the rows fill
    size_t argument_min, argument_max;
    // Another program that carries the command out, with the rest of the command line. NULL: run
    // does.
    const char *program;
    // Carries the command out and returns an exit code. options is the filled struct; argument has
    // count entries. On failure err holds the sentence that main prints to stderr.
    int (*run)(struct session *session, const void *options, char **argument, size_t count,
               struct err *err);
};

extern const struct command cmd_search, cmd_resume, cmd_tune, cmd_wisdom, cmd_measure, cmd_forecast,
    cmd_status, cmd_jobs, cmd_job, cmd_cancel, cmd_drain, cmd_undrain, cmd_quarantine, cmd_probe,
    cmd_top, cmd_budget, cmd_budget_set, cmd_report, cmd_export, cmd_import, cmd_replay, cmd_eval,
    cmd_problem_list, cmd_problem_check, cmd_problem_new, cmd_token_add, cmd_token_revoke,
    cmd_token_list, cmd_tls_init, cmd_help;

#endif

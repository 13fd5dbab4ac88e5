// kcast jobs: what waits and runs at the daemon; with numbers, those jobs in whatever state they
// are.
#include "client/command.h"
#include "client/job_table.h"
#include "client/session.h"
#include "client/share_table.h"
#include <stdlib.h>

#define STATUS_MS 10000

struct jobs_options {
    char *search;
};

static const struct option_row rows[] = {
    {"search", 0, OPTION_TEXT, offsetof(struct jobs_options, search), "NAME", NULL, 0, 0, NULL,
     "all jobs of this search, finished ones too"},
    {0},
};

static int run_jobs(struct session *session, const void *own, char **argument, size_t count,
                    struct err *err)
{
    const struct jobs_options *options = own;
    struct remote *pool;
    struct status status;
    struct status_request request = {.search = options->search, .jobs_count = count};
    request.all = count == 0 && options->search == NULL;
    int code = job_table_parse(&request.jobs, argument, count, err);
    if (code == 0) {
        code = session_pool(session, &pool, err);
    }
    if (code == 0) {
        code = remote_call_sync(pool, OP_STATUS, &status_request_message, &request, &status_message,
                                &status, STATUS_MS, err);
    }
    if (code == 0) {
        job_table_print(status.jobs, status.jobs_count, session_options(session)->json);
        if (request.all && !session_options(session)->json) {
            share_table_print(status.shares, status.shares_count);
        }
        message_clear(&status_message, &status);
    }
    free(request.jobs);
    return code == 0 ? EXIT_OK : err_exit(code);
}

const struct command cmd_jobs = {
    .name = "jobs",
    .arguments = "[JOB…]",
    .help = "List jobs that are not finished, or the named ones",
    .option = rows,
    .options_size = sizeof(struct jobs_options),
    .argument_max = 4096,
    .run = run_jobs,
};

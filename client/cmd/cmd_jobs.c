// kcast jobs: lists the unfinished jobs of every daemon or, when numbers are given, those jobs in
// whatever state they are.
#include "client/cmd/daemon_call.h"
#include "client/cmd/tables/job_list.h"
#include "client/cmd/tables/share_table.h"
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"
#include <stdio.h>

#define STATUS_MS 10000

struct jobs_options {
    char *search;
};

static const struct option_row rows[] = {
    {"search", 0, OPTION_TEXT, offsetof(struct jobs_options, search), "NAME", NULL, 0, 0, NULL,
     "all jobs of this search, finished ones too"},
    {0},
};

static int show_jobs(const struct daemons *daemons, const struct daemon_link *link,
                     const struct status_request *request, bool json, struct err *err)
{
    struct status status;
    int rc = daemon_call(link, OP_STATUS, &status_request_message, request, &status_message,
                         &status, STATUS_MS, err);
    if (rc == 0) {
        rc = job_list_all_there(link->url, request->jobs, request->jobs_count, status.jobs,
                                status.jobs_count, err);
        if (rc == 0 || status.jobs_count > 0) {
            job_list_print(daemons->several ? link->url : NULL, status.jobs, status.jobs_count,
                           json);
        }
        if (request->all && !json) {
            share_table_print(status.shares, status.shares_count);
        }
        message_clear(&status_message, &status);
    }
    return rc;
}

// Shows the jobs of every daemon that is concerned, also after a failure.
static int show_all(const struct daemons *daemons, const struct job_ids *ids, const char *search,
                    bool named, bool json, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < daemons->count; i++) {
        struct err why = ERR_INIT;
        // The cast drops const; the request is only packed.
        struct status_request request = {.search = (char *)(uintptr_t)search,
                                         .jobs = ids[i].jobs,
                                         .jobs_count = ids[i].jobs_count,
                                         .all = !named && !search};
        if ((!named || search || request.jobs_count > 0) &&
            show_jobs(daemons, &daemons->link[i], &request, json, &why) != 0) {
            daemon_call_failed(&rc, &why, err);
        }
    }
    return rc;
}

static int run_jobs(struct session *session, const void *own, char **argument, size_t count,
                    struct err *err)
{
    const struct jobs_options *options = own;
    struct daemons daemons = {0};
    struct job_ids *ids = NULL;
    int rc = job_list_check(argument, count, err);
    if (rc != 0) {
        goto out;
    }
    rc = daemons_connect(&daemons, session, err);
    if (rc != 0) {
        goto out;
    }
    rc = job_list_sort(&ids, &daemons, argument, count, err);
    if (rc != 0) {
        goto out;
    }
    rc = show_all(&daemons, ids, options->search, count > 0, session_options(session)->json, err);
out:
    job_list_free(ids, daemons.count);
    daemons_release(&daemons);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_jobs = {
    .name = "jobs",
    .arguments = "[JOB…]",
    .help = "List jobs that are not finished, or the named ones; with several daemons "
            "HOST:PORT/JOB",
    .option = rows,
    .options_size = sizeof(struct jobs_options),
    .argument_max = 4096,
    .run = run_jobs,
};

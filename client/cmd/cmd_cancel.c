// kcast cancel: stops jobs. To cancel a finished job changes nothing and shows its state.
#include "client/cmd/daemon_call.h"
#include "client/cmd/tables/job_list.h"
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"
#include <stdio.h>

#define CANCEL_MS 15000

struct cancel_options {
    char *search;
};

static const struct option_row rows[] = {
    {"search", 0, OPTION_TEXT, offsetof(struct cancel_options, search), "NAME", NULL, 0, 0, NULL,
     "all jobs of this search"},
    {0},
};

static int cancel(const struct daemons *daemons, const struct daemon_link *link,
                  const struct job_ids *ids, bool json, struct err *err)
{
    struct job_infos infos;
    int rc = daemon_call(link, OP_CANCEL, &job_ids_message, ids, &job_infos_message, &infos,
                         CANCEL_MS, err);
    if (rc == 0) {
        rc = job_list_all_there(link->url, ids->jobs, ids->jobs_count, infos.jobs, infos.jobs_count,
                                err);
        if (rc == 0 || infos.jobs_count > 0) {
            job_list_print(daemons->several ? link->url : NULL, infos.jobs, infos.jobs_count, json);
        }
        message_clear(&job_infos_message, &infos);
    }
    return rc;
}

// Cancels at every daemon that is concerned, also after a failure.
static int cancel_all(const struct daemons *daemons, struct job_ids *ids, char *search, bool json,
                      struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < daemons->count; i++) {
        ids[i].search = search;
        struct err why = ERR_INIT;
        if ((ids[i].jobs_count > 0 || search) &&
            cancel(daemons, &daemons->link[i], &ids[i], json, &why) != 0) {
            daemon_call_failed(&rc, &why, err);
        }
    }
    return rc;
}

static int run_cancel(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    const struct cancel_options *options = own;
    struct daemons daemons = {0};
    struct job_ids *ids = NULL;
    if (count == 0 && !options->search) {
        return err_exit(err_set(err, ERR_USAGE, "`kcast cancel` needs job numbers or --search"));
    }
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
    rc = cancel_all(&daemons, ids, options->search, session_options(session)->json, err);
out:
    job_list_free(ids, daemons.count);
    daemons_release(&daemons);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_cancel = {
    .name = "cancel",
    .arguments = "[JOB…]",
    .help = "Stop jobs, wherever they are; with several daemons HOST:PORT/JOB",
    .option = rows,
    .options_size = sizeof(struct cancel_options),
    .argument_max = 4096,
    .run = run_cancel,
};

// kcast cancel: stops jobs. Cancelling a finished job changes nothing and shows its state.
#include "client/command.h"
#include "client/job_table.h"
#include "client/session.h"
#include <stdlib.h>

#define CANCEL_MS 15000

struct cancel_options {
    char *search;
};

static const struct option_row rows[] = {
    {"search", 0, OPTION_TEXT, offsetof(struct cancel_options, search), "NAME", NULL, 0, 0, NULL,
     "all jobs of this search"},
    {0},
};

static int run_cancel(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    const struct cancel_options *options = own;
    struct remote *pool;
    struct job_infos infos;
    struct job_ids ids = {.search = options->search, .jobs_count = count};
    if (count == 0 && options->search == NULL) {
        return err_exit(err_set(err, ERR_USAGE, "`kcast cancel` needs job numbers or --search"));
    }
    int code = job_table_parse(&ids.jobs, argument, count, err);
    if (code == 0) {
        code = session_pool(session, &pool, err);
    }
    if (code == 0) {
        code = remote_call_sync(pool, OP_CANCEL, &job_ids_message, &ids, &job_infos_message, &infos,
                                CANCEL_MS, err);
    }
    if (code == 0) {
        job_table_print(infos.jobs, infos.jobs_count, session_options(session)->json);
        message_clear(&job_infos_message, &infos);
    }
    free(ids.jobs);
    return code == 0 ? EXIT_OK : err_exit(code);
}

const struct command cmd_cancel = {
    .name = "cancel",
    .arguments = "[JOB…]",
    .help = "Stop jobs, wherever they are",
    .option = rows,
    .options_size = sizeof(struct cancel_options),
    .argument_max = 4096,
    .run = run_cancel,
};

// kcast resume: continues a run that was interrupted, was killed, or lost its daemons.
#include "client/command.h"
#include "client/report/summary.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/search/job_times.h"
#include "client/search/search.h"
#include "client/session.h"

static int run_resume(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)own;
    (void)count;
    struct run_state run_state;
    run_state_init(&run_state);
    double began_at = job_times_now();
    struct run *run = NULL;
    int exit_code = EXIT_OK;
    int rc = run_open(&run, argument[0], err);
    session_warn(run ? run_warning(run) : NULL);
    if (rc != 0) {
        goto out;
    }
    rc = run_state_read(&run_state, run, err);
    if (rc != 0) {
        goto out;
    }
    if (run_state.last_sequence == 0) {
        rc = err_set(err, ERR_CORRUPT, "%s holds no events", argument[0]);
        goto out;
    }
    if (!run_state.finished) {
        rc = search_drive(session, run, &run_state, began_at, err);
        if (rc != 0) {
            summary_print_resume(session_options(session), argument[0]);
            goto out;
        }
    }
    exit_code = summary_print(session_options(session), &run_state, argument[0]);
out:
    run_close(run);
    run_state_release(&run_state);
    return rc == 0 ? exit_code : err_exit(rc);
}

const struct command cmd_resume = {
    .name = "resume",
    .arguments = "RUN",
    .help = "Go on with a search where it stopped",
    .argument_min = 1,
    .argument_max = 1,
    .run = run_resume,
};

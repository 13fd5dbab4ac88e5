// kcast resume: goes on with a run that was interrupted, killed, or cut off from its daemon.
#include "client/command.h"
#include "client/report/summary.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/search/search.h"
#include "client/session.h"

static int run_resume(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)own;
    (void)count;
    struct run_state run_state;
    run_state_init(&run_state);
    struct run *run = NULL;
    int code = run_open(&run, argument[0], err);
    if (code == 0) {
        code = run_state_read(&run_state, run, err);
    }
    if (code == 0 && run_state.last_sequence == 0) {
        code = err_set(err, ERR_CORRUPT, "%s holds no events", argument[0]);
    }
    if (code == 0 && !run_state.finished) {
        code = search_drive(session, run, &run_state, err);
        if (code != 0) {
            summary_print_resume(session_options(session), argument[0]);
        }
    }
    int rc = code == 0 ? summary_print(session_options(session), &run_state, argument[0])
                       : err_exit(code);
    run_close(run);
    run_state_release(&run_state);
    return rc;
}

const struct command cmd_resume = {
    .name = "resume",
    .arguments = "RUN",
    .help = "Go on with a search where it stopped",
    .argument_min = 1,
    .argument_max = 1,
    .run = run_resume,
};

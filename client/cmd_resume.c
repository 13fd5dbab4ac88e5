// kcast resume: goes on with a run that was interrupted, killed, or cut off from its daemon.
#include "client/command.h"
#include "client/fold.h"
#include "client/run.h"
#include "client/search.h"
#include "client/session.h"
#include "client/summary.h"

static int run_resume(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    struct run *run = NULL;
    struct fold fold;
    int status;
    (void)own;
    (void)count;
    fold_init(&fold);
    int code = run_open(&run, argument[0], err);
    if (code == 0) {
        code = fold_run(&fold, run, err);
    }
    if (code == 0 && fold.last_sequence == 0) {
        code = err_set(err, ERR_CORRUPT, "%s holds no events", argument[0]);
    }
    if (code == 0 && !fold.finished) {
        code = search_drive(session, run, &fold, err);
        if (code != 0) {
            summary_print_resume(session_options(session), argument[0]);
        }
    }
    status =
        code == 0 ? summary_print(session_options(session), &fold, argument[0]) : err_exit(code);
    run_close(run);
    fold_release(&fold);
    return status;
}

const struct command cmd_resume = {
    .name = "resume",
    .arguments = "RUN",
    .help = "Go on with a search where it stopped",
    .argument_min = 1,
    .argument_max = 1,
    .run = run_resume,
};

// kcast resume: continues a run that was interrupted, was killed, or lost its daemons, or one that
// has ended and is given more.
#include "client/cmd/event_print.h"
#include "client/command.h"
#include "client/report/summary.h"
#include "client/run/run.h"
#include "client/run/run_extend.h"
#include "client/run/run_state.h"
#include "client/search/job_times.h"
#include "client/search/pipeline.h"
#include "client/search/search.h"
#include "client/session.h"
#include "common/clock.h"

struct resume_options {
    uint64_t budget_ns, max_time_ns, measurements, candidates;
    double target;
};

static const struct option_row rows[] = {
    {"budget", 'b', OPTION_DURATION, offsetof(struct resume_options, budget_ns), "TIME", NULL, 0, 0,
     NULL,
     "device time for the whole search, with what it has used; a search that has ended goes on; "
     "default: as it began"},
    {"measurements", 'm', OPTION_U64, offsetof(struct resume_options, measurements), "N", NULL, 0,
     0, NULL, "the same for measurements"},
    {"candidates", 'n', OPTION_U64, offsetof(struct resume_options, candidates), "N", NULL, 0, 0,
     NULL, "the same for candidates to consider"},
    {"max-time", 0, OPTION_DURATION, offsetof(struct resume_options, max_time_ns), "TIME", NULL, 0,
     0, NULL, "the same for the time in all"},
    {"target", 0, OPTION_F64, offsetof(struct resume_options, target), "X", NULL, RUN_TARGET_LEAST,
     RUN_TARGET_MOST, NULL,
     "stop when a record is X times as fast as the baseline; default: as it began, unless the "
     "search has that"},
    {0},
};

// Records the new limits, if there are any.
static int extend(struct run *run, struct run_state *run_state,
                  const struct resume_options *options, struct err *err)
{
    struct run_limits limits = {.budget_seconds = clock_seconds(options->budget_ns),
                                .wall_seconds = clock_seconds(options->max_time_ns),
                                .measurements = options->measurements,
                                .candidates = options->candidates,
                                .target = options->target};
    struct run_extended event;
    if (options->budget_ns + options->max_time_ns + options->measurements + options->candidates ==
            0 &&
        options->target == 0) {
        return 0;
    }
    int rc = run_extend(&event, run_state, &limits, err);
    return rc == 0 ? pipeline_record(run, run_state, RUN_EXTENDED, &event, err) : rc;
}

static int run_resume(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)count;
    struct run_state run_state;
    run_state_init(&run_state);
    double began_at = job_times_now();
    struct run *run = NULL;
    int exit_code = EXIT_OK;
    int rc = run_open(&run, argument[0], err);
    session_warn(run ? run_warning(run) : NULL);
    rc = rc == 0 ? run_need_events(run, err) : rc;
    rc = rc == 0 ? run_state_read(&run_state, run, err) : rc;
    if (rc != 0) {
        goto out;
    }
    const struct search_observer observer = {event_print, session, run_state.last_sequence};
    rc = extend(run, &run_state, own, err);
    if (rc != 0) {
        goto out;
    }
    if (!run_state.finished) {
        bool json = session_options(session)->json;
        rc = search_drive(session, run, &run_state, began_at, json ? &observer : NULL, err);
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
    .help = "Go on with a search where it stopped, or with one that has ended by giving it more",
    .option = rows,
    .options_size = sizeof(struct resume_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_resume,
};

// Design note. One walk for both kinds of jobs:
//
//   the problem is read ─▶ sources are compiled ─▶ end
//
// The problem comes first, because header and glue of a candidate follow from it. After a SUBMIT it
// has been read already; after a restart it has not. Then everything that is not known yet is asked
// of the compiler at once: the candidate, and for a MEASURE job reference and baseline. The
// compiler's list of requests is the only place where somebody waits for a compilation: equal ones
// are made once, whoever asks. What was learnt of reference and baseline is kept by the measurement setup, so
// that later jobs do not ask.
//
// It ends when everything that was asked for has answered, or at once when one answer makes the
// others pointless: then they are cancelled, and go on if somebody else waits for them. An answer
// that was lost (the jail failed, a blob has gone) ends it as lost and is remembered by nobody.
//
// Only the candidate's seconds are the job's; reference and baseline belong to all of the measurement setup.
#include "daemon/jobs/preparation.h"
#include "daemon/run/compiler.h"
#include "daemon/run/setup.h"
#include "proto/verdict.h"
#include <stdlib.h>

#define SOURCES 3 // by enum compile_role

struct preparation {
    const struct daemon_parts *parts;
    const struct preparation_events *events;
    struct job *job;
    struct queue_ticket ticket; // of the intake queue
    struct setup_wait read;
    struct compile_request request[SOURCES]; // by enum compile_role
    unsigned pending;                        // requests that have not answered
    struct compiled compiled;                // the candidate's, once it has answered
    bool has_compiled;
    double seconds;
};

// From here on nobody calls back.
static void detach(struct preparation *preparation)
{
    setup_cancel(&preparation->read);
    for (size_t role = 0; role < SOURCES; role++) {
        compiler_cancel(preparation->parts->compiler, &preparation->request[role]);
    }
    preparation->job->preparation = NULL;
}

static void dispose(struct preparation *preparation)
{
    if (preparation->has_compiled) {
        message_clear(&compiled_message, &preparation->compiled);
    }
    free(preparation);
}

static void end_with(struct preparation *preparation, struct preparation_end end)
{
    end.seconds = preparation->seconds;
    end.ticket = &preparation->ticket;
    detach(preparation);
    preparation->events->on_end(preparation->events->owner, preparation->job, &end);
    dispose(preparation);
}

static void end_defect(struct preparation *preparation, const char *reason)
{
    end_with(preparation, (struct preparation_end){.outcome = PREPARED_DEFECT, .reason = reason});
}

static void end_lost(struct preparation *preparation, enum job_cause cause, const char *reason)
{
    end_with(preparation,
             (struct preparation_end){.outcome = PREPARED_LOST, .cause = cause, .reason = reason});
}

// Ends it when enough is known. False: it goes on.
static bool consider(struct preparation *preparation)
{
    const struct job *job = preparation->job;
    const char *refusal = job->kind == JOB_MEASURE ? setup_refusal(job->setup) : NULL;
    bool refused = preparation->has_compiled && preparation->compiled.verdict != VERDICT_NONE;

    if (refusal) {
        end_defect(preparation, refusal);
    } else if (refused || (preparation->has_compiled && preparation->pending == 0)) {
        end_with(preparation,
                 (struct preparation_end){.outcome = PREPARED, .compiled = &preparation->compiled});
    } else {
        return false;
    }
    return true;
}

static void on_compiled(struct compile_request *request, const struct compile_answer *outcome)
{
    struct preparation *preparation = request->owner;
    enum compile_role role = (enum compile_role)(request - preparation->request);
    struct setup *setup = preparation->job->setup;
    bool candidate = role == COMPILE_CANDIDATE;

    preparation->pending--;
    if (candidate) {
        preparation->seconds = outcome->seconds;
    }
    if (!outcome->compiled) {
        const char *name = setup_input(setup, role, &preparation->job->candidate).name;
        char *lost =
            candidate ? xstrdup(outcome->reason) : xasprintf("%s: %s", name, outcome->reason);

        end_lost(preparation, outcome->cause, lost);
        free(lost);
        return;
    }
    if (candidate) {
        message_copy(&compiled_message, &preparation->compiled, outcome->compiled);
        preparation->has_compiled = true;
    } else {
        setup_learn(setup, role, outcome->compiled);
    }
    (void)consider(preparation);
}

static void request(struct preparation *preparation, enum compile_role role)
{
    const struct job *job = preparation->job;
    struct compile_input input = setup_input(job->setup, role, &job->candidate);

    input.fresh = role == COMPILE_CANDIDATE && job->fresh && job->kind == JOB_COMPILE;
    preparation->request[role].on_done = on_compiled;
    preparation->request[role].owner = preparation;
    preparation->pending++;
    compiler_request(preparation->parts->compiler, &preparation->request[role], &input);
}

static void start_compiling(struct preparation *preparation)
{
    struct job *job = preparation->job;
    const struct setup *setup = job->setup;

    if (setup->defect) {
        end_defect(preparation, setup->defect);
        return;
    }
    if (setup->no_class) {
        end_lost(preparation, JOB_CAUSE_NO_DEVICE, setup->no_class);
        return;
    }
    job->device_class = setup->device_class;
    if (consider(preparation)) {
        return; // a refusal is known
    }
    request(preparation, COMPILE_CANDIDATE);
    for (enum compile_role role = COMPILE_BASELINE; role < SOURCES; role++) {
        if (job->kind == JOB_MEASURE && !setup_knows(setup, role)) {
            request(preparation, role);
        }
    }
}

static void on_read(struct setup_wait *wait, const char *lost)
{
    struct preparation *preparation = wait->owner;

    if (lost) {
        end_lost(preparation, wait->cause, lost);
    } else {
        start_compiling(preparation);
    }
}

void preparation_start(const struct daemon_parts *parts, const struct preparation_events *events,
                       struct job *job, const struct queue_ticket *ticket)
{
    struct preparation *preparation = xcalloc(1, sizeof(*preparation));

    preparation->parts = parts;
    preparation->events = events;
    preparation->job = job;
    preparation->ticket = *ticket;
    preparation->read.on_done = on_read;
    preparation->read.owner = preparation;
    job->preparation = preparation;
    if (setup_read(job->setup, &preparation->read)) {
        start_compiling(preparation);
    }
}

struct queue_ticket preparation_cancel(struct job *job)
{
    struct preparation *preparation = job->preparation;
    struct queue_ticket ticket = preparation->ticket;

    detach(preparation);
    dispose(preparation);
    return ticket;
}

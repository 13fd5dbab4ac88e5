// Design note. Both kinds of jobs are prepared in the same steps:
//
//   the problem is read ─▶ sources are compiled ─▶ end
//
// The problem is read first, because the header and the glue code of a candidate follow from it. It
// has usually been read for the SUBMIT; after a restart it has not. Then the compiler is asked at
// the same time for everything that is not known yet: the candidate, and for a MEASURE job
// reference and baseline. The compiler alone keeps lists of who waits for a compilation, and makes
// equal ones once. What it says about reference and baseline is kept by the measurement setup, so
// that later jobs need not ask. A reference in Python is recorded for the hidden cases of one
// candidate, so each job asks for its own.
//
// A preparation ends when all requests have been answered, or as soon as one answer makes the
// others pointless. Requests that are left are cancelled; their compilations go on if another job
// waits for them. When a compilation was lost (the process failed, or a blob is missing), the
// preparation ends as lost and nothing is kept about it.
//
// A MEASURE job needs all variants of its sources. A COMPILE job may need no more than what the
// features follow from (compile_input.h); a MEASURE job of the same candidate then has the rest
// compiled. Nobody reads features of a reference or a baseline here: where those of the baseline
// matter, it has been compiled as a candidate.
//
// A job is charged for the compile seconds of its candidate, and of a reference that is its own.
// Otherwise reference and baseline serve all jobs of the measurement setup.
#include "daemon/jobs/preparation.h"
#include "daemon/run/compiler.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "proto/verdict.h"
#include <stdlib.h>

#define SOURCES 3 // number of compile roles: candidate, baseline, reference

struct preparation {
    const struct daemon_parts *parts;
    const struct preparation_events *events;
    struct job *job;
    struct queue_grant grant;                // of the preparation queue
    struct setup_wait read;                  // while the problem is read
    struct compile_request request[SOURCES]; // by enum compile_role
    unsigned pending;                        // requests that have not been answered
    struct compiled compiled;                // the candidate's, when has_compiled is set
    bool has_compiled;
    double seconds; // seconds of compiling the candidate, and a reference of its own
};

// Cancels whatever is still asked for. No callback comes afterwards.
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
    end.grant = &preparation->grant;
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

// Ends the preparation when enough is known. Returns false when it has to go on.
static bool end_if_decided(struct preparation *preparation)
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

static void on_compiled(struct compile_request *request, const struct compile_answer *answer)
{
    struct preparation *preparation = request->owner;
    enum compile_role role = (enum compile_role)(request - preparation->request);
    struct setup *setup = preparation->job->setup;
    bool candidate = role == COMPILE_CANDIDATE;
    bool own = role == COMPILE_REFERENCE && setup_records_reference(setup);

    preparation->pending--;
    if (candidate || own) {
        preparation->seconds += answer->seconds;
    }
    if (!answer->compiled) {
        const char *name = setup_input(setup, role, &preparation->job->candidate).name;
        char *lost =
            candidate ? xstrdup(answer->reason) : xasprintf("%s: %s", name, answer->reason);

        end_lost(preparation, answer->cause, lost);
        free(lost);
        return;
    }
    if (candidate) {
        message_copy(&compiled_message, &preparation->compiled, answer->compiled);
        preparation->has_compiled = true;
    } else {
        setup_learn(setup, role, answer->compiled);
        if (own) {
            preparation->job->reference = answer->compiled->object;
        }
    }
    (void)end_if_decided(preparation);
}

static void request(struct preparation *preparation, enum compile_role role)
{
    const struct job *job = preparation->job;
    struct compile_input input = setup_input(job->setup, role, &job->candidate);

    input.fresh = role == COMPILE_CANDIDATE && job->fresh && job->kind == JOB_COMPILE;
    input.features_only = job->kind == JOB_COMPILE && job->features_only;
    input.machine_code = role == COMPILE_CANDIDATE && !job->no_machine_code;
    input.unsealed = role == COMPILE_CANDIDATE && job->unsealed;
    preparation->request[role].on_done = on_compiled;
    preparation->request[role].owner = preparation;
    preparation->request[role].tenant = job->search->account->tenant->id;
    preparation->request[role].search = job->search->account->id;
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
    if (end_if_decided(preparation)) {
        return; // an earlier job has found out that reference or baseline does not compile
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
                       struct job *job, const struct queue_grant *grant)
{
    struct preparation *preparation = xcalloc(1, sizeof(*preparation));

    preparation->parts = parts;
    preparation->events = events;
    preparation->job = job;
    preparation->grant = *grant;
    preparation->read.on_done = on_read;
    preparation->read.owner = preparation;
    job->preparation = preparation;
    if (setup_read(job->setup, &preparation->read)) {
        start_compiling(preparation);
    }
}

struct queue_grant preparation_cancel(struct job *job)
{
    struct preparation *preparation = job->preparation;
    struct queue_grant grant = preparation->grant;

    detach(preparation);
    dispose(preparation);
    return grant;
}

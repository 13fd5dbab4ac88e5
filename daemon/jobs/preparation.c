// Design note. The measurement setup is read first, because header and glue of the candidate follow from the
// problem; then the measurement setup's parts and the candidate are asked for at once. The preparation ends
// when both have answered, or at once when one of them makes the other pointless.
#include "daemon/jobs/preparation.h"
#include "proto/verdict.h"
#include <stdlib.h>

struct preparation {
    struct preparation_config config;
    struct job *job;
    struct queue_ticket ticket; // of the intake queue
    struct setup_wait read;
    struct setup_wait parts;
    struct compile_request candidate;
    struct compiled compiled; // the candidate's, once it is there
    bool has_compiled;
    bool parts_done;
    bool missed; // on_miss was called
    double seconds;
};

// From here on nobody calls back.
static void detach(struct preparation *preparation)
{
    setup_cancel(&preparation->read);
    setup_cancel(&preparation->parts);
    compiler_cancel(preparation->config.compiler, &preparation->candidate);
    preparation->job->preparation = NULL;
}

static void dispose(struct preparation *preparation)
{
    if (preparation->has_compiled) {
        message_clear(&compiled_message, &preparation->compiled);
    }
    free(preparation);
}

static void end_as(struct preparation *preparation, enum prepared outcome,
                   const struct compiled *compiled, const char *reason)
{
    struct preparation_end end = {
        .outcome = outcome,
        .compiled = compiled,
        .reason = reason,
        .seconds = preparation->seconds,
        .ticket = &preparation->ticket,
    };

    detach(preparation);
    preparation->config.on_end(preparation->config.owner, preparation->job, &end);
    dispose(preparation);
}

// Ends it when all is known.
static void consider(struct preparation *preparation)
{
    struct job *job = preparation->job;
    const struct setup *setup = job->setup;
    const struct compiled *compiled = preparation->has_compiled ? &preparation->compiled : NULL;
    const char *refusal =
        setup->reference.refusal ? setup->reference.refusal : setup->baseline.refusal;

    if (job->kind == JOB_COMPILE) {
        if (compiled) {
            end_as(preparation, PREPARED_COMPILED, compiled, NULL);
        }
    } else if (refusal) {
        end_as(preparation, PREPARED_DEFECT, NULL, refusal);
    } else if (compiled && compiled->verdict != VERDICT_NONE) {
        end_as(preparation, PREPARED_REFUSED, compiled, NULL);
    } else if (compiled && preparation->parts_done) {
        job->object = compiled->object;
        end_as(preparation, PREPARED, compiled, NULL);
    }
}

static void tell_missed(struct preparation *preparation)
{
    if (!preparation->missed) {
        preparation->missed = true;
        preparation->config.on_miss(preparation->config.owner, preparation->job);
    }
}

static void on_parts_miss(struct setup_wait *wait)
{
    tell_missed(wait->owner);
}

static void on_candidate_miss(struct compile_request *request)
{
    tell_missed(request->owner);
}

static void on_parts(struct setup_wait *wait, const char *lost)
{
    struct preparation *preparation = wait->owner;

    if (lost) {
        end_as(preparation, PREPARED_LOST, NULL, lost);
        return;
    }
    preparation->parts_done = true;
    consider(preparation);
}

static void on_candidate(struct compile_request *request, const struct compile_answer *outcome)
{
    struct preparation *preparation = request->owner;

    preparation->seconds = outcome->seconds;
    if (!outcome->compiled) {
        end_as(preparation, PREPARED_LOST, NULL, outcome->reason);
        return;
    }
    message_copy(&compiled_message, &preparation->compiled, outcome->compiled);
    preparation->has_compiled = true;
    consider(preparation);
}

static void start_compiling(struct preparation *preparation)
{
    struct job *job = preparation->job;
    struct setup *setup = job->setup;

    if (setup->defect) {
        end_as(preparation, PREPARED_DEFECT, NULL, setup->defect);
        return;
    }
    if (setup->homeless) {
        end_as(preparation, PREPARED_LOST, NULL, setup->homeless);
        return;
    }
    job->device_class = setup->device_class;
    struct compile_input input = setup_candidate(setup, &job->candidate);
    input.fresh = job->fresh && job->kind == JOB_COMPILE;
    preparation->candidate.on_miss = on_candidate_miss;
    preparation->candidate.on_done = on_candidate;
    preparation->candidate.owner = preparation;
    compiler_request(preparation->config.compiler, &preparation->candidate, &input);
    if (job->kind == JOB_MEASURE) {
        preparation->parts.on_miss = on_parts_miss;
        preparation->parts.on_done = on_parts;
        preparation->parts.owner = preparation;
        preparation->parts_done = setup_compile(setup, &preparation->parts);
        consider(preparation); // a known refusal ends it here
    }
}

static void on_read(struct setup_wait *wait, const char *lost)
{
    struct preparation *preparation = wait->owner;

    if (lost) {
        end_as(preparation, PREPARED_LOST, NULL, lost);
    } else {
        start_compiling(preparation);
    }
}

void preparation_start(const struct preparation_config *config, struct job *job,
                       const struct queue_ticket *ticket)
{
    struct preparation *preparation = xcalloc(1, sizeof(*preparation));

    preparation->config = *config;
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

// Design note. The permitted state changes, and when they happen:
//
//   from       to          when
//   QUEUED     COMPILING   its preparation begins: its problem is read, its sources are compiled
//              DONE        the result cache answers it
//              BURIED      after a restart its specification cannot be read, or it was RUNNING at
//                          the end of the daemon too often; or a stored object is missing again
//   COMPILING  READY       everything is compiled
//              DONE        it is a COMPILE job; or candidate, baseline or reference do not compile
//              BURIED      the compiler process was lost twice, or the problem is missing
//   READY      RUNNING     a device is kept for it and what its run needs is there
//              DONE        an equal job was measured meanwhile
//              QUEUED      a compiled object is missing from the blob store: it is compiled again
//   RUNNING    DONE        the executor has replied
//              READY       the executor was lost for the first time or could not be started, or the
//                          measurement was disturbed or doubtful
//              BURIED      the executor was lost twice, or the plan is too large to be sent
//   each of these four     may become CANCELLED
//
// A restart uses no edges. It makes new jobs, which are QUEUED or in a terminal state.
#include "daemon/state/job.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/state/stages.h"
#include "proto/messages.h"
#include <stdlib.h>
#include <string.h>

#define TO(state) (1U << JOB_##state)

static const unsigned edge_table[JOB_STATE_COUNT] = {
    [JOB_QUEUED] = TO(COMPILING) | TO(DONE) | TO(CANCELLED) | TO(BURIED),
    [JOB_COMPILING] = TO(READY) | TO(DONE) | TO(CANCELLED) | TO(BURIED),
    [JOB_READY] = TO(RUNNING) | TO(DONE) | TO(QUEUED) | TO(CANCELLED),
    [JOB_RUNNING] = TO(DONE) | TO(READY) | TO(CANCELLED) | TO(BURIED),
    [JOB_DONE] = 0,
    [JOB_CANCELLED] = 0,
    [JOB_BURIED] = 0,
};

bool job_edge_allowed(enum job_state from, enum job_state to)
{
    if ((unsigned)from >= JOB_STATE_COUNT || (unsigned)to >= JOB_STATE_COUNT) {
        return false;
    }
    return (edge_table[from] >> to & 1U) != 0;
}

struct job *job_of_entry(struct queue_entry *entry)
{
    return (struct job *)((char *)entry - offsetof(struct job, queued));
}

// A job that goes back has not reached what comes after, as far as anybody asks later.
static void stamp(struct job_stamps *stamps, enum job_state state, uint64_t now_ns)
{
    if (state == JOB_QUEUED) {
        *stamps = (struct job_stamps){0};
    } else if (state == JOB_COMPILING) {
        stamps->compiling_ns = now_ns;
    } else if (state == JOB_READY) {
        stamps->ready_ns = now_ns;
        stamps->running_ns = 0;
    } else if (state == JOB_RUNNING) {
        stamps->running_ns = now_ns;
    } else if (job_state_is_terminal(state)) {
        stamps->ended_ns = now_ns;
    }
}

void job_set_state(struct job *job, enum job_state state)
{
    struct job_census *census = job->search->census;
    enum job_state from = (enum job_state)job->state;

    if (!job_edge_allowed(from, state)) {
        log_event(LOG_ERROR, "job-defect job=%llu from=%s to=%s reason=\"no such edge\"",
                  (unsigned long long)job->id, job_state_name(from), job_state_name(state));
        abort();
    }
    uint64_t now_ns = clock_now_ns(job->search->clock);
    stages_move(job->search->stages, from, state, now_ns);
    stamp(&job->stamps, state, now_ns);
    census->state[from]--;
    census->state[state]++;
    if (job_state_is_terminal(state)) {
        job->search->unfinished--;
    }
    job->state = (uint8_t)state;
    if (state != JOB_READY && state != JOB_RUNNING) {
        job_drop_compiled(job);
    }
}

void job_carry_compiled(struct job *job, struct compiled *compiled_taken)
{
    char *log = compiled_taken->log;

    if (log && strlen(log) > JOB_LOG_MAX) {
        size_t len = JOB_LOG_MAX;

        while (len > 0 && ((unsigned char)log[len] & 0xc0) == 0x80) {
            len--; // no message may have a part of a character
        }
        compiled_taken->log = xstrndup(log, len);
        free(log);
    }
    job_drop_compiled(job);
    struct strbuf packed = STRBUF_INIT;
    if (message_pack(&compiled_message, compiled_taken, &packed, NULL) == 0) {
        job->compiled = bytes_copy(packed.data, packed.len); // no more memory than that
        job->object = compiled_taken->object;
    }
    strbuf_release(&packed);
    message_clear(&compiled_message, compiled_taken);
    message_init(&compiled_message, compiled_taken);
}

void job_read_compiled(const struct job *job, struct compiled *ret)
{
    if (message_read(&compiled_message, ret, job->compiled.data, job->compiled.len, NULL) != 0) {
        message_init(&compiled_message, ret); // cannot be: it was packed here
    }
}

void job_drop_compiled(struct job *job)
{
    bytes_clear(&job->compiled);
}

// Compilations that take long are not waited for.
//
// Some compilations take many times as long as most others. Since outcomes are seen batch by batch,
// one of them would hold up all batches that are to see its own, and with them devices of which
// there are several. So when enough of the candidates behind it have compiled, the candidate is put
// off: its batch goes on without it. When it has compiled its source is proposed again, as the
// first of the next batch, in which nothing has to be compiled any more. Both are events, so that
// what follows from them follows from the log; which candidates are put off depends on how long
// compilations take, like the outcomes of measurements.
//
// At the end of a search all are waited for: a batch that is not full is proposed only when none is
// left to come. Only a limit on what is used ends a search without them.
#include "client/search/pipeline_put_off.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

// A candidate is put off when at least this share of those of batches that are not settled, and
// so many, have compiled behind it. Chosen on sgemm, conv3x3, topk and layernorm.
#define PUT_OFF_SHARE 0.4
#define PUT_OFF_LEAST 24

static bool puts_off(const struct pipeline *p)
{
    const struct run_started *started = &p->run_state->started;
    return (started->rules & RUN_RULE_PUT_OFF) && p->policy->screens && started->pool_devices > 1 &&
           !p->asks && !p->stop && !p->exhausted && !p->filling;
}

bool pipeline_puts_off(const struct pipeline *p, uint64_t id)
{
    uint64_t behind = 0, last = p->run_state->candidate_count;
    if (!puts_off(p) || last != batch_end(p, batch_count(p))) {
        return false;
    }
    for (uint64_t other = id + 1; other <= last; other++) {
        behind += p->candidate_jobs[other - 1].answer ? 1 : 0;
    }
    double enough = PUT_OFF_SHARE * (double)(last - batch_last(p, p->settled));
    return behind >= PUT_OFF_LEAST && (double)behind >= enough;
}

static void add_late(struct pipeline *p, uint64_t id)
{
    p->late = xrealloc(p->late, p->late_count + 1, sizeof(*p->late));
    p->late[p->late_count++] = id;
}

int pipeline_put_off(struct pipeline *p, uint64_t id, struct err *err)
{
    struct run_put_off event = {.candidate = id};
    int rc = pipeline_append(p, RUN_PUT_OFF, &event, err);
    if (rc == 0) {
        add_late(p, id);
    }
    return rc;
}

void pipeline_remember_late(struct pipeline *p)
{
    for (uint64_t id = 1; id <= p->run_state->candidate_count && !p->stop; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        if (candidate->put_off && !run_state_is_replaced(candidate)) {
            add_late(p, id);
        }
    }
}

uint64_t pipeline_compilation(const struct pipeline *p, uint64_t id)
{
    uint64_t first = candidate_of(p, id)->proposed.again;
    return first != 0 ? first : id;
}

uint64_t pipeline_compilation_for(const struct pipeline *p, uint64_t id)
{
    const struct run_state_candidate *candidate = candidate_of(p, id);
    return run_state_is_replaced(candidate) ? candidate->proposed.duplicate_of : id;
}

uint64_t pipeline_late_compiled(const struct pipeline *p)
{
    uint64_t count = 0;
    for (size_t i = 0; i < p->late_count; i++) {
        count += p->candidate_jobs[p->late[i] - 1].answer ? 1 : 0;
    }
    return count;
}

// Records the candidate's source as the next candidate, and has it take over the compilation.
static int record_again(struct pipeline *p, uint64_t id, struct err *err)
{
    struct bytes source;
    int rc = run_get_blob(p->run, &candidate_of(p, id)->proposed.source, &source, err);
    if (rc != 0) {
        return rc;
    }
    struct run_proposed event;
    message_copy(&run_proposed_message, &event, &candidate_of(p, id)->proposed);
    event.candidate = p->run_state->candidate_count + 1;
    event.again = id;
    rc = pipeline_record_proposal(p, &event, source.data, source.len, err);
    bytes_clear(&source);
    if (rc == 0) {
        pipeline_track_candidates(p);
        struct candidate_jobs *from = &p->candidate_jobs[id - 1];
        struct candidate_jobs *to = &p->candidate_jobs[p->run_state->candidate_count - 1];
        to->answer = from->answer;
        to->job = from->job;
        to->times = from->times;
        from->answer = NULL;
        from->job = (struct job_ref){0};
        from->times = NULL;
    }
    return rc;
}

int pipeline_record_late(struct pipeline *p, uint64_t most, uint64_t *ret, struct err *err)
{
    size_t kept = 0;
    int rc = 0;
    *ret = 0;
    for (size_t i = 0; i < p->late_count; i++) {
        uint64_t id = p->late[i];
        if (rc == 0 && *ret < most && p->candidate_jobs[id - 1].answer) {
            rc = record_again(p, id, err);
            ++*ret;
        } else {
            p->late[kept++] = id;
        }
    }
    p->late_count = kept;
    return rc;
}

void pipeline_drop_late(struct pipeline *p)
{
    for (size_t i = 0; i < p->late_count; i++) {
        pipeline_drop_compilation(p, p->late[i]);
    }
    p->late_count = 0;
}

// The same question asked again while it is open is not asked of an endpoint: it waits for the
// first one's answer, and costs nothing. A failure of the endpoint's is everybody's. When the first
// one's own time or its search's money ran out, the next one that has time and money left asks,
// until its own deadline, and the rest wait for that one. A question is never given up because
// whoever asked it first has gone: what was asked for is answered, and remembered.
#include "worker/llm/llm_state.h"
#include <string.h>

static void ask(struct llm_question *talk)
{
    HASH_ADD(hh, talk->llm->open, key, sizeof(talk->key), talk);
    llm_question_post(talk);
}

void llm_question_begin(struct llm_question *talk)
{
    struct llm *llm = talk->llm;
    struct llm_question *first, **last;

    talk->until_ms = uv_now(llm->timer.loop) + llm->config.deadline_ms;
    talk->deadline_ms = llm->config.deadline_ms;
    HASH_FIND(hh, llm->open, &talk->key, sizeof(talk->key), first);
    if (first) {
        for (last = &first->waiting; *last; last = &(*last)->next) {
        }
        *last = talk;
    } else if (llm_question_may_ask(talk)) {
        ask(talk);
    } else {
        llm_question_finish_soon(talk);
    }
}

// Whether this one, for which the first could not get an answer, may ask itself.
static bool may_ask_now(struct llm_question *talk)
{
    uint64_t now_ms = uv_now(talk->llm->timer.loop);

    if (talk->llm->closing || now_ms >= talk->until_ms || !llm_question_may_ask(talk)) {
        return false;
    }
    talk->deadline_ms = talk->until_ms - now_ms;
    return true;
}

static void finish_waiting(const struct llm_question *first, struct llm_question *waiting)
{
    while (waiting) {
        struct llm_question *talk = waiting;

        waiting = talk->next;
        talk->next = NULL;
        if (talk->share(talk, first)) {
            talk->llm->hits++;
        } else {
            memcpy(talk->reason, first->reason, sizeof(talk->reason));
            if (first->own_end && may_ask_now(talk)) {
                talk->waiting = waiting;
                ask(talk);
                return;
            }
        }
        llm_question_finish_soon(talk);
    }
}

void llm_question_end(struct llm_question *talk)
{
    struct llm_question *waiting = talk->waiting;

    HASH_DEL(talk->llm->open, talk);
    talk->waiting = NULL;
    finish_waiting(talk, waiting);
    talk->finish(talk);
}

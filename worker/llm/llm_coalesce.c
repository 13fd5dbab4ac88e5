// Design note: request coalescing. While a question is open, an equal question is not asked of an
// endpoint: it waits for the first one's answer and costs nothing. When the endpoint fails, all of
// them fail. When the first one's own deadline passed or its search has spent its limit, the next
// one that has time and money left asks, until its own deadline, and the rest wait for that one. A
// question is never given up because whoever asked it first has disconnected: the answer is wanted
// by the others and for the cache. When an endpoint is being tried that has failed, nobody waits
// for its answer: whoever asked is told that there is none, and the answer is for the cache only.
#include "worker/llm/llm_state.h"
#include <string.h>

// Makes the question the one that asks.
static void ask(struct llm_question *question)
{
    HASH_ADD(hh, question->llm->open, key, sizeof(question->key), question);
    llm_question_post(question);
}

void llm_question_begin(struct llm_question *question)
{
    struct llm *llm = question->llm;
    struct llm_question *first, **last;

    question->until_ms = uv_now(llm->timer.loop) + llm->config.deadline_ms;
    HASH_FIND(hh, llm->open, &question->key, sizeof(question->key), first);
    if (first && first->abandoned) {
        memcpy(question->reason, first->reason, sizeof(question->reason));
        llm_question_finish_soon(question);
    } else if (first) {
        for (last = &first->waiting; *last; last = &(*last)->next) {
        }
        *last = question;
    } else {
        ask(question);
    }
}

void llm_question_abandon(struct llm_question *question)
{
    struct llm_question *waiting = question->waiting;

    question->waiting = NULL;
    question->abandoned = true;
    while (waiting) {
        struct llm_question *next = waiting->next;

        memcpy(waiting->reason, question->reason, sizeof(waiting->reason));
        llm_question_finish_soon(waiting);
        waiting = next;
    }
    question->give_up(question);
}

// Whether a question, whose first asker got no answer, may ask itself.
static bool may_ask_now(const struct llm_question *question)
{
    return !question->llm->closing && uv_now(question->llm->timer.loop) < question->until_ms;
}

// Ends the questions that waited for the first one.
static void finish_waiting(const struct llm_question *first, struct llm_question *waiting)
{
    while (waiting) {
        struct llm_question *question = waiting;

        waiting = question->next;
        question->next = NULL;
        if (question->take_answer(question, first)) {
            question->llm->hits++;
        } else {
            memcpy(question->reason, first->reason, sizeof(question->reason));
            if (first->own_end && may_ask_now(question)) {
                question->waiting = waiting;
                ask(question);
                return;
            }
        }
        llm_question_finish_soon(question);
    }
}

void llm_question_end(struct llm_question *question)
{
    struct llm_question *waiting = question->waiting;

    HASH_DEL(question->llm->open, question);
    question->waiting = NULL;
    finish_waiting(question, waiting);
    question->finish(question);
}

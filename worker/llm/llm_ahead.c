// Design note: one question ahead. The questions of a request begin with the same text. Of each
// such beginning an endpoint is first asked one question alone, so that it has the beginning in its
// prompt cache when the others come, and reads it once instead of once for each. Each endpoint has
// its own cache, so each is asked one of its own. The others of its share wait for what comes of
// that request:
//   an answer, or a failure   all may be asked: a failure is not waited for twice
//   it is refused as it was   the next one goes ahead, in another way
//   nothing for long          all may be asked
#include "worker/llm/llm_state.h"

#define WAIT_PART 3 // the others wait for at most this part of a question's deadline

static struct llm_beginning *find(const struct llm_question *question, size_t endpoint)
{
    struct llm_beginning *beginning = question->llm->beginning[endpoint];

    for (size_t i = 0; i < LLM_BEGINNINGS; i++) {
        if (digest_equal(&beginning[i].digest, &question->beginning)) {
            return &beginning[i];
        }
    }
    return NULL;
}

// The place of a new beginning: the one that was used longest ago. NULL when all are waited for.
static struct llm_beginning *oldest(struct llm *llm, size_t endpoint)
{
    struct llm_beginning *ret = NULL;

    for (size_t i = 0; i < LLM_BEGINNINGS; i++) {
        struct llm_beginning *beginning = &llm->beginning[endpoint][i];

        if (!beginning->ahead && (!ret || beginning->used < ret->used)) {
            ret = beginning;
        }
    }
    return ret;
}

bool llm_ahead_admits(const struct llm_question *question, size_t endpoint)
{
    const struct llm *llm = question->llm;

    if (digest_is_zero(&question->beginning)) {
        return true;
    }
    const struct llm_beginning *beginning = find(question, endpoint);
    return !beginning || !beginning->ahead || beginning->ahead == question ||
           uv_now(llm->timer.loop) >= beginning->since_ms + llm->config.deadline_ms / WAIT_PART;
}

void llm_ahead_begin(struct llm_question *question, size_t endpoint)
{
    struct llm *llm = question->llm;

    if (digest_is_zero(&question->beginning)) {
        return;
    }
    struct llm_beginning *beginning = find(question, endpoint);
    if (!beginning) {
        beginning = oldest(llm, endpoint);
        if (!beginning) {
            return;
        }
        *beginning = (struct llm_beginning){.digest = question->beginning};
    }
    beginning->used = ++llm->beginnings_used;
    if (!beginning->read && !beginning->ahead) {
        beginning->ahead = question;
        beginning->since_ms = uv_now(llm->timer.loop);
    }
}

void llm_ahead_end(const struct llm_question *question, size_t endpoint, bool refused)
{
    struct llm_beginning *beginning =
        digest_is_zero(&question->beginning) ? NULL : find(question, endpoint);

    if (beginning && beginning->ahead == question) {
        beginning->ahead = NULL;
        beginning->read = !refused;
    }
}

// Design note. A ranking question is one RANK: all candidates in one question, numbered in an order
// that is drawn, since models favour what they read first or last. What it answers is an order and
// nothing more: nobody is dropped by it, so it needs no record of right calls. It is asked again
// only when its answer names none of the candidates. Its answer is cached like that of a proposal.
#include "common/mem.h"
#include "common/stats.h"
#include "worker/llm/answer.h"
#include "worker/llm/llm_state.h"
#include "worker/llm/rank_answer.h"
#include "worker/prompt/prompt_rank.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 3 // replies without a usable order
#define STREAM_SHOWN 0x73686f776eULL

struct rank_question {
    struct llm_question question; // first, so that it can be cast
    struct rank_request request;
    char *rules;                   // of the prompt
    size_t shown[PROMPT_RANK_MAX]; // candidate (place in the request) with number i + 1
    struct rank_reply reply;
    void (*done)(void *owner, const struct rank_reply *reply);
    void *owner;
};

static void finish(struct llm_question *question)
{
    struct rank_question *self = (struct rank_question *)question;

    if (question->requests > 0) {
        const struct llm *llm = question->llm;

        free(self->reply.model);
        free(self->reply.endpoint);
        self->reply.model = xstrdup(endpoints_config(llm->endpoints, question->endpoint)->model);
        self->reply.endpoint =
            xasprintf("%.250s", endpoints_name(llm->endpoints, question->endpoint));
    }
    if (self->reply.order_count == 0) {
        self->reply.reason = xasprintf("%.500s", question->reason);
    }
    self->reply.input_tokens = question->input_tokens;
    self->reply.output_tokens = question->output_tokens;
    self->reply.cost = question->cost;
    self->reply.seconds = question->seconds;
    self->done(self->owner, &self->reply);
    message_clear(&rank_request_message, &self->request);
    message_clear(&rank_reply_message, &self->reply);
    llm_question_release(question);
    free(self->rules);
    free(self);
}

// ---- answers ----

static void remember(const struct rank_question *self)
{
    const struct llm *llm = self->question.llm;
    struct rank_reply reply = self->reply; // borrows what it owns
    struct digest key = llm_answer_key(llm, &self->question.key, self->question.endpoint);

    reply.model =
        (char *)(uintptr_t)endpoints_config(llm->endpoints, self->question.endpoint)->model;
    reply.cached = true; // read from the cache it costs nothing
    answer_cache_add(llm->cache, &key, &rank_reply_message, &reply);
}

static bool take_answer(struct llm_question *question, const struct llm_question *from)
{
    struct rank_question *self = (struct rank_question *)question;
    const struct rank_question *first = (const struct rank_question *)from;

    if (first->reply.order_count == 0) {
        return false;
    }
    message_copy(&rank_reply_message, &self->reply, &first->reply);
    self->reply.cached = true;
    return true;
}

// Takes the order that an answer holds.
static bool take(struct llm_question *question, const struct answer *answer, struct err *why)
{
    struct rank_question *self = (struct rank_question *)question;
    size_t count = self->request.candidates_count, order[PROMPT_RANK_MAX], named = 0;
    double p[PROMPT_RANK_MAX];

    err_clear(why); // no forecast was asked for
    if (!answer->ranking) {
        (void)err_set(why, ERR_INVALID, "the answer holds no ranking");
        return false;
    }
    if (rank_answer_read(answer->ranking, count, order, p, &named, why) != 0) {
        return false;
    }
    self->reply.order = xcalloc(count, sizeof(*self->reply.order));
    self->reply.p = xcalloc(count, sizeof(*self->reply.p));
    self->reply.order_count = self->reply.p_count = count;
    self->reply.named = named;
    for (size_t i = 0; i < count; i++) {
        self->reply.order[i] = self->request.candidates[self->shown[order[i]]].id;
        self->reply.p[i] = p[order[i]];
    }
    remember(self);
    return true;
}

static bool wants_more(struct llm_question *question)
{
    (void)question;
    return false;
}

// ---- questions ----

// Draws the order in which the candidates are shown.
static void draw_shown(struct rank_question *self)
{
    struct stats_rng rng;

    stats_rng_init(&rng, self->request.seed, STREAM_SHOWN);
    for (size_t i = 0; i < self->request.candidates_count; i++) {
        size_t j = (size_t)stats_rng_below(&rng, i + 1);

        self->shown[i] = self->shown[j];
        self->shown[j] = i;
    }
}

// The digest of everything that the answer depends on, but for the endpoint. The ids are a part of
// it, because the answer names them.
static struct digest key_of(const struct rank_question *self)
{
    struct digest_state *state = digest_begin();

    digest_add_text(state, "rank");
    digest_add_text(state, self->question.rules);
    digest_add_text(state, self->question.search);
    digest_add_text(state, self->question.last);
    for (size_t i = 0; i < self->request.candidates_count; i++) {
        digest_add(state, &self->request.candidates[self->shown[i]].id, sizeof(uint64_t));
    }
    return digest_end(state);
}

// Takes the answer of the first endpoint that has answered from the cache. Returns whether there
// was one.
static bool find_cached(struct rank_question *self)
{
    struct llm *llm = self->question.llm;
    bool found = false;

    for (size_t i = 0; i < endpoints_count(llm->endpoints) && !found; i++) {
        struct digest key = llm_answer_key(llm, &self->question.key, i);

        found = answer_cache_find(llm->cache, &key, &rank_reply_message, &self->reply);
    }
    llm->hits += found;
    return found;
}

// Why the request cannot be asked; NULL: it can.
static const char *refuse(const struct rank_request *request)
{
    if (request->candidates_count < 2 || request->candidates_count > PROMPT_RANK_MAX) {
        return "2 to 64 candidates can be ranked";
    }
    for (size_t i = 0; i < request->candidates_count; i++) {
        if (request->candidates[i].source.len == 0) {
            return "the request has no source of a candidate for a language model to read";
        }
    }
    return NULL;
}

void llm_rank(struct llm *llm, struct rank_request *request_take,
              void (*done)(void *owner, const struct rank_reply *reply), void *owner)
{
    struct rank_question *self = xcalloc(1, sizeof(*self));
    struct llm_question *question = &self->question;
    struct strbuf rules = STRBUF_INIT, search = STRBUF_INIT, last = STRBUF_INIT;

    self->request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    self->done = done;
    self->owner = owner;
    message_init(&rank_reply_message, &self->reply);
    self->reply.cost = self->reply.seconds = 0;
    *question = (struct llm_question){
        .llm = llm,
        .spend = xstrdup(self->request.search ? self->request.search : ""),
        .purpose = LLM_RANK,
        .tries_max = TRIES,
        .take = take,
        .wants_more = wants_more,
        .take_answer = take_answer,
        .finish = finish,
    };
    const char *why = refuse(&self->request);
    if (why) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s", why);
        llm_question_finish_soon(question);
        return;
    }
    draw_shown(self);
    prompt_rank_rules(&rules);
    prompt_rank_search(&search, &self->request);
    prompt_rank_candidates(&last, &self->request, self->shown);
    question->rules = self->rules = strbuf_detach(&rules);
    question->search = strbuf_detach(&search);
    question->last = strbuf_detach(&last);
    question->key = key_of(self);
    if (find_cached(self)) {
        llm_question_finish_soon(question);
    } else {
        llm_style_inherit(llm);
        llm_question_begin(question);
    }
}

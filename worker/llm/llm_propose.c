// Design note. A proposal question is one PROPOSE. It is asked again only when its answer held no
// program. Its answer is cached under everything that was asked and the endpoint that answered, so
// that a search that was killed and started again gets the same candidates and pays once.
#include "common/mem.h"
#include "problem/candidate_form.h"
#include "worker/llm/answer.h"
#include "worker/llm/answer_sources.h"
#include "worker/llm/llm_state.h"
#include "worker/prompt/prompt_propose.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROPOSALS_MAX 64
#define TRIES 3 // replies without a program

struct proposal_question {
    struct llm_question question; // first, so that it can be cast
    struct propose_request request;
    char *rules; // of the prompt
    struct propose_reply reply;
    void (*done)(void *owner, const struct propose_reply *reply);
    void *owner;
};

// The model that was asked last.
static const char *model_of(const struct llm_question *question)
{
    return endpoints_config(question->llm->endpoints, question->endpoint)->model;
}

static void finish(struct llm_question *question)
{
    struct proposal_question *self = (struct proposal_question *)question;

    if (question->requests > 0) {
        self->reply.model = xstrdup(model_of(question));
    }
    if (self->reply.proposals_count == 0) {
        self->reply.reason = xasprintf("%.500s", question->reason);
    }
    self->reply.input_tokens = question->input_tokens;
    self->reply.output_tokens = question->output_tokens;
    self->reply.cost = question->cost;
    self->reply.seconds = question->seconds;
    if (question->model) {
        model_choice_add(question->llm->model_choice, question->model,
                         question->requests > 0 ? model_of(question) : NULL,
                         self->reply.proposals_count > 0, question->cost,
                         question->input_tokens + question->output_tokens);
    }
    if (!self->reply.cached) {
        self->reply.first_tokens = question->input_tokens + question->output_tokens;
        self->reply.first_cost = question->cost;
    }
    self->done(self->owner, &self->reply);
    message_clear(&propose_request_message, &self->request);
    message_clear(&propose_reply_message, &self->reply);
    llm_question_release(question);
    free(self->rules);
    free(self);
}

// ---- answers ----

// Adds the proposals to the cache.
static void remember(const struct proposal_question *self)
{
    struct propose_reply reply = self->reply; // borrows what it owns

    reply.model = (char *)(uintptr_t)model_of(&self->question);
    reply.cached = true; // read from the cache it costs nothing: its tokens and cost are 0
    reply.first_tokens = self->question.input_tokens + self->question.output_tokens;
    reply.first_cost = self->question.cost;
    struct digest key =
        llm_answer_key(self->question.llm, &self->question.key, self->question.endpoint);
    answer_cache_add(self->question.llm->cache, &key, &propose_reply_message, &reply);
}

static bool take_answer(struct llm_question *question, const struct llm_question *from)
{
    struct proposal_question *self = (struct proposal_question *)question;
    const struct proposal_question *first = (const struct proposal_question *)from;

    if (first->reply.proposals_count == 0) {
        return false;
    }
    message_copy(&propose_reply_message, &self->reply, &first->reply);
    self->reply.model = xstrdup(model_of(from));
    self->reply.cached = true;
    self->reply.first_tokens = from->input_tokens + from->output_tokens;
    self->reply.first_cost = from->cost;
    return true;
}

// A text of problem.json, malloc'd; NULL when the problem does not say.
static char *text_of_problem(const struct bytes *problem_json, const char *name)
{
    json_t *root = json_loadb((const char *)problem_json->data, problem_json->len, 0, NULL);
    const char *entry = json_string_value(json_object_get(root, name));
    char *ret = entry ? xstrdup(entry) : NULL;

    json_decref(root);
    return ret;
}

// The program that a new one starts from.
static const struct bytes *begin_of(const struct propose_request *request)
{
    return request->parent ? &request->parent->source : &request->context->baseline;
}

// What starts from a program in Python is Python, too.
static enum prompt_language language_of(const struct propose_request *request)
{
    const struct bytes *program = begin_of(request);
    const char *language = request->context->language;

    if (!language || strcmp(language, "C") == 0) {
        return PROMPT_C;
    }
    return candidate_form((const char *)program->data, program->len) == FORM_PYTHON ? PROMPT_PYTHON
                                                                                    : PROMPT_CUDA;
}

// What a candidate must be. The caller frees what is returned after using *ret.
static char *describe_wanted(const struct propose_request *request, struct answer_wanted *ret)
{
    const struct bytes *program = begin_of(request);
    enum prompt_language language = language_of(request);
    const char *name = language == PROMPT_C ? "entry" : language == PROMPT_PYTHON ? "name" : NULL;
    char *entry = name ? text_of_problem(&request->context->problem_json, name) : NULL;

    *ret = (struct answer_wanted){.launches = language == PROMPT_CUDA,
                                  .python = language == PROMPT_PYTHON,
                                  .entry = entry,
                                  .program = (const char *)program->data,
                                  .program_len = program->len};
    return entry;
}

// Takes the programs that an answer holds.
static bool take(struct llm_question *question, const struct answer *answer, struct err *why)
{
    struct proposal_question *self = (struct proposal_question *)question;
    bool whole = answer->end != ANSWER_CUT_OFF;
    char *source[PROPOSALS_MAX];
    size_t count = 0;
    struct err left_out = ERR_INIT;
    struct answer_wanted wanted;

    err_clear(why); // no forecast was asked for
    if (answer->text && !answer->is_reasoning && answer->end != ANSWER_FILTERED) {
        char *entry = describe_wanted(&self->request, &wanted);

        count = answer_sources(&wanted, answer->text, whole, source, PROPOSALS_MAX, &left_out);
        free(entry);
    }
    if (count == 0) {
        (void)err_set(why, ERR_INVALID, "the answer holds no program%s%s",
                      left_out.code != ERR_NONE ? ": " : "", left_out.text);
        return false;
    }
    free(self->reply.proposals);
    self->reply.proposals = xcalloc(count + 1, sizeof(*self->reply.proposals));
    self->reply.proposals_count = count;
    for (size_t i = 0; i < count; i++) {
        self->reply.proposals[i].source =
            (struct bytes){.data = (unsigned char *)source[i], .len = strlen(source[i])};
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

static char *text_of(void (*write)(struct strbuf *out, const struct propose_request *request),
                     const struct propose_request *request)
{
    struct strbuf text = STRBUF_INIT;

    write(&text, request);
    return strbuf_detach(&text);
}

// The digest of everything that the answer depends on, but for the endpoint.
static struct digest key_of(const struct llm_question *question)
{
    struct digest_state *state = digest_begin();

    digest_add_text(state, "propose");
    digest_add_text(state, question->rules);
    digest_add_text(state, question->search);
    digest_add_text(state, question->last);
    return digest_end(state);
}

// Takes the answer of the first endpoint that has answered from the cache. Returns whether there
// was one.
static bool find_cached(struct proposal_question *self)
{
    struct llm *llm = self->question.llm;
    bool found = false;

    for (size_t i = 0; i < endpoints_count(llm->endpoints) && !found; i++) {
        struct digest key = llm_answer_key(llm, &self->question.key, i);

        found = answer_cache_find(llm->cache, &key, &propose_reply_message, &self->reply);
    }
    llm->hits += found;
    return found;
}

void llm_propose(struct llm *llm, struct propose_request *request_take,
                 void (*done)(void *owner, const struct propose_reply *reply), void *owner)
{
    struct proposal_question *self = xcalloc(1, sizeof(*self));
    struct llm_question *question = &self->question;

    self->request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    self->done = done;
    self->owner = owner;
    message_init(&propose_reply_message, &self->reply);
    self->reply.cost = self->reply.seconds = 0;
    struct strbuf rules = STRBUF_INIT;
    prompt_propose_rules(&rules, language_of(&self->request));
    self->rules = strbuf_detach(&rules);
    *question = (struct llm_question){
        .llm = llm,
        .rules = self->rules,
        .search = text_of(prompt_propose_search, &self->request),
        .last = text_of(prompt_parent, &self->request),
        .spend = xstrdup(self->request.search ? self->request.search : ""),
        .purpose = LLM_PROPOSE,
        .patient = true,
        .tries_max = TRIES,
        .take = take,
        .wants_more = wants_more,
        .take_answer = take_answer,
        .finish = finish,
    };
    question->key = key_of(question);
    if (find_cached(self)) {
        llm_question_finish_soon(question);
    } else {
        question->model = model_choice_next(llm->model_choice, &question->key);
        llm_question_begin(question);
    }
}

void llm_observe(struct llm *llm, const struct observe *observe)
{
    model_choice_observe(llm->model_choice, observe);
}

// A wish is one PROPOSE: one question, asked again only when its answer held no program. Its answer
// is remembered under everything that was said, so that a search that was killed gets the same
// candidates again and pays once.
#include "common/mem.h"
#include "worker/llm/answer.h"
#include "worker/llm/answer_sources.h"
#include "worker/llm/llm_state.h"
#include "worker/llm/prompt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROPOSALS_MAX 64
#define TRIES 3 // answers without a program, requests of another form included

struct wish {
    struct llm_question talk; // first
    struct propose_request request;
    char *rules;
    struct propose_reply reply;
    void (*done)(void *owner, const struct propose_reply *reply);
    void *owner;
};

static const char *model_of(const struct llm_question *talk)
{
    return endpoints_config(talk->llm->endpoints, talk->endpoint)->model;
}

static void finish(struct llm_question *talk)
{
    struct wish *wish = (struct wish *)talk;

    if (talk->tries > 0) {
        wish->reply.model = xstrdup(model_of(talk));
    }
    if (wish->reply.proposals_count == 0) {
        wish->reply.reason = xasprintf("%.500s", talk->reason);
    }
    wish->reply.input_tokens = talk->input_tokens;
    wish->reply.output_tokens = talk->output_tokens;
    wish->reply.cost = talk->cost;
    wish->reply.seconds = talk->seconds;
    if (talk->model) {
        model_choice_record(talk->llm->writers, talk->model, talk->tries > 0 ? model_of(talk) : NULL,
                      wish->reply.proposals_count > 0, talk->cost,
                      talk->input_tokens + talk->output_tokens);
    }
    if (!wish->reply.cached) {
        wish->reply.first_tokens = talk->input_tokens + talk->output_tokens;
        wish->reply.first_cost = talk->cost;
    }
    wish->done(wish->owner, &wish->reply);
    message_clear(&propose_request_message, &wish->request);
    message_clear(&propose_reply_message, &wish->reply);
    llm_question_release(talk);
    free(wish->rules);
    free(wish);
}

// ---- answers ----

// True when there is at least one program.
static bool read_answer(struct wish *wish, const struct endpoint_result *result)
{
    struct llm_question *talk = &wish->talk;
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    int rc = answer_read(&answer, (const char *)result->body.data, result->body.len, &why, &err);
    bool whole = !answer.finish || strcmp(answer.finish, "length") != 0;

    llm_question_charge(talk, result->endpoint, &answer.usage);
    char *source[PROPOSALS_MAX];
    size_t count = 0;
    if (rc != 0) {
        (void)snprintf(talk->reason, sizeof(talk->reason), "%s", err.text);
    } else {
        count = answer.text ? answer_sources(answer.text, whole, source, PROPOSALS_MAX) : 0;
        (void)snprintf(talk->reason, sizeof(talk->reason), "the answer holds no program%s",
                       whole ? "" : ": it was cut off at --max-tokens");
    }
    free(wish->reply.proposals); // none of an answer before
    wish->reply.proposals = xcalloc(count + 1, sizeof(*wish->reply.proposals));
    wish->reply.proposals_count = count;
    for (size_t i = 0; i < count; i++) {
        wish->reply.proposals[i].source =
            (struct bytes){.data = (unsigned char *)source[i], .len = strlen(source[i])};
    }
    answer_release(&answer);
    return count > 0;
}

static void remember(const struct wish *wish)
{
    struct propose_reply reply = wish->reply; // borrows its insides

    reply.model = (char *)(uintptr_t)model_of(&wish->talk);
    reply.cached = true; // and its tokens and cost are 0, as they will be then
    reply.first_tokens = wish->talk.input_tokens + wish->talk.output_tokens;
    reply.first_cost = wish->talk.cost;
    answer_cache_add(wish->talk.llm->cache, &wish->talk.key, &propose_reply_message, &reply);
}

static bool share(struct llm_question *talk, const struct llm_question *from)
{
    struct wish *wish = (struct wish *)talk;
    const struct wish *first = (const struct wish *)from;

    if (first->reply.proposals_count == 0) {
        return false;
    }
    message_copy(&propose_reply_message, &wish->reply, &first->reply);
    wish->reply.model = xstrdup(model_of(from));
    wish->reply.cached = true;
    wish->reply.first_tokens = from->input_tokens + from->output_tokens;
    wish->reply.first_cost = from->cost;
    return true;
}

static bool answered(struct llm_question *talk, const struct endpoint_result *result)
{
    struct wish *wish = (struct wish *)talk;
    bool again;

    if (result->status == 200) {
        again = !read_answer(wish, result);
        if (!again) {
            remember(wish);
        }
    } else {
        again =
            result->status == 400 && request_style_refused(&talk->style[result->endpoint], &talk->used,
                                                 (const char *)result->body.data, result->body.len);
        (void)snprintf(talk->reason, sizeof(talk->reason), "the endpoint answers with status %ld",
                       result->status);
    }
    return again && talk->tries < TRIES;
}

// ---- questions ----

static char *text_of(void (*write)(struct strbuf *out, const struct propose_request *request),
                     const struct propose_request *request)
{
    struct strbuf text = STRBUF_INIT;

    write(&text, request);
    return strbuf_detach(&text);
}

static struct digest key_of(const struct llm_question *talk)
{
    struct digest_state *state = digest_begin();

    digest_add_text(state, "propose");
    digest_add_text(state, llm_model(talk->llm));
    digest_add_text(state, talk->rules);
    digest_add_text(state, talk->search);
    digest_add_text(state, talk->last);
    digest_add(state, &talk->llm->config.temperature, sizeof(talk->llm->config.temperature));
    return digest_end(state);
}

void llm_propose(struct llm *llm, struct propose_request *request_take,
                 void (*done)(void *owner, const struct propose_reply *reply), void *owner)
{
    struct wish *wish = xcalloc(1, sizeof(*wish));
    struct llm_question *talk = &wish->talk;

    wish->request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    wish->done = done;
    wish->owner = owner;
    message_init(&propose_reply_message, &wish->reply);
    wish->reply.cost = wish->reply.seconds = 0;
    const char *language = wish->request.context->language;
    struct strbuf rules = STRBUF_INIT;
    prompt_propose_rules(&rules, language ? language : "C");
    wish->rules = strbuf_detach(&rules);
    *talk = (struct llm_question){
        .llm = llm,
        .rules = wish->rules,
        .search = text_of(prompt_propose_search, &wish->request),
        .last = text_of(prompt_parent, &wish->request),
        .spend = xstrdup(wish->request.search ? wish->request.search : ""),
        .style = llm->propose_style,
        .answered = answered,
        .share = share,
        .finish = finish,
    };
    talk->key = key_of(talk);
    if (answer_cache_find(llm->cache, &talk->key, &propose_reply_message, &wish->reply)) {
        llm->hits++;
        llm_question_finish_soon(talk);
    } else {
        talk->model = model_choice_choose(llm->writers, &talk->key);
        llm_question_begin(talk);
    }
}

void llm_tell(struct llm *llm, const struct observe *observe)
{
    model_choice_observe(llm->writers, observe);
}

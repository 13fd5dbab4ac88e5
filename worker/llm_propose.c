// A wish is one PROPOSE: one question, asked again only when its answer held no program. Its answer
// is remembered under everything that was said, so that a search that was killed gets the same
// candidates again and pays once.
#include "common/digest.h"
#include "common/mem.h"
#include "worker/answer.h"
#include "worker/answer_sources.h"
#include "worker/llm_state.h"
#include "worker/prompt.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROPOSALS_MAX 64
#define WISH_TRIES 3 // answers without a program, requests of another form included

struct wish {
    struct llm *llm;
    struct wish *next; // in ready_wish
    struct propose_request request;
    char *rules, *search, *parent;
    struct digest key;
    unsigned tries;
    char reason[ERR_TEXT_MAX];
    struct propose_reply reply;
    struct ask_style used; // of the request under way
    void (*done)(void *owner, const struct propose_reply *reply);
    void *owner;
};

static void finish(struct wish *wish)
{
    wish->llm->open--;
    if (wish->reply.proposals_count == 0) {
        wish->reply.reason = xasprintf("%.500s", wish->reason);
    }
    wish->done(wish->owner, &wish->reply);
    message_clear(&propose_request_message, &wish->request);
    message_clear(&propose_reply_message, &wish->reply);
    free(wish->rules);
    free(wish->search);
    free(wish->parent);
    free(wish);
}

void llm_answer_wishes(struct llm *llm)
{
    while (llm->ready_wish) {
        struct wish *wish = llm->ready_wish;

        llm->ready_wish = wish->next;
        finish(wish);
    }
}

static void finish_soon(struct wish *wish)
{
    wish->next = wish->llm->ready_wish;
    wish->llm->ready_wish = wish;
    llm_wake(wish->llm);
}

static double estimate_tokens(const struct wish *wish)
{
    return (double)(strlen(wish->rules) + strlen(wish->search) + strlen(wish->parent)) /
           LLM_BYTES_PER_TOKEN;
}

static void charge(struct wish *wish, size_t endpoint, const struct answer_usage *usage)
{
    const struct endpoint_config *config = endpoints_config(wish->llm->endpoints, endpoint);
    const char *search = wish->request.search ? wish->request.search : "";

    wish->reply.input_tokens += usage->input;
    wish->reply.output_tokens += usage->output;
    wish->reply.cost += account_charge(&wish->llm->book, search, config, usage);
}

static bool may_ask(struct wish *wish)
{
    struct err err = ERR_INIT;

    if (account_may_spend(&wish->llm->book, wish->request.search ? wish->request.search : "",
                          &err) != 0) {
        (void)snprintf(wish->reason, sizeof(wish->reason), "%s", err.text);
        return false;
    }
    return true;
}

// ---- answers ----

// True when there is at least one program.
static bool read_answer(struct wish *wish, const struct endpoint_result *result)
{
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    char *source[PROPOSALS_MAX];
    size_t count = 0;
    int status = answer_read(&answer, (const char *)result->body.data, result->body.len, &why, &err);
    bool whole = !answer.finish || strcmp(answer.finish, "length") != 0;

    charge(wish, result->endpoint, &answer.usage);
    if (status != 0) {
        (void)snprintf(wish->reason, sizeof(wish->reason), "%s", err.text);
    } else {
        count = answer.text ? answer_sources(answer.text, whole, source, PROPOSALS_MAX) : 0;
        (void)snprintf(wish->reason, sizeof(wish->reason), "the answer holds no program%s",
                       whole ? "" : ": it was cut off at --max-tokens");
    }
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

    reply.input_tokens = reply.output_tokens = 0;
    reply.cost = reply.seconds = 0;
    reply.cached = true;
    cache_add(wish->llm->cache, &wish->key, &propose_reply_message, &reply);
}

static void post(struct wish *wish);

static void on_result(void *owner, const struct endpoint_result *result)
{
    struct wish *wish = owner;
    struct llm *llm = wish->llm;
    bool again = false;

    wish->reply.seconds += result->seconds;
    free(wish->reply.model);
    wish->reply.model = xstrdup(endpoints_config(llm->endpoints, result->endpoint)->model);
    for (unsigned i = 0; i < result->maybe_billed; i++) {
        struct answer_usage usage = {.input = (uint64_t)estimate_tokens(wish)};

        charge(wish, result->endpoint, &usage);
    }
    if (result->err.code != ERR_NONE) {
        (void)snprintf(wish->reason, sizeof(wish->reason), "%s", result->err.text);
    } else if (result->status == 200) {
        free(wish->reply.proposals); // none of an answer before
        if (read_answer(wish, result)) {
            remember(wish);
        } else {
            again = true;
        }
    } else {
        again = result->status == 400 && ask_refused(&llm->propose_style[result->endpoint],
                                                     &wish->used, (const char *)result->body.data,
                                                     result->body.len);
        (void)snprintf(wish->reason, sizeof(wish->reason), "the endpoint answers with status %ld",
                       result->status);
    }
    if (again && wish->tries < WISH_TRIES && !llm->closing && may_ask(wish)) {
        post(wish);
        return;
    }
    finish(wish);
}

// ---- questions ----

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    struct wish *wish = owner;
    struct llm *llm = wish->llm;
    struct ask ask = {
        .model = endpoints_config(llm->endpoints, endpoint)->model,
        .rules = wish->rules,
        .search = wish->search,
        .candidate = wish->parent,
        .max_tokens = llm->config.max_tokens,
        .temperature = llm->config.temperature,
    };

    wish->used = llm->propose_style[endpoint];
    ask_body(body, &ask, &wish->used);
}

static void post(struct wish *wish)
{
    struct llm *llm = wish->llm;
    struct endpoint_call call = {
        .path = "/chat/completions",
        .build = build,
        .done = on_result,
        .owner = wish,
        .deadline_ms = llm->config.deadline_ms,
        .tokens = estimate_tokens(wish) + (double)llm->config.max_tokens,
    };

    wish->tries++;
    (void)endpoints_post(llm->endpoints, &call);
}

static char *text_of(void (*write)(struct strbuf *out, const struct propose_request *request),
                     const struct propose_request *request)
{
    struct strbuf text = STRBUF_INIT;

    write(&text, request);
    return strbuf_detach(&text);
}

static struct digest key_of(const struct wish *wish)
{
    struct digest_state *state = digest_begin();

    digest_add_text(state, "propose");
    digest_add_text(state, llm_model(wish->llm));
    digest_add_text(state, wish->rules);
    digest_add_text(state, wish->search);
    digest_add_text(state, wish->parent);
    digest_add(state, &wish->llm->config.temperature, sizeof(wish->llm->config.temperature));
    return digest_end(state);
}

void llm_propose(struct llm *llm, struct propose_request *request_take,
                 void (*done)(void *owner, const struct propose_reply *reply), void *owner)
{
    struct wish *wish = xcalloc(1, sizeof(*wish));
    struct strbuf rules = STRBUF_INIT;

    llm->open++;
    llm->questions++;
    wish->llm = llm;
    wish->request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    wish->done = done;
    wish->owner = owner;
    message_init(&propose_reply_message, &wish->reply);
    wish->reply.cost = wish->reply.seconds = 0;
    prompt_propose_rules(&rules, wish->request.context->language ? wish->request.context->language
                                                                 : "C");
    wish->rules = strbuf_detach(&rules);
    wish->search = text_of(prompt_propose_search, &wish->request);
    wish->parent = text_of(prompt_parent, &wish->request);
    wish->key = key_of(wish);
    if (cache_find(llm->cache, &wish->key, &propose_reply_message, &wish->reply)) {
        llm->hits++;
        finish_soon(wish);
    } else if (!may_ask(wish)) {
        finish_soon(wish);
    } else {
        post(wish);
    }
}

// Design note. A question makes one request at a time. What comes of its reply:
//   a usable answer           more of them where samples are wanted, or the end
//   something is not taken    the style changes, and the same endpoint is asked again
//   refused by a filter,      this endpoint is barred from the question, and another one is asked
//     too long
//   cut off                   asked again with twice the limit, once; then the end names the option
//   unusable                  asked again, elsewhere first
//   no reply                  the end; worker/endpoint/endpoint.c has tried all that could be tried
#include "worker/llm/llm_state.h"

#include "common/log.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MOST 24 // replies of all kinds without a usable answer, before a question ends

static uint32_t bit_of(size_t endpoint)
{
    return (uint32_t)1 << endpoint;
}

static const char *name_of(const struct llm_question *question, size_t endpoint)
{
    return endpoints_name(question->llm->endpoints, endpoint);
}

static struct request_style *style_of(const struct llm_question *question, size_t endpoint)
{
    return &question->llm->style[question->purpose][endpoint];
}

// ---- requests ----

static enum endpoint_admission admit(void *owner, size_t endpoint, struct err *err)
{
    struct llm_question *question = owner;

    if (!llm_ahead_admits(question, endpoint)) {
        return ENDPOINT_WAIT; // each endpoint gets its share
    }
    enum endpoint_admission admission = llm_charge_admit(question, endpoint, err);
    if (admission == ENDPOINT_ADMIT) {
        llm_ahead_begin(question, endpoint);
    }
    return admission;
}

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    static const struct answer_form *const form[LLM_PURPOSES] = {
        [LLM_FORECAST] = &answer_form_forecast, [LLM_RANK] = &answer_form_ranking};
    struct llm_question *question = owner;
    const struct endpoint_config *its = endpoints_config(question->llm->endpoints, endpoint);
    struct chat_request request = {
        .model = its->model,
        .rules = question->rules,
        .search = question->search,
        .candidate = question->last,
        .max_tokens = llm_max_tokens(question->llm, endpoint),
        .temperature = llm_temperature(question->llm, endpoint),
        .effort = its->effort,
        .extra = its->extra,
        .form = form[question->purpose],
    };

    question->endpoint = endpoint;
    question->requests++;
    question->used = *style_of(question, endpoint);
    question->limit = request_style_limit(&question->used, request.max_tokens);
    chat_request_body(body, &request, &question->used);
}

static void on_failed(void *owner, size_t endpoint, bool sent)
{
    llm_ahead_end(owner, endpoint, false);
    llm_charge_failure(owner, endpoint, sent);
}

static void on_trial(void *owner)
{
    struct llm_question *question = owner;

    (void)snprintf(question->reason, sizeof(question->reason),
                   "no endpoint can answer now: %s is being tried again",
                   name_of(question, question->endpoint));
    llm_question_abandon(question);
}

// ---- replies ----

// Takes the endpoint out of the question. Returns whether another one is left.
static bool exclude(struct llm_question *question, size_t endpoint)
{
    question->barred |= bit_of(endpoint);
    return (~question->barred & (bit_of(endpoints_count(question->llm->endpoints)) - 1)) != 0;
}

// The endpoint does not take something in the request. Returns whether to ask again.
static bool change_style(struct llm_question *question, const struct endpoint_result *result)
{
    struct llm *llm = question->llm;
    struct request_style *style = style_of(question, result->endpoint);

    question->avoid &= ~bit_of(result->endpoint);
    if (request_style_refused(style, &question->used, &result->refusal, question->limit,
                              endpoints_config(llm->endpoints, result->endpoint)->extra)) {
        return true;
    }
    // It is not the way of asking.
    llm_style_restore(llm, question->purpose, result->endpoint);
    char *reason = xasprintf("it refuses every way to ask (status %ld): %s", result->status,
                             result->refusal.words);
    struct endpoint_status status;
    endpoints_status(llm->endpoints, result->endpoint, &status);
    if (!status.answered) { // otherwise it may be this question only
        endpoints_rest(llm->endpoints, result->endpoint, reason);
    }
    (void)snprintf(question->reason, sizeof(question->reason), "%s: %s",
                   name_of(question, result->endpoint), reason);
    free(reason);
    return exclude(question, result->endpoint);
}

// The answer was cut off before anything usable. Returns whether to ask again.
static bool ask_for_more(struct llm_question *question, size_t endpoint)
{
    const struct endpoint_config *config = endpoints_config(question->llm->endpoints, endpoint);
    struct request_style *style = style_of(question, endpoint);

    if (!question->used.doubled) {
        struct request_style doubled = question->used;

        doubled.doubled = true;
        if (request_style_limit(&doubled, llm_max_tokens(question->llm, endpoint)) >
                question->limit ||
            style->doubled) {
            style->doubled = true;
            question->avoid &= ~bit_of(endpoint);
            return true;
        }
    }
    (void)snprintf(question->reason, sizeof(question->reason),
                   "%s: the answer was cut off at %llu tokens; give a larger %s%s%s",
                   name_of(question, endpoint), (unsigned long long)question->limit,
                   config->name ? "max-tokens in [endpoint " : "--max-tokens",
                   config->name ? config->name : "", config->name ? "]" : "");
    log_event(LOG_WARNING, "answer-cut-off endpoint=%s tokens=%llu reason=\"%s\"",
              name_of(question, endpoint), (unsigned long long)question->limit, question->reason);
    return false;
}

// Reads an answer with status 200. Returns whether to ask again.
static bool read_answer(struct llm_question *question, const struct endpoint_result *result)
{
    struct request_style *style = style_of(question, result->endpoint);
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    bool again;
    int rc = answer_read(&answer, (const char *)result->body.data, result->body.len, &why, &err);

    llm_charge_answer(question, result->endpoint, &answer, result->body.len);
    if (rc == 0 && question->take(question, &answer, &why)) {
        request_style_usable(style, &question->used);
        llm_style_save(question->llm, question->purpose, result->endpoint);
        question->tries = 0;
        question->avoid &= ~bit_of(result->endpoint);
        again = question->wants_more(question);
    } else if (rc == 0 && answer.end == ANSWER_CUT_OFF) {
        again = ask_for_more(question, result->endpoint);
    } else if (rc == 0 && answer.end == ANSWER_FILTERED) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s refuses: %.200s",
                       name_of(question, result->endpoint),
                       answer.text ? answer.text : "without a word");
        again = exclude(question, result->endpoint);
    } else {
        request_style_unusable(style, &question->used);
        (void)snprintf(question->reason, sizeof(question->reason), "%s: %s",
                       name_of(question, result->endpoint), rc == 0 ? why.text : err.text);
        again = question->tries < question->tries_max;
    }
    answer_release(&answer);
    return again;
}

// What comes of a reply. Returns whether to ask again.
static bool take_reply(struct llm_question *question, const struct endpoint_result *result)
{
    const struct refusal *refusal = &result->refusal;

    if (refusal->kind == REFUSAL_NONE && result->status == 200) {
        return read_answer(question, result);
    }
    llm_charge_failure(question, result->endpoint, false);
    (void)snprintf(question->reason, sizeof(question->reason), "%s: %s (status %ld)%s%s",
                   name_of(question, result->endpoint), refusal_meaning(refusal->kind),
                   result->status, refusal->words[0] != '\0' ? ": " : "", refusal->words);
    switch (refusal->kind) {
    case REFUSAL_REQUEST:
        return change_style(question, result) && question->tries < TRIES_MOST;
    case REFUSAL_UNUSABLE:
        request_style_unusable(style_of(question, result->endpoint), &question->used);
        return question->tries < question->tries_max;
    case REFUSAL_FILTERED:
    case REFUSAL_TOO_LONG:
        log_event(LOG_NOTICE, "question-refused endpoint=%s reason=\"%s\"",
                  name_of(question, result->endpoint), question->reason);
        return exclude(question, result->endpoint);
    default:
        return false; // every endpoint has been asked that could be
    }
}

static void on_result(void *owner, const struct endpoint_result *result)
{
    struct llm_question *question = owner;
    bool again = false;

    question->seconds += result->seconds;
    question->avoid = result->avoid;
    question->barred = result->barred;
    llm_ahead_end(question, result->endpoint, result->refusal.kind == REFUSAL_REQUEST);
    if (result->err.code != ERR_NONE) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s", result->err.text);
        question->own_end = result->err.code == ERR_TIMED_OUT || result->err.code == ERR_LIMIT;
    } else {
        again = take_reply(question, result);
    }
    if (again && !question->llm->closing &&
        uv_now(question->llm->timer.loop) < question->until_ms) {
        llm_question_post(question);
    } else {
        llm_question_end(question);
    }
}

void llm_question_post(struct llm_question *question)
{
    const struct llm *llm = question->llm;
    uint64_t now = uv_now(llm->timer.loop);
    struct endpoint_call call = {
        .admit = admit,
        .build = build,
        .failed = on_failed,
        .on_trial = question->give_up ? on_trial : NULL,
        .done = on_result,
        .owner = question,
        .deadline_ms = question->until_ms > now ? question->until_ms - now : 0,
        .tokens = llm_charge_estimate(question) + (double)llm->config.max_tokens,
        .model = question->model,
        .avoid = question->avoid,
        .barred = question->barred,
        .patient = question->patient,
    };

    question->tries++;
    endpoints_post(llm->endpoints, &call);
}

void llm_question_finish_all(struct llm *llm)
{
    while (llm->ready) {
        struct llm_question *question = llm->ready;

        llm->ready = question->next;
        question->finish(question);
    }
}

static void on_ready(uv_timer_t *timer)
{
    llm_question_finish_all(timer->data);
}

void llm_question_finish_soon(struct llm_question *question)
{
    question->next = question->llm->ready;
    question->llm->ready = question;
    (void)uv_timer_start(&question->llm->timer, on_ready, 0, 0);
}

void llm_question_release(struct llm_question *question)
{
    free(question->search);
    free(question->last);
    free(question->spend);
}

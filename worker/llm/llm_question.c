// The requests of a question: makes them, charges them, and decides whether to ask again.
#include "worker/llm/llm_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_TOKEN 3.5 // of source code, for estimates

// An estimate of the input tokens of one request.
static double estimate_tokens(const struct llm_question *question)
{
    return (double)(strlen(question->rules) + strlen(question->search) + strlen(question->last)) /
           BYTES_PER_TOKEN;
}

bool llm_question_may_ask(struct llm_question *question)
{
    struct err err = ERR_INIT;

    if (spend_may_spend(&question->llm->book, question->spend, &err) != 0) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s", err.text);
        question->own_end = true;
        return false;
    }
    return true;
}

void llm_question_charge(struct llm_question *question, size_t endpoint,
                         const struct answer_usage *usage)
{
    struct llm *llm = question->llm;

    question->input_tokens += usage->input;
    question->output_tokens += usage->output;
    question->cost += spend_charge(&llm->book, question->spend,
                                   endpoints_config(llm->endpoints, endpoint), usage);
}

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    struct llm_question *question = owner;
    struct chat_request request = {
        .model = endpoints_config(question->llm->endpoints, endpoint)->model,
        .rules = question->rules,
        .search = question->search,
        .candidate = question->last,
        .max_tokens = question->llm->config.max_tokens,
        .temperature = question->llm->config.temperature,
        .forecast = question->forecast,
    };

    question->used = question->style[endpoint];
    chat_request_body(body, &request, &question->used);
}

static void on_result(void *owner, const struct endpoint_result *result)
{
    struct llm_question *question = owner;

    question->endpoint = result->endpoint;
    question->seconds += result->seconds;
    for (unsigned i = 0; i < result->maybe_billed; i++) {
        struct answer_usage usage = {.input = (uint64_t)estimate_tokens(question)};

        llm_question_charge(question, result->endpoint, &usage);
    }
    bool again = false;
    if (result->err.code != ERR_NONE) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s", result->err.text);
        question->own_end = result->err.code == ERR_TIMED_OUT;
    } else {
        again = question->answered(question, result);
    }
    if (again && !question->llm->closing && llm_question_may_ask(question)) {
        llm_question_post(question);
    } else {
        llm_question_end(question);
    }
}

void llm_question_post(struct llm_question *question)
{
    const struct llm_config *config = &question->llm->config;
    struct endpoint_call call = {
        .path = "/chat/completions",
        .build = build,
        .done = on_result,
        .owner = question,
        .deadline_ms = question->deadline_ms,
        .tokens = estimate_tokens(question) + (double)config->max_tokens,
        .model = question->model,
    };

    question->tries++;
    endpoints_post(question->llm->endpoints, &call);
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

#include "worker/llm/llm_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_TOKEN 3.5 // of source code, for estimates

static double estimate_tokens(const struct llm_question *talk)
{
    return (double)(strlen(talk->rules) + strlen(talk->search) + strlen(talk->last)) /
           BYTES_PER_TOKEN;
}

bool llm_question_may_ask(struct llm_question *talk)
{
    struct err err = ERR_INIT;

    if (spend_may_spend(&talk->llm->book, talk->spend, &err) != 0) {
        (void)snprintf(talk->reason, sizeof(talk->reason), "%s", err.text);
        talk->own_end = true;
        return false;
    }
    return true;
}

void llm_question_charge(struct llm_question *talk, size_t endpoint, const struct answer_usage *usage)
{
    struct llm *llm = talk->llm;

    talk->input_tokens += usage->input;
    talk->output_tokens += usage->output;
    talk->cost +=
        spend_charge(&llm->book, talk->spend, endpoints_config(llm->endpoints, endpoint), usage);
}

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    struct llm_question *talk = owner;
    struct chat_request ask = {
        .model = endpoints_config(talk->llm->endpoints, endpoint)->model,
        .rules = talk->rules,
        .search = talk->search,
        .candidate = talk->last,
        .max_tokens = talk->llm->config.max_tokens,
        .temperature = talk->llm->config.temperature,
        .forecast = talk->forecast,
    };

    talk->used = talk->style[endpoint];
    chat_request_body(body, &ask, &talk->used);
}

static void on_result(void *owner, const struct endpoint_result *result)
{
    struct llm_question *talk = owner;

    talk->endpoint = result->endpoint;
    talk->seconds += result->seconds;
    for (unsigned i = 0; i < result->maybe_billed; i++) {
        struct answer_usage usage = {.input = (uint64_t)estimate_tokens(talk)};

        llm_question_charge(talk, result->endpoint, &usage);
    }
    bool again = false;
    if (result->err.code != ERR_NONE) {
        (void)snprintf(talk->reason, sizeof(talk->reason), "%s", result->err.text);
        talk->own_end = result->err.code == ERR_TIMED_OUT;
    } else {
        again = talk->answered(talk, result);
    }
    if (again && !talk->llm->closing && llm_question_may_ask(talk)) {
        llm_question_post(talk);
    } else {
        llm_question_end(talk);
    }
}

void llm_question_post(struct llm_question *talk)
{
    const struct llm_config *config = &talk->llm->config;
    struct endpoint_call call = {
        .path = "/chat/completions",
        .build = build,
        .done = on_result,
        .owner = talk,
        .deadline_ms = talk->deadline_ms,
        .tokens = estimate_tokens(talk) + (double)config->max_tokens,
        .model = talk->model,
    };

    talk->tries++;
    (void)endpoints_post(talk->llm->endpoints, &call);
}

void llm_question_finish_all(struct llm *llm)
{
    while (llm->ready) {
        struct llm_question *talk = llm->ready;

        llm->ready = talk->next;
        talk->finish(talk);
    }
}

static void on_ready(uv_timer_t *timer)
{
    llm_question_finish_all(timer->data);
}

void llm_question_finish_soon(struct llm_question *talk)
{
    talk->next = talk->llm->ready;
    talk->llm->ready = talk;
    (void)uv_timer_start(&talk->llm->timer, on_ready, 0, 0);
}

void llm_question_release(struct llm_question *talk)
{
    free(talk->search);
    free(talk->last);
    free(talk->spend);
}

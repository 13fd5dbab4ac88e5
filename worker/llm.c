// Design note. A question is one candidate; it asks `samples` times, one after another, because most of
// the prompt is then in the endpoint's cache. Each sample may be refused (the ladder goes down and the
// same sample is asked again), be unusable (asked again, LLM_TRIES in all), or fail (the question ends
// with what samples it has, or with a reason).
//
// Money: before a question is asked its search must be below its caps; what an attempt used is added
// when it is known, and an attempt that got no answer but may have been served is charged its input, as
// estimated.
#include "worker/llm.h"
#include "common/digest.h"
#include "common/mem.h"
#include "worker/answer.h"
#include "worker/llm_state.h"
#include "worker/prompt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct question {
    struct llm *llm;
    struct question *next; // in ready
    char *search, *candidate, *account;
    struct digest key;
    unsigned tries;
    uint64_t samples; // usable ones so far
    double correct_sum, bins[BIN_COUNT];
    uint64_t correct_count;
    char reason[ERR_TEXT_MAX];
    struct llm_answer answer;
    enum ask_rung rung;
    struct ask_style used; // of the request under way
    void (*done)(void *owner, const struct llm_answer *answer);
    void *owner;
};

static void post(struct question *question);

// ---- the end of a question ----

static double mean_correct(const struct question *question)
{
    return question->correct_count > 0
               ? question->correct_sum / (double)question->correct_count
               : NAN;
}

static void finish(struct question *question)
{
    struct llm *llm = question->llm;
    struct llm_answer *answer = &question->answer;

    if (question->samples > 0) {
        for (size_t i = 0; i < BIN_COUNT; i++) {
            answer->bins[i] = question->bins[i] / (double)question->samples;
        }
        answer->p_correct = mean_correct(question);
        answer->rung = ask_rung_name(question->rung);
    } else {
        answer->reason = question->reason;
    }
    llm->open--;
    question->done(question->owner, answer);
    free(question->search);
    free(question->candidate);
    free(question->account);
    free(question);
}

static void on_ready(uv_timer_t *timer)
{
    struct llm *llm = timer->data;

    while (llm->ready) {
        struct question *question = llm->ready;

        llm->ready = question->next;
        finish(question);
    }
    llm_answer_wishes(llm);
}

void llm_wake(struct llm *llm)
{
    (void)uv_timer_start(&llm->timer, on_ready, 0, 0);
}

static void finish_soon(struct question *question)
{
    question->next = question->llm->ready;
    question->llm->ready = question;
    llm_wake(question->llm);
}

static void remember(struct question *question)
{
    struct forecast forecast;
    double bins[BIN_COUNT];

    for (size_t i = 0; i < BIN_COUNT; i++) {
        bins[i] = question->bins[i] / (double)question->samples;
    }
    message_init(&forecast_message, &forecast);
    forecast.p_correct = mean_correct(question);
    forecast.bins = bins;
    forecast.bins_count = BIN_COUNT;
    forecast.rung = (char *)(uintptr_t)ask_rung_name(question->rung);
    cache_add(question->llm->cache, &question->key, &forecast_message, &forecast);
}

// ---- money ----

static double estimate_tokens(const struct question *question)
{
    return (double)(strlen(question->search) + strlen(question->candidate) +
                    question->llm->rules.len) /
           LLM_BYTES_PER_TOKEN;
}

static void charge(struct question *question, size_t endpoint, const struct answer_usage *usage)
{
    struct llm *llm = question->llm;

    question->answer.input_tokens += usage->input;
    question->answer.output_tokens += usage->output;
    question->answer.cost += account_charge(&llm->book, question->account,
                                            endpoints_config(llm->endpoints, endpoint), usage);
}

static bool may_ask(struct question *question)
{
    struct err err = ERR_INIT;

    if (account_may_spend(&question->llm->book, question->account, &err) != 0) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s", err.text);
        return false;
    }
    return true;
}

// ---- answers ----

static void pool(struct question *question, const struct answer_forecast *forecast)
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        question->bins[i] += forecast->bins[i];
    }
    if (!isnan(forecast->p_correct)) {
        question->correct_sum += forecast->p_correct;
        question->correct_count++;
    }
    question->samples++;
}

// Whether the question goes on with another request.
static bool read_answer(struct question *question, const struct endpoint_result *result)
{
    struct ask_style *style = &question->llm->style[result->endpoint];
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    int status = answer_read(&answer, (const char *)result->body.data, result->body.len, &why, &err);

    charge(question, result->endpoint, &answer.usage);
    if (status == 0 && answer.has_forecast) {
        ask_usable(style, &question->used);
        question->rung = question->used.rung;
        pool(question, &answer.forecast);
        question->tries = 0;
    } else {
        ask_unusable(style, &question->used);
        (void)snprintf(question->reason, sizeof(question->reason), "%s",
                       status == 0 ? why.text : err.text);
    }
    answer_release(&answer);
    return question->samples < question->llm->config.samples && question->tries < LLM_TRIES;
}

static void on_result(void *owner, const struct endpoint_result *result)
{
    struct question *question = owner;
    struct llm *llm = question->llm;
    bool again = false;

    question->answer.seconds += result->seconds;
    for (unsigned i = 0; i < result->maybe_billed; i++) {
        struct answer_usage usage = {.input = (uint64_t)estimate_tokens(question)};

        charge(question, result->endpoint, &usage);
    }
    if (result->err.code != ERR_NONE) {
        (void)snprintf(question->reason, sizeof(question->reason), "%s", result->err.text);
    } else if (result->status == 200) {
        again = read_answer(question, result);
    } else if ((result->status == 400 || result->status == 404 || result->status == 415 ||
                result->status == 422) &&
               ask_refused(&llm->style[result->endpoint], &question->used,
                           (const char *)result->body.data,
                           result->body.len)) {
        again = question->tries < LLM_TRIES;
        (void)snprintf(question->reason, sizeof(question->reason),
                       "the endpoint refuses every way to ask (status %ld)", result->status);
    } else {
        (void)snprintf(question->reason, sizeof(question->reason),
                       "the endpoint answers with status %ld", result->status);
    }
    if (again && !llm->closing && may_ask(question)) {
        post(question);
        return;
    }
    if (question->samples > 0) {
        remember(question);
    }
    finish(question);
}

// ---- questions ----

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    struct question *question = owner;
    struct llm *llm = question->llm;
    struct ask ask = {
        .model = endpoints_config(llm->endpoints, endpoint)->model,
        .rules = strbuf_text(&llm->rules),
        .search = question->search,
        .candidate = question->candidate,
        .max_tokens = llm->config.max_tokens,
        .temperature = llm->config.temperature,
        .forecast = true,
    };

    question->used = llm->style[endpoint];
    ask_body(body, &ask, &question->used);
}

static void post(struct question *question)
{
    struct llm *llm = question->llm;
    struct endpoint_call call = {
        .path = "/chat/completions",
        .build = build,
        .done = on_result,
        .owner = question,
        .deadline_ms = llm->config.deadline_ms,
        .tokens = estimate_tokens(question) + (double)llm->config.max_tokens,
    };

    question->tries++;
    endpoints_post(llm->endpoints, &call);
}

static struct digest key_of(const struct llm *llm, const struct question *question)
{
    struct digest_state *state = digest_begin();

    digest_add(state, &llm->rules_digest, sizeof(llm->rules_digest));
    digest_add_text(state, llm_model(llm));
    digest_add_text(state, question->search);
    digest_add_text(state, question->candidate);
    digest_add(state, &llm->config.samples, sizeof(llm->config.samples));
    digest_add(state, &llm->config.temperature, sizeof(llm->config.temperature));
    return digest_end(state);
}

static bool known(struct question *question)
{
    struct forecast forecast;
    bool found = cache_find(question->llm->cache, &question->key, &forecast_message, &forecast);

    if (!found) {
        return false;
    }
    found = forecast.bins_count == BIN_COUNT && forecast.rung != NULL;
    if (found) {
        question->samples = 1;
        memcpy(question->bins, forecast.bins, sizeof(question->bins));
        if (!isnan(forecast.p_correct)) {
            question->correct_sum = forecast.p_correct;
            question->correct_count = 1;
        }
        question->rung = ask_rung_of(forecast.rung);
        question->answer.cached = true;
        question->llm->hits++;
    }
    message_clear(&forecast_message, &forecast);
    return found;
}

void llm_forecast(struct llm *llm, const struct forecast_request *request, size_t index,
                  void (*done)(void *owner, const struct llm_answer *answer), void *owner)
{
    struct question *question = xcalloc(1, sizeof(*question));
    struct strbuf search = STRBUF_INIT, candidate = STRBUF_INIT;

    llm->open++;
    llm->questions++;
    question->llm = llm;
    question->done = done;
    question->owner = owner;
    question->account = xstrdup(request->search ? request->search : "");
    if (!request->context || request->candidates[index].source.len == 0) {
        (void)snprintf(question->reason, sizeof(question->reason),
                       "the request has no %s for a language model to read",
                       request->context ? "source of the candidate" : "context");
        question->search = xstrdup("");
        question->candidate = xstrdup("");
        finish_soon(question);
        return;
    }
    prompt_search(&search, request);
    prompt_candidate(&candidate, request, &request->candidates[index]);
    question->search = strbuf_detach(&search);
    question->candidate = strbuf_detach(&candidate);
    question->key = key_of(llm, question);
    if (known(question) || !may_ask(question)) {
        finish_soon(question);
    } else {
        post(question);
    }
}

void llm_status(const struct llm *llm, struct worker_status *status)
{
    size_t count = endpoints_count(llm->endpoints);

    status->endpoints = xcalloc(count, sizeof(*status->endpoints));
    for (size_t i = 0; i < count; i++) {
        const struct endpoint_config *config = endpoints_config(llm->endpoints, i);
        struct endpoint_info *info = &status->endpoints[status->endpoints_count++];
        struct endpoint_status now;

        endpoints_status(llm->endpoints, i, &now);
        message_init(&endpoint_info_message, info);
        info->url = xstrdup(config->url);
        info->model = xstrdup(config->model);
        info->requests = now.requests;
        info->retries = now.retries;
        info->failures = now.failures;
        info->in_flight = now.in_flight;
        info->at_once = now.limit;
        info->open = now.open;
        info->rung = xstrdup(ask_rung_name(llm->style[i].rung));
    }
    status->input_tokens = llm->book.input_tokens;
    status->output_tokens = llm->book.output_tokens;
    status->cost = llm->book.cost;
    status->cache_hits = llm->hits;
}

// ---- life ----

const char *llm_model(const struct llm *llm)
{
    return endpoints_config(llm->endpoints, 0)->model;
}

int llm_create(struct llm **ret, uv_loop_t *loop, const struct llm_config *config,
               const char *cache_path, struct err *err)
{
    struct llm *llm = xcalloc(1, sizeof(*llm));
    int status = cache_open(&llm->cache, cache_path, err);

    llm->config = *config;
    llm->config.endpoints = NULL;
    llm->book.tokens_per_search = config->tokens_per_search;
    llm->book.cost_per_search = config->cost_per_search;
    llm->rules = (struct strbuf)STRBUF_INIT;
    if (status == 0) {
        status = endpoints_create(&llm->endpoints, loop, config->endpoints, config->count,
                                  config->ca_file, err);
    }
    if (status != 0) {
        cache_close(llm->cache);
        free(llm);
        return status;
    }
    prompt_rules(&llm->rules);
    llm->rules_digest = digest_of(llm->rules.data, llm->rules.len);
    (void)uv_timer_init(loop, &llm->timer);
    llm->timer.data = llm;
    *ret = llm;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct llm *llm = handle->data;

    account_book_release(&llm->book);
    cache_close(llm->cache);
    strbuf_release(&llm->rules);
    free(llm);
}

void llm_close(struct llm *llm)
{
    if (!llm) {
        return;
    }
    llm->closing = true;
    endpoints_close(llm->endpoints); // answers what is under way
    on_ready(&llm->timer);
    uv_close((uv_handle_t *)&llm->timer, on_closed);
}

// Design note. This file asks for forecasts and owns struct llm. A forecast question is about one
// candidate. It asks for `samples` answers, one after another, since most of the prompt is then in
// the endpoint's prompt cache; the mean of the answers is the forecast. A request can
//   - be refused: the request style changes and the same sample is asked again;
//   - have an unusable answer: the same sample is asked again, TRIES times in all;
//   - fail: the question ends with the samples that it has, or with a reason.
//
// Spending: before a request the search must be below its limits. What a request used is charged
// when it is known. A request without an answer that may have been served is charged its estimated
// input.
#include "worker/llm/llm.h"

#include "common/mem.h"
#include "worker/llm/answer.h"
#include "worker/llm/llm_state.h"
#include "worker/llm/prompt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 8 // requests for one sample

struct forecast_question {
    struct llm_question question;        // first, so that it can be cast
    uint64_t samples;                    // usable answers so far
    double correct_sum, bins[BIN_COUNT]; // sums over the samples
    uint64_t correct_count;              // samples that state p_correct
    bool cached;                         // the answer was known or is an equal question's
    enum output_format format;
    void (*done)(void *owner, const struct llm_answer *answer);
    void *owner;
};

// ---- the end of a question ----

static double mean_correct(const struct forecast_question *self)
{
    return self->correct_count > 0 ? self->correct_sum / (double)self->correct_count : NAN;
}

static void mean_bins(const struct forecast_question *self, double ret[static BIN_COUNT])
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret[i] = self->bins[i] / (double)self->samples;
    }
}

// Adds the forecast to the cache.
static void remember(const struct forecast_question *self)
{
    double bins[BIN_COUNT];

    mean_bins(self, bins);
    struct forecast forecast;
    message_init(&forecast_message, &forecast);
    forecast.p_correct = mean_correct(self);
    forecast.bins = bins;
    forecast.bins_count = BIN_COUNT;
    forecast.rung = (char *)(uintptr_t)output_format_name(self->format);
    answer_cache_add(self->question.llm->cache, &self->question.key, &forecast_message, &forecast);
}

static void finish(struct llm_question *question)
{
    struct forecast_question *self = (struct forecast_question *)question;
    struct llm_answer answer = {
        .input_tokens = question->input_tokens,
        .output_tokens = question->output_tokens,
        .cost = question->cost,
        .seconds = question->seconds,
        .cached = self->cached,
    };

    if (self->samples > 0) {
        mean_bins(self, answer.bins);
        answer.p_correct = mean_correct(self);
        answer.format = output_format_name(self->format);
        if (!self->cached) {
            remember(self);
        }
    } else {
        answer.reason = question->reason;
    }
    self->done(self->owner, &answer);
    llm_question_release(question);
    free(self);
}

// ---- answers ----

// Adds one sample.
static void add_sample(struct forecast_question *self, const struct answer_forecast *forecast)
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        self->bins[i] += forecast->bins[i];
    }
    if (!isnan(forecast->p_correct)) {
        self->correct_sum += forecast->p_correct;
        self->correct_count++;
    }
    self->samples++;
}

// Reads an answer with status 200. Returns whether the question goes on with another request.
static bool read_answer(struct forecast_question *self, const struct endpoint_result *result)
{
    struct llm_question *question = &self->question;
    struct request_style *style = &question->style[result->endpoint];
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    int rc = answer_read(&answer, (const char *)result->body.data, result->body.len, &why, &err);

    llm_question_charge(question, result->endpoint, &answer.usage);
    if (rc == 0 && answer.has_forecast) {
        request_style_usable(style, &question->used);
        self->format = question->used.format;
        add_sample(self, &answer.forecast);
        question->tries = 0;
    } else {
        request_style_unusable(style, &question->used);
        (void)snprintf(question->reason, sizeof(question->reason), "%s",
                       rc == 0 ? why.text : err.text);
    }
    answer_release(&answer);
    return self->samples < question->llm->config.samples && question->tries < TRIES;
}

static bool take_answer(struct llm_question *question, const struct llm_question *from)
{
    struct forecast_question *self = (struct forecast_question *)question;
    const struct forecast_question *first = (const struct forecast_question *)from;

    if (first->samples == 0) {
        return false;
    }
    self->samples = first->samples;
    memcpy(self->bins, first->bins, sizeof(self->bins));
    self->correct_sum = first->correct_sum;
    self->correct_count = first->correct_count;
    self->format = first->format;
    self->cached = true;
    return true;
}

static bool answered(struct llm_question *question, const struct endpoint_result *result)
{
    bool refused = result->status == 400 || result->status == 404 || result->status == 415 ||
                   result->status == 422;

    if (result->status == 200) {
        return read_answer((struct forecast_question *)question, result);
    }
    if (refused && request_style_refused(&question->style[result->endpoint], &question->used,
                                         (const char *)result->body.data, result->body.len)) {
        (void)snprintf(question->reason, sizeof(question->reason),
                       "the endpoint refuses every way to ask (status %ld)", result->status);
        return question->tries < TRIES;
    }
    (void)snprintf(question->reason, sizeof(question->reason),
                   "the endpoint answers with status %ld", result->status);
    return false;
}

// ---- questions ----

// The digest of everything that the answer depends on.
static struct digest key_of(const struct llm_question *question)
{
    const struct llm *llm = question->llm;
    struct digest_state *state = digest_begin();

    digest_add(state, &llm->rules_digest, sizeof(llm->rules_digest));
    digest_add_text(state, llm_model(llm));
    digest_add_text(state, question->search);
    digest_add_text(state, question->last);
    digest_add(state, &llm->config.samples, sizeof(llm->config.samples));
    digest_add(state, &llm->config.temperature, sizeof(llm->config.temperature));
    return digest_end(state);
}

// Takes the answer from the cache. Returns whether it was there.
static bool find_cached(struct forecast_question *self)
{
    struct forecast forecast;
    bool found = answer_cache_find(self->question.llm->cache, &self->question.key,
                                   &forecast_message, &forecast);

    if (!found) {
        return false;
    }
    found = forecast.bins_count == BIN_COUNT && forecast.rung;
    if (found) {
        self->samples = 1;
        memcpy(self->bins, forecast.bins, sizeof(self->bins));
        if (!isnan(forecast.p_correct)) {
            self->correct_sum = forecast.p_correct;
            self->correct_count = 1;
        }
        self->format = output_format_of(forecast.rung);
        self->cached = true;
        self->question.llm->hits++;
    }
    message_clear(&forecast_message, &forecast);
    return found;
}

void llm_forecast(struct llm *llm, const struct forecast_request *request, size_t index,
                  void (*done)(void *owner, const struct llm_answer *answer), void *owner)
{
    struct forecast_question *self = xcalloc(1, sizeof(*self));
    struct llm_question *question = &self->question;
    struct strbuf search = STRBUF_INIT, candidate = STRBUF_INIT;

    *question = (struct llm_question){
        .llm = llm,
        .rules = strbuf_text(&llm->rules),
        .spend = xstrdup(request->search ? request->search : ""),
        .forecast = true,
        .style = llm->style,
        .answered = answered,
        .take_answer = take_answer,
        .finish = finish,
    };
    self->done = done;
    self->owner = owner;
    if (!request->context || request->candidates[index].source.len == 0) {
        (void)snprintf(question->reason, sizeof(question->reason),
                       "the request has no %s for a language model to read",
                       request->context ? "source of the candidate" : "context");
        llm_question_finish_soon(question);
        return;
    }
    prompt_search(&search, request);
    prompt_candidate(&candidate, request, &request->candidates[index]);
    question->search = strbuf_detach(&search);
    question->last = strbuf_detach(&candidate);
    question->key = key_of(question);
    if (find_cached(self)) {
        llm_question_finish_soon(question);
    } else {
        llm_question_begin(question);
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
        info->rung = xstrdup(output_format_name(llm->style[i].format));
        model_choice_status(llm->model_choice, config->model, info);
    }
    status->input_tokens = llm->book.input_tokens;
    status->output_tokens = llm->book.output_tokens;
    status->cost = llm->book.cost;
    status->cache_hits = llm->hits;
}

// ---- opening and closing ----

const char *llm_model(const struct llm *llm)
{
    return endpoints_config(llm->endpoints, 0)->model;
}

int llm_create(struct llm **ret, uv_loop_t *loop, const struct llm_config *config,
               const char *cache_path, struct err *err)
{
    struct llm *llm = xcalloc(1, sizeof(*llm));
    int rc = answer_cache_open(&llm->cache, cache_path, err);

    llm->config = *config;
    llm->config.endpoints = NULL;
    llm->book.tokens_per_search = config->tokens_per_search;
    llm->book.cost_per_search = config->cost_per_search;
    llm->rules = (struct strbuf)STRBUF_INIT;
    if (rc == 0) {
        rc = endpoints_create(&llm->endpoints, loop, config->endpoints, config->count,
                              config->ca_file, err);
    }
    if (rc != 0) {
        answer_cache_close(llm->cache);
        free(llm);
        return rc;
    }
    llm->model_choice = model_choice_create(config->endpoints, config->count);
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

    spend_book_release(&llm->book);
    answer_cache_close(llm->cache);
    strbuf_release(&llm->rules);
    model_choice_free(llm->model_choice);
    free(llm);
}

void llm_close(struct llm *llm)
{
    if (!llm) {
        return;
    }
    llm->closing = true;
    endpoints_close(llm->endpoints); // ends the open questions
    llm_question_finish_all(llm);
    uv_close((uv_handle_t *)&llm->timer, on_closed);
}

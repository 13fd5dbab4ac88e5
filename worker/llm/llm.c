// Design note. This file asks for forecasts and owns struct llm. A forecast question is about one
// candidate. It asks for `samples` answers, one after another, since most of the prompt is then in
// the endpoint's prompt cache; the mean of the answers is the forecast. The question ends with the
// samples that it has, or with a reason (worker/llm/llm_question.c).
#include "worker/llm/llm.h"

#include "common/mem.h"
#include "worker/llm/answer.h"
#include "worker/llm/llm_state.h"
#include "worker/prompt/prompt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 8 // replies without a usable answer, for one sample

struct forecast_question {
    struct llm_question question;        // first, so that it can be cast
    uint64_t samples;                    // usable answers so far
    double correct_sum, bins[BIN_COUNT]; // sums over the samples
    uint64_t correct_count;              // samples that state p_correct
    double margin_log2;                  // of an improvement
    double better_sum;                   // sum of P(better by the margin) over the samples
    uint64_t better_count;               // samples that answer the second question
    uint64_t deferred;                   // answers that say that the model cannot say
    bool cached;                         // the answer was known or is an equal question's
    bool fresh;                          // no answer that was given before will do
    char *forecaster;                    // who has answered; NULL: nobody yet
    enum output_format format;
    void (*done)(void *owner, const struct llm_answer *answer);
    void *owner;
};

// ---- the end of a question ----

static double mean_correct(const struct forecast_question *self)
{
    return self->correct_count > 0 ? self->correct_sum / (double)self->correct_count : NAN;
}

static double mean_better(const struct forecast_question *self)
{
    return self->better_count > 0 ? self->better_sum / (double)self->better_count : NAN;
}

// Whether the model cannot say: most of its answers say so.
static bool defers(const struct forecast_question *self)
{
    return self->deferred > self->samples;
}

static bool is_answered(const struct forecast_question *self)
{
    return self->samples > 0 || self->deferred > 0;
}

static void mean_bins(const struct forecast_question *self, double ret[static BIN_COUNT])
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret[i] = self->bins[i] / (double)self->samples;
    }
}

// Adds the forecast to the cache; one without bins is a deferral.
static void remember(const struct forecast_question *self)
{
    double bins[BIN_COUNT];
    struct forecast forecast;

    message_init(&forecast_message, &forecast);
    if (!defers(self)) {
        mean_bins(self, bins);
        forecast.p_correct = mean_correct(self);
        forecast.p_improves = mean_better(self); // given that it is correct
        forecast.bins = bins;
        forecast.bins_count = BIN_COUNT;
    }
    struct raw_forecast by;
    struct digest key =
        llm_answer_key(self->question.llm, &self->question.key, self->question.endpoint);
    message_init(&raw_forecast_message, &by);
    by.model = self->forecaster;
    forecast.raw = &by;
    forecast.rung = (char *)(uintptr_t)output_format_name(self->format);
    answer_cache_add(self->question.llm->cache, &key, &forecast_message, &forecast);
}

// What is said to whoever asked.
static void tell(struct forecast_question *self)
{
    const struct llm_question *question = &self->question;
    struct llm *llm = question->llm;
    struct strbuf way = STRBUF_INIT;
    struct llm_answer answer = {
        .input_tokens = question->input_tokens,
        .output_tokens = question->output_tokens,
        .cached_tokens = question->cached_tokens,
        .cost = question->cost,
        .seconds = question->seconds,
        .requests = question->requests,
        .cached = self->cached,
    };

    if (question->requests > 0) {
        request_style_describe(&way, &question->used,
                               endpoints_config(llm->endpoints, question->endpoint)->extra);
        answer.endpoint = endpoints_name(llm->endpoints, question->endpoint);
        answer.way = strbuf_text(&way);
    }
    if (defers(self)) {
        answer.reason = "the model says that it cannot say";
    } else if (self->samples > 0) {
        mean_bins(self, answer.bins);
        answer.p_correct = mean_correct(self);
        answer.p_better = mean_better(self);
        answer.format = output_format_name(self->format);
        answer.forecaster = self->forecaster;
    } else {
        answer.reason = question->reason;
    }
    self->done(self->owner, &answer);
    strbuf_release(&way);
}

static void finish(struct llm_question *question)
{
    struct forecast_question *self = (struct forecast_question *)question;

    if (is_answered(self) && !self->cached && !self->fresh) {
        remember(self);
    }
    if (!question->abandoned) {
        tell(self);
    }
    llm_question_release(question);
    free(self->forecaster);
    free(self);
}

static void give_up(struct llm_question *question)
{
    tell((struct forecast_question *)question);
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
    if (forecast->has_fine) {
        self->better_sum += fine_bins_above(forecast->fine, self->margin_log2);
        self->better_count++;
    }
    self->samples++;
}

static bool take(struct llm_question *question, const struct answer *answer, struct err *why)
{
    struct forecast_question *self = (struct forecast_question *)question;

    (void)why; // answer_read has said what is missing
    if (answer->has_forecast && !self->forecaster) {
        self->format = question->used.format;
        self->forecaster = llm_forecaster(question->llm, question->endpoint, &question->used);
        question->barred |= ~((uint32_t)1 << question->endpoint); // the others are another one
    }
    if (answer->has_forecast && answer->forecast.defers) {
        self->deferred++;
    } else if (answer->has_forecast) {
        add_sample(self, &answer->forecast);
    }
    return answer->has_forecast;
}

static bool wants_more(struct llm_question *question)
{
    const struct forecast_question *self = (const struct forecast_question *)question;

    return self->samples + self->deferred < question->llm->config.samples;
}

static bool take_answer(struct llm_question *question, const struct llm_question *from)
{
    struct forecast_question *self = (struct forecast_question *)question;
    const struct forecast_question *first = (const struct forecast_question *)from;

    if (!is_answered(first)) {
        return false;
    }
    self->samples = first->samples;
    memcpy(self->bins, first->bins, sizeof(self->bins));
    self->correct_sum = first->correct_sum;
    self->correct_count = first->correct_count;
    self->better_sum = first->better_sum;
    self->better_count = first->better_count;
    self->deferred = first->deferred;
    self->format = first->format;
    self->forecaster = xstrdup(first->forecaster);
    self->cached = true;
    return true;
}

// ---- questions ----

// The digest of everything that the answer depends on, but for the endpoint.
static struct digest key_of(const struct llm_question *question, uint64_t only)
{
    const struct llm *llm = question->llm;
    struct digest_state *state = digest_begin();

    if (only > 0) {
        digest_add(state, &only, sizeof(only));
    }

    digest_add(state, &llm->rules_digest, sizeof(llm->rules_digest));
    digest_add_text(state, question->search);
    digest_add_text(state, question->last);
    digest_add(state, &((const struct forecast_question *)question)->margin_log2, sizeof(double));
    digest_add(state, &llm->config.samples, sizeof(llm->config.samples));
    return digest_end(state);
}

// Takes this endpoint's answer from the cache. Returns whether it was there.
static bool find_answer_of(struct forecast_question *self, size_t endpoint)
{
    struct llm *llm = self->question.llm;
    struct digest key = llm_answer_key(llm, &self->question.key, endpoint);
    struct forecast forecast;
    bool found = answer_cache_find(llm->cache, &key, &forecast_message, &forecast);

    if (!found) {
        return false;
    }
    bool deferral = forecast.bins_count == 0;
    found = (deferral || forecast.bins_count == BIN_COUNT) && forecast.rung && forecast.raw;
    if (found && deferral) {
        self->deferred = 1;
    } else if (found) {
        self->samples = 1;
        memcpy(self->bins, forecast.bins, sizeof(self->bins));
        if (!isnan(forecast.p_correct)) {
            self->correct_sum = forecast.p_correct;
            self->correct_count = 1;
        }
        if (!isnan(forecast.p_improves)) {
            self->better_sum = forecast.p_improves;
            self->better_count = 1;
        }
    }
    if (found) {
        self->format = output_format_of(forecast.rung);
        self->forecaster = xstrdup(forecast.raw->model);
        self->cached = true;
        llm->hits++;
    }
    message_clear(&forecast_message, &forecast);
    return found;
}

// The same of the first endpoint that has answered.
static bool find_cached(struct forecast_question *self)
{
    bool found = false;

    for (size_t i = 0; i < endpoints_count(self->question.llm->endpoints) && !found; i++) {
        found = find_answer_of(self, i);
    }
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
        .purpose = LLM_FORECAST,
        .tries_max = TRIES,
        .take = take,
        .wants_more = wants_more,
        .take_answer = take_answer,
        .give_up = give_up,
        .finish = finish,
    };
    self->done = done;
    self->owner = owner;
    self->margin_log2 = isnan(request->margin_log2) ? 0 : request->margin_log2;
    if (request->endpoint > endpoints_count(llm->endpoints)) {
        (void)snprintf(question->reason, sizeof(question->reason),
                       "the worker has %zu endpoints and no endpoint %llu",
                       endpoints_count(llm->endpoints), (unsigned long long)request->endpoint);
        llm_question_finish_soon(question);
        return;
    }
    if (request->endpoint > 0) {
        question->barred = ~((uint32_t)1 << (request->endpoint - 1));
        self->fresh = true;
        question->patient = true; // there is no other one
    }
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
    question->key = key_of(question, request->endpoint);
    if (request->candidates_count >= LLM_AHEAD_FROM) {
        question->beginning = digest_of(question->search, strlen(question->search));
    }
    if (!self->fresh && find_cached(self)) {
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
        info->rung = xstrdup(output_format_name(llm->style[LLM_FORECAST][i].format));
        info->forecaster = llm_forecaster(llm, i, &llm->style[LLM_FORECAST][i]);
        info->name = config->name ? xstrdup(config->name) : NULL;
        info->api = xstrdup(api_form_name(config->form));
        info->trouble = now.words[0] != '\0' ? xstrdup(now.words) : NULL;
        model_choice_status(llm->model_choice, config->model, info);
    }
    status->input_tokens = llm->book.input_tokens;
    status->output_tokens = llm->book.output_tokens;
    status->cost = llm->book.cost;
    status->cache_hits = llm->hits;
}

// ---- opening and closing ----

// Frees what llm_create has opened but for the endpoints.
static void free_llm(struct llm *llm)
{
    spend_book_release(&llm->book);
    endpoint_store_close(llm->store);
    answer_cache_close(llm->cache);
    strbuf_release(&llm->rules);
    model_choice_free(llm->model_choice);
    free(llm);
}

int llm_create(struct llm **ret, uv_loop_t *loop, const struct llm_config *config,
               const char *state_dir, struct err *err)
{
    struct llm *llm = xcalloc(1, sizeof(*llm));
    char *cache = xasprintf("%s/answers.db", state_dir);
    char *store = xasprintf("%s/endpoints.db", state_dir);

    llm->config = *config;
    llm->config.endpoints = NULL;
    llm->rules = (struct strbuf)STRBUF_INIT;
    int rc = answer_cache_open(&llm->cache, cache, err);
    if (rc != 0) {
        goto out;
    }
    rc = endpoint_store_open(&llm->store, store, err);
    if (rc != 0) {
        goto out;
    }
    rc = endpoints_create(&llm->endpoints, loop, config->endpoints, config->count, config->ca_file,
                          err);
    if (rc != 0) {
        goto out;
    }
    llm->book.limits = config->limits;
    llm->book.store = llm->store;
    llm_style_load(llm);
    llm->model_choice = model_choice_create(config->endpoints, config->count);
    prompt_rules(&llm->rules);
    llm->rules_digest = digest_of(llm->rules.data, llm->rules.len);
    (void)uv_timer_init(loop, &llm->timer);
    llm->timer.data = llm;
    *ret = llm;
    llm = NULL;
out:
    if (llm) {
        free_llm(llm);
    }
    free(cache);
    free(store);
    return rc;
}

static void on_closed(uv_handle_t *handle)
{
    free_llm(handle->data);
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

// Design note. A question is one candidate; it asks `samples` times, one after another, because most of
// the prompt is then in the endpoint's cache. Each sample may be refused (the ladder goes down and the
// same sample is asked again), be unusable (asked again, TRIES in all), or fail (the question ends
// with what samples it has, or with a reason).
//
// Money: before a question is asked its search must be below its caps; what an attempt used is added
// when it is known, and an attempt that got no answer but may have been served is charged its input, as
// estimated.
#include "worker/llm/llm.h"
#include "common/mem.h"
#include "worker/llm/answer.h"
#include "worker/llm/llm_state.h"
#include "worker/llm/prompt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 8

struct question {
    struct llm_question talk; // first
    uint64_t samples;     // usable ones so far
    double correct_sum, bins[BIN_COUNT];
    uint64_t correct_count;
    bool cached;
    enum output_format rung;
    void (*done)(void *owner, const struct llm_answer *answer);
    void *owner;
};

// ---- the end of a question ----

static double mean_correct(const struct question *question)
{
    return question->correct_count > 0 ? question->correct_sum / (double)question->correct_count
                                       : NAN;
}

static void mean_bins(const struct question *question, double ret[static BIN_COUNT])
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret[i] = question->bins[i] / (double)question->samples;
    }
}

static void remember(const struct question *question)
{
    double bins[BIN_COUNT];

    mean_bins(question, bins);
    struct forecast forecast;
    message_init(&forecast_message, &forecast);
    forecast.p_correct = mean_correct(question);
    forecast.bins = bins;
    forecast.bins_count = BIN_COUNT;
    forecast.rung = (char *)(uintptr_t)output_format_name(question->rung);
    answer_cache_add(question->talk.llm->cache, &question->talk.key, &forecast_message, &forecast);
}

static void finish(struct llm_question *talk)
{
    struct question *question = (struct question *)talk;
    struct llm_answer answer = {
        .input_tokens = talk->input_tokens,
        .output_tokens = talk->output_tokens,
        .cost = talk->cost,
        .seconds = talk->seconds,
        .cached = question->cached,
    };

    if (question->samples > 0) {
        mean_bins(question, answer.bins);
        answer.p_correct = mean_correct(question);
        answer.rung = output_format_name(question->rung);
        if (!question->cached) {
            remember(question);
        }
    } else {
        answer.reason = talk->reason;
    }
    question->done(question->owner, &answer);
    llm_question_release(talk);
    free(question);
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
    struct llm_question *talk = &question->talk;
    struct request_style *style = &talk->style[result->endpoint];
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    int rc = answer_read(&answer, (const char *)result->body.data, result->body.len, &why, &err);

    llm_question_charge(talk, result->endpoint, &answer.usage);
    if (rc == 0 && answer.has_forecast) {
        request_style_usable(style, &talk->used);
        question->rung = talk->used.rung;
        pool(question, &answer.forecast);
        talk->tries = 0;
    } else {
        request_style_unusable(style, &talk->used);
        (void)snprintf(talk->reason, sizeof(talk->reason), "%s", rc == 0 ? why.text : err.text);
    }
    answer_release(&answer);
    return question->samples < talk->llm->config.samples && talk->tries < TRIES;
}

static bool share(struct llm_question *talk, const struct llm_question *from)
{
    struct question *question = (struct question *)talk;
    const struct question *first = (const struct question *)from;

    if (first->samples == 0) {
        return false;
    }
    question->samples = first->samples;
    memcpy(question->bins, first->bins, sizeof(question->bins));
    question->correct_sum = first->correct_sum;
    question->correct_count = first->correct_count;
    question->rung = first->rung;
    question->cached = true;
    return true;
}

static bool answered(struct llm_question *talk, const struct endpoint_result *result)
{
    bool refused = result->status == 400 || result->status == 404 || result->status == 415 ||
                   result->status == 422;

    if (result->status == 200) {
        return read_answer((struct question *)talk, result);
    }
    if (refused && request_style_refused(&talk->style[result->endpoint], &talk->used,
                               (const char *)result->body.data, result->body.len)) {
        (void)snprintf(talk->reason, sizeof(talk->reason),
                       "the endpoint refuses every way to ask (status %ld)", result->status);
        return talk->tries < TRIES;
    }
    (void)snprintf(talk->reason, sizeof(talk->reason), "the endpoint answers with status %ld",
                   result->status);
    return false;
}

// ---- questions ----

static struct digest key_of(const struct llm_question *talk)
{
    const struct llm *llm = talk->llm;
    struct digest_state *state = digest_begin();

    digest_add(state, &llm->rules_digest, sizeof(llm->rules_digest));
    digest_add_text(state, llm_model(llm));
    digest_add_text(state, talk->search);
    digest_add_text(state, talk->last);
    digest_add(state, &llm->config.samples, sizeof(llm->config.samples));
    digest_add(state, &llm->config.temperature, sizeof(llm->config.temperature));
    return digest_end(state);
}

static bool known(struct question *question)
{
    struct forecast forecast;
    bool found =
        answer_cache_find(question->talk.llm->cache, &question->talk.key, &forecast_message, &forecast);

    if (!found) {
        return false;
    }
    found = forecast.bins_count == BIN_COUNT && forecast.rung;
    if (found) {
        question->samples = 1;
        memcpy(question->bins, forecast.bins, sizeof(question->bins));
        if (!isnan(forecast.p_correct)) {
            question->correct_sum = forecast.p_correct;
            question->correct_count = 1;
        }
        question->rung = output_format_of(forecast.rung);
        question->cached = true;
        question->talk.llm->hits++;
    }
    message_clear(&forecast_message, &forecast);
    return found;
}

void llm_forecast(struct llm *llm, const struct forecast_request *request, size_t index,
                  void (*done)(void *owner, const struct llm_answer *answer), void *owner)
{
    struct question *question = xcalloc(1, sizeof(*question));
    struct llm_question *talk = &question->talk;
    struct strbuf search = STRBUF_INIT, candidate = STRBUF_INIT;

    *talk = (struct llm_question){
        .llm = llm,
        .rules = strbuf_text(&llm->rules),
        .spend = xstrdup(request->search ? request->search : ""),
        .forecast = true,
        .style = llm->style,
        .answered = answered,
        .share = share,
        .finish = finish,
    };
    question->done = done;
    question->owner = owner;
    if (!request->context || request->candidates[index].source.len == 0) {
        (void)snprintf(talk->reason, sizeof(talk->reason),
                       "the request has no %s for a language model to read",
                       request->context ? "source of the candidate" : "context");
        llm_question_finish_soon(talk);
        return;
    }
    prompt_search(&search, request);
    prompt_candidate(&candidate, request, &request->candidates[index]);
    talk->search = strbuf_detach(&search);
    talk->last = strbuf_detach(&candidate);
    talk->key = key_of(talk);
    if (known(question)) {
        llm_question_finish_soon(talk);
    } else {
        llm_question_begin(talk);
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
        info->rung = xstrdup(output_format_name(llm->style[i].rung));
        model_choice_status(llm->writers, config->model, info);
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
    llm->writers = model_choice_create(config->endpoints, config->count);
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
    model_choice_free(llm->writers);
    free(llm);
}

void llm_close(struct llm *llm)
{
    if (!llm) {
        return;
    }
    llm->closing = true;
    endpoints_close(llm->endpoints); // answers what is under way
    llm_question_finish_all(llm);
    uv_close((uv_handle_t *)&llm->timer, on_closed);
}

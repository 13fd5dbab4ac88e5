// Asks language models for forecasts, for candidates and for the order of candidates. Owns the
// prompts, the request styles, the samples, the limits on spending and the cache of answers. Owned
// and called by engine llm. How endpoints are reached is the business of endpoint.h, and
// recalibration that of worker/outcomes/history.h. All functions run on the loop thread.
#ifndef WORKER_LLM_LLM_H
#define WORKER_LLM_LLM_H

#include "proto/bins.h"
#include "proto/messages.h"
#include "worker/endpoint/endpoint.h"
#include "worker/llm/spend.h"

#define LLM_SAMPLES_MAX 16
#define LLM_AHEAD_FROM 3 // questions of a request, of which one is asked ahead

struct llm_config {
    struct endpoint_config *endpoints; // [count]; texts are borrowed until llm_create returns
    size_t count;
    const char *ca_file;
    uint64_t samples;    // answers per candidate, whose mean is the forecast
    uint64_t max_tokens; // of one answer
    double temperature;
    uint64_t deadline_ms;       // of one question, retries included
    struct spend_limits limits; // on spending
};

struct llm;

// The forecast for one candidate, or the reason why there is none.
struct llm_answer {
    const char *reason; // NULL: there is a forecast
    double p_correct;   // mean of the answers that state it; NaN: none does
    double bins[BIN_COUNT];
    // P(faster than the incumbent by the request's margin), given that it is correct, by the second
    // question; NaN: it was not answered.
    double p_better;
    const char *forecaster;               // who answered, "MODEL #DIGEST"; NULL without a forecast
    const char *format;                   // name of the output format
    uint64_t input_tokens, output_tokens; // of all requests
    uint64_t cached_tokens;               // of the input, that the endpoint had kept
    double cost, seconds;                 // likewise
    uint64_t requests;                    // that were made
    const char *endpoint;                 // name of the one that was asked last; NULL: none was
    const char *way;                      // in which it was asked, for people; NULL likewise
    bool cached;                          // the answer was known
};

// The files of worker/llm/answer_cache.h and worker/endpoint/endpoint_store.h are in state_dir.
// Errors of answer_cache_open, endpoint_store_open and endpoints_create.
MUST_CHECK int llm_create(struct llm **ret, uv_loop_t *loop, const struct llm_config *config,
                          const char *state_dir, struct err *err);

// Asks for a forecast of candidate `index` of the request, which must outlive the question. All
// samples of a forecast come from one endpoint, which it names. A question that is open already is
// not asked a second time, and one that any of the endpoints has answered before, asked in the same
// way, has that answer. Of a request for LLM_AHEAD_FROM forecasts or more each endpoint is asked
// one question ahead of the others (worker/llm/llm_ahead.c). A request that names an endpoint asks
// that one, and takes no answer that was given before. done runs once, on the loop, never inside
// this function; *answer is valid during it.
void llm_forecast(struct llm *llm, const struct forecast_request *request, size_t index,
                  void (*done)(void *owner, const struct llm_answer *answer), void *owner);

// Asks for new candidates, first of all the model that worker/llm/model_choice.h chooses. Takes
// what *request_take owns and zeroes the struct. done runs once, on the loop, never inside this
// function; *reply is valid during it, and has a reason when it has no proposals.
void llm_propose(struct llm *llm, struct propose_request *request_take,
                 void (*done)(void *owner, const struct propose_reply *reply), void *owner);

// Asks in one question which of several candidates are to go first. Takes what *request_take owns
// and zeroes the struct. done runs once, on the loop, never inside this function; *reply is valid
// during it, and has a reason when it has no order.
void llm_rank(struct llm *llm, struct rank_request *request_take,
              void (*done)(void *owner, const struct rank_reply *reply), void *owner);

// Teaches the choice of models (worker/llm/model_choice.h) which candidates were improvements.
void llm_observe(struct llm *llm, const struct observe *observe);

// Sets the list of endpoints and the sums in *status, which owns them.
void llm_status(const struct llm *llm, struct worker_status *status);

// Open questions are done, with a reason, inside this function. llm frees itself when the loop has
// closed its handles. NULL is fine.
void llm_close(struct llm *llm);

#endif

// Asks language models for forecasts and for candidates: prompt, ladder, samples, caps, cache; endpoints and their manners
// are endpoint.h's business, what is made of the answers record.h's.
#ifndef WORKER_LLM_LLM_H
#define WORKER_LLM_LLM_H

#include "proto/bins.h"
#include "proto/messages.h"
#include "worker/llm/endpoint.h"

#define LLM_SAMPLES_MAX 16

struct llm_config {
    struct endpoint_config *endpoints; // [count]; texts are borrowed until llm_create returns
    size_t count;
    const char *ca_file;
    uint64_t samples; // of each candidate, pooled
    uint64_t max_tokens;
    double temperature;
    uint64_t deadline_ms; // of one question, retries included
    // Caps for one search since this process began; 0: none.
    double tokens_per_search, cost_per_search;
};

struct llm;

// One candidate's forecast, or why there is none.
struct llm_answer {
    const char *reason; // NULL: there is a forecast
    double p_correct;   // mean of those that said it; NaN: none did
    double bins[BIN_COUNT];
    const char *rung;
    uint64_t input_tokens, output_tokens; // of every attempt
    double cost, seconds;
    bool cached;
};

// cache_path: a file of answers that were paid for (worker/llm/answer_cache.h).
MUST_CHECK int llm_create(struct llm **ret, uv_loop_t *loop, const struct llm_config *config,
                          const char *cache_path, struct err *err);
const char *llm_model(const struct llm *llm); // of the first endpoint
// Asks about candidate `index` of the request, which outlives the call. A question that is open already
// is not asked twice: its answer is cached then. done runs once, on the loop,
// not inside this call.
void llm_forecast(struct llm *llm, const struct forecast_request *request, size_t index,
                  void (*done)(void *owner, const struct llm_answer *answer), void *owner);
// Asks for new candidates, first of all the model that worker/llm/model_choice.h chooses. *request_take is taken (its insides; the struct is zeroed). done runs once,
// on the loop, not inside this call; reply is valid during it, and has a reason when it has no
// proposals.
void llm_propose(struct llm *llm, struct propose_request *request_take,
                 void (*done)(void *owner, const struct propose_reply *reply), void *owner);
// Learns from outcomes whose candidates bring something (worker/llm/model_choice.h).
void llm_tell(struct llm *llm, const struct observe *observe);
// Adds endpoints and sums.
void llm_status(const struct llm *llm, struct worker_status *status);
// Questions that are open get their answer (a reason) inside this call. llm is gone when the loop has
// nothing of it left.
void llm_close(struct llm *llm);

#endif

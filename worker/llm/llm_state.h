// The inside of struct llm and of its questions. Only llm*.c include this: llm.c asks for
// forecasts, llm_propose.c for candidates; llm_question.c makes the requests of a question and
// charges them, and llm_coalesce.c joins equal questions.
#ifndef WORKER_LLM_LLM_STATE_H
#define WORKER_LLM_LLM_STATE_H

#include "common/digest.h"
#include "common/strbuf.h"
#include "worker/llm/answer_cache.h"
#include "worker/llm/chat_request.h"
#include "worker/llm/llm.h"
#include "worker/llm/model_choice.h"
#include "worker/llm/spend.h"
#include <uthash.h>
#include <uv.h>

struct llm {
    struct llm_config config;
    struct endpoints *endpoints;
    struct model_choice *model_choice;
    struct request_style style[ENDPOINTS_MAX];         // for forecasts
    struct request_style propose_style[ENDPOINTS_MAX]; // for candidates
    struct spend_book book;
    struct answer_cache *cache;
    struct strbuf rules; // of forecasting, for the prompt
    struct digest rules_digest;
    uint64_t hits;              // answers from the cache or of an equal question
    uv_timer_t timer;           // finishes what is ready
    struct llm_question *ready; // list of questions whose answer is known
    struct llm_question *open;  // hash table by key: questions that endpoints are asked now
    bool closing;
};

// One question, from its first request to its answer. The first member of a forecast question or a
// proposal question.
struct llm_question {
    struct llm *llm;
    struct digest key;            // equal keys mean equal answers
    UT_hash_handle hh;            // in llm->open
    struct llm_question *waiting; // list of questions that want the same answer, in order of asking
    struct llm_question *next;    // in llm->ready or in waiting
    const char *rules;            // system message; outlives the question
    char *search, *last;          // first and last part of the user's message; owned
    char *spend;                  // the search that pays; owned
    bool forecast;                // as in struct chat_request
    struct request_style *style;  // per endpoint
    struct request_style used;    // of the open request
    const char *model;            // to be asked first; NULL: by the endpoints' weights
    size_t endpoint;              // that was asked last
    unsigned tries;               // requests
    uint64_t until_ms;            // loop time of its own deadline
    uint64_t deadline_ms;         // time for one request
    char reason[ERR_TEXT_MAX];    // why there is no answer, so far
    bool own_end;                 // no answer because of its own deadline or its search's limit
    uint64_t input_tokens, output_tokens; // of all requests
    double cost, seconds;                 // likewise
    // An answer with any status has come. Returns whether to ask again.
    bool (*answered)(struct llm_question *question, const struct endpoint_result *result);
    // Copies the answer of an equal question. Returns false, and changes nothing, when it has none.
    bool (*take_answer)(struct llm_question *question, const struct llm_question *from);
    // Hands the answer over and frees the question with what it belongs to.
    void (*finish)(struct llm_question *question);
};

// Whether the search is below its limits; otherwise question->reason says which one is reached.
bool llm_question_may_ask(struct llm_question *question);
// Charges the tokens of one request to the search.
void llm_question_charge(struct llm_question *question, size_t endpoint,
                         const struct answer_usage *usage);
// Asks, or waits for an equal question that is open. key, take_answer and finish must be set.
void llm_question_begin(struct llm_question *question);
// Makes one request of a question that asks.
void llm_question_post(struct llm_question *question);
// Ends a question that asked, and those that waited for it.
void llm_question_end(struct llm_question *question);
// Finishes the question from the loop, outside of all calls.
void llm_question_finish_soon(struct llm_question *question);
// Finishes the questions that were to be finished soon.
void llm_question_finish_all(struct llm *llm);
// Frees the texts that the question owns.
void llm_question_release(struct llm_question *question);

#endif

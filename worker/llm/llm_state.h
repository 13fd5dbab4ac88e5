// The inside of struct llm and of its questions. Only llm*.c include this: llm.c asks for
// forecasts, llm_propose.c for candidates, llm_rank.c for their order; llm_question.c makes the
// requests of a question and says what comes of their replies, llm_charge.c pays for them,
// llm_style.c keeps how endpoints are asked, llm_identity.c names who answers, llm_ahead.c has one
// question asked ahead of others, and llm_coalesce.c joins equal questions.
#ifndef WORKER_LLM_LLM_STATE_H
#define WORKER_LLM_LLM_STATE_H

#include "common/digest.h"
#include "common/strbuf.h"
#include "worker/llm/answer.h"
#include "worker/llm/answer_cache.h"
#include "worker/llm/chat_request.h"
#include "worker/llm/llm.h"
#include "worker/llm/model_choice.h"
#include "worker/llm/spend.h"
#include <uthash.h>
#include <uv.h>

// What endpoints are asked for; each is asked in a style of its own.
enum llm_purpose { LLM_FORECAST, LLM_PROPOSE, LLM_RANK, LLM_PURPOSES };

// The most that an endpoint has counted, for what requests may cost.
struct llm_use {
    bool known;           // it has counted a request
    double per_byte;      // input tokens for each byte of a question
    double output_tokens; // of one answer
};

// The beginning that questions to an endpoint have in common (llm_ahead.c). Zeroed memory is none.
#define LLM_BEGINNINGS 8 // that are remembered of each endpoint
struct llm_beginning {
    struct digest digest;
    const struct llm_question *ahead; // whose request the others wait for; NULL: nobody's
    bool read;                        // the endpoint has read it
    uint64_t since_ms, used;          // loop time of the request ahead; order of use
};

struct llm {
    struct llm_config config;
    struct endpoints *endpoints;
    struct model_choice *model_choice;
    struct request_style style[LLM_PURPOSES][ENDPOINTS_MAX];
    struct llm_use use[ENDPOINTS_MAX];
    struct llm_beginning beginning[ENDPOINTS_MAX][LLM_BEGINNINGS];
    uint64_t beginnings_used;
    struct endpoint_store *store;
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
    struct digest key;       // equal keys mean equal answers of an endpoint
    struct digest beginning; // of what others have in common with it; zero: nobody waits for it
    UT_hash_handle hh;       // in llm->open
    struct llm_question *waiting; // list of questions that want the same answer, in order of asking
    struct llm_question *next;    // in llm->ready or in waiting
    const char *rules;            // system message; outlives the question
    char *search, *last;          // first and last part of the user's message; owned
    char *spend;                  // the search that pays; owned
    enum llm_purpose purpose;
    bool patient;              // there is nothing to do instead of waiting for endpoints that rest
    unsigned tries_max;        // replies without a usable answer, before it ends
    struct request_style used; // of the open request
    uint64_t limit;            // of the open request's answer, tokens
    struct spend_reservation reservation; // of the open request
    const char *model;                    // to be asked first; NULL: by the endpoints' weights
    size_t endpoint;                      // that was asked last
    uint32_t avoid, barred;               // endpoints, as in struct endpoint_call
    unsigned tries;                       // replies since the last usable answer
    uint64_t requests;                    // made in all
    uint64_t until_ms;                    // loop time of its own deadline
    char reason[ERR_TEXT_MAX];            // why there is no answer, so far
    bool own_end;   // no answer because of its own deadline or its search's limit
    bool abandoned; // whoever asked has been told that there is no answer; it is asked all the same
    uint64_t input_tokens, output_tokens, cached_tokens; // of all requests
    double cost, seconds;                                // likewise
    // Takes over what an answer holds. Returns whether that is usable; if not, sets *why.
    bool (*take)(struct llm_question *question, const struct answer *answer, struct err *why);
    // After a usable answer: whether one more is wanted.
    bool (*wants_more)(struct llm_question *question);
    // Copies the answer of an equal question. Returns false, and changes nothing, when it has none.
    bool (*take_answer)(struct llm_question *question, const struct llm_question *from);
    // Tells whoever asked that there is no answer, for question->reason. NULL: is never abandoned.
    void (*give_up)(struct llm_question *question);
    // Hands the answer over, unless the question was abandoned, and frees the question with what it
    // belongs to.
    void (*finish)(struct llm_question *question);
};

// ---- llm_charge.c ----

// Reserves what a request of the question may cost at this endpoint.
enum endpoint_admission llm_charge_admit(struct llm_question *question, size_t endpoint,
                                         struct err *err);
// Pays for a request that was answered, with what the answer says it took, or with an estimate.
void llm_charge_answer(struct llm_question *question, size_t endpoint, const struct answer *answer,
                       size_t answer_len);
// Ends a request without an answer. sent: its input is paid for, as estimated.
void llm_charge_failure(struct llm_question *question, size_t endpoint, bool sent);
// An estimate of the input tokens of one request.
double llm_charge_estimate(const struct llm_question *question);

// ---- llm_identity.c ----

// The most tokens of an answer of the endpoint, and the temperature of its answers, as configured.
uint64_t llm_max_tokens(const struct llm *llm, size_t endpoint);
double llm_temperature(const struct llm *llm, size_t endpoint);
// Under what the endpoint's answer to a question is kept: the question and everything about the
// endpoint that changes its answers (url, model, form and version of the interface, effort, extra
// body, temperature, limit of an answer).
struct digest llm_answer_key(const struct llm *llm, const struct digest *question, size_t endpoint);
// Who forecasts: "MODEL #DIGEST", where the digest is of the same, of the number of samples, of the
// words of the prompt and of the way in which it is asked (output format and what is left out).
// malloc'd.
char *llm_forecaster(const struct llm *llm, size_t endpoint, const struct request_style *style);

// ---- llm_ahead.c ----

// Whether the question may be asked of this endpoint now, or waits for the one ahead of it.
bool llm_ahead_admits(const struct llm_question *question, size_t endpoint);
// It is asked there now; it may be the one that goes ahead.
void llm_ahead_begin(struct llm_question *question, size_t endpoint);
// Its request there has ended. refused: because of how it was asked.
void llm_ahead_end(const struct llm_question *question, size_t endpoint, bool refused);

// ---- llm_style.c ----

// Reads how the endpoints were asked when they last answered.
void llm_style_load(struct llm *llm);
// The same for one endpoint, in place of what did not work.
void llm_style_restore(struct llm *llm, enum llm_purpose purpose, size_t endpoint);
// Has the endpoints be asked for rankings as they are for forecasts, where nothing is known of how
// they are to be asked for rankings.
void llm_style_inherit(struct llm *llm);
// Keeps how the endpoint is asked, unless that is known.
void llm_style_save(struct llm *llm, enum llm_purpose purpose, size_t endpoint);

// ---- llm_question.c and llm_coalesce.c ----

// Asks, or waits for an equal question that is open. key, take_answer and finish must be set.
void llm_question_begin(struct llm_question *question);
// Tells whoever asked, and who waits for the same answer, that there is none for now.
void llm_question_abandon(struct llm_question *question);
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

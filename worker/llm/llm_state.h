// The inside of struct llm, for llm*.c only: llm.c asks for forecasts, llm_propose.c for candidates; what
// both do with endpoints, prices and caps is in llm_talk.c, and with equal questions in llm_share.c.
#ifndef WORKER_LLM_LLM_STATE_H
#define WORKER_LLM_LLM_STATE_H

#include "common/digest.h"
#include "common/strbuf.h"
#include "worker/llm/answer_cache.h"
#include "worker/llm/chat_request.h"
#include "worker/llm/llm.h"
#include "worker/llm/spend.h"
#include "worker/llm/model_choice.h"
#include <uthash.h>
#include <uv.h>

struct llm {
    struct llm_config config;
    struct endpoints *endpoints;
    struct model_choice *writers;
    struct request_style style[ENDPOINTS_MAX], propose_style[ENDPOINTS_MAX];
    struct spend_book book;
    struct answer_cache *cache;
    struct strbuf rules;
    struct digest rules_digest;
    uint64_t hits;
    uv_timer_t timer; // answers that are known at once
    struct llm_question *ready;
    struct llm_question *open; // hash by key: questions that endpoints are asked now
    bool closing;
};

// One question until it has its answer, over all its requests. First in what it belongs to.
struct llm_question {
    struct llm *llm;
    struct digest key;         // of the question: equal keys, equal answers
    UT_hash_handle hh;         // in open
    struct llm_question *waiting;  // that want the same answer, in the order of asking
    struct llm_question *next;     // in ready or waiting
    const char *rules;         // outlives it
    char *search, *last;       // of the prompt; its own
    char *spend;               // search that pays; its own
    bool forecast;             // as in struct chat_request
    struct request_style *style;   // [endpoint]
    struct request_style used;     // of the request under way
    const char *model;         // to be asked first; NULL: by the endpoints' weights
    size_t endpoint;           // that was asked last
    unsigned tries;            // requests
    uint64_t until_ms;         // of the loop's clock: its own deadline, had it asked itself
    uint64_t deadline_ms;      // of a request
    char reason[ERR_TEXT_MAX]; // why there is no answer, so far
    bool own_end;              // there is none because its own time or its search's money ran out
    uint64_t input_tokens, output_tokens; // of every attempt
    double cost, seconds;
    // An answer with any status; whether to ask again.
    bool (*answered)(struct llm_question *talk, const struct endpoint_result *result);
    // Takes over the answer of an equal question; false, and nothing changes, when that has none.
    bool (*share)(struct llm_question *talk, const struct llm_question *from);
    void (*finish)(struct llm_question *talk); // the end of it, and of what it belongs to
};

bool llm_question_may_ask(struct llm_question *talk); // false: a cap is reached, talk->reason says which
void llm_question_charge(struct llm_question *talk, size_t endpoint, const struct answer_usage *usage);
// Asks, or waits for an equal question that is open. key, share and finish are set.
void llm_question_begin(struct llm_question *talk);
void llm_question_post(struct llm_question *talk); // a request of the one that asks
void llm_question_end(struct llm_question *talk);  // the one that asks is done, and who waited for it
void llm_question_finish_soon(struct llm_question *talk); // from the loop, outside of everything
void llm_question_finish_all(struct llm *llm);        // those that were to be finished soon
void llm_question_release(struct llm_question *talk);     // its own texts

#endif

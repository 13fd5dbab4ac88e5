// The inside of struct llm, for llm*.c only: llm.c asks for forecasts, llm_propose.c for candidates.
#ifndef WORKER_LLM_STATE_H
#define WORKER_LLM_STATE_H

#include "common/strbuf.h"
#include "worker/account.h"
#include "worker/ask.h"
#include "worker/cache.h"
#include "worker/llm.h"
#include <uv.h>

#define LLM_TRIES 8
#define LLM_BYTES_PER_TOKEN 3.5 // of source code, for estimates

struct llm {
    struct llm_config config;
    struct endpoints *endpoints;
    struct ask_style style[ENDPOINTS_MAX], propose_style[ENDPOINTS_MAX];
    struct account_book book;
    struct cache *cache;
    struct strbuf rules;
    struct digest rules_digest;
    uint64_t questions, hits;
    uv_timer_t timer; // answers that are known at once
    struct question *ready;
    struct wish *ready_wish;
    size_t open;
    bool closing;
};

// Runs what is ready from the loop, outside of everything.
void llm_wake(struct llm *llm);
void llm_answer_wishes(struct llm *llm); // llm_propose.c: those that are ready

#endif

// Writes the requests to language models: the JSON body in each form of the interfaces that
// endpoints have, under a request style. Called by the questions (llm*.c). Knows nothing of
// connections.
#ifndef WORKER_LLM_CHAT_REQUEST_H
#define WORKER_LLM_CHAT_REQUEST_H

#include "common/strbuf.h"
#include "worker/endpoint/request_style.h"
#include "worker/prompt/forecast_schema.h"
#include <jansson.h>
#include <stdint.h>

struct chat_request {
    const char *model;
    const char *rules;     // the system message
    const char *search;    // first part of the user's message, the same for many questions
    const char *candidate; // the rest of it
    uint64_t max_tokens;   // of the answer, before the style changes it
    double temperature;
    const char *effort;  // of reasoning, as the endpoint names it; NULL: its own default
    const json_t *extra; // more fields of the body; NULL: none
    // What the answer is to be: the request demands the output format, and log-probabilities where
    // letters are wanted. NULL: a text.
    const struct answer_form *form;
};

// Appends the body, a JSON text.
void chat_request_body(struct strbuf *out, const struct chat_request *request,
                       const struct request_style *style);

#endif

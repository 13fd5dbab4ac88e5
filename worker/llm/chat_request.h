// Chat completion requests: the JSON body, and how to ask a particular endpoint. There are several
// ways to ask for a JSON object and several optional fields, and endpoints know some of them and
// refuse others. A request style is what an endpoint is known to take; it falls back to the next
// output format when the endpoint refuses one or answers it unusably. Called by the questions
// (llm*.c). Knows nothing of connections.
#ifndef WORKER_LLM_CHAT_REQUEST_H
#define WORKER_LLM_CHAT_REQUEST_H

#include "common/strbuf.h"
#include <stdbool.h>
#include <stdint.h>

// The output formats in the order of falling back, the strictest first.
#define OUTPUT_FORMATS(X)                                                                          \
    X(SCHEMA, "json_schema")     /* response_format with a strict schema */                        \
    X(FORCED, "forced-tool")     /* tool_choice names the tool */                                  \
    X(REQUIRED, "required-tool") /* tool_choice demands some tool, and there is only one */        \
    X(JSON, "json_object")       /* response_format json_object */                                 \
    X(TEXT, "text")              /* only the prompt says what is wanted */

enum output_format {
#define X(id, name) OUTPUT_##id,
    OUTPUT_FORMATS(X)
#undef X
        OUTPUT_FORMAT_COUNT
};

// How an endpoint is asked, as far as it is known what it takes. Zeroed memory is the first style.
struct request_style {
    enum output_format format;
    bool no_logprobs;    // it gives no log-probabilities
    bool no_temperature; // it takes no temperature
    bool completion;     // it wants max_completion_tokens instead of max_tokens
    unsigned unusable;   // answers in a row without a forecast, in this format
};

struct chat_request {
    const char *model;
    const char *rules;     // the system message
    const char *search;    // first part of the user's message, the same for many questions
    const char *candidate; // the rest of it
    uint64_t max_tokens;   // of the answer
    double temperature;
    // The answer is to be a forecast: the request demands the output format and log-probabilities.
    bool forecast;
};

const char *output_format_name(enum output_format format);
enum output_format output_format_of(const char *name); // OUTPUT_TEXT for an unknown name

// Appends the body, a JSON text.
void chat_request_body(struct strbuf *out, const struct chat_request *request,
                       const struct request_style *style);

// Many requests are open at once. The result of one changes the style only while that is still the
// style with which it was made (used).

// The endpoint refused a request (status 400, 404, 415 or 422) with this body. Changes the style to
// what it may take. Returns false when there is nothing left to try.
bool request_style_refused(struct request_style *style, const struct request_style *used,
                           const char *body, size_t len);

// An answer had no usable forecast, or had one. After REQUEST_STYLE_UNUSABLE_MAX unusable answers
// in a row the next format is tried; after the last one the first.
#define REQUEST_STYLE_UNUSABLE_MAX 3
void request_style_unusable(struct request_style *style, const struct request_style *used);
void request_style_usable(struct request_style *style, const struct request_style *used);

#endif

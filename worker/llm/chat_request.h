// The body of a chat completion request, and the ladder of ways to ask for a JSON object: endpoints
// know some of them and refuse others.
#ifndef WORKER_LLM_ASK_H
#define WORKER_LLM_ASK_H

#include "common/strbuf.h"
#include <stdbool.h>
#include <stdint.h>

// From the strictest down.
#define OUTPUT_FORMATS(X)                                                                               \
    X(SCHEMA, "json_schema")     /* response_format with a strict schema */                        \
    X(FORCED, "forced-tool")     /* tool_choice names the tool */                                  \
    X(REQUIRED, "required-tool") /* some tool, and there is only one */                            \
    X(JSON, "json_object")       /* response_format json_object */                                 \
    X(TEXT, "text")              /* only the prompt says what is wanted */

enum output_format {
#define X(id, name) OUTPUT_##id,
    OUTPUT_FORMATS(X)
#undef X
        OUTPUT_FORMAT_COUNT
};

// How an endpoint is asked, as far as it is known what it takes.
struct request_style {
    enum output_format rung;
    bool no_logprobs;    // it does not give them
    bool no_temperature; // it takes none
    bool completion;     // max_completion_tokens instead of max_tokens
    unsigned unusable;   // answers without a forecast in a row, on this rung
};

struct chat_request {
    const char *model;
    const char *rules;     // system message
    const char *search;    // first part of the user's message, shared by many
    const char *candidate; // the rest
    uint64_t max_tokens;
    double temperature;
    bool forecast; // the answer is to be a forecast: the ladder and log-probabilities apply
};

const char *output_format_name(enum output_format rung);
enum output_format output_format_of(const char *name); // OUTPUT_TEXT for a name that none has

// The JSON text.
void chat_request_body(struct strbuf *out, const struct chat_request *ask, const struct request_style *style);

// Many requests are under way at once: what comes of one changes the style only while it is still the
// one that the request was made in (`used`).
//
// The endpoint refused a request (status 400, 404, 415 or 422) with this body: changes the style to
// what it may take. False when there is nothing left to change.
bool request_style_refused(struct request_style *style, const struct request_style *used, const char *body,
                 size_t len);
// An answer had no usable forecast, or had one. After REQUEST_STYLE_UNUSABLE_MAX in a row the next rung is
// tried; below the last one the first is next.
#define REQUEST_STYLE_UNUSABLE_MAX 3
void request_style_unusable(struct request_style *style, const struct request_style *used);
void request_style_usable(struct request_style *style, const struct request_style *used);

#endif

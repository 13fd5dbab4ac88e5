// How an endpoint is asked, as far as it is known what it takes. There are several ways to ask for
// a JSON object and several optional fields, and endpoints know some of them and refuse others. A
// style leaves out what was refused by name, and falls back to the next output format when that is
// refused or answered unusably. A style is learnt once and kept in the worker's state as text.
// Called by the questions (llm*.c). Knows nothing of connections, and nothing of how a body is
// written (worker/llm/chat_request.h).
#ifndef WORKER_ENDPOINT_REQUEST_STYLE_H
#define WORKER_ENDPOINT_REQUEST_STYLE_H

#include "common/err.h"
#include "common/strbuf.h"
#include "worker/endpoint/refusal.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

// The forms of an endpoint's interface.
#define API_FORMS(X)                                                                               \
    X(CHAT, "chat")           /* OpenAI's chat completions, and what is compatible with them */    \
    X(RESPONSES, "responses") /* OpenAI's responses */                                             \
    X(ANTHROPIC, "anthropic") /* Anthropic's messages */                                           \
    X(AZURE, "azure")         /* Azure's chat completions: the key in a header of its own, and a   \
                                 query with the version of the interface */

enum api_form {
#define X(id, name) API_##id,
    API_FORMS(X)
#undef X
        API_FORM_COUNT
};

const char *api_form_name(enum api_form form);
// The form with this name; API_FORM_COUNT when there is none.
enum api_form api_form_of(const char *name);

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

const char *output_format_name(enum output_format format);
// The format with this name; OUTPUT_TEXT when there is none.
enum output_format output_format_of(const char *name);

// The name of the field that limits the answer's tokens.
enum limit_name {
    LIMIT_OWN,   // the form's own: max_tokens, or max_output_tokens of API_RESPONSES
    LIMIT_OTHER, // max_completion_tokens
    LIMIT_NONE,  // it is left out
};

#define REQUEST_EXTRA_MAX 32 // fields of an endpoint's extra body that can be left out each

// Zeroed memory is the first style of API_CHAT.
struct request_style {
    enum api_form form;
    enum output_format format;
    bool no_logprobs;        // it gives no log-probabilities
    bool no_temperature;     // it takes no temperature
    bool no_system;          // it takes no system message: the rules stand before the question
    bool no_effort;          // it takes no reasoning effort
    bool no_cache;           // it takes no marks for the prompt cache
    enum limit_name limit;   // how the answer's tokens are limited
    uint64_t limit_most;     // the largest limit that it takes; 0: any
    bool doubled;            // answers were cut off: the limit is twice the configured one
    uint32_t extra_left_out; // fields of the extra body that it does not take, as bits
    unsigned refusals;       // in a row
    unsigned unusable;       // answers in a row without a forecast, in this format
};

// The style in which an endpoint is asked of which nothing is known.
struct request_style request_style_first(enum api_form form);

// The limit of the answer's tokens under a style, from the configured one.
uint64_t request_style_limit(const struct request_style *style, uint64_t max_tokens);

// Changes the style after a request in the style `used` was refused. limit is what the request gave
// as the answer's limit, and extra the endpoint's extra body (NULL: none). The first refusal in a
// row leaves out what is named, or falls back to the next format when nothing is; the second one
// leaves out everything optional too, unless it names a format or a field of the extra body; the
// third one asks in the plainest way: a text without optional fields. No endpoint that takes a
// plain question therefore refuses more than three requests. Returns false, and changes nothing,
// when nothing more can be left out. A request whose style has been changed meanwhile changes
// nothing and is to be made again.
bool request_style_refused(struct request_style *style, const struct request_style *used,
                           const struct refusal *refusal, uint64_t limit, const json_t *extra);
// After an answer without a forecast. REQUEST_STYLE_UNUSABLE_MAX of them in a row lead to the next
// format, and from the last one back to the first.
#define REQUEST_STYLE_UNUSABLE_MAX 3
void request_style_unusable(struct request_style *style, const struct request_style *used);
void request_style_usable(struct request_style *style, const struct request_style *used);

// For people: "json_schema without logprobs, temperature; max_completion_tokens".
void request_style_describe(struct strbuf *out, const struct request_style *style,
                            const json_t *extra);

// Appends the style as a text that request_style_read understands.
void request_style_write(struct strbuf *out, const struct request_style *style);
// ERR_INVALID when the text is no style of this form. *ret is written on success only.
MUST_CHECK int request_style_read(struct request_style *ret, enum api_form form, const char *text,
                                  size_t len, struct err *err);

#endif

// What an OpenAI-compatible endpoint answered: a forecast, wherever in the answer a model put it, or a
// text. Models put the object that they were asked for into tool calls, the content, the reasoning
// content or markup of their own; all of these are searched. Nothing here trusts the answer.
#ifndef WORKER_LLM_ANSWER_H
#define WORKER_LLM_ANSWER_H

#include "common/err.h"
#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bins go by letters towards a model: one letter is one token, so that its log-probabilities are a
// whole distribution.
#define ANSWER_FIRST_LETTER 'A'
#define ANSWER_TOOL_NAME "submit_forecast" // the tool that a model is to call

// Where the forecast was found.
#define ANSWER_PLACES(X)                                                                           \
    X(TOOL, "tool call")                                                                           \
    X(CONTENT, "content")                                                                          \
    X(REASONING, "reasoning")

enum answer_place {
#define X(id, name) ANSWER_##id,
    ANSWER_PLACES(X)
#undef X
};

// Tokens of one attempt; 0 where the answer does not say.
struct answer_usage {
    uint64_t input, cached, output, reasoning; // cached is part of input, reasoning of output
};

struct answer_forecast {
    double p_correct;       // NaN when not said
    double bins[BIN_COUNT]; // sums to 1
    double raw_sum;         // before that; 1 when from log-probabilities
    int stated;             // the bin that it named; -1: none
    bool from_logprobs;     // bins are those of the token that names the bin
    enum answer_place place;
};

struct answer {
    struct answer_usage usage;
    bool has_forecast;
    struct answer_forecast forecast;
    char *text;   // the content, or else the reasoning; NULL when there is neither
    char *finish; // finish_reason; NULL when not said
};

const char *answer_place_name(enum answer_place place);

// Reads a chat completion. A body that is no completion is ERR_INVALID with what it is instead (an
// error object's message is quoted, cut and made printable). A completion without a usable forecast
// is a success with has_forecast false, and, when why is not NULL, the reason in it. usage is set
// whenever the body has one, also on failure. Release *ret in any case.
MUST_CHECK int answer_read(struct answer *ret, const char *body, size_t len, struct err *why,
                           struct err *err);
void answer_release(struct answer *answer);

#endif

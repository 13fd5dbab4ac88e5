// Reads what an OpenAI-compatible endpoint answered: a forecast, wherever in the answer the model
// put it, or a text. Models put the object that they were asked for into tool calls, the content,
// the reasoning or markup of their own; all of these are searched. Called by the questions
// (llm*.c). Trusts nothing in the answer and knows nothing of how it was asked for.
#ifndef WORKER_LLM_ANSWER_H
#define WORKER_LLM_ANSWER_H

#include "common/err.h"
#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Models name bins by letters. A letter is one token, so that the log-probabilities of that token
// are a distribution over all bins.
#define ANSWER_FIRST_LETTER 'A'
#define ANSWER_TOOL_NAME "submit_forecast" // the tool that a model is asked to call

// Where the forecast was found.
enum answer_place { ANSWER_TOOL, ANSWER_CONTENT, ANSWER_REASONING };

// Tokens of one request; 0 where the answer does not state them.
struct answer_usage {
    uint64_t input, cached, output, reasoning; // cached is a part of input, reasoning of output
};

struct answer_forecast {
    double p_correct;       // NaN when not stated
    double bins[BIN_COUNT]; // sum 1
    double raw_sum;         // the sum before normalising; 1 when from log-probabilities
    int stated;             // the bin that was named as most probable; -1: none
    bool from_logprobs;     // bins come from the log-probabilities of the token that names the bin
    enum answer_place place;
};

struct answer {
    struct answer_usage usage;
    bool has_forecast;
    struct answer_forecast forecast;
    char *text;   // the content, or else the reasoning; NULL when there is neither
    char *finish; // finish_reason; NULL when not stated
};

// Reads the body of a chat completion. A body that is none is ERR_INVALID with what it is instead;
// the message of an error object is quoted, shortened and made printable. A completion without a
// usable forecast is a success with has_forecast == false, and *why (may be NULL) then says what is
// missing. usage is set whenever the body states it, also on failure. Release *ret in any case.
MUST_CHECK int answer_read(struct answer *ret, const char *body, size_t len, struct err *why,
                           struct err *err);
void answer_release(struct answer *answer);

#endif

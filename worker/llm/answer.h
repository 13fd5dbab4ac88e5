// Reads what an endpoint answered, through whichever interface: a forecast or a ranking, wherever
// in the answer the model put it, or a text. Models put the object that they were asked for into
// tool calls, the content, the reasoning or markup of their own; all of these are searched. Called
// by the questions (llm*.c). Trusts nothing in the answer and knows nothing of how it was asked
// for.
#ifndef WORKER_LLM_ANSWER_H
#define WORKER_LLM_ANSWER_H

#include "common/err.h"
#include "proto/bins.h"
#include "worker/prompt/fine_bins.h"
#include "worker/prompt/forecast_schema.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where the forecast was found.
enum answer_place { ANSWER_TOOL, ANSWER_CONTENT, ANSWER_REASONING };

// Tokens of one request; 0 where the answer does not state them.
struct answer_usage {
    uint64_t input, cached, output, reasoning; // cached is a part of input, reasoning of output
    uint64_t written; // to the endpoint's prompt cache; a part of input too
};

// How an answer ended.
enum answer_end {
    ANSWER_WHOLE,
    ANSWER_CUT_OFF,  // at the limit of its tokens
    ANSWER_FILTERED, // refused, by the model or by a content filter
};

struct answer_forecast {
    double p_correct;       // NaN when not stated
    double bins[BIN_COUNT]; // sum 1
    double raw_sum;         // the sum before normalising; 1 when from log-probabilities
    int stated;             // the bin that was named as most probable; -1: none
    bool from_logprobs;     // bins come from the log-probabilities of the token that names the bin
    enum answer_place place;
    // The model says that it cannot say. Then nothing else of the forecast counts.
    bool defers;
    // The answer to the second question, against the best so far; sum 1.
    bool has_fine;
    double fine[FINE_BIN_COUNT];
};

struct answer {
    struct answer_usage usage;
    bool has_forecast;
    struct answer_forecast forecast;
    json_t *ranking; // the field of this name of the last object that has one; NULL: none has
    char *text; // the content, or else the reasoning or a refusal; NULL when there is none of these
    bool is_reasoning; // text is the reasoning, in which there are drafts
    enum answer_end end;
};

// Reads the body of an answer. A body that is none is ERR_INVALID with what it is instead;
// the message of an error object is quoted, shortened and made printable. An answer without a
// usable forecast is a success with has_forecast == false, and *why (may be NULL) then says what is
// missing. usage is set whenever the body states it, also on failure. Release *ret in any case.
MUST_CHECK int answer_read(struct answer *ret, const char *body, size_t len, struct err *why,
                           struct err *err);
void answer_release(struct answer *answer);

#endif

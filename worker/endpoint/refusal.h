// Reads what an endpoint means that gives no answer: from the status and the error in the body. The
// same mistake has many words: OpenAI's {"error": {"message", "param", "code"}}, Anthropic's
// {"type": "error", "error": {"type", "message"}}, Google's list around it, pydantic's
// {"detail": [{"loc", "msg"}]} of Mistral and vLLM, a bare text. Called by endpoint.c. Trusts
// nothing in the body and knows nothing of the request but what the error names.
#ifndef WORKER_ENDPOINT_REFUSAL_H
#define WORKER_ENDPOINT_REFUSAL_H

#include <stddef.h>
#include <stdint.h>

#define REFUSAL_WORDS_MAX 200 // bytes that are quoted of the endpoint's words

enum refusal_kind {
    REFUSAL_NONE,     // no refusal: the body may hold an answer
    REFUSAL_PASSES,   // it is busy or broken for the moment: ask again, there or elsewhere
    REFUSAL_KEY,      // the key is missing or not accepted
    REFUSAL_QUOTA,    // the account has no money or quota left
    REFUSAL_MISSING,  // it has no such model, or nothing at this address
    REFUSAL_FILTERED, // its content filter refuses this question
    REFUSAL_TOO_LONG, // the question is longer than it takes
    REFUSAL_UNUSABLE, // the model answered, but not in the format that was demanded
    REFUSAL_REQUEST,  // it does not take something in the request
};

// What of a request an error names, as bits.
enum request_feature {
    FEATURE_LOGPROBS = 1 << 0,
    FEATURE_TEMPERATURE = 1 << 1,
    FEATURE_LIMIT = 1 << 2,  // of the answer's tokens: its name or its size
    FEATURE_FORMAT = 1 << 3, // response_format and its kin
    FEATURE_TOOLS = 1 << 4,
    FEATURE_CHOICE = 1 << 5, // tool_choice
    FEATURE_SYSTEM = 1 << 6, // a message of the system's
    FEATURE_EFFORT = 1 << 7, // reasoning effort
    FEATURE_CACHE = 1 << 8,  // marks for the prompt cache
};

struct refusal {
    enum refusal_kind kind;
    unsigned features; // that the error names, of a REFUSAL_REQUEST
    double retry_ms;   // the pause that the body asks for; NaN: none
    // The endpoint's own words, one printable line without double quotes; "" when it says nothing.
    char words[REFUSAL_WORDS_MAX + 1];
    char place[REFUSAL_WORDS_MAX + 1]; // what it names as the place of the mistake, likewise
};

// A status of 200 is a refusal when the body is an error object.
void refusal_read(struct refusal *ret, long status, const char *body, size_t len);

// For people: "its key is missing or not accepted".
const char *refusal_meaning(enum refusal_kind kind);

#endif

// The forms of answers that are objects: of a forecast, with the letters of its bins, and of a
// ranking; and the JSON schemas by which endpoints hold a model to them. What the fields mean is in
// the rules (worker/prompt/prompt.c, prompt_rank.c), and worker/llm/answer.c reads them. Called by
// the writer of requests.
#ifndef WORKER_PROMPT_FORECAST_SCHEMA_H
#define WORKER_PROMPT_FORECAST_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

// Models name bins by letters. A letter is one token, so that the log-probabilities of that token
// are a distribution over all bins.
#define ANSWER_FIRST_LETTER 'A'
#define ANSWER_FIRST_FINE 'P'   // of the bins of worker/prompt/fine_bins.h
#define ANSWER_DEFER_LETTER 'X' // instead of a bin: the model cannot say

// "analysis" first, so that the model may think before it commits itself to a bin; then "bin", "p",
// "p_correct", "best_bin" and "q". All are required and nothing else is allowed. No references,
// which some endpoints do not know. The caller owns it.
json_t *forecast_schema(void);
// "analysis", then "ranking": a list of objects with "candidate" and "p". Likewise.
json_t *ranking_schema(void);

// What an endpoint is told of the object that is wanted.
struct answer_form {
    const char *name;        // of the schema
    const char *tool, *help; // the tool that a model is asked to call instead
    json_t *(*schema)(void);
    bool letters; // one token names a bin, whose log-probabilities are wanted
};
extern const struct answer_form answer_form_forecast, answer_form_ranking;

#endif

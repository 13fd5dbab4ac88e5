// The form of a forecast: the letters of its bins, and the JSON schema by which endpoints hold a
// model to it. What the fields mean is in the rules (worker/prompt/prompt.c), and
// worker/llm/answer.c reads them. Called by the writer of requests.
#ifndef WORKER_PROMPT_FORECAST_SCHEMA_H
#define WORKER_PROMPT_FORECAST_SCHEMA_H

#include <jansson.h>

// Models name bins by letters. A letter is one token, so that the log-probabilities of that token
// are a distribution over all bins.
#define ANSWER_FIRST_LETTER 'A'
#define ANSWER_FIRST_FINE 'P'              // of the bins of worker/prompt/fine_bins.h
#define ANSWER_DEFER_LETTER 'X'            // instead of a bin: the model cannot say
#define ANSWER_TOOL_NAME "submit_forecast" // the tool that a model is asked to call

// "analysis" first, so that the model may think before it commits itself to a bin; then "bin", "p",
// "p_correct", "best_bin" and "q". All are required and nothing else is allowed. No references,
// which some endpoints do not know. The caller owns it.
json_t *forecast_schema(void);

#endif

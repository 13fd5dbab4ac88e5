// Turns the command-line options about language models (addresses, key, prices, limits) into a
// struct llm_config. Called by main.c.
#ifndef WORKER_LLM_LLM_SETTINGS_H
#define WORKER_LLM_LLM_SETTINGS_H

#include "worker/llm/llm.h"

#define LLM_KEY_VARIABLE "KCAST_LLM_KEY"

// The options as they are parsed.
struct llm_settings {
    char *endpoint; // "URL[*WEIGHT],..."; NULL: none
    char *model, *key_file, *ca_file;
    uint64_t samples, max_tokens, at_once, deadline_ns;
    double temperature, requests_per_minute, tokens_per_minute;
    double price_input, price_cached, price_output;
    double tokens_per_search, cost_per_search;
};

// Fills *ret. Its texts are its own until llm_settings_release, but for the model and ca_file,
// which are the settings'. Without endpoints *ret has count 0. ERR_USAGE, ERR_INVALID, ERR_DENIED
// and errors of reading the key file; no error text contains the key.
MUST_CHECK int llm_settings_read(struct llm_config *ret, const struct llm_settings *settings,
                                 struct err *err);
// Frees the texts and wipes the key.
void llm_settings_release(struct llm_config *config);

#endif

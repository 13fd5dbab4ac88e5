// The command line's part of a language-model configuration: addresses, key, prices, caps.
#ifndef WORKER_LLM_LLM_SETTINGS_H
#define WORKER_LLM_LLM_SETTINGS_H

#include "worker/llm/llm.h"

#define LLM_KEY_VARIABLE "KCAST_LLM_KEY"

// As options fill it.
struct llm_settings {
    char *endpoint; // "URL[*WEIGHT],…"; NULL: none
    char *model, *key_file, *ca_file;
    uint64_t samples, max_tokens, at_once, deadline_ns;
    double temperature, requests_per_minute, tokens_per_minute;
    double price_input, price_cached, price_output;
    double tokens_per_search, cost_per_search;
};

// Fills *ret, whose texts are owned until llm_settings_release. With no endpoint *ret has count 0.
// ERR_USAGE, ERR_INVALID and errors of reading the key file; no sentence holds the key.
MUST_CHECK int llm_settings_read(struct llm_config *ret, const struct llm_settings *settings,
                                 struct err *err);
// Frees, and wipes the key.
void llm_settings_release(struct llm_config *config);

#endif

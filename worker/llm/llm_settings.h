// Turns the options about language models (addresses, keys, prices, limits) and the sections of
// endpoints into a struct llm_config. Called by main.c.
#ifndef WORKER_LLM_LLM_SETTINGS_H
#define WORKER_LLM_LLM_SETTINGS_H

#include "worker/endpoint/endpoint_section.h"
#include "worker/llm/llm.h"

#define LLM_KEY_VARIABLE "KCAST_LLM_KEY"

// The options as they are parsed.
struct llm_settings {
    char *endpoint; // "URL[*WEIGHT],..."; NULL: none
    char *model, *key_file, *ca_file;
    uint64_t samples, max_tokens, at_once, deadline_ns;
    double temperature, requests_per_minute, tokens_per_minute;
    double price_input, price_cached, price_output;
    struct spend_limits limits;
    struct endpoint_sections sections;
};

// Fills *ret: the endpoints of --endpoint, which share --model, --key-file and the prices, and then
// one for each section, which has nothing but its own. Urls, keys and extra bodies are *ret's own
// until llm_settings_release; the other texts are the settings'. Without endpoints *ret has count
// 0. ERR_USAGE, ERR_INVALID, ERR_DENIED and errors of reading the key file; no error text contains
// the key.
MUST_CHECK int llm_settings_read(struct llm_config *ret, const struct llm_settings *settings,
                                 struct err *err);
// Frees the texts and wipes the key.
void llm_settings_release(struct llm_config *config);

#endif

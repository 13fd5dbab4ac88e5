// The sections "[endpoint NAME]" of the worker's configuration file: one endpoint each, with
// everything that is particular to it. A section stands for itself: its key goes to its own url
// only, and nothing of one section is ever that of another. Called by main.c and llm_settings.c.
#ifndef WORKER_ENDPOINT_ENDPOINT_SECTION_H
#define WORKER_ENDPOINT_ENDPOINT_SECTION_H

#include "common/options.h"
#include "worker/endpoint/endpoint.h"

#define ENDPOINT_SECTION_NAME_MAX 32 // bytes

// The keys of a section, as --help shows them.
extern const struct option_row endpoint_section_table[];

struct endpoint_section {
    char *name;
    char *url, *model, *api, *key_file, *header, *api_version, *effort, *body;
    double weight, temperature, requests_per_minute, tokens_per_minute;
    double price_input, price_cached, price_cache_write, price_output;
    uint64_t at_once, max_tokens;
};

// Zeroed memory has none.
struct endpoint_sections {
    struct endpoint_section section[ENDPOINTS_MAX];
    size_t count;
};

// Opens a section, for struct options_group: its fields have their defaults. ERR_INVALID when the
// name is none, when there is one of that name, or when there are too many.
void *endpoint_sections_open(void *sections, const char *name, struct err *err);
void endpoint_sections_release(struct endpoint_sections *sections);

// Turns a section into the configuration of an endpoint, without its key. *ret borrows the
// section's texts but for its url and its extra body, which are its own (endpoint_config_release).
// ERR_USAGE names the section and what is wrong.
MUST_CHECK int endpoint_section_read(struct endpoint_config *ret,
                                     const struct endpoint_section *section, struct err *err);

// Reads the extra body of an endpoint: a JSON object that does not say what the worker says itself.
MUST_CHECK int endpoint_extra_read(json_t **ret, const char *text, struct err *err);

#endif

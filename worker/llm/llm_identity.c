// Who answers. An endpoint with its model, the words of the prompt and the way in which it is asked
// is one forecaster: what it is worth says nothing of another one. Its answers are kept under the
// same, but for what was learnt about the way, which an answer names itself.
#include "common/mem.h"
#include "worker/llm/llm_state.h"
#include "worker/prompt/prompt.h"
#include <stdlib.h>

uint64_t llm_max_tokens(const struct llm *llm, size_t endpoint)
{
    uint64_t own = endpoints_config(llm->endpoints, endpoint)->max_tokens;

    return own > 0 ? own : llm->config.max_tokens;
}

double llm_temperature(const struct llm *llm, size_t endpoint)
{
    double own = endpoints_config(llm->endpoints, endpoint)->temperature;

    return own >= 0 ? own : llm->config.temperature;
}

// Adds what changes the answers of the endpoint. Its name, key, weight, prices and limits of
// requests do not.
static void add_endpoint(struct digest_state *state, const struct llm *llm, size_t endpoint)
{
    const struct endpoint_config *config = endpoints_config(llm->endpoints, endpoint);
    char *extra = config->extra ? json_dumps(config->extra, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    uint64_t max_tokens = llm_max_tokens(llm, endpoint);
    double temperature = llm_temperature(llm, endpoint);

    digest_add_text(state, config->url);
    digest_add_text(state, config->model);
    digest_add_text(state, api_form_name(config->form));
    digest_add_text(state, config->api_version ? config->api_version : "");
    digest_add_text(state, config->effort ? config->effort : "");
    digest_add_text(state, extra ? extra : "");
    digest_add(state, &max_tokens, sizeof(max_tokens));
    digest_add(state, &temperature, sizeof(temperature));
    free(extra);
}

struct digest llm_answer_key(const struct llm *llm, const struct digest *question, size_t endpoint)
{
    struct digest_state *state = digest_begin();

    digest_add(state, question, sizeof(*question));
    add_endpoint(state, llm, endpoint);
    return digest_end(state);
}

char *llm_forecaster(const struct llm *llm, size_t endpoint, const struct request_style *style)
{
    const uint64_t edition = PROMPT_EDITION;
    const bool left_out[] = {style->no_logprobs, style->no_temperature, style->no_system,
                             style->no_effort};
    struct digest_state *state = digest_begin();
    char hex[DIGEST_HEX_LEN + 1];

    digest_add(state, &llm->rules_digest, sizeof(llm->rules_digest));
    digest_add(state, &edition, sizeof(edition));
    digest_add(state, &llm->config.samples, sizeof(llm->config.samples));
    add_endpoint(state, llm, endpoint);
    digest_add_text(state, output_format_name(style->format));
    digest_add(state, left_out, sizeof(left_out));
    digest_add(state, &style->extra_left_out, sizeof(style->extra_left_out));
    struct digest identity = digest_end(state);
    digest_hex(&identity, hex);
    return xasprintf("%.200s #%.8s", endpoints_config(llm->endpoints, endpoint)->model, hex);
}

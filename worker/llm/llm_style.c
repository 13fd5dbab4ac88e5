// How endpoints are asked, kept in the state: learnt once per endpoint, model, form and purpose.
#include "common/log.h"
#include "common/mem.h"
#include "worker/llm/llm_state.h"
#include <stdlib.h>

static const char *const purpose_name[LLM_PURPOSES] = {
    [LLM_FORECAST] = "forecast", [LLM_PROPOSE] = "propose", [LLM_RANK] = "rank"};
static const char *const purpose_text[LLM_PURPOSES] = {
    [LLM_FORECAST] = "forecasts", [LLM_PROPOSE] = "candidates", [LLM_RANK] = "rankings"};

// The key of an endpoint's style. The limit of an answer is a part of it, because what was learnt
// of answers that are cut off is only true of one. The caller frees it.
static char *key_of(const struct llm *llm, enum llm_purpose purpose, size_t endpoint)
{
    const struct endpoint_config *config = endpoints_config(llm->endpoints, endpoint);
    char *extra = config->extra ? json_dumps(config->extra, JSON_COMPACT) : NULL;
    char *key = xasprintf("%s\n%s\n%s\n%s\n%llu\n%s", purpose_name[purpose], config->url,
                          config->model, api_form_name(config->form),
                          (unsigned long long)llm_max_tokens(llm, endpoint), extra ? extra : "");

    free(extra);
    return key;
}

// Returns whether the endpoint's style was known.
static bool load(struct llm *llm, enum llm_purpose purpose, size_t endpoint)
{
    struct request_style *style = &llm->style[purpose][endpoint];
    enum api_form form = endpoints_config(llm->endpoints, endpoint)->form;
    char *key = key_of(llm, purpose, endpoint);
    struct strbuf text = STRBUF_INIT;

    *style = request_style_first(form);
    bool known = endpoint_store_style(llm->store, key, &text) &&
                 request_style_read(style, form, strbuf_text(&text), text.len, NULL) == 0;
    strbuf_release(&text);
    free(key);
    return known;
}

void llm_style_load(struct llm *llm)
{
    for (size_t i = 0; i < endpoints_count(llm->endpoints); i++) {
        (void)load(llm, LLM_PROPOSE, i);
        if (load(llm, LLM_FORECAST, i)) {
            endpoints_set_proven(llm->endpoints, i);
        }
        (void)load(llm, LLM_RANK, i);
    }
}

void llm_style_inherit(struct llm *llm)
{
    for (size_t i = 0; i < endpoints_count(llm->endpoints); i++) {
        char *key = key_of(llm, LLM_RANK, i);
        struct strbuf text = STRBUF_INIT;

        if (!endpoint_store_style(llm->store, key, &text)) {
            llm->style[LLM_RANK][i] = llm->style[LLM_FORECAST][i];
        }
        strbuf_release(&text);
        free(key);
    }
}

void llm_style_restore(struct llm *llm, enum llm_purpose purpose, size_t endpoint)
{
    (void)load(llm, purpose, endpoint);
}

void llm_style_save(struct llm *llm, enum llm_purpose purpose, size_t endpoint)
{
    const struct request_style *style = &llm->style[purpose][endpoint];
    char *key = key_of(llm, purpose, endpoint);
    struct strbuf text = STRBUF_INIT, known = STRBUF_INIT;

    request_style_write(&text, style);
    if (!endpoint_store_style(llm->store, key, &known) ||
        strcmp(strbuf_text(&known), strbuf_text(&text)) != 0) {
        struct strbuf way = STRBUF_INIT;

        endpoint_store_set_style(llm->store, key, strbuf_text(&text));
        request_style_describe(&way, style, endpoints_config(llm->endpoints, endpoint)->extra);
        log_event(LOG_INFO, "endpoint-asked endpoint=%s for=%s way=\"%s\"",
                  endpoints_name(llm->endpoints, endpoint), purpose_text[purpose],
                  strbuf_text(&way));
        strbuf_release(&way);
    }
    strbuf_release(&text);
    strbuf_release(&known);
    free(key);
}

#include "worker/endpoint/refusal_words.h"

#include "common/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

const char *refusal_find_phrase(const char *text, const char *phrase)
{
    size_t len = strlen(phrase);
    bool open = phrase[len - 1] == '*';

    len -= open;
    for (const char *at = text; (at = memmem(at, strlen(at), phrase, len)); at++) {
        if ((at == text || !is_word(at[-1])) && (open || !is_word(at[len]))) {
            return at;
        }
    }
    return NULL;
}

bool refusal_has_any(const char *text, const char *const *phrases)
{
    for (; *phrases; phrases++) {
        if (refusal_find_phrase(text, *phrases)) {
            return true;
        }
    }
    return false;
}

static const struct {
    enum request_feature feature;
    const char *phrase;
} named[] = {
    {FEATURE_LOGPROBS, "logprob*"},
    {FEATURE_LOGPROBS, "top_logprob*"},
    {FEATURE_LOGPROBS, "log prob*"},
    {FEATURE_LOGPROBS, "log-prob*"},
    {FEATURE_LOGPROBS, "logits"},
    {FEATURE_TEMPERATURE, "temperature"},
    {FEATURE_LIMIT, "max_tokens"},
    {FEATURE_LIMIT, "max_completion_tokens"},
    {FEATURE_LIMIT, "max_output_tokens"},
    {FEATURE_LIMIT, "maxoutputtokens"},
    {FEATURE_LIMIT, "max_new_tokens"},
    {FEATURE_FORMAT, "response_format"},
    {FEATURE_FORMAT, "response format*"},
    {FEATURE_FORMAT, "json_schema"},
    {FEATURE_FORMAT, "json schema"},
    {FEATURE_FORMAT, "json_object"},
    {FEATURE_FORMAT, "json mode"},
    {FEATURE_FORMAT, "json output*"},
    {FEATURE_FORMAT, "structured output*"},
    {FEATURE_FORMAT, "structured_output*"},
    {FEATURE_FORMAT, "response_schema"},
    {FEATURE_FORMAT, "responseschema"},
    {FEATURE_FORMAT, "text.format*"},
    {FEATURE_FORMAT, "output_config"},
    {FEATURE_FORMAT, "output_format"},
    {FEATURE_FORMAT, "guided*"},
    {FEATURE_FORMAT, "grammar*"},
    {FEATURE_FORMAT, "additionalproperties"},
    {FEATURE_FORMAT, "schema"},
    {FEATURE_CHOICE, "tool_choice"},
    {FEATURE_CHOICE, "tool choice"},
    {FEATURE_TOOLS, "tool"},
    {FEATURE_TOOLS, "tools"},
    {FEATURE_TOOLS, "tool_use"},
    {FEATURE_TOOLS, "tool_call*"},
    {FEATURE_TOOLS, "function call*"},
    {FEATURE_TOOLS, "function_call*"},
    {FEATURE_TOOLS, "function_declaration*"},
    {FEATURE_TOOLS, "functions"},
    {FEATURE_SYSTEM, "system role"},
    {FEATURE_SYSTEM, "'system'"},
    {FEATURE_SYSTEM, "`system`"},
    {FEATURE_SYSTEM, "system message*"},
    {FEATURE_SYSTEM, "system prompt*"},
    {FEATURE_SYSTEM, "system_instruction*"},
    {FEATURE_SYSTEM, "developer instruction*"},
    {FEATURE_SYSTEM, "messages[0].role"},
    {FEATURE_SYSTEM, "instructions"},
    {FEATURE_EFFORT, "reasoning_effort"},
    {FEATURE_EFFORT, "reasoning.effort"},
    {FEATURE_EFFORT, "reasoning effort"},
    {FEATURE_EFFORT, "reasoning"},
    {FEATURE_EFFORT, "effort"},
    {FEATURE_EFFORT, "thinking"},
    {FEATURE_CACHE, "cache_control*"},
    {FEATURE_CACHE, "prompt caching"},
};

unsigned refusal_first_feature(const char *line, const char **ret_at)
{
    unsigned feature = 0;

    *ret_at = NULL;
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        const char *at = refusal_find_phrase(line, named[i].phrase);

        // Of two at one place the more precise one stands first in the table. "Thinking" that does
        // not go with something else, such as a tool, is that other thing's fault.
        bool weaker = named[i].feature == FEATURE_EFFORT && *ret_at && feature != FEATURE_EFFORT;
        bool stronger = named[i].feature != FEATURE_EFFORT && feature == FEATURE_EFFORT;

        if (at && !weaker && (!*ret_at || stronger || at < *ret_at)) {
            *ret_at = at;
            feature = named[i].feature;
        }
    }
    return feature;
}

unsigned refusal_features(const char *text)
{
    unsigned features = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        char *line = xstrndup(text, len);
        const char *at;

        features |= refusal_first_feature(line, &at);
        free(line);
        text += len + (text[len] == '\n');
    }
    return features;
}

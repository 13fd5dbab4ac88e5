#include "worker/llm/answer_forms.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <string.h>
#include <strings.h>

// ---- usage ----

// A count under one of the names; 0 when there is none.
static uint64_t count_of(const json_t *object, const char *name, const char *other)
{
    const json_t *value = json_object_get(object, name);

    value = value ? value : json_object_get(object, other);
    json_int_t number = json_integer_value(value);
    return number > 0 ? (uint64_t)number : 0;
}

void answer_forms_usage(const json_t *root, struct answer_usage *ret)
{
    const json_t *usage = json_object_get(root, "usage");
    const json_t *in = json_object_get(usage, "prompt_tokens_details");
    const json_t *out = json_object_get(usage, "completion_tokens_details");
    uint64_t read = count_of(usage, "cache_read_input_tokens", "cache_read_input_tokens");
    uint64_t written =
        count_of(usage, "cache_creation_input_tokens", "cache_creation_input_tokens");

    *ret = (struct answer_usage){
        .input = count_of(usage, "prompt_tokens", "input_tokens"),
        .output = count_of(usage, "completion_tokens", "output_tokens"),
        .cached = count_of(in ? in : json_object_get(usage, "input_tokens_details"),
                           "cached_tokens", "cached_tokens"),
        .reasoning = count_of(out ? out : json_object_get(usage, "output_tokens_details"),
                              "reasoning_tokens", "reasoning_tokens"),
        .written = written,
    };
    if (ret->cached == 0) { // DeepSeek's name for it
        ret->cached = count_of(usage, "prompt_cache_hit_tokens", "prompt_cache_hit_tokens");
    }
    if (read > 0 || written > 0) {
        ret->input += read + written;
        ret->cached = read;
    }
}

// ---- ends ----

enum answer_end answer_forms_end(const char *finish)
{
    static const char *const cut[] = {"length", "max_tokens", "max_output_tokens", "model_length",
                                      "model_context_window_exceeded"};
    static const char *const filtered[] = {
        "content_filter",     "refusal",    "safety",   "content_policy",
        "prohibited_content", "recitation", "blocklist"};

    for (size_t i = 0; finish && i < ARRAY_LEN(cut); i++) {
        if (strcasecmp(finish, cut[i]) == 0) {
            return ANSWER_CUT_OFF;
        }
    }
    for (size_t i = 0; finish && i < ARRAY_LEN(filtered); i++) {
        // Google adds its own reason behind the name.
        if (strncasecmp(finish, filtered[i], strlen(filtered[i])) == 0) {
            return ANSWER_FILTERED;
        }
    }
    return ANSWER_WHOLE;
}

// ---- choices ----

// What is gathered of an answer that is a list of parts.
struct parts {
    struct strbuf text, reasoning;
    json_t *calls, *logprobs;
    const char *refusal;
};

static void add_string(struct strbuf *out, const json_t *value)
{
    const char *text = json_string_value(value);

    strbuf_adds(out, text ? text : "");
}

// Adds a call of a tool, whose arguments are a text or an object.
static void add_call(struct parts *parts, const json_t *arguments)
{
    json_t *call = json_object(), *function = json_object();

    json_object_set(function, "arguments", (json_t *)(uintptr_t)arguments);
    json_object_set_new(call, "function", function);
    json_array_append_new(parts->calls, call);
}

static void add_list(struct parts *parts, const json_t *list, unsigned depth);

// Adds one part: of OpenAI's "output", or of a message's content there or at Anthropic's.
static void add_part(struct parts *parts, const json_t *part, unsigned depth)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    if (!type || depth == 0) {
        return;
    }
    if (strcmp(type, "message") == 0) {
        add_list(parts, json_object_get(part, "content"), depth - 1);
    } else if (strcmp(type, "text") == 0 || strcmp(type, "output_text") == 0) {
        add_string(&parts->text, json_object_get(part, "text"));
        json_array_extend(parts->logprobs, json_object_get(part, "logprobs"));
    } else if (strcmp(type, "thinking") == 0) {
        add_string(&parts->reasoning, json_object_get(part, "thinking"));
    } else if (strcmp(type, "reasoning") == 0) {
        add_list(parts, json_object_get(part, "summary"), depth - 1);
        add_list(parts, json_object_get(part, "content"), depth - 1);
    } else if (strcmp(type, "summary_text") == 0 || strcmp(type, "reasoning_text") == 0) {
        add_string(&parts->reasoning, json_object_get(part, "text"));
    } else if (strcmp(type, "tool_use") == 0) {
        add_call(parts, json_object_get(part, "input"));
    } else if (strcmp(type, "function_call") == 0) {
        add_call(parts, json_object_get(part, "arguments"));
    } else if (strcmp(type, "refusal") == 0) {
        parts->refusal = json_string_value(json_object_get(part, "refusal"));
    }
}

static void add_list(struct parts *parts, const json_t *list, unsigned depth)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        add_part(parts, json_array_get(list, i), depth);
    }
}

// The end of an answer of OpenAI's responses: a status and, where it is incomplete, the reason.
static const char *responses_end(const json_t *root)
{
    const char *status = json_string_value(json_object_get(root, "status"));
    const json_t *details = json_object_get(root, "incomplete_details");
    const char *reason = json_string_value(json_object_get(details, "reason"));

    return status && strcmp(status, "incomplete") == 0 ? reason ? reason : "length" : "stop";
}

// Makes a choice of a list of parts.
static json_t *choice_of_parts(const json_t *list, const char *finish)
{
    struct parts parts = {.text = STRBUF_INIT,
                          .reasoning = STRBUF_INIT,
                          .calls = json_array(),
                          .logprobs = json_array()};
    json_t *message = json_object();

    add_list(&parts, list, 4);
    if (parts.text.len > 0) {
        json_object_set_new(message, "content", json_string(strbuf_text(&parts.text)));
    }
    if (parts.reasoning.len > 0) {
        json_object_set_new(message, "reasoning_content",
                            json_string(strbuf_text(&parts.reasoning)));
    }
    if (parts.refusal) {
        json_object_set_new(message, "refusal", json_string(parts.refusal));
    }
    json_object_set_new(message, "tool_calls", parts.calls);
    json_t *choice = json_object();
    json_object_set_new(choice, "message", message);
    if (finish) {
        json_object_set_new(choice, "finish_reason", json_string(finish));
    }
    json_object_set_new(choice, "logprobs", json_pack("{s:o}", "content", parts.logprobs));
    strbuf_release(&parts.text);
    strbuf_release(&parts.reasoning);
    return choice;
}

json_t *answer_forms_choice(const json_t *root)
{
    json_t *choice = json_array_get(json_object_get(root, "choices"), 0);

    if (json_is_object(json_object_get(choice, "message"))) {
        return json_incref(choice);
    }
    const json_t *output = json_object_get(root, "output");
    if (json_is_array(output)) {
        return choice_of_parts(output, responses_end(root));
    }
    const json_t *content = json_object_get(root, "content");
    if (json_is_array(content) && json_object_get(root, "stop_reason")) {
        return choice_of_parts(content, json_string_value(json_object_get(root, "stop_reason")));
    }
    return NULL;
}
